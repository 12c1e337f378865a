/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process is: whose, where, which program, with which words. Read away from every loop,
 * because the memory that holds a process's command line and environment is its own: a page that
 * it serves itself may never answer.
 *
 *     gp_procinfo_new(&pool, &fd);
 *     gp_procinfo_ask(pool, pid, start_time, gp_config_wants(config), token);
 *     ... fd is readable ...
 *     while (!gp_procinfo_take(pool, &facts, &token)) {
 *             gp_config_match(config, facts, &match);
 *             gp_procinfo_drop(facts);
 *     }
 *
 * Every question gets exactly one answer, in any order. What was not read within the deadline is
 * not known in it; who still reads is left behind and replaced. (A process that was stopped as a
 * whole, and looks later than twice that, begins to count anew.)
 */
#ifndef GP_PROCINFO_PROCINFO_H
#define GP_PROCINFO_PROCINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Which are known, or wanted. */
enum gp_procinfo_field {
	GP_PROCINFO_USER = 1u << 0, /* uid, gid, groups, and other_pidns */
	GP_PROCINFO_CGROUP = 1u << 1,
	GP_PROCINFO_EXE = 1u << 2,
	GP_PROCINFO_COMM = 1u << 3,
	GP_PROCINFO_CMDLINE = 1u << 4,
	GP_PROCINFO_ENVIRON = 1u << 5,
	GP_PROCINFO_ALL = (1u << 6) - 1,
};

#define GP_PROCINFO_GROUPS_MAX  1024u /* of more the first ones are known */
#define GP_PROCINFO_CMDLINE_MAX 4096u /* of a longer one the beginning is known */
#define GP_PROCINFO_ENVIRON_MAX 262144u

/* Plain data; a test may fill one in by hand. Without its bit in `known` a field means nothing. */
struct gp_procinfo {
	pid_t pid;
	uint64_t start_time; /* gp_process_start_time */
	int gone;            /* 0, or -ESRCH: it ended, or the pid is another's; nothing is known */
	uint32_t known;      /* GP_FACT_* */

	uid_t uid[3]; /* real, effective, saved */
	gid_t gid;    /* real: a set-gid program does not change it */
	uint32_t ngroups;
	const gid_t *group; /* the others it is in */
	bool other_pidns;   /* it is in another pid namespace than we are */

	const char *cgroup;  /* the path; see facts_cgroup.c for which one, where there are many */
	bool cgroup_trusted; /* nobody but root could have given it this name */
	const char *exe;     /* path of the program's file */
	bool exe_trusted; /* that path leads to that file, and nobody but root can change either */
	char comm[16];
	const char *cmdline; /* its words, with blanks between them */
	const char *environ; /* NAME=VALUE, each ended by a 0; environ_size counts them all */
	size_t environ_size;
};

struct gp_procinfo_pool;

/*
 * `fd` stays the pool's; it is readable when there is something to take. 0 or -errno. Threads are
 * made when they are needed; they block all signals.
 */
int gp_procinfo_new(struct gp_procinfo_pool **pool, int *fd);

/* As above, for tests: how long to wait, and how many may be left behind. 0: the default. */
struct gp_procinfo_limits {
	uint64_t deadline_ns; /* 1 s, from when somebody begins to read */
	uint32_t readers;     /* 4 at a time */
	uint32_t stuck;       /* 8; with more, memory of processes is not read */
	uint64_t distrust_ns; /* 60 s: nor that of who has let us wait, for so long */
	uint32_t questions;   /* 65536 at a time */
};
int gp_procinfo_new_limited(const struct gp_procinfo_limits *limits, struct gp_procinfo_pool **pool,
                            int *fd);

/* Answers that were not taken are dropped; who is stuck is left behind, and frees the rest. */
void gp_procinfo_free(struct gp_procinfo_pool *pool);

/*
 * One question about a process that began at `start_time`; `want` is of GP_FACT_*, and more may be
 * answered. Never blocks. 0, -ENOMEM, or -EAGAIN: too many questions, take some answers.
 */
int gp_procinfo_ask(struct gp_procinfo_pool *pool, pid_t pid, uint64_t start_time, uint32_t want,
                    uint64_t token);

/* The next answer, which is then the caller's to drop. -EAGAIN: there is none. Never blocks. */
int gp_procinfo_take(struct gp_procinfo_pool *pool, struct gp_procinfo **info, uint64_t *token);
void gp_procinfo_drop(struct gp_procinfo *info);

/* How many readers were left behind and have not come back. */
uint32_t gp_procinfo_stuck(struct gp_procinfo_pool *pool);

#endif
