/* SPDX-License-Identifier: Apache-2.0 */
/* Whose requests a picture shows, and which one took longest. */
#ifndef GP_CLI_SIM_TAILS_H
#define GP_CLI_SIM_TAILS_H

#include "sim/scenario/scenario.h"

#define GP_TAILS 6 /* tasks whose response times are drawn: more make no picture */

struct gp_tails {
	const struct gp_scenario *scenario;
	bool lc_only;     /* there are latency-critical tasks: only theirs count */
	uint32_t n, more; /* tasks that are drawn, and how many are not */
	uint32_t task[GP_TAILS];
	uint32_t devices; /* seen */

	bool any; /* a request of those that count was finished; then, of the slowest: */
	uint32_t slow_device, slow_task;
	uint64_t slow_arrival_ns, slow_end_ns;
};

/* Latency-critical tasks count; where there are none, those that requests arrive at. */
void gp_tails_begin(struct gp_tails *tails, const struct gp_scenario *scenario);

/* A gp_sim_watch; arg is the tails. */
void gp_tails_watch(void *tails, const struct gp_sim_event *event);

#endif
