/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper watches: whether the owners of undo records are alive, whether they send
 * heartbeats, and whether they release what they are asked to. It has pidfds of owners and the undo
 * file open, and no file of a driver.
 */
#ifndef GP_KEEPER_HEARTBEAT_WATCH_H
#define GP_KEEPER_HEARTBEAT_WATCH_H

#include "keeper/replay_workers.h"

#define GP_WATCH_OWNERS 64 /* the death of further owners is noticed at the next check */
#define GP_WATCH_FDS    (GP_WATCH_OWNERS + GP_REPLAY_FDS)

struct gp_watched {
	pid_t pid;
	uint64_t start_time;
	int pidfd;
	bool ended, wanted; /* as of the last search through the records */
	unsigned killed;    /* checks since the keeper killed it; 0: not killed */
	bool hung;          /* it was killed and waits in the kernel; as of the last check */
};

/* What the keeper knows of a record. Times are counted in checks. */
struct gp_watched_record {
	uint64_t not_before_ns, backoff_ns; /* of the next attempt */
	uint64_t heartbeat_ns;              /* of an owner that is not the scheduler */
	bool repeat;                        /* only the driver confirmed the last undo */
	unsigned missed;                    /* consecutive checks without a heartbeat */
	unsigned asked;                     /* checks since its release was asked for */
	unsigned failures;                  /* consecutive failed attempts, with a living owner */
};

struct gp_watch {
	struct gp_undo_file *file;
	struct gp_replay replay;
	uint64_t timeout_ns; /* silence after which a scheduler counts as hung */
	uint64_t check_ns;   /* time of the next check; there are 4 per second */

	struct gp_watched owner[GP_WATCH_OWNERS];
	unsigned nowners;

	struct gp_undo_scheduler scheduler; /* at the last check */
	unsigned missed;                    /* consecutive checks without a heartbeat */
	bool silent;

	uint64_t changes; /* gp_undo_changes at the last search */
	bool must_search;
	uint64_t search_ns; /* when the next record is due for another attempt */
	struct gp_watched_record record[GP_UNDO_SLOTS];
	uint16_t live[GP_UNDO_SLOTS]; /* records of living owners to check, found by the search */
	unsigned nlive;
	unsigned undone; /* records undone during this call of gp_watch_run */
};

int gp_watch_begin(struct gp_watch *w, struct gp_undo_file *file, uint64_t timeout_ns,
		   struct gp_error *err);
void gp_watch_end(struct gp_watch *w);

/*
 * Does all work that is due and returns when to call it again at the latest. `is_check` tells
 * whether this call made a regular check; the keeper sends its own heartbeat after each check.
 */
uint64_t gp_watch_run(struct gp_watch *w, uint64_t now_ns, bool *is_check);

/* Fills in the GP_WATCH_FDS descriptors to wait for. */
void gp_watch_poll(const struct gp_watch *w, struct pollfd *p);

/* True if no record is being undone and none waits for it. */
bool gp_watch_is_idle(const struct gp_watch *w);

#endif
