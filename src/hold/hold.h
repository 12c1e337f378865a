/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding tasks from a command or from the library: attach, write the undo record, hold, and wait
 * for the driver's answer. If this process dies, `gpreempt resume` and the keeper replay the
 * records.
 */
#ifndef GP_HOLD_HOLD_H
#define GP_HOLD_HOLD_H

#include "hold/devices.h"
#include "undo/undo.h"

struct gp_hold {
	struct gp_task_ref ref;
	uint32_t handle;
	bool attached;
	int slot;  /* slot of its undo record; -1: none */
	int pidfd; /* -1: not known */

	bool held; /* as last observed */
	/* `held` is what the device shows now. False: the last action is under way, has failed or
	 * has not been proven yet, or this device does not show holds. */
	bool confirmed;
	bool ours;  /* this process held it, and has not released it */
	bool asked; /* an action was requested and has not ended */
	int status; /* result of the last action: 0 or -errno */
	uint32_t driver_code;
	uint64_t asked_ns;
	uint64_t took_ns;  /* from the request to the driver's answer */
	uint64_t since_ns; /* time of the first hold */
	unsigned again;    /* how often it was held again after another process released it */
	bool lapsed;       /* it was released, and is not held again */
	bool worked;       /* while the driver said that it is held */
	struct gp_observation last;
};

struct gp_holds {
	const struct gp_devices *devices;
	struct gp_undo_file *undo;
	unsigned n;
	struct gp_hold *hold;
};

/* Attaches the tasks and writes their undo records. Refuses a process that another program holds or
 * schedules (-EBUSY). Call gp_holds_end even after an error. */
int gp_holds_begin(struct gp_holds *holds, const struct gp_devices *devices,
		   const struct gp_task_ref *ref, unsigned n, struct gp_error *err);

/*
 * Holds the tasks that this process does not hold yet, or releases all tasks: one call to each
 * device, then waits until the effect on every task was observed (or the driver's answer, on a
 * device that does not show holds: `confirmed` is false then). A release that fails is repeated for
 * a few seconds, and so is a hold that a queue refuses which is being made or destroyed. Returns 0,
 * or -errno of the first task that failed.
 */
int gp_holds_hold(struct gp_holds *holds, struct gp_error *err);
int gp_holds_release(struct gp_holds *holds, struct gp_error *err);

/* Sends the heartbeat of this process for one record (`slot` < 0: none). Sends none while the back
 * end of the task hangs in the driver: then only the keeper can release the task. */
void gp_hold_heartbeat(struct gp_undo_file *undo, int slot, const struct gp_gpu *gpu,
		       uint64_t now_ns);

/* The same for all records. From the first one on, the caller calls this or gp_holds_refresh about
 * every 500 ms, or the keeper releases the tasks (undo/undo.h). gp_holds_hold and gp_holds_release
 * send further ones. */
void gp_holds_heartbeat(const struct gp_holds *holds);

/* Observes all tasks again and updates `held`. */
void gp_holds_refresh(struct gp_holds *holds);

/* Waits until an event of a device, until `until_ns` or until `stop_fd` (-1: none) is readable. */
void gp_holds_wait(const struct gp_holds *holds, uint64_t until_ns, int stop_fd);

/* Whether the task has ended: its process has ended, or has executed another program. False if its
 * queues have passed to a child process. */
bool gp_hold_has_ended(const struct gp_holds *holds, struct gp_hold *hold);

/* Whether this process may go on holding the task. False: another process has released it or asks
 * for its release (gpreempt resume). */
bool gp_hold_is_recorded(const struct gp_holds *holds, const struct gp_hold *hold);

/* Releases and detaches one task, drops its undo record and removes it from the list. After a
 * failed release the task stays in the list, with its record. */
int gp_holds_remove(struct gp_holds *holds, unsigned i, struct gp_error *err);

/* After a release: undoes all other changes. A task that is not as it was before gets the error as
 * its status. Returns the first error. */
int gp_holds_put_back(struct gp_holds *holds, struct gp_error *err);

/* Puts back and detaches all tasks. The undo record of a task stays if its last release failed, or
 * if it could not be put back. Close the devices afterwards; closing puts back what is left. */
void gp_holds_end(struct gp_holds *holds);

#endif
