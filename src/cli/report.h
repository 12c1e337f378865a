/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a scenario as a table, policies side by side, and as JSON. */
#ifndef GP_CLI_REPORT_H
#define GP_CLI_REPORT_H

#include "scenario/scenario.h"

struct gp_report {
	const struct gp_scenario *scenario;
	const struct gp_run *run;
	const char *const *label; /* one per run: the policy as it was asked for */
	unsigned nruns;
};

void gp_report_table(FILE *out, const struct gp_report *report);
void gp_report_json(FILE *out, const struct gp_report *report);

const char *gp_class_name(unsigned class);

#endif
