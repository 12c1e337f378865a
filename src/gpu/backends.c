/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/backends.h"

#include <string.h>

#include "gpu/amd/backend.h"
#include "gpu/nvidia/backend.h"

const struct gp_gpu_ops *const gp_backends[] = {
	&gp_nvidia_ops,
	&gp_amd_ops,
	NULL,
};

int gp_backends_select(const char *name)
{
	return name && !gp_backend_find(name) ? -ENOENT : 0;
}

const struct gp_gpu_ops *gp_backend_find(const char *name)
{
	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++)
		if (!strcmp((*b)->name, name))
			return *b;
	return NULL;
}
