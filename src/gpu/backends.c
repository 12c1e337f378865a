/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/backends.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/amd/backend.h"
#include "gpu/nvidia/backend.h"
#include "gpu/simgpu/backend.h"

/* Those for real GPUs first. */
static const struct gp_gpu_ops *const all[] = {
	&gp_nvidia_ops, &gp_amd_ops, NULL, &gp_simgpu_ops, NULL,
};

static const struct gp_gpu_ops *selected[2];

const struct gp_gpu_ops *const *gp_backends = all;

int gp_backends_select(const char *name)
{
	const struct gp_gpu_ops *ops = name ? gp_backend_find(name) : NULL;

	if (name && !ops)
		return -ENOENT;
	selected[0] = ops;
	gp_backends = ops ? selected : all;
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
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i] && !strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}
