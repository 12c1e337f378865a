/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes, as /proc and pidfds show them. */
#ifndef GP_BASE_PROCESS_H
#define GP_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* In clock ticks since boot: with the pid it names a process for ever. 0: there is none, or no file
 * is left to read it with. */
uint64_t gp_process_start_time(pid_t pid);

/* It has ended, or its pid is another's by now. Not where that cannot be told. */
bool gp_process_gone(pid_t pid, uint64_t start_time);

/* Whether it has not ended. Who has, and is not waited for by its parent, has. Where that cannot be
 * told, it has not. */
bool gp_process_lives(pid_t pid, uint64_t start_time);

/* A name for a process that is not reused: its start time and pid; the lowest 6 bits are 0, for who
 * has several of something in a process. */
uint64_t gp_process_key(uint64_t start_time, pid_t pid);

/* 0: there is no such process, or it is nobody's child. */
pid_t gp_process_parent(pid_t pid);

/* Whether it is a child of this process that has not run a program of its own yet: it has all our
 * files, also those that we only borrow. */
bool gp_process_is_our_fork(pid_t pid);

/* The name as ps shows it (comm), "" when there is none. Returns `out`. */
const char *gp_process_name(pid_t pid, char *out, size_t size);

/* Effective user; real, effective and saved. false when the process is gone. */
bool gp_process_uid(pid_t pid, uid_t *uid);
bool gp_process_uids(pid_t pid, uid_t uid[3]);

/* Whether both are in the same pid namespace. One that cannot be looked at counts as elsewhere. */
bool gp_process_same_pidns(pid_t a, pid_t b);

/* File descriptor or -errno. A pidfd becomes readable when its process ends. */
int gp_pidfd_open(pid_t pid);
int gp_pidfd_getfd(int pidfd, int fd);

/* Whether the process behind it has ended. */
bool gp_pidfd_ended(int pidfd);

/* Whether this process may look into others (CAP_SYS_PTRACE). */
bool gp_have_ptrace(void);

/* Whether it may open /proc/PID/fd and mem of other users, whatever else it may do to them
 * (CAP_DAC_READ_SEARCH). */
bool gp_have_read_all(void);

/* kernel.yama.ptrace_scope, '0' to '3'; 0: there is no Yama. */
char gp_yama_scope(void);

/*
 * Why this process may not be looked into (pidfd_getfd or /proc/PID/fd answered `code`): one
 * sentence that names what stands in the way, as far as can be told, and what would help.
 * Returns `code`.
 */
int gp_process_denied(struct gp_error *err, pid_t pid, int code);

/* Calls `each` for every process until it answers other than 0, which is then returned. */
int gp_process_each(int (*each)(void *arg, pid_t pid), void *arg);

/*
 * The process that is `pid` inside a container, by the container's name or id as it stands in the
 * process's cgroup path (at least 3 characters of it). -ESRCH: none; -ENOTUNIQ: more than one.
 */
int gp_process_in_container(const char *container, pid_t pid, pid_t *found, struct gp_error *err);

#endif
