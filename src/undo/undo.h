/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undo records: how to put tasks back, in a file that survives the process that changed them.
 *
 * A record is written before the first change to a task and dropped after the last change was
 * undone. If a scheduler dies, for any reason, the records are replayed by the next scheduler, the
 * keeper or `gpreempt resume`. The file is mapped and shared: a record exists when gp_undo_put
 * returns. A crash of the machine removes records and changes together.
 *
 * A record belongs to its owner, the process that made the change. While the owner is alive, no
 * other process drops the record. A scheduler that was taken for dead and continues in the middle
 * of an action therefore still has its record. `gpreempt resume` asks the owner to release the task
 * (gp_undo_ask_release); the owner drops the record after it has seen the release. If the owner is
 * dead, a process that wants to undo the change claims the record first and becomes its
 * owner. So two processes never undo the same change, and a process that dies while undoing leaves
 * the record to the next. Every intermediate state is consistent: a process may be killed at any
 * instruction.
 *
 * All calls except open and close may come from several threads. A call accesses only a few slots,
 * unless it must check whether a process is alive.
 */
#ifndef GP_UNDO_UNDO_H
#define GP_UNDO_UNDO_H

#include "base/error.h"
#include "gpu/gpu.h"

#define GP_UNDO_SLOTS 4096

struct gp_undo_entry {
	char backend[16];
	pid_t owner;            /* the process that made the change or undoes it; 0: no owner */
	uint16_t claimed;       /* 1: the owner is undoing the change */
	uint16_t release_asked; /* 1: another process asks the owner to release the task */
	uint64_t owner_start_time;
	struct gp_undo undo;
};

struct gp_undo_file;

/* The path of the undo file: GPREEMPT_UNDO (ignored in setuid programs), else `undo` in the
 * run-time folder (base/run_dir.h). */
#define GP_UNDO_PATH_SIZE 264
const char *gp_undo_path(char *out, unsigned size);

/* Without `create`, returns -ENOENT if the file does not exist. A file of another version is
 * replaced if it has no records, and refused (-EPROTO) otherwise. */
int gp_undo_open(struct gp_undo_file **file, bool create, struct gp_error *err);
void gp_undo_close(struct gp_undo_file *file);

/* Whether the path still names this file, with all its records. The file may have been removed,
 * replaced or truncated. */
bool gp_undo_is_current(const struct gp_undo_file *file);

/*
 * A process that accesses a truncated file gets SIGBUS and ends. After this call it continues with
 * an empty copy instead, and gp_undo_is_current returns false. For programs that follow the file;
 * replaces the handler of SIGBUS.
 */
void gp_undo_survive_truncation(void);

/* Adds the records of `old`, which is no longer current, with their owners, unless `file` has a
 * record of the same task. */
void gp_undo_carry_over(const struct gp_undo_file *old, struct gp_undo_file *file);

/*
 * Writes a record owned by the calling process and returns its slot, or -ENOSPC. A task (backend,
 * pid, start time, key) has one record. An existing record is kept, because it describes the
 * original state, and gets a new owner. Only a record of the caller itself is replaced, if the back
 * end has `corrected` it. The slices of a record that was `hold_only` count from now on if those of
 * the new record do. -EBUSY: its owner is alive and can run.
 */
int gp_undo_put(struct gp_undo_file *file, const char *backend, const struct gp_undo *undo);

/* Drops the record that was read from the slot as `was`. False: the slot has changed since. */
bool gp_undo_drop_same(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *was);

/*
 * Claims the record of a dead owner, in order to undo it. False: the slot no longer holds `entry`,
 * or the owner is alive. On success `entry` is updated. If undoing fails, gp_undo_give_back removes
 * the owner.
 */
bool gp_undo_claim(struct gp_undo_file *file, unsigned slot, struct gp_undo_entry *entry);
void gp_undo_give_back(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *entry);

/*
 * Asks the living owner of the record to release the task. The caller bumps the epoch afterwards,
 * so that the owner looks. False: the slot no longer holds `was`.
 */
bool gp_undo_ask_release(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *was);

/*
 * Heartbeats of owners that are not the scheduler (gpreempt suspend and schedule, the library), one
 * for each record. From its first heartbeat on, an owner must send one about every 500 ms, or the
 * keeper undoes the change. 0: the owner sends none.
 */
void gp_undo_record_heartbeat(struct gp_undo_file *file, unsigned slot, uint64_t now_ns);
uint64_t gp_undo_record_heartbeat_ns(const struct gp_undo_file *file, unsigned slot);

/* When the keeper last failed to undo the change; 0: never, or a later attempt succeeded. */
void gp_undo_note_failure(struct gp_undo_file *file, unsigned slot, uint64_t now_ns);
uint64_t gp_undo_failed_ns(const struct gp_undo_file *file, unsigned slot);

/* When another process last undid the change while the owner was alive: the time at which that
 * began, noted when it had succeeded. 0: never. The caller bumps the epoch afterwards. */
void gp_undo_note_undone(struct gp_undo_file *file, unsigned slot, uint64_t began_ns);
uint64_t gp_undo_undone_ns(const struct gp_undo_file *file, unsigned slot);

/* Whether the process that made the change is alive. */
bool gp_undo_owner_lives(const struct gp_undo_entry *entry);

/* The same, but false if the process was killed and hangs in the kernel. It will not act any more,
 * but its last driver call can still take effect: its records are not claimed. */
bool gp_undo_owner_can_run(const struct gp_undo_entry *entry);

/* Whether the slot, 0 to GP_UNDO_SLOTS - 1, holds a record; copies it to `entry`. */
bool gp_undo_get(const struct gp_undo_file *file, unsigned slot, struct gp_undo_entry *entry);

/* Changes whenever a record is added or dropped or gets another owner. */
uint64_t gp_undo_changes(const struct gp_undo_file *file);

/* The epoch grows by one whenever a process undoes a change of another process. A process that
 * finds it changed must check the state of its tasks again before it acts. */
uint64_t gp_undo_epoch(const struct gp_undo_file *file);
void gp_undo_bump(struct gp_undo_file *file);

/* The scheduler and the keeper: one of each, with a heartbeat. */

struct gp_undo_scheduler {
	pid_t pid; /* 0: none */
	uint64_t start_time;
	uint64_t heartbeats;   /* number of heartbeats sent */
	uint64_t heartbeat_ns; /* monotonic time of the last one */
	bool lives;
};

/*
 * The scheduler of this machine. Between begin and end it must send heartbeats, about every 500 ms.
 * If they stop for longer than the keeper's timeout, the keeper undoes all its changes. So only a
 * thread that acts on tasks, or one that checks such threads, may send them. -EBUSY: another
 * scheduler is alive; `err` names it.
 */
int gp_undo_scheduler_begin(struct gp_undo_file *file, struct gp_error *err);

/* Whether no scheduler has used the file before this one: tasks that an earlier scheduler held have
 * lost their records. */
bool gp_undo_is_first_scheduler(const struct gp_undo_file *file);
/* Whether the scheduler before this process was killed and hangs in the kernel: it has its files
 * and sockets open. */
bool gp_undo_replaces_hung_scheduler(const struct gp_undo_file *file);
void gp_undo_heartbeat(struct gp_undo_file *file, uint64_t now_ns);
void gp_undo_scheduler(const struct gp_undo_file *file, struct gp_undo_scheduler *scheduler);
void gp_undo_scheduler_end(struct gp_undo_file *file);

/* The same for the keeper, so that the scheduler can check whether a keeper is running. */
int gp_undo_keeper_begin(struct gp_undo_file *file, struct gp_error *err);
void gp_undo_keeper_heartbeat(struct gp_undo_file *file, uint64_t now_ns);
void gp_undo_keeper(const struct gp_undo_file *file, struct gp_undo_scheduler *keeper);
void gp_undo_keeper_end(struct gp_undo_file *file);

#endif
