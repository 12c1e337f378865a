/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to gpreempt-simgpu: the path of its socket, HELLO and WELCOME. */
#ifndef GP_GPU_SIMCLIENT_CONNECTION_H
#define GP_GPU_SIMCLIENT_CONNECTION_H

#include "gpu/simclient/sim_wire.h"

#define GP_SIMGPU_PATH_SIZE 108 /* largest path of a socket */

/* GPREEMPT_SIMGPU (ignored in setuid programs), else simgpu.sock in the run-time folder. Returns
 * `out`; "" if the path is too long for a socket. */
const char *gp_simgpu_path(char *out, size_t size);

/* Connects, sends HELLO and waits up to 2 s for WELCOME. Returns the socket, or -errno: -ENODEV (no
 * server), -EPROTO (invalid answer), or the status in WELCOME. `fd`, if not NULL, receives the
 * descriptors of the state and of the eventfd. */
int gp_simgpu_connect(const char *path, const struct gp_simgpu_hello *hello,
		      struct gp_simgpu_welcome *welcome, int fd[2], struct gp_error *err);

/* The number of devices, or -errno. */
int gp_simgpu_devices(const char *path, struct gp_error *err);

#endif
