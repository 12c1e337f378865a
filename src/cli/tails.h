/* SPDX-License-Identifier: Apache-2.0 */
/* How long the requests of a run took, task by task, and which one took longest: for pictures. */
#ifndef GP_CLI_TAILS_H
#define GP_CLI_TAILS_H

#include "scenario/scenario.h"

#define GP_TAILS 6 /* tasks whose distribution is kept: more make no picture */

struct gp_tails {
	const struct gp_scenario *scenario;
	bool lc_only;     /* there are latency-critical tasks: only theirs count */
	uint32_t n, more; /* tasks that are kept, and how many are not */
	uint32_t task[GP_TAILS];
	struct gp_hist *hist; /* owned: one for each that is kept */
	uint32_t devices;     /* seen */

	bool any; /* a request of those that count was finished; then, of the slowest: */
	uint32_t slow_device, slow_task;
	uint64_t slow_arrival_ns, slow_end_ns;
};

/* Latency-critical tasks count; where there are none, those that requests arrive at. 0 or -ENOMEM
 */
int gp_tails_begin(struct gp_tails *tails, const struct gp_scenario *scenario);

/* A gp_sim_watch; arg is the tails. */
void gp_tails_watch(void *tails, const struct gp_sim_event *event);

void gp_tails_free(struct gp_tails *tails);

#endif
