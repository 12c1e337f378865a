/* SPDX-License-Identifier: Apache-2.0 */
/* The back ends for real GPUs: adding one is a folder of its own and a line in backends.c. */
#ifndef GP_GPU_BACKENDS_H
#define GP_GPU_BACKENDS_H

#include "gpu/gpu.h"

extern const struct gp_gpu_ops *const gp_backends[]; /* ends with NULL */

/* Only devices of this one, until told otherwise; NULL: all. -ENOENT: there is none of that name.
 */
int gp_backends_select(const char *name);

/* By its name; NULL: there is none. */
const struct gp_gpu_ops *gp_backend_find(const char *name);

#endif
