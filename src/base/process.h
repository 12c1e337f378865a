/* SPDX-License-Identifier: Apache-2.0 */
/* Information about other processes, from /proc and from pidfds. */
#ifndef GP_BASE_PROCESS_H
#define GP_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * A process in execve can keep the kernel from answering (base/inquiry.h). It is unknown then:
 * the functions below that return an error return -ETIMEDOUT, and none takes it for ended.
 */

/* Start time in clock ticks since boot. Together with the pid it identifies a process for ever. 0:
 * the process does not exist or does not answer, or no file descriptor is left to read /proc. */
uint64_t gp_process_start_time(pid_t pid);

/* The same. 0, -ESRCH: there is no such process, -ETIMEDOUT: it does not answer, or -errno. */
int gp_process_read_start_time(pid_t pid, uint64_t *start_time);

/* The same, with a sentence. */
int gp_process_find(pid_t pid, uint64_t *start_time, struct gp_error *err);

/* Writes that the process does not answer, and what to do. Returns `code`: -ETIMEDOUT, or -EAGAIN
 * in answers to clients, where a timeout means that the driver or the daemon does not answer. */
int gp_process_silent(struct gp_error *err, pid_t pid, int code);

/* Reads the beginning of /proc/PID/NAME, at most 1023 bytes, and adds a 0. Returns the length, or
 * -errno. */
ssize_t gp_process_read(pid_t pid, const char *name, char *out, size_t size);

/* Opens /proc/PID/NAME. Returns a file descriptor or -errno. */
int gp_process_open(pid_t pid, const char *name, int flags);

/* The state of the main thread as ps shows it: 'T' stopped by a signal, 't' stopped by its tracer,
 * 'Z' ended. 0: not known. A process in a frozen cgroup looks like a sleeping process. */
char gp_process_state(pid_t pid);

/* Whether the process has ended or its pid was reused. False if that cannot be determined. */
bool gp_process_gone(pid_t pid, uint64_t start_time);

/* Whether the process is still running. A zombie counts as ended. True if that cannot be
 * determined. */
bool gp_process_lives(pid_t pid, uint64_t start_time);

/* Whether the process is still running and can continue. False also for a killed process whose last
 * threads still wait in the kernel: its files are open, but its program executes no further
 * instruction. Allocates no memory. */
bool gp_process_can_run(pid_t pid, uint64_t start_time);

/* A key for a process that is never reused: start time and pid. The lowest 6 bits are 0, so that a
 * caller can number several objects of one process. */
uint64_t gp_process_key(uint64_t start_time, pid_t pid);

/* Returns the parent's pid; 0: the process does not exist or has no parent. */
pid_t gp_process_parent(pid_t pid);

/* Whether the process is a child of this one that has not called execve yet. Such a child shares
 * all our open files, including those that were copied from other processes. */
bool gp_process_is_our_fork(pid_t pid);

/* Whether the process runs a program of gpreempt. Such a process may have files of other programs
 * open, copied for the duration of an operation. A program chooses its own name, so only processes
 * of root and of this user in this pid namespace count. */
bool gp_process_is_gpreempt(pid_t pid);

/* The name as ps shows it (comm), made harmless by gp_utf8_clean; "" if it cannot be read. Returns
 * `out`. */
const char *gp_process_name(pid_t pid, char *out, size_t size);

/* Return the effective uid, or the real, effective and saved uids. False: the process has ended. */
bool gp_process_uid(pid_t pid, uid_t *uid);
bool gp_process_uids(pid_t pid, uid_t uid[3]);

/* Whether both processes are in the same pid namespace. False if a process cannot be inspected. */
bool gp_process_same_pidns(pid_t a, pid_t b);

/* Return a file descriptor or -errno. A pidfd becomes readable when its process ends. */
int gp_pidfd_open(pid_t pid);
int gp_pidfd_getfd(int pidfd, int fd);

/* Sends SIGKILL. 0 or -errno. */
int gp_pidfd_kill(int pidfd);

/* Whether the process of this pidfd has ended. */
bool gp_pidfd_ended(int pidfd);

/* Whether this process may inspect processes of other users (CAP_SYS_PTRACE). */
bool gp_have_ptrace(void);

/* Whether this process may open /proc/PID/fd and /proc/PID/mem of other users (CAP_DAC_READ_SEARCH
 * or CAP_DAC_OVERRIDE). */
bool gp_have_read_all(void);

/* kernel.yama.ptrace_scope as '0' to '3'; 0: the kernel has no Yama. */
char gp_yama_scope(void);

/*
 * Explains why access to a process was denied after pidfd_getfd or /proc/PID/fd failed with `code`.
 * The sentence names the obstacle, as far as it can be determined, and the remedy. Returns `code`.
 */
int gp_process_denied(struct gp_error *err, pid_t pid, int code);

/* For code that must not allocate memory: an entry of getdents64(2). */
struct gp_directory_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short size;
	unsigned char type;
	char name[];
};

/* Calls `each` for every process until `each` returns a value other than 0, and returns that value.
 * -errno: not every process was listed. */
int gp_process_each(int (*each)(void *arg, pid_t pid), void *arg);

/*
 * Finds the process whose pid inside a container is `pid`. `container`: at least 3 characters of
 * the container's name or id, as they occur in the cgroup path. -ESRCH: no process found;
 * -ENOTUNIQ: more than one.
 */
int gp_process_in_container(const char *container, pid_t pid, pid_t *found, struct gp_error *err);

#endif
