/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to amdkfd. Each is one system call and returns 0 or what the driver returned (counts), or
 * -errno; none allocates. Which thread may make them depends on the driver: see session.h.
 */
#ifndef GP_GPU_AMD_KFD_H
#define GP_GPU_AMD_KFD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "gpu/amd/kfd_abi.h"

/* "/dev/kfd", or what GPREEMPT_KFD says. */
const char *gp_kfd_path(void);

/*
 * A file descriptor, or -errno: -ENOENT (no driver), -EACCES, -ENOTSUP (a driver without the
 * debugger's interface). The caller becomes a KFD process by it, until it ends.
 */
int gp_kfd_open(struct gp_error *err);
int gp_kfd_version(int kfd, struct kfd_version *version);

/* `fd`: the writing end of a pipe that does not block. `info` says what state the target is in. */
int gp_kfd_enable(int kfd, pid_t pid, uint64_t exceptions, int fd, struct kfd_runtime_info *info);
int gp_kfd_disable(int kfd, pid_t pid);

/* 0, or -EAGAIN: none. `clear` is cleared from what is reported. */
int gp_kfd_query_event(int kfd, pid_t pid, uint64_t clear, uint64_t *raised);
int gp_kfd_send_runtime_event(int kfd, pid_t pid);

/* Writes up to `room` entries, clears `clear` from them, and returns how many queues there are. */
int gp_kfd_snapshot(int kfd, pid_t pid, uint64_t clear, struct kfd_queue_snapshot_entry *entry,
                    uint32_t room);

/* How many it did. Each id comes back with KFD_DBG_QUEUE_* bits. */
int gp_kfd_suspend(int kfd, pid_t pid, uint32_t *id, uint32_t n, uint32_t grace);
int gp_kfd_resume(int kfd, pid_t pid, uint32_t *id, uint32_t n);

/* Of this process's own; a signal does not end it. */
int gp_kfd_update_queue(int kfd, struct kfd_update_queue *args);

/* Whether queues could be suspended now: 0, or -EPERM: the runtime is not enabled. */
int gp_kfd_try_suspend(int kfd, pid_t pid);

#endif
