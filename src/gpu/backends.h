/* SPDX-License-Identifier: Apache-2.0 */
/* The list of back ends. A new back end is a folder of its own and a line in backends.c. */
#ifndef GP_GPU_BACKENDS_H
#define GP_GPU_BACKENDS_H

#include "gpu/gpu.h"

/* The back ends in use, ended by NULL: by default those for real GPUs. */
extern const struct gp_gpu_ops *const *gp_backends;

/* Uses only the back end `name`; NULL: all back ends for real GPUs. -ENOENT: unknown name. To be
 * called before a device is opened. */
int gp_backends_select(const char *name);

/* Uses the back end in GPREEMPT_GPU (ignored in setuid programs). -ENOENT with a sentence. */
int gp_backends_select_by_environment(struct gp_error *err);

/* Finds a back end by name, also one that is not in use: undo records name them. NULL: unknown. */
const struct gp_gpu_ops *gp_backend_find(const char *name);

#endif
