/* SPDX-License-Identifier: Apache-2.0 */
/* What verbs ask of the undo file: whose hands a process is in, and what was left behind. */
#ifndef GP_HOLD_REPLAY_H
#define GP_HOLD_REPLAY_H

#include "undo/undo.h"

/* A record of this process; false: there is none. One whose holder lives goes first. `file` may be
 * NULL: there is no file. */
bool gp_records_find(const struct gp_undo_file *file, pid_t pid, uint64_t start_time,
                     struct gp_undo_entry *entry);

/* Whether the process that was changed is still there, and no other has its pid, as far as that can
 * be told: a record that is kept too long does no harm, one that is dropped too early does. */
bool gp_record_process_lives(const struct gp_undo_entry *entry);

/* -EBUSY when another living program has it in its hands. */
int gp_records_check_free(const struct gp_undo_file *file, pid_t pid, uint64_t start_time,
                          struct gp_error *err);

/* Puts back what a record says, whoever holds it; may block. 0, also when the process has ended. */
int gp_record_undo(const struct gp_undo_entry *entry, struct gp_error *err);

/* Puts back what was left behind by programs that are gone: the first thing a scheduler does, so
 * that it finds tasks as they were before. What others put back at this moment is waited for. */
void gp_records_replay_dead(struct gp_undo_file *file);

/* Takes away our own records of processes that have ended; their queues may have passed to a child,
 * which is put back. For who runs for long: now and then, in a thread that may block. */
void gp_records_drop_ended(struct gp_undo_file *file);

/* Puts back, once more, all that this process changed, and drops the records of what is as it was.
 * 0, or -errno of the first that could not be put back: its record stays. */
int gp_records_settle(struct gp_undo_file *file, struct gp_error *err);

#endif
