/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Information about a process that rules match: user, cgroup, executable, command line,
 * environment. Child processes read it (reader.h), because the process controls the memory that
 * holds its command line and environment, and the file system of its executable. A page of a FUSE
 * file may never be delivered, and not even SIGKILL ends such a read.
 *
 *     gp_procinfo_new(&limits, &pool, &fd);
 *     gp_procinfo_ask(pool, pid, start_time, gp_config_wants(config), token);
 *     (when fd is readable)
 *     while (!gp_procinfo_take(pool, &info, &token)) {
 *             gp_config_match(config, info, &match);
 *             gp_procinfo_drop(info);
 *     }
 *
 * Every question gets exactly one answer, in any order. Fields that were not read before the
 * deadline are unknown in the answer; the blocked reader is killed, replaced and logged. Its user
 * is not trusted for a while: command line and environment of the user's processes are unknown. A
 * user with too many readers that do not end is not trusted until they do. If the daemon was
 * suspended for longer than a deadline, all deadlines start again.
 *
 * One thread uses a pool. No function blocks.
 */
#ifndef GP_PROCINFO_PROCINFO_H
#define GP_PROCINFO_PROCINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Fields that are known, or wanted. */
enum gp_procinfo_field {
	GP_PROCINFO_USER = 1u << 0, /* uid, gid, groups, and other_pidns */
	GP_PROCINFO_CGROUP = 1u << 1,
	GP_PROCINFO_EXE = 1u << 2,
	GP_PROCINFO_COMM = 1u << 3,
	GP_PROCINFO_CMDLINE = 1u << 4,
	GP_PROCINFO_ENVIRON = 1u << 5,
	GP_PROCINFO_ALL = (1u << 6) - 1,
};

#define GP_PROCINFO_GROUPS_MAX  1024u /* further groups are unknown */
#define GP_PROCINFO_CMDLINE_MAX 4096u /* only the beginning of a longer one is known */
#define GP_PROCINFO_ENVIRON_MAX 262144u

/* Plain data; a test may fill it in. A field is valid only if its bit is set in `known`. */
struct gp_procinfo {
	pid_t pid;
	uint64_t start_time; /* gp_process_start_time */
	int gone; /* 0, or -ESRCH: the process ended or the pid was reused; no field is known */
	uint32_t known; /* GP_PROCINFO_* */

	uid_t uid[3]; /* real, effective, saved */
	gid_t gid;    /* real: a set-gid program does not change it */
	uint32_t ngroups;
	const gid_t *group; /* supplementary groups */
	bool other_pidns;   /* in another pid namespace than the daemon */

	const char *cgroup;  /* path; cgroup.c chooses the hierarchy */
	bool cgroup_trusted; /* only root could have created this path */
	const char *exe;     /* path of the executable */
	bool exe_trusted;    /* the path leads to the executable, and only root can change either */
	char comm[16];
	const char *cmdline; /* arguments, separated by blanks */
	const char *environ; /* NAME=VALUE entries, each with a terminating 0; environ_size bytes */
	size_t environ_size;
};

struct gp_procinfo_pool;

/* 0: the default. */
struct gp_procinfo_limits {
	uint64_t deadline_ns;    /* 1 s, counted from when a reader starts on the question */
	uint32_t readers;        /* 4 at the same time */
	uint32_t stuck;          /* 32 killed readers that have not ended; with more, executable,
				    command line and environment are not read */
	uint32_t stuck_per_user; /* 2; the same for the processes of this user */
	uint64_t distrust_ns;    /* 60 s without reading memory of a user who blocked a reader */
	uint32_t questions;      /* 65536 at the same time */
	uid_t (*account)(void *arg, uid_t uid); /* the user that a uid counts for; NULL: itself */
	void *arg;
};

/*
 * Creates a pool. The pool owns `fd`, which is readable when an answer can be taken. Children are
 * started on demand. 0 or -errno.
 */
int gp_procinfo_new(const struct gp_procinfo_limits *limits, struct gp_procinfo_pool **pool,
		    int *fd);

/*
 * Frees the pool and the answers that the caller has not taken. Readers are killed; one that hangs
 * in the kernel is not waited for.
 */
void gp_procinfo_free(struct gp_procinfo_pool *pool);

/*
 * Asks about the process `pid` that started at `start_time`. `want` is a set of GP_PROCINFO_*; the
 * answer may contain more. 0, -ENOMEM, -ETIMEDOUT: the process does not answer (base/inquiry.h), or
 * -EAGAIN: too many open questions, or no child process can be started.
 */
int gp_procinfo_ask(struct gp_procinfo_pool *pool, pid_t pid, uint64_t start_time, uint32_t want,
		    uint64_t token);

/* Takes the next answer; the caller drops it. -EAGAIN: there is none. Never blocks. */
int gp_procinfo_take(struct gp_procinfo_pool *pool, struct gp_procinfo **info, uint64_t *token);
void gp_procinfo_drop(struct gp_procinfo *info);

/* For tests: the number of killed readers that have not ended. */
uint32_t gp_procinfo_stuck(struct gp_procinfo_pool *pool);

#endif
