/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the runs of a scenario: as a table with policies side by side, or as JSON. compare.c
 * compares the policies: which requirements of the tasks each kept and broke. Requirements are
 * deadlines, shares, ceilings, and that requests are finished. Ejection and a policy that cannot
 * run count as broken.
 */
#ifndef GP_CLI_SIM_SIM_REPORT_H
#define GP_CLI_SIM_SIM_REPORT_H

#include <stdio.h>

#include "cli/lib/fields.h"
#include "sim/scenario/scenario.h"

struct gp_report {
	const struct gp_scenario *scenario;
	const struct gp_run *run;
	const char *const *label; /* one per run: the policy as the user wrote it */
	unsigned nruns;
	/* NULL, or one per run: NULL, or why the device cannot run this policy. Such a run has no
	 * results. */
	const char *const *cannot;
};

static inline const char *gp_report_cannot(const struct gp_report *report, unsigned run)
{
	return report->cannot ? report->cannot[run] : NULL;
}

/* With several policies the table ends with the promises that each kept and broke (compare.c). */
void gp_report_table(FILE *out, const struct gp_report *report);
void gp_report_json(const struct gp_report *report);

/* One run as a JSON object, which the caller puts. */
struct json_object *gp_run_to_json(const struct gp_report *report, unsigned i);

/* A table with one line per policy. */
void gp_compare_print(FILE *out, const struct gp_report *report);

/* Adds `kept` and `broke` of one run, lists of sentences. */
void gp_compare_to_json(struct json_object *o, const struct gp_report *report, unsigned run);

/* All latency-critical tasks of a run: the largest value of each percentile, the sum of counts. */
struct gp_compare_lc {
	bool has_response, has_deadline;
	uint64_t p50_ns, p99_ns, p999_ns;
	uint64_t left, missed;
};
struct gp_compare_lc gp_compare_lc(const struct gp_report *report, unsigned run);

/* The work of all best-effort tasks, in percent of their work without other tasks. False: no such
 * task. */
bool gp_compare_be_work(const struct gp_report *report, unsigned run, double *percent);

#endif
