/* SPDX-License-Identifier: Apache-2.0 */
/* The back ends: adding one is a folder of its own and a line in backends.c. */
#ifndef GP_GPU_BACKENDS_H
#define GP_GPU_BACKENDS_H

#include "gpu/gpu.h"

/* Those that are in use, and a NULL: the ones for real GPUs, until somebody selects. */
extern const struct gp_gpu_ops *const *gp_backends;

/* Only this one; NULL: all for real GPUs. -ENOENT: there is none of that name. Before any device is
 * opened. */
int gp_backends_select(const char *name);

/* As GPREEMPT_GPU says (not in setuid programs). -ENOENT with a sentence. */
int gp_backends_select_by_environment(struct gp_error *err);

/* By its name, also where it is not in use: records of the past name them. NULL: there is none. */
const struct gp_gpu_ops *gp_backend_find(const char *name);

#endif
