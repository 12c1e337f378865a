/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pictures of gpreempt sim. Without a sweep, one page: who had the device when, under each
 * policy, and below it how long requests took. With a sweep: best-effort work against response
 * times, a line for each policy.
 */
#ifndef GP_CLI_SIM_SIM_PAGE_H
#define GP_CLI_SIM_SIM_PAGE_H

#include "cli/draw/chart.h"
#include "cli/sim/sim_report.h"
#include "cli/sim/spans.h"
#include "cli/sim/tails.h"

#define GP_SIM_PAGE_ROWS  24 /* of a timeline */
#define GP_SIM_PAGE_WIDTH 1100

/* What happened in a window of one run. */
struct gp_record {
	struct gp_span *span; /* owned */
	unsigned n, capacity;
	bool cut; /* there was more than can be drawn */
};

struct gp_sim_page {
	const struct gp_report *report;
	const struct gp_tails *tails;   /* one for each run */
	const struct gp_record *record; /* the same */
	uint64_t from_ns, to_ns;        /* the window */
	char window[160];               /* in words */
	unsigned nrows;
	uint32_t rows_left_out;
	struct {
		uint32_t device, task;
	} row[GP_SIM_PAGE_ROWS];
	uint32_t devices;
};

/* Each draws from `y` on and returns where it ends. */
double gp_timeline_chart(struct gp_draw *d, double y, const struct gp_sim_page *picture);
double gp_tail_chart(struct gp_draw *d, double y, const struct gp_sim_page *picture);

/* A window that somebody asked for; what is not `has` is chosen. */
struct gp_sim_page_window {
	bool has_from, has_for;
	uint64_t from_ns, for_ns;
};

/*
 * Runs the policies of the report once more to record the window, draws, and writes to `out`.
 * `policy` and `tails` go with the runs of the report. 0 or -errno, with a
 * sentence unless it is the file that cannot be written.
 */
int gp_sim_page_runs(FILE *out, enum gp_draw_format format, const struct gp_report *report,
                     struct gp_scenario *scenario, const struct gp_policy_choice *policy,
                     const struct gp_tails *tails, const struct gp_sim_page_window *window,
                     struct gp_error *err);

#endif
