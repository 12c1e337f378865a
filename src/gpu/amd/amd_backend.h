/* SPDX-License-Identifier: Apache-2.0 */
/* AMD GPUs behind amdkfd, the stock kernel driver: docs/amd.md. */
#ifndef GP_GPU_AMD_AMD_BACKEND_H
#define GP_GPU_AMD_AMD_BACKEND_H

#include "gpu/gpu.h"

extern const struct gp_gpu_ops gp_amd_ops;

/* What set_preempt_mode takes. */
enum gp_amd_preempt {
	GP_AMD_SAVE = 0, /* waves are saved as soon as the hardware's own grace is over */
	/* 1 to 255: short waves may end first, for so many 1,000 GPU clocks */
	GP_AMD_DRAIN = 255,
};

#endif
