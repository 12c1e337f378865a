/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates of tasks and devices over the last second, computed from counters. The last snapshots are
 * kept, so that a snapshot is compared with the one of a second ago even if several are taken per
 * second.
 */
#ifndef GP_CLI_TOP_RATES_H
#define GP_CLI_TOP_RATES_H

#include "cli/top/top_snapshot.h"

#define GP_TOP_HISTORY 48 /* snapshots kept, at most */

/* The counters of one snapshot. */
struct gp_top_sample {
	uint64_t at_ns; /* clock of gpreempt top */
	unsigned ndevices, ntasks;
	struct gp_top_device *device; /* owned */
	struct gp_top_task *task;     /* owned */
};

/* Empty when all bytes are 0. */
struct gp_top_history {
	unsigned n;
	struct gp_top_sample sample[GP_TOP_HISTORY]; /* the oldest is sample[0] */
};

/* Fills in the rates of `snapshot`, taken at `now_ns`, and keeps a copy. Without memory for the
 * copy, later rates are unknown. */
void gp_top_history_add(struct gp_top_history *history, struct gp_top_snapshot *snapshot,
			uint64_t now_ns);

/* Forgets all snapshots. Call it after a lost connection: another daemon counts from 0. */
void gp_top_history_clear(struct gp_top_history *history);

#endif
