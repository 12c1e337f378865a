/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the tasks whose response times are drawn, and finds their slowest request. */
#ifndef GP_CLI_SIM_TAILS_H
#define GP_CLI_SIM_TAILS_H

#include "sim/scenario/scenario.h"

#define GP_TAILS 6 /* tasks whose response times are drawn, at most */

struct gp_tails {
	const struct gp_scenario *scenario;
	bool lc_only;     /* the scenario has latency-critical tasks: only they count */
	uint32_t n, more; /* number of tasks that are drawn, and that are not */
	uint32_t task[GP_TAILS];
	uint32_t devices; /* number of devices seen */

	bool any; /* a counted request was finished; the slowest one is: */
	uint32_t slow_device, slow_task;
	uint64_t slow_arrival_ns, slow_end_ns;
};

/* Latency-critical tasks count. Without any, all tasks at which requests arrive count. */
void gp_tails_begin(struct gp_tails *tails, const struct gp_scenario *scenario);

/* A gp_sim_watch; arg is the tails. */
void gp_tails_watch(void *tails, const struct gp_sim_event *event);

#endif
