/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of a device, published by its device thread. Three buffers circulate: one belongs to
 * the writer, one to the reader, and the newest lies between them. So neither thread waits for the
 * other.
 */
#ifndef GP_DAEMON_SNAPSHOT_H
#define GP_DAEMON_SNAPSHOT_H

#include <stdatomic.h>

#include "base/clock.h"
#include "engine/engine.h"

#define GP_RECENT_NS GP_NS_PER_S

/* What a task did in the last 0.5 to 1 s; if it came later, since then. */
struct gp_recent {
	uint64_t over_ns, held_ns; /* the interval, and the time held by the policy in it */
	uint64_t unproven_ns;      /* time in it after a release that is not proven, or failed */
	uint64_t run_over_ns; /* the interval between two measurements of GPU time; 0: unknown */
	uint64_t ran_ns;      /* GPU time in it */
};

struct gp_snapshot {
	uint64_t now_ns;   /* time of the snapshot; 0: none was taken yet */
	uint64_t since_ns; /* when the counters started */
	const struct gp_policy_ops *policy;
	unsigned ntasks, capacity;
	struct gp_task_stats *task;
	struct gp_recent *recent; /* of each task */

	struct gp_ejection_note {
		const struct gp_policy_ops *policy;
		enum gp_eject_reason reason;
		uint64_t now_ns;
		char text[200];
	} ejection; /* policy NULL: no ejection yet */

	struct gp_engine_stats stats; /* about 100 KB of histograms */
	struct gp_hist lag_ns;        /* delay of the thread's wake-ups */
};

/* Counters of a task at two earlier snapshots, half a second apart. */
struct gp_past {
	uint64_t id;
	struct gp_past_sample {
		uint64_t at_ns, held_ns, unproven_ns, run_at_ns, run_ns;
	} sample[2]; /* the older one first */
};

struct gp_snapshots {
	struct gp_snapshot snapshot[3];
	struct gp_past *past; /* of the tasks of the last snapshot; the writer's */
	unsigned npast;
	unsigned mine, theirs; /* index of the writer's and of the reader's buffer */
	_Atomic unsigned
		newest; /* the third buffer; GP_SNAPSHOT_FRESH is set until the reader takes it */
};

#define GP_SNAPSHOT_FRESH 4u

void gp_snapshots_init(struct gp_snapshots *s);
void gp_snapshots_free(struct gp_snapshots *s);

/* Takes a snapshot; called by the device thread. Tasks for which there is no memory are missing. */
void gp_snapshots_take(struct gp_snapshots *s, const struct gp_engine *e, uint64_t now_ns,
		       uint64_t since_ns, const struct gp_hist *lag_ns);

/* The newest snapshot, never NULL, valid until the next call; called by the control thread. */
const struct gp_snapshot *gp_snapshots_newest(struct gp_snapshots *s);

#endif
