/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that the control thread knows: those with tasks, and those with assignments before
 * their first task. A pidfd tells when each ends. If no file descriptor is free for it, the end
 * cannot be seen: the process then counts as alive, no client may change it, and gp_procs_retry
 * tries again.
 */
#ifndef GP_DAEMON_PROCS_H
#define GP_DAEMON_PROCS_H

#include <systemd/sd-event.h>

#include "base/accounts.h"
#include "base/table.h"
#include "config/config.h"
#include "daemon/assignments.h"

#define GP_NO_UID ((uid_t)-1)

/* A task of a process. */
struct gp_proc_task {
	unsigned device;
	uint64_t id;
	uint64_t key; /* key of the back end */
};

struct gp_procs;

#define GP_LEASES_MAX 8 /* of a process */

struct gp_proc {
	struct gp_procs *procs; /* the set it belongs to */
	pid_t pid;
	uint64_t start_time;
	char name[32];
	uid_t uid;   /* effective uid, read at each request; GP_NO_UID: unknown */
	bool shared; /* its queues run work of many programs */
	int pidfd;   /* -1: ended, or not watched */
	sd_event_source *watch;
	bool ended;
	bool unwatched; /* no pidfd: the process may have ended */

	enum gp_attr_source source;
	uid_t set_by;  /* the user, if source is GP_ATTR_BY_USER; GP_BY_ADMIN: an administrator */
	uid_t account; /* of set_by; the process is counted for it */
	unsigned rule; /* number of the rule from 1; 0 = none */
	struct gp_task_attr attr;
	struct gp_task_attr given; /* what a rule gives, even if a user set other attributes */
	struct gp_limit limit;     /* configured limit of set_by */
	char gang[GP_GANG_NAME_MAX];
	uint64_t memory_limit; /* bytes; 0 = none */
	bool hold_at_limit;
	uint64_t memory; /* bytes on all devices, at the last check */
	bool limit_passed;
	bool limit_held;   /* the process was held because of that */
	bool asked;        /* process info was requested */
	unsigned tries;    /* requests that were incomplete */
	uint64_t again_ns; /* when to ask again; 0 = not needed */
	bool ask_again;    /* the rules have changed since the request */

	uid_t held_by; /* the user who holds it; GP_NO_UID: not held by a user */
	bool held_by_admin;
	/* With held_by: why the hold lasts. It ends when no reason is left. See leases.c. */
	bool hold_stays; /* until it is released */
	struct gp_lease {
		uint64_t number, until_ns;
		struct gp_lapses seen; /* of the process, when they were last added up */
		struct gp_lapses own;  /* since the lease began */
	} lease[GP_LEASES_MAX];
	unsigned nleases;

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
	struct gp_table set_by; /* account -> number of processes with attributes that it set */
	struct gp_accounts *accounts; /* NULL: each uid counts for itself */
	unsigned unwatched;           /* number of processes that could not be watched */
	bool logged_unwatched;        /* a warning was logged; reset when all are watched */
	/* A process has ended. It is removed after this call, unless it still has tasks. */
	void (*on_end)(void *arg, struct gp_proc *proc);
	void *arg;
};

void gp_procs_init(struct gp_procs *procs, sd_event *loop,
		   void (*on_end)(void *arg, struct gp_proc *proc), void *arg);
void gp_procs_free(struct gp_procs *procs);

struct gp_proc *gp_procs_find(const struct gp_procs *procs, pid_t pid, uint64_t start_time);
struct gp_proc *gp_procs_of_task(const struct gp_procs *procs, unsigned device, uint64_t task);

/*
 * Finds or adds a process; NULL: no memory. on_end for a process that has already ended is called
 * in the next iteration of the loop.
 */
struct gp_proc *gp_procs_get(struct gp_procs *procs, pid_t pid, uint64_t start_time);

/*
 * Sets source and set_by of a process, and counts the processes of each user. All changes of these
 * two members go through here.
 */
void gp_proc_assign(struct gp_proc *proc, enum gp_attr_source source, uid_t by);
/* The number of processes that have not ended and have attributes that this user's account set. */
uint32_t gp_procs_set_by(const struct gp_procs *procs, uid_t uid);

/* Tries again to watch processes that could not be watched; to be called periodically. */
void gp_procs_retry(struct gp_procs *procs);

/* True if the process is known to have ended. */
bool gp_proc_ended(const struct gp_proc *proc);

/* Removes a process without tasks and assignment, which was added only for a request. */
void gp_procs_drop_unused(struct gp_procs *procs, struct gp_proc *proc);

/* 0 or -ENOMEM. */
int gp_procs_task_in(struct gp_procs *procs, struct gp_proc *proc, unsigned device, uint64_t task,
		     uint64_t key);
/* Also removes the process if this was its last task and it has ended or has no assignment. */
void gp_procs_task_out(struct gp_procs *procs, unsigned device, uint64_t task);

#endif
