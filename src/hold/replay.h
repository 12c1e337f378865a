/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and replay of undo records, for commands, the daemon and the keeper. */
#ifndef GP_HOLD_REPLAY_H
#define GP_HOLD_REPLAY_H

#include "gpu/gpu.h"
#include "undo/undo.h"

/* Finds a record of the process, preferably one with a living owner. False: none. `file` may be
 * NULL. */
bool gp_records_find(const struct gp_undo_file *file, pid_t pid, uint64_t start_time,
		     struct gp_undo_entry *entry);

/* Whether the changed process still exists under its pid. True if that cannot be determined:
 * keeping a record too long is harmless, dropping it too early is not. */
bool gp_record_process_lives(const struct gp_undo_entry *entry);

/* Whether the owner of the record is gpreemptd, which schedules the process or holds it for a user.
 */
bool gp_record_is_daemons(const struct gp_undo_file *file, const struct gp_undo_entry *entry);

/* Returns -EBUSY if another running program holds or schedules the process. */
int gp_records_check_free(const struct gp_undo_file *file, pid_t pid, uint64_t start_time,
			  struct gp_error *err);

/* Puts a task back as its record says, whichever process owns the record. May block. Returns 0 also
 * if the process has ended. */
int gp_record_undo(const struct gp_undo_entry *entry, struct gp_error *err);

/*
 * The same in a child process, because a driver call can hang. -ESRCH: the process has ended.
 * -ENOTSUP: this build does not have the back end. -ETIMEDOUT: it hung for `limit_ns`; the child
 * was killed and may remain until the driver answers. For single-threaded programs.
 */
int gp_record_undo_within(const struct gp_undo_entry *entry, uint64_t limit_ns,
			  struct gp_error *err);

/* After an undo that succeeded: looks for work of the process for `limit_ns` at most, if only work
 * confirms an undo of its back end. GP_EVIDENCE_DRIVER: none was seen. May block. */
enum gp_evidence gp_record_look(const struct gp_undo_entry *entry, uint64_t limit_ns);

#define GP_SEE_WORK_MAX 1024u

/* The back end's see_work of the first GP_SEE_WORK_MAX processes, in a child process. If it hangs
 * or the back end has none, no process is seen to work. For single-threaded programs. */
void gp_see_work_within(const struct gp_gpu_ops *ops, const pid_t *pid, bool *works, unsigned n,
			uint64_t limit_ns);

/* A copy of the record whose undo takes the task from its owner, which lives and does not release
 * it. */
struct gp_undo_entry gp_record_to_take(const struct gp_undo_entry *entry);

/* owner_state.c */

enum gp_owner_state {
	GP_OWNER_ENDED,
	GP_OWNER_RUNS,
	GP_OWNER_STOPPED, /* by a signal or a debugger */
	GP_OWNER_FROZEN,  /* by the freezer of a cgroup, as by `docker pause` */
	GP_OWNER_SILENT,  /* it has sent no heartbeat for 2 s, for another reason */
	GP_OWNER_HUNG,    /* it was killed, and waits in the kernel for a driver */
	GP_OWNER_DEAF,    /* it runs, and has not released what it was asked to release */
};

/* Never GP_OWNER_DEAF. */
enum gp_owner_state gp_record_owner_state(const struct gp_undo_file *file, unsigned slot,
					  const struct gp_undo_entry *entry);
/* "has ended", "runs", "is frozen by its cgroup": follows the name of the owner. */
const char *gp_owner_state_text(enum gp_owner_state state);

/*
 * Replays the records of dead owners, and undoes the changes of owners that hang in the kernel. A
 * scheduler does this first, so that it finds tasks in their original state. Tasks of living
 * processes come first: the search for the heirs of an ended one looks at all processes. Waits up
 * to 2 s for records that other processes are undoing.
 */
void gp_records_replay_dead(struct gp_undo_file *file);

/*
 * Drops this process's own records of processes that have ended. If their queues have passed to a
 * child, the child is put back. To be called now and then by a long-running process, in a thread
 * that may block.
 */
void gp_records_drop_ended(struct gp_undo_file *file);

/* Releases the tasks that are visibly held and have no record, and logs them. For a scheduler whose
 * undo file was lost. May block. 0, or -errno: not every task could be examined or released. */
int gp_records_release_unrecorded(const struct gp_undo_file *file);

/* Puts back everything that this process changed and drops the records of tasks that were put back.
 * Returns 0, or -errno of the first task that failed; its record stays. */
int gp_records_settle(struct gp_undo_file *file, struct gp_error *err);

#endif
