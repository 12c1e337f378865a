/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undoing records, each in a process that may hang. A call to a driver can take seconds or for
 * ever, and borrows the target's files; so it is done by workers, children that the keeper can do
 * without. One worker does all there is, one after the other; another one is started only while
 * that hangs. Who takes longer than GP_REPLAY_LIMIT_NS over one record is killed.
 */
#ifndef GP_KEEPER_REPLAY_WORKERS_H
#define GP_KEEPER_REPLAY_WORKERS_H

#include <poll.h>

#include "undo/undo.h"

#define GP_REPLAY_WORKERS  8
#define GP_REPLAY_FDS      (GP_REPLAY_WORKERS + 1)
#define GP_REPLAY_LIMIT_NS 5000000000ull

/* `result`: 0, or -errno; -ECANCELED: the scheduler beats again, and it was left alone. */
typedef void gp_replay_done_fn(void *arg, unsigned slot, const struct gp_undo_entry *entry,
                               int result);

struct gp_replay_board;

struct gp_replay {
	struct gp_undo_file *file;
	struct gp_replay_board *board; /* shared with the workers */
	int done_fd;                   /* a worker has ended a record */
	struct {
		pid_t pid; /* 0: none */
		int pidfd;
		bool killed;
	} worker[GP_REPLAY_WORKERS];
};

int gp_replay_begin(struct gp_replay *r, struct gp_undo_file *file, struct gp_error *err);

/* Kills the workers that are left. */
void gp_replay_end(struct gp_replay *r);

/* Has the record undone. One that is not claimed is its living holder's: only while that one, the
 * scheduler, has beaten no more than `beats`. */
void gp_replay_ask(struct gp_replay *r, unsigned slot, const struct gp_undo_entry *entry,
                   uint64_t heartbeats);

/* Whether the record of this slot is being undone; of any slot. */
bool gp_replay_has(const struct gp_replay *r, unsigned slot);
bool gp_replay_is_busy(const struct gp_replay *r);

/* Takes results, starts workers and kills them. When it wants to be called again at the latest, or
 * when one of the files is readable (GP_REPLAY_FDS of them). */
uint64_t gp_replay_run(struct gp_replay *r, uint64_t now_ns, gp_replay_done_fn *done, void *arg);
void gp_replay_poll(const struct gp_replay *r, struct pollfd *p);

#endif
