/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each policy kept of what the tasks asked for, and what it broke: deadlines, shares and
 * ceilings, requests that were never answered, ejection, and not running at all.
 */
#ifndef GP_CLI_SIM_COMPARE_H
#define GP_CLI_SIM_COMPARE_H

#include "cli/sim/sim_report.h"

/* A line per policy. */
void gp_compare_print(FILE *out, const struct gp_report *report);

/* ,"kept":["..."],"broke":["..."] of one run */
void gp_compare_json(FILE *out, const struct gp_report *report, unsigned run);

/* The latency-critical tasks together: of each percentile the slowest task's, of counts the sum. */
struct gp_compare_lc {
	bool any, has_response, has_deadline;
	uint64_t p50_ns, p99_ns, p999_ns;
	uint64_t left, missed;
};
struct gp_compare_lc gp_compare_lc(const struct gp_report *report, unsigned run);

/* What the best-effort tasks got done together, in percent of alone; false: there are none. */
bool gp_compare_be_work(const struct gp_report *report, unsigned run, double *percent);

#endif
