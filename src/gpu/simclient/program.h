/* SPDX-License-Identifier: Apache-2.0 */
/* The side of a program: its context on a simulated GPU, its requests and their results. */
#ifndef GP_GPU_SIMCLIENT_PROGRAM_H
#define GP_GPU_SIMCLIENT_PROGRAM_H

#include "gpu/simclient/connection.h"

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
