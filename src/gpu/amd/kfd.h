/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening /dev/kfd (with the sentence for a missing or closed one), and the calls to amdkfd.
 *
 * Each call is one system call, repeated if a signal interrupts it, and returns 0, a count of the
 * driver, or -errno. -EPROTO: the answer cannot be true. No call allocates memory. The thread that
 * may make them depends on the driver, see session.h.
 */
#ifndef GP_GPU_AMD_KFD_H
#define GP_GPU_AMD_KFD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "gpu/amd/kfd_abi.h"

/* "/dev/kfd", or the path in GPREEMPT_KFD. */
const char *gp_kfd_path(void);

/*
 * A file descriptor, or -errno: -ENOENT (no driver), -EACCES, -ENOTSUP (a driver without the
 * debugger's interface). It makes the caller a KFD process until the caller ends.
 */
int gp_kfd_open(struct gp_error *err);
int gp_kfd_version(int kfd, struct kfd_version *version);

/* `fd`: the writing end of a non-blocking pipe. `info` receives the state of the target. Not
 * repeated after a signal (-EINTR): the session may exist then. */
int gp_kfd_enable(int kfd, pid_t pid, uint64_t exceptions, int fd, struct kfd_runtime_info *info);
int gp_kfd_disable(int kfd, pid_t pid);

/* 0, or -EAGAIN: no event. The call clears the exceptions in `clear`. */
int gp_kfd_query_event(int kfd, pid_t pid, uint64_t clear, uint64_t *raised);
int gp_kfd_send_runtime_event(int kfd, pid_t pid);

/* Writes up to `room` entries, clears the exceptions in `clear`, returns the number of queues: at
 * most KFD_DBG_QUEUES_MAX. */
int gp_kfd_snapshot(int kfd, pid_t pid, uint64_t clear, struct kfd_queue_snapshot_entry *entry,
		    uint32_t room);

/* 1: the process has a debug session, of any debugger; 0: it has none; or -errno. */
int gp_kfd_has_session(int kfd, pid_t pid);

/* Returns the number of queues done. The call sets KFD_DBG_QUEUE_* bits in each id. */
int gp_kfd_suspend(int kfd, pid_t pid, uint32_t *id, uint32_t n, uint32_t grace);
int gp_kfd_resume(int kfd, pid_t pid, uint32_t *id, uint32_t n);

/* For a queue of this process. Repeated after a signal. */
int gp_kfd_update_queue(int kfd, struct kfd_update_queue *args);

/* A stream of the GPU's SMI events, see smi.c: a file descriptor, or -errno. */
int gp_kfd_smi_events(int kfd, uint32_t gpu_id);

/* Whether queues could be suspended now: 0, or -EPERM: the runtime is not enabled. */
int gp_kfd_try_suspend(int kfd, pid_t pid);

#endif
