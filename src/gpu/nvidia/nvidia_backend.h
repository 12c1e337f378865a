/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA GPUs on the stock driver. A task is a process with a compute group on the GPU, or one
 * compute group of it. Times are CLOCK_MONOTONIC, and the engine must use the same clock.
 */
#ifndef GP_GPU_NVIDIA_NVIDIA_BACKEND_H
#define GP_GPU_NVIDIA_NVIDIA_BACKEND_H

#include "gpu/gpu.h"

extern const struct gp_gpu_ops gp_nvidia_ops;

/* Values of set_preempt_type: a running kernel is interrupted not at all, between blocks, or
 * between instructions. */
enum gp_nv_preempt_mode { GP_NV_WFI, GP_NV_CTA, GP_NV_CILP };

void gp_nv_doctor(gp_finding_fn *say, void *arg);

#endif
