/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA GPUs on the stock driver. A task is a process with a compute group on the GPU, or one
 * compute group of it. Its clock is CLOCK_MONOTONIC: whoever drives the engine takes the same.
 */
#ifndef GP_GPU_NVIDIA_NVIDIA_BACKEND_H
#define GP_GPU_NVIDIA_NVIDIA_BACKEND_H

#include "gpu/gpu.h"

extern const struct gp_gpu_ops gp_nvidia_ops;

/* How a running kernel is interrupted: not at all, between blocks, between instructions. */
enum gp_nv_preempt_mode { GP_NV_WFI, GP_NV_CTA, GP_NV_CILP };

/* What `gpreempt doctor` says about this machine. */
void gp_nv_doctor(gp_finding_fn *say, void *arg);

#endif
