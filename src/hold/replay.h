/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and replay of undo records, for commands, the daemon and the keeper. */
#ifndef GP_HOLD_REPLAY_H
#define GP_HOLD_REPLAY_H

#include "undo/undo.h"

/* Finds a record of the process, preferably one with a living owner. False: none. `file` may be
 * NULL. */
bool gp_records_find(const struct gp_undo_file *file, pid_t pid, uint64_t start_time,
		     struct gp_undo_entry *entry);

/* Whether the changed process still exists under its pid. True if that cannot be determined:
 * keeping a record too long is harmless, dropping it too early is not. */
bool gp_record_process_lives(const struct gp_undo_entry *entry);

/* Returns -EBUSY if another running program holds or schedules the process. */
int gp_records_check_free(const struct gp_undo_file *file, pid_t pid, uint64_t start_time,
			  struct gp_error *err);

/* Puts a task back as its record says, whichever process owns the record. May block. Returns 0 also
 * if the process has ended. */
int gp_record_undo(const struct gp_undo_entry *entry, struct gp_error *err);

/*
 * Replays the records of dead owners. A scheduler does this first, so that it finds tasks in their
 * original state. Waits up to 2 s for records that other processes are undoing.
 */
void gp_records_replay_dead(struct gp_undo_file *file);

/*
 * Drops this process's own records of processes that have ended. If their queues have passed to a
 * child, the child is put back. To be called now and then by a long-running process, in a thread
 * that may block.
 */
void gp_records_drop_ended(struct gp_undo_file *file);

/* Puts back everything that this process changed and drops the records of tasks that were put back.
 * Returns 0, or -errno of the first task that failed; its record stays. */
int gp_records_settle(struct gp_undo_file *file, struct gp_error *err);

#endif
