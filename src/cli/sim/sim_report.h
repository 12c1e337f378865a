/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the runs of a scenario: as a table with policies side by side, or as JSON. */
#ifndef GP_CLI_SIM_SIM_REPORT_H
#define GP_CLI_SIM_SIM_REPORT_H

#include <stdio.h>

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

/* With several policies the table ends with the promises that each kept and broke (compare.h). */
void gp_report_table(FILE *out, const struct gp_report *report);
void gp_report_json(FILE *out, const struct gp_report *report);

/* One run as a JSON object. */
void gp_report_json_run(FILE *out, const struct gp_report *report, unsigned i);

#endif
