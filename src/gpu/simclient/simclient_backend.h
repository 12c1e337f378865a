/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated GPUs in real time (gpreempt-simgpu). This back end is used only if gp_backends_select
 * selected it.
 *
 * The server takes the place of a driver, and it can end. From then on scan returns 0 tasks and all
 * other functions return -EIO. The held contexts end with the server.
 */
#ifndef GP_GPU_SIMCLIENT_SIMCLIENT_BACKEND_H
#define GP_GPU_SIMCLIENT_SIMCLIENT_BACKEND_H

#include "gpu/gpu.h"

extern const struct gp_gpu_ops gp_simgpu_ops;

#endif
