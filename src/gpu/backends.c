/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/backends.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/amd/amd_backend.h"
#include "gpu/nvidia/nvidia_backend.h"
#include "gpu/simclient/simclient_device.h"

static const struct gp_gpu_ops *const real[] = {
	&gp_nvidia_ops,
	&gp_amd_ops,
	NULL,
};

static const struct gp_gpu_ops *selected[2];

const struct gp_gpu_ops *const *gp_backends = real;

int gp_backends_select(const char *name)
{
	const struct gp_gpu_ops *ops = name ? gp_backend_find(name) : NULL;

	if (name && !ops)
		return -ENOENT;
	selected[0] = ops;
	gp_backends = ops ? selected : real;
	return 0;
}

int gp_backends_select_by_environment(struct gp_error *err)
{
	const char *name = secure_getenv("GPREEMPT_GPU");

	if (!name || !*name || !gp_backends_select(name))
		return 0;
	return gp_fail(err, -ENOENT, "GPREEMPT_GPU is '%s': it can be nvidia, amd or sim", name);
}

const struct gp_gpu_ops *gp_backend_find(const char *name)
{
	for (const struct gp_gpu_ops *const *b = real; *b; b++)
		if (!strcmp((*b)->name, name))
			return *b;
	return strcmp(gp_simgpu_ops.name, name) ? NULL : &gp_simgpu_ops;
}
