/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tasks and devices had in the last second, from counters that only grow. The last few shots
 * are remembered: with several a second, each is compared with one of a second ago, not with the
 * last one, which would say little.
 */
#ifndef GP_CLI_TOP_RATES_H
#define GP_CLI_TOP_RATES_H

#include "cli/top/top_snapshot.h"

#define GP_TOP_PAST 48 /* shots; the oldest go first */

/* The counters of one shot. */
struct gp_top_marks {
	uint64_t at_ns; /* our clock */
	unsigned ndevices, ntasks;
	struct gp_top_device *device; /* owned, as `task` */
	struct gp_top_task *task;
};

/* A zeroed one is empty. */
struct gp_top_past {
	unsigned n;
	struct gp_top_marks marks[GP_TOP_PAST]; /* the oldest first */
};

/* Fills in the rates of `shot`, taken at `now_ns`, and remembers it. What cannot be remembered for
 * want of memory gives no rates. */
void gp_top_past_add(struct gp_top_past *past, struct gp_top_snapshot *snapshot, uint64_t now_ns);

/* Forgets everything: another daemon counts from 0. */
void gp_top_past_clear(struct gp_top_past *past);

#endif
