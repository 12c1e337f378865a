/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of gpreempt sim without --sweep: the timeline of each policy, and response times. */
#ifndef GP_CLI_SIM_SIM_PAGE_H
#define GP_CLI_SIM_SIM_PAGE_H

#include "cli/draw/chart.h"
#include "cli/sim/timeline.h"
#include "cli/sim/sim_report.h"
#include "cli/sim/policy_runs.h"

/* --from and --for; a value without `has_` is chosen by the page. */
struct gp_sim_page_window {
	bool has_from, has_for;
	uint64_t from_ns, for_ns;
};

/*
 * Runs the policies of the report once more to record the window, then draws the page to `out`.
 * `policy` and `tails` belong to the runs of the report. 0 or -errno; with a message unless
 * writing `out` failed.
 */
int gp_sim_page_runs(FILE *out, enum gp_draw_format format, const struct gp_report *report,
		     struct gp_scenario *scenario, const struct gp_policy_choice *policy,
		     const struct gp_tails *tails, const struct gp_sim_page_window *window,
		     struct gp_error *err);

#endif
