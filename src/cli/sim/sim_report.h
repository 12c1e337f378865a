/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a scenario as a table, policies side by side, and as JSON. */
#ifndef GP_CLI_SIM_SIM_REPORT_H
#define GP_CLI_SIM_SIM_REPORT_H

#include <stdio.h>

#include "sim/scenario/scenario.h"

struct gp_report {
	const struct gp_scenario *scenario;
	const struct gp_run *run;
	const char *const *label; /* one per run: the policy as it was asked for */
	unsigned nruns;
	/* NULL, or for each run NULL or why its policy cannot run on this device: there is then
	 * nothing else to report of it. */
	const char *const *cannot;
};

static inline const char *gp_report_cannot(const struct gp_report *report, unsigned run)
{
	return report->cannot ? report->cannot[run] : NULL;
}

/* With more than one policy the table ends with what each kept and broke. */
void gp_report_table(FILE *out, const struct gp_report *report);
void gp_report_json(FILE *out, const struct gp_report *report);

/* One run, as it stands in the JSON. */
void gp_report_json_run(FILE *out, const struct gp_report *report, unsigned i);

#endif
