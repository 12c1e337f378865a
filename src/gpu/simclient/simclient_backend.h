/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated GPUs in real time (gpreempt-simgpu) behind the contract of gpu.h. It is used only where
 * somebody selected it: gp_backends_select.
 *
 * Its server is to it what a driver is to the others, and can go away: from then on nobody is found
 * on the device (scan says 0) and everything else answers -EIO. What it held is gone with it.
 */
#ifndef GP_GPU_SIMCLIENT_SIMCLIENT_BACKEND_H
#define GP_GPU_SIMCLIENT_SIMCLIENT_BACKEND_H

#include "gpu/gpu.h"

extern const struct gp_gpu_ops gp_simgpu_ops;

#endif
