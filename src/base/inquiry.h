/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inquiries about other processes that the kernel may not answer.
 *
 * A process can prolong an execve(2) for ever: it has a close-on-exec file in FUSE, and the FLUSH
 * of this file is not answered. Until then pidfd_getfd(2) on it waits, and on newer kernels also
 * /proc/PID/stat, exe, fd/N, ns/N, task/TID/stat, syscall and mem (6.18.44, 2026-11-19; status,
 * comm, cgroup, mountinfo, fdinfo/N and a list of fd do not wait). The state of the waiting thread
 * is D, and SIGKILL ends it.
 *
 * gp_inquire() therefore does such work in a helper process of the calling thread
 * (base/helper.h). If the helper waits for 50 ms, it is killed, and the process is `silent`: it is
 * not asked again for 1 s, then 2 s, up to 60 s. All processes of an account whose processes have
 * taken 100 ms of this thread are silent for the rest of 10 s. Processes of root, and those that
 * have ended, are asked without a helper.
 */
#ifndef GP_BASE_INQUIRY_H
#define GP_BASE_INQUIRY_H

#include <stddef.h>
#include <sys/types.h>

#define GP_INQUIRY_SIZE  8192u
#define GP_INQUIRY_FILES 64u

/* Files that the work has opened for its caller. */
struct gp_inquiry_files {
	unsigned n;
	int fd[GP_INQUIRY_FILES];
};

/* Reads and writes `data`. It runs in this thread or in a helper, so it must not use other memory,
 * allocate any, or use a lock. Returns 0 or more, or -errno. */
typedef int gp_inquiry_work(void *data, struct gp_inquiry_files *files);

/* The threads of this process use helpers from now on. Without this call, and if no helper can be
 * started, the work is done in the calling thread and can wait for ever. */
void gp_inquiry_use_helpers(void);

/* The opposite, for a process that has been forked to wait. */
void gp_inquiry_use_none(void);

/*
 * Does `work` about process `pid`, on `size` bytes of data (at most GP_INQUIRY_SIZE). `files` may
 * be NULL if it opens none; the caller closes what is in it. Returns what `work` returns, or
 * -ETIMEDOUT: the process is silent. Nothing is known about it then, `data` is unchanged, and there
 * are no files.
 */
int gp_inquire(pid_t pid, gp_inquiry_work *work, void *data, size_t size,
	       struct gp_inquiry_files *files);

/* Makes the process silent, and ends the helper, whose files may not be closed without waiting. */
void gp_inquiry_blame(pid_t pid);

#endif
