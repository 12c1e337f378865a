/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares policies: which requirements of the tasks each kept and broke. Requirements are
 * deadlines, shares, ceilings, and that requests are finished. Ejection and a policy that cannot
 * run count as broken.
 */
#ifndef GP_CLI_SIM_COMPARE_H
#define GP_CLI_SIM_COMPARE_H

#include "cli/sim/sim_report.h"

/* A table with one line per policy. */
void gp_compare_print(FILE *out, const struct gp_report *report);

/* Writes ,"kept":["..."],"broke":["..."] of one run. */
void gp_compare_json(FILE *out, const struct gp_report *report, unsigned run);

/* All latency-critical tasks of a run: the largest value of each percentile, the sum of counts. */
struct gp_compare_lc {
	bool any, has_response, has_deadline;
	uint64_t p50_ns, p99_ns, p999_ns;
	uint64_t left, missed;
};
struct gp_compare_lc gp_compare_lc(const struct gp_report *report, unsigned run);

/* The work of all best-effort tasks, in percent of their work without other tasks. False: no such
 * task. */
bool gp_compare_be_work(const struct gp_report *report, unsigned run, double *percent);

#endif
