/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How to put tasks back, in a file that outlives whoever changed them.
 *
 * Before the first change to a task its record stands here; after the last change was undone it is
 * dropped. Whoever is left when a scheduler died, with whatever signal, replays the file: the next
 * scheduler, the keeper, `gpreempt resume`. The file is mapped and shared: a record is there when
 * the call returns, and a crash of the machine makes records and changes disappear together.
 *
 * A record belongs to its holder, who made the change. While that one lives, nobody else drops it
 * (but a user, with `gpreempt resume`): a scheduler that was taken for dead and goes on in the
 * middle of an action has its record yet. When it is dead, whoever wants to undo it claims it
 * first, which makes him the holder; so two never undo the same, and one who dies over it leaves it
 * to the next. Every state on the way is whole: a process may be killed at any instruction.
 *
 * All calls but open and close may come from several threads. None but those that ask whether a
 * process lives looks at more than a few slots.
 */
#ifndef GP_UNDO_UNDO_H
#define GP_UNDO_UNDO_H

#include "base/error.h"
#include "gpu/gpu.h"

#define GP_UNDO_SLOTS 4096

struct gp_undo_entry {
	char backend[16];
	pid_t owner;      /* who made the change, or undoes it; 0: nobody any more */
	uint32_t claimed; /* 1: it is being undone by its holder */
	uint64_t owner_start_time;
	struct gp_undo undo;
};

struct gp_undo_file;

/* GPREEMPT_UNDO (not in setuid programs), else `undo` in the run-time folder (base/run_dir.h). */
#define GP_UNDO_PATH_SIZE 264
const char *gp_undo_path(char *out, unsigned size);

/* Without `create`, -ENOENT when there is none. A file of another version is replaced if there is
 * no record in it, and refused (-EPROTO) otherwise. */
int gp_undo_open(struct gp_undo_file **file, bool create, struct gp_error *err);
void gp_undo_close(struct gp_undo_file *file);

/* Whether the file that others would open now is this one: it may have been taken away. */
bool gp_undo_is_current(const struct gp_undo_file *file);

/* ---- records ----------------------------------------------------------------------------------
 */

/* Writes a record of the calling process and returns its slot, or -ENOSPC. A task (backend, pid,
 * start time, key) has one record: the older one stays, for it knows what was there first, and
 * gets a new holder; -EBUSY when the holder it has is alive. */
int gp_undo_put(struct gp_undo_file *file, const char *backend, const struct gp_undo *undo);

/* Whatever is in the slot; or only what was read from it, unless that has changed since (false). */
void gp_undo_drop(struct gp_undo_file *file, unsigned slot);
bool gp_undo_drop_same(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *was);

/* What a dead holder left becomes ours, to be undone: false, if it is not what was read any more,
 * or the holder lives. `entry` is then as it stands now. If it cannot be undone, give it back. */
bool gp_undo_claim(struct gp_undo_file *file, unsigned slot, struct gp_undo_entry *entry);
void gp_undo_give_back(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *entry);

/* Whether the process that made the change is still there. */
bool gp_undo_owner_lives(const struct gp_undo_entry *entry);

/* true when there is a record in the slot, 0 to GP_UNDO_SLOTS - 1. */
bool gp_undo_get(const struct gp_undo_file *file, unsigned slot, struct gp_undo_entry *entry);

/* Another number: records came, went or changed hands. */
uint64_t gp_undo_changes(const struct gp_undo_file *file);

/* Grows by one whenever somebody undid what another had done: who finds it changed looks again
 * before it acts. */
uint64_t gp_undo_epoch(const struct gp_undo_file *file);
void gp_undo_bump(struct gp_undo_file *file);

/* ---- who is on duty ---------------------------------------------------------------------------
 */

struct gp_undo_scheduler {
	pid_t pid; /* 0: nobody */
	uint64_t start_time;
	uint64_t heartbeats;   /* grows */
	uint64_t heartbeat_ns; /* monotonic time of the last one */
	bool lives;
};

/*
 * The scheduler of this machine. From begin to end it must beat (every 500 ms is good): when it is
 * silent for longer than the keeper's patience, everything it changed is put back. So the beat is
 * to come from, or after a look at, the threads that act; one that beats by itself says nothing.
 * -EBUSY: another one lives, and `err` says which.
 */
int gp_undo_scheduler_begin(struct gp_undo_file *file, struct gp_error *err);
void gp_undo_heartbeat(struct gp_undo_file *file, uint64_t now_ns);
void gp_undo_scheduler(const struct gp_undo_file *file, struct gp_undo_scheduler *guard);
void gp_undo_scheduler_end(struct gp_undo_file *file);

/* The same of the keeper, so that the scheduler sees whether there is one. */
int gp_undo_keeper_begin(struct gp_undo_file *file, struct gp_error *err);
void gp_undo_keeper_heartbeat(struct gp_undo_file *file, uint64_t now_ns);
void gp_undo_keeper(const struct gp_undo_file *file, struct gp_undo_scheduler *keeper);
void gp_undo_keeper_end(struct gp_undo_file *file);

#endif
