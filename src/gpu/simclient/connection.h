/* SPDX-License-Identifier: Apache-2.0 */
/* The way to gpreempt-simgpu: where its socket is, and the first words on it. */
#ifndef GP_GPU_SIMCLIENT_CONNECTION_H
#define GP_GPU_SIMCLIENT_CONNECTION_H

#include "gpu/simclient/sim_wire.h"

#define GP_SIMGPU_PATH_SIZE 108 /* of a socket's name */

/* GPREEMPT_SIMGPU (not in setuid programs), else simgpu.sock in the run-time folder. Returns `out`;
 * "" when the name is too long for a socket. */
const char *gp_simgpu_path(char *out, size_t size);

/* Connects and says hello. The socket, or -errno: -ENODEV nobody is there, -EPROTO it does not
 * speak our language, or what it answered. `fd`, if not NULL, gets state and eventfd. Waits for the
 * answer, two seconds at most. */
int gp_simgpu_connect(const char *path, const struct gp_simgpu_hello *hello,
                      struct gp_simgpu_welcome *welcome, int fd[2], struct gp_error *err);

/* How many devices there are, or -errno. */
int gp_simgpu_devices(const char *path, struct gp_error *err);

#endif
