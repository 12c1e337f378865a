/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one scenario under several policies, one after the other. */
#ifndef GP_CLI_SIM_POLICY_RUNS_H
#define GP_CLI_SIM_POLICY_RUNS_H

#include "cli/sim/sim_report.h"
#include "cli/sim/spans.h"
#include "sim/scenario/scenario.h"

/* Chooses the tasks whose response times are drawn, and finds their slowest request. */
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

#define GP_RUNS_MAX 32

struct gp_runs {
	unsigned n;
	char *label[GP_RUNS_MAX]; /* owned: the policy as the user wrote it */
	struct gp_policy_choice policy[GP_RUNS_MAX];

	/* Filled in by gp_runs_simulate. */
	struct gp_run run[GP_RUNS_MAX];
	char *cannot[GP_RUNS_MAX]; /* owned: NULL, or why the device cannot run this policy */
	struct gp_tails tails[GP_RUNS_MAX];
};

/* Adds a policy such as "priority:quantum=50". 0, or -errno and a message. */
int gp_runs_add(struct gp_runs *runs, const char *text, struct gp_error *err);

/*
 * Runs all policies. A policy that the device cannot run gets a text in `cannot`; it is an error
 * only if no policy can run. `trace` may be NULL. `with_tails` fills in `tails`, which pictures
 * need. 0, or -errno and a message.
 */
int gp_runs_simulate(struct gp_runs *runs, struct gp_scenario *scenario, struct gp_trace *trace,
		     bool with_tails, struct gp_error *err);

/* The result points into `runs` and `scenario`. */
struct gp_report gp_runs_report(const struct gp_runs *runs, const struct gp_scenario *scenario);

void gp_runs_free(struct gp_runs *runs);

#endif
