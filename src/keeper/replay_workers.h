/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undoing records in worker processes. A driver call can take seconds or hang for ever, and it
 * borrows files of the target process. So children make these calls, and the keeper can continue
 * without them. One worker undoes all records, one after the other; another worker is started only
 * while that one hangs. A worker that takes longer than GP_REPLAY_LIMIT_NS for one record is
 * killed, and the undo has failed. A worker that hangs in the kernel stays until the driver
 * answers; its record is not tried again before.
 */
#ifndef GP_KEEPER_REPLAY_WORKERS_H
#define GP_KEEPER_REPLAY_WORKERS_H

#include <poll.h>

#include "undo/undo.h"

#define GP_REPLAY_WORKERS  8
#define GP_REPLAY_FDS      (GP_REPLAY_WORKERS + 1)
#define GP_REPLAY_LIMIT_NS 5000000000ull
#define GP_REPLAY_END_NS   1000000000ull /* for a killed worker to end */
#define GP_REPLAY_LOST     64            /* killed workers that may hang in the kernel */

/* `result`: 0 or -errno. -ECANCELED: the owner sends heartbeats again, and the record was not
 * undone. -EINPROGRESS: it was undone, by the driver's answer alone. -ETIMEDOUT: the driver did not
 * answer. */
typedef void gp_replay_done_fn(void *arg, unsigned slot, const struct gp_undo_entry *entry,
			       int result);

struct gp_replay_board;

struct gp_replay {
	struct gp_undo_file *file;
	struct gp_replay_board *board; /* shared with the workers */
	int done_fd;                   /* signalled when a worker has finished a record */
	struct {
		pid_t pid; /* 0: no worker */
		int pidfd;
		bool killed;
	} worker[GP_REPLAY_WORKERS];
	struct {
		pid_t pid; /* 0: none */
		unsigned slot;
	} lost[GP_REPLAY_LOST];
};

int gp_replay_begin(struct gp_replay *r, struct gp_undo_file *file, struct gp_error *err);

/* Kills all workers. */
void gp_replay_end(struct gp_replay *r);

/* The number of heartbeats of the scheduler, if it owns the record; else the time of the owner's
 * last heartbeat for the record. */
uint64_t gp_replay_heartbeats(const struct gp_undo_file *file, unsigned slot,
			      const struct gp_undo_entry *entry);

/*
 * Requests that a record is undone. If the record is not claimed, its owner is alive. Then it is
 * undone only while gp_replay_heartbeats equals `heartbeats`, or if its release was asked for.
 * `is_repetition`: of an undo that ended with -EINPROGRESS.
 */
void gp_replay_ask(struct gp_replay *r, unsigned slot, const struct gp_undo_entry *entry,
		   uint64_t heartbeats, bool is_repetition);

/* Whether the record of this slot, or of any slot, is being undone. */
bool gp_replay_has(const struct gp_replay *r, unsigned slot);
bool gp_replay_is_busy(const struct gp_replay *r);

/* Whether a killed worker hangs in the kernel, for the record of this slot. */
bool gp_replay_is_stuck(const struct gp_replay *r, unsigned slot);

/* Takes results, starts and kills workers. Returns when to call it again at the latest; call it
 * earlier if one of the GP_REPLAY_FDS descriptors is readable. */
uint64_t gp_replay_run(struct gp_replay *r, uint64_t now_ns, gp_replay_done_fn *done, void *arg);
void gp_replay_poll(const struct gp_replay *r, struct pollfd *p);

#endif
