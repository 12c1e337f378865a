/* SPDX-License-Identifier: Apache-2.0 */
/* AMD GPUs on amdkfd, the stock kernel driver. See docs/amd.md. */
#ifndef GP_GPU_AMD_AMD_BACKEND_H
#define GP_GPU_AMD_AMD_BACKEND_H

#include "gpu/gpu.h"

extern const struct gp_gpu_ops gp_amd_ops;

/* Values of set_preempt_type. */
enum gp_amd_preempt {
	GP_AMD_SAVE = 0, /* waves are saved when the driver's default grace ends */
	/* 1 to 255: short waves may finish first, for this many 1,000 GPU clocks */
	GP_AMD_DRAIN = 255,
};

#endif
