/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that the control thread knows: those with tasks on some device, and those about
 * which something was said before they had any. Each is watched by a pidfd until it ends. Where
 * there is no file left for that, nobody can tell whether it has ended: then it counts as one that
 * has not, nobody may steer it, and gp_procs_retry tries again.
 */
#ifndef GP_DAEMON_PROCS_H
#define GP_DAEMON_PROCS_H

#include <systemd/sd-event.h>

#include "base/table.h"
#include "config/config.h"
#include "daemon/assignments.h"

#define GP_NO_UID ((uid_t)-1)

/* One of its tasks. */
struct gp_proc_task {
	unsigned device;
	uint64_t id;
	uint64_t key; /* the back end's */
};

struct gp_procs;

struct gp_proc {
	struct gp_procs *procs; /* all of them */
	pid_t pid;
	uint64_t start_time;
	char name[32];
	uid_t uid;   /* effective, when it was last named; GP_NO_UID: it was gone already */
	bool shared; /* its queues run the work of many programs */
	int pidfd;   /* -1: it has ended, or is not watched */
	sd_event_source *watch;
	bool ended;
	bool unwatched; /* it could not be; it may have ended, and its pid be another's */

	enum gp_attr_source source;
	uid_t set_by;  /* if a user did; GP_BY_ADMIN: an administrator */
	unsigned rule; /* 1 = the first; 0 = none */
	struct gp_task_attr attr;
	struct gp_task_attr given; /* what a rule gives it, or gave it before somebody said more */
	struct gp_limit limit;     /* of set_by, as written in the configuration */
	char gang[GP_GANG_NAME_MAX];
	uint64_t memory_limit; /* bytes; 0 = none */
	bool hold_at_limit;
	uint64_t memory; /* as last added up */
	bool limit_passed;
	bool limit_held;   /* ... and it was held for that */
	bool asked;        /* for its facts */
	unsigned tries;    /* that brought too few of them */
	uint64_t again_ns; /* when to ask again; 0 = they are known */
	bool ask_again;    /* the answer is to a question of older rules */

	uid_t held_by; /* who had it held; GP_NO_UID: nobody did */
	bool held_by_admin;

	unsigned ntasks, capacity;
	struct gp_proc_task *task;

	struct gp_proc *next, *prev;
};

struct gp_procs {
	sd_event *loop;
	struct gp_table by_key;  /* process key -> struct gp_proc */
	struct gp_table by_task; /* device and task -> struct gp_proc */
	struct gp_proc *first;
	unsigned n;
	unsigned unwatched;    /* of them */
	bool logged_unwatched; /* that there are such; until there are none */
	/* It has ended: after this call it is forgotten, unless it has tasks that have not left
	 * yet. */
	void (*on_end)(void *arg, struct gp_proc *proc);
	void *arg;
};

void gp_procs_init(struct gp_procs *procs, sd_event *loop,
                   void (*on_end)(void *arg, struct gp_proc *proc), void *arg);
void gp_procs_free(struct gp_procs *procs);

struct gp_proc *gp_procs_find(const struct gp_procs *procs, pid_t pid, uint64_t start_time);
struct gp_proc *gp_procs_of_task(const struct gp_procs *procs, unsigned device, uint64_t task);

/* Found or made; NULL: no memory. One that has ended by now is ended at the next round of the loop.
 */
struct gp_proc *gp_procs_get(struct gp_procs *procs, pid_t pid, uint64_t start_time);

/* Tries again to watch those who could not be watched; to be called now and then. */
void gp_procs_retry(struct gp_procs *procs);

/* Known to have ended. */
bool gp_proc_ended(const struct gp_proc *proc);

/* Forgets one that has no tasks and of which nothing was said: somebody only asked. */
void gp_procs_drop_unused(struct gp_procs *procs, struct gp_proc *proc);

/* 0 or -ENOMEM. */
int gp_procs_task_in(struct gp_procs *procs, struct gp_proc *proc, unsigned device, uint64_t task,
                     uint64_t key);
/* Forgets the process, too, when it has ended and this was its last one, or nobody said anything of
 * it. */
void gp_procs_task_out(struct gp_procs *procs, unsigned device, uint64_t task);

#endif
