/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each policy kept of what the tasks asked for, and what it broke: deadlines, shares and
 * ceilings, requests that were never answered, ejection, and not running at all.
 */
#ifndef GP_CLI_COMPARE_H
#define GP_CLI_COMPARE_H

#include "cli/report.h"

/* A line per policy. */
void gp_compare_print(FILE *out, const struct gp_report *report);

/* ,"kept":["..."],"broke":["..."] of one run */
void gp_compare_json(FILE *out, const struct gp_report *report, unsigned run);

/* The slowest p99 of the latency-critical tasks; false: none of them finished anything. */
bool gp_compare_lc_p99(const struct gp_report *report, unsigned run, uint64_t *ns);

/* What the best-effort tasks got done together, in percent of alone; false: there are none. */
bool gp_compare_be_work(const struct gp_report *report, unsigned run, double *percent);

#endif
