/* SPDX-License-Identifier: Apache-2.0 */
/* A program's side of a simulated GPU: a context, requests, and what came of them. */
#ifndef GP_GPU_SIMCLIENT_PROGRAM_H
#define GP_GPU_SIMCLIENT_PROGRAM_H

#include "gpu/simclient/connection.h"

#define GP_SIMGPU_QUEUED 16 /* requests at one time */

/* Makes a context for the calling process as `hello` says (kind, version and role are filled in).
 * A socket that is readable when a request is done, or -errno. Closing it ends the context. */
int gp_simgpu_join(const char *path, struct gp_simgpu_hello *hello, struct gp_error *err);

/* 0 or -errno; neither waits. -EAGAIN: nothing is done yet. -EIO: the device is gone. */
int gp_simgpu_submit(int fd, uint64_t tag, uint32_t kernels, uint64_t kernel_ns, uint64_t gap_ns);
int gp_simgpu_take(int fd, struct gp_simgpu_done *done);

#endif
