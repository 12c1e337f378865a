/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper looks at: whether those who hold tasks live, and whether the scheduler beats. It
 * holds pidfds of holders and the undo file, and nothing of a driver.
 */
#ifndef GP_KEEPER_HEARTBEAT_WATCH_H
#define GP_KEEPER_HEARTBEAT_WATCH_H

#include "keeper/replay_workers.h"

#define GP_WATCH_OWNERS 64 /* of more, the death is noticed at a look */
#define GP_WATCH_FDS    (GP_WATCH_OWNERS + GP_REPLAY_FDS)

struct gp_watched {
	pid_t pid;
	uint64_t start_time;
	int pidfd;
	bool ended, wanted; /* as of the last look through the records */
};

struct gp_watch {
	struct gp_undo_file *file;
	struct gp_replay replay;
	uint64_t timeout_ns; /* without a beat, after which a scheduler counts as gone */
	uint64_t look_ns;    /* the next look; there are 4 a second */

	struct gp_watched owner[GP_WATCH_OWNERS];
	unsigned nowners;

	struct gp_undo_scheduler scheduler; /* as last seen */
	unsigned quiet;                     /* looks in a row without a beat */
	bool silent;

	uint64_t changes; /* of the file, when it was last looked through */
	bool must_search;
	uint64_t search_ns; /* the earliest record that is to be tried again */
	struct {
		uint64_t not_before_ns, backoff_ns;
	} again[GP_UNDO_SLOTS];
	unsigned undone; /* in this run */
};

int gp_watch_begin(struct gp_watch *w, struct gp_undo_file *file, uint64_t timeout_ns,
                   struct gp_error *err);
void gp_watch_end(struct gp_watch *w);

/* Does what there is to do. When to call again at the latest. `is_look` says whether it was a look:
 * the regular ones, by which others can see that we live. */
uint64_t gp_watch_run(struct gp_watch *w, uint64_t now_ns, bool *is_look);

/* What to wait for: GP_WATCH_FDS of them. */
void gp_watch_poll(const struct gp_watch *w, struct pollfd *p);

/* Whether nothing is being undone, or waits to be. */
bool gp_watch_is_idle(const struct gp_watch *w);

#endif
