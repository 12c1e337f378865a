/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device's thread lets others know of it: a picture of one instant, published now and then.
 * Three of them go round between the thread that takes them and the one that looks, so neither ever
 * waits for the other: each has one of its own, and the newest lies between them.
 */
#ifndef GP_DAEMON_SNAPSHOT_H
#define GP_DAEMON_SNAPSHOT_H

#include <stdatomic.h>

#include "engine/engine.h"

struct gp_snapshot {
	uint64_t now_ns;   /* when it was taken; 0: never yet */
	uint64_t since_ns; /* when counting began */
	const struct gp_policy_ops *policy;
	unsigned ntasks, capacity;
	struct gp_task_stats *task;

	struct gp_ejection_note {
		const struct gp_policy_ops *policy;
		enum gp_eject_reason reason;
		uint64_t now_ns;
		char text[200];
	} ejection; /* policy NULL: there was none */

	struct gp_engine_stats stats; /* about 100 KB of histograms */
	struct gp_hist lag_ns;        /* how late the thread woke up */
};

struct gp_snapshots {
	struct gp_snapshot snapshot[3];
	unsigned mine, theirs; /* who takes them has `mine`, who looks has `theirs` */
	_Atomic unsigned
		newest; /* the third; with GP_SNAPSHOT_FRESH while nobody has looked at it */
};

#define GP_SNAPSHOT_FRESH 4u

void gp_snapshots_init(struct gp_snapshots *s);
void gp_snapshots_free(struct gp_snapshots *s);

/* The thread of the device. What could not be allocated is missing from the picture. */
void gp_snapshots_take(struct gp_snapshots *s, const struct gp_engine *e, uint64_t now_ns,
                       uint64_t since_ns, const struct gp_hist *lag_ns);

/* The other one. The newest, never NULL; valid until the next call. */
const struct gp_snapshot *gp_snapshots_newest(struct gp_snapshots *s);

#endif
