/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to gpreempt-simgpu: the path of its socket, HELLO and WELCOME, and the requests of a
 * program. */
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

/* The same in two steps. The first returns the socket; without `wait` no step waits, and the second
 * returns -ETIMEDOUT as long as there is no answer. After a failure the caller closes the socket.
 */
int gp_simgpu_ask(const char *path, const struct gp_simgpu_hello *hello, bool wait,
		  struct gp_error *err);
int gp_simgpu_welcomed(int socket, const char *path, struct gp_simgpu_welcome *welcome, int fd[2],
		       struct gp_error *err);

/* The number of devices, or -errno. */
int gp_simgpu_devices(const char *path, struct gp_error *err);

#define GP_SIMGPU_QUEUED 16 /* requests of a context at one time */

/* Creates a context for the calling process with the properties in `hello`; kind, version and role
 * are filled in. Returns a socket that is readable when a request is done, or -errno. Closing the
 * socket ends the context. */
int gp_simgpu_join(const char *path, struct gp_simgpu_hello *hello, struct gp_error *err);

/* 0 or -errno; neither function waits. -EAGAIN: no request is done yet, or the socket is full.
 * -EIO: the device is gone. */
int gp_simgpu_submit(int fd, uint64_t tag, uint32_t kernels, uint64_t kernel_ns, uint64_t gap_ns);
int gp_simgpu_take(int fd, struct gp_simgpu_done *done);

#endif
