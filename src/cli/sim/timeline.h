/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which task had the device when, for one scenario under several policies: recorded from simulated
 * runs (timeline.c), printed in the terminal (timeline.c), drawn as a chart (timeline_chart.c).
 */
#ifndef GP_CLI_DRAW_TIMELINE_H
#define GP_CLI_DRAW_TIMELINE_H

#include "cli/draw/draw.h"
#include "cli/sim/spans.h"

#define GP_TIMELINE_ROWS 24 /* rows of a panel, at most */

/* The recorded spans of one run. */
struct gp_timeline_run {
	const char *label; /* not owned: the policy, or another name of the run */
	struct gp_span *span;
	unsigned n, capacity;
	bool cut; /* the run had more spans than a picture can show; the last ones are missing */
};

/* Fill in scenario, window and rows; then call gp_timeline_record once for each run. */
struct gp_timeline {
	const struct gp_scenario *scenario; /* not owned: names, classes and loads of the tasks */
	const char *title;                  /* not owned */
	char window[192];                   /* the window in words, below the title */
	uint64_t from_ns, to_ns;
	uint32_t devices;
	unsigned nrows;
	uint32_t rows_left_out;
	struct {
		uint32_t device, task;
	} row[GP_TIMELINE_ROWS];

	unsigned nruns;
	struct gp_timeline_run *run; /* owned */
};

/*
 * Runs the policy on the scenario and records the window. The scenario has the same tasks as
 * t->scenario. `result` may be NULL; on success the caller frees it with gp_run_free.
 * 0, or -errno and a message.
 */
int gp_timeline_record(struct gp_timeline *t, const char *label, struct gp_scenario *scenario,
		       const struct gp_policy_choice *policy, struct gp_run *result,
		       struct gp_error *err);
void gp_timeline_free(struct gp_timeline *t);

/* Requests arrive at the task from outside: its response times can be drawn. */
bool gp_timeline_has_requests(const struct gp_timeline *t, uint32_t task);

struct gp_timeline_style {
	unsigned columns;
	bool colour;
	bool utf8;
};

/*
 * One line of characters for each run, for device 0. `lc` and `be` are the legend's names for the
 * latency-critical task and for all others.
 */
void gp_timeline_print(FILE *out, const struct gp_timeline *t, const char *lc, const char *be,
		       const struct gp_timeline_style *style);

/* One panel for each run, one row for each task. Draws below `y`; returns its lower end. */
double gp_timeline_chart(struct gp_draw *d, double y, const struct gp_timeline *t);

#endif
