/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding tasks by hand: attach, write how to put them back, then hold, and wait for what the
 * driver says. However this program dies, `gpreempt resume` finds the records.
 */
#ifndef GP_HOLD_HOLD_H
#define GP_HOLD_HOLD_H

#include "hold/devices.h"
#include "undo/undo.h"

struct gp_hold {
	struct gp_task_ref ref;
	uint32_t handle;
	bool attached;
	int slot;  /* of its undo record; -1 = none */
	int pidfd; /* -1 = not known */

	bool held;  /* as last observed */
	bool asked; /* for something that has not ended */
	int status; /* of what was last asked for: 0 or -errno */
	uint32_t driver_code;
	uint64_t asked_ns;
	uint64_t took_ns;  /* from asking to the answer */
	uint64_t since_ns; /* when it was first held */
	unsigned again;    /* how often it had to be held again */
	struct gp_observation last;
};

struct gp_holds {
	const struct gp_devices *devices;
	struct gp_undo_file *undo;
	unsigned n;
	struct gp_hold *hold;
};

/*
 * Attaches the tasks and writes their records. Refuses a process that is in another program's hands
 * (-EBUSY). After an error, too, it is to be ended.
 */
int gp_holds_begin(struct gp_holds *holds, const struct gp_devices *devices,
                   const struct gp_task_ref *ref, unsigned n, struct gp_error *err);

/*
 * Holds those that are not held, or releases all: one call to each device, then waits until all
 * have an answer. -errno: the first that failed.
 */
int gp_holds_hold(struct gp_holds *holds, struct gp_error *err);
int gp_holds_release(struct gp_holds *holds, struct gp_error *err);

/* Looks at all again: `held` is then as it is now. */
void gp_holds_refresh(struct gp_holds *holds);

/* Until news from a device, this time, or `stop_fd` (-1: none) is readable. */
void gp_holds_wait(const struct gp_holds *holds, uint64_t until_ns, int stop_fd);

/* Whether the task is gone. Its queues may have passed to a child: then it is not. */
bool gp_hold_has_ended(const struct gp_holds *holds, struct gp_hold *hold);

/* Whether the record is still there: otherwise somebody put the task back. */
bool gp_hold_is_recorded(const struct gp_holds *holds, const struct gp_hold *hold);

/* Lets go of one: detaches it and, `drop`, takes its record away. */
void gp_holds_remove(struct gp_holds *holds, unsigned i, bool drop);

/*
 * Lets go of all. A record stays where the last release did not succeed. Close the devices
 * afterwards: what is left to put back is done there.
 */
void gp_holds_end(struct gp_holds *holds);

/* "4711 (train.py) on NVIDIA H200 #0". Returns `out`. */
const char *gp_hold_name(char *out, size_t size, const struct gp_task_ref *ref);

#endif
