/* SPDX-License-Identifier: Apache-2.0 */
/* The report for people, as text. */
#include <string.h>

#include "report.h"

static void number(FILE *out, int width, int digits, bool known, double value)
{
	if (known)
		fprintf(out, "  %*.*f", width, digits, value);
	else
		fprintf(out, "  %*s", width, "-");
}

static void row(FILE *out, const struct cell_result *c, enum arm arm)
{
	const struct arm_result *a = &c->arm[arm];
	unsigned failed = a->failures - a->starved, all = a->failures + a->runs;

	fprintf(out, "  %-10s", arm_name[arm]);
	if (a->requests)
		fprintf(out, "  %8u", a->requests);
	else
		fprintf(out, "  %8s", "-");
	number(out, 8, 0, a->requests, a->p50_us);
	number(out, 8, 0, a->requests, a->p99_us);
	number(out, 8, 0, a->requests, a->max_us);
	number(out, 9, 0, a->has_added, a->added_us);
	number(out, 8, 1, a->has_share, 100 * a->share);
	number(out, 8, 0, a->has_lost, a->lost_us);
	if (failed)
		fprintf(out, "  %u of %u runs failed", failed, all);
	if (a->starved)
		fprintf(out, "  %u of %u runs: lc did not end in time", a->starved, all);
	if (a->of[0])
		fprintf(out, "  (of %s)", a->of);
	fputc('\n', out);
}

static void cell_rows(FILE *out, const struct cell_result *c)
{
	fprintf(out, "%s (%s)\n", c->cell->name, c->cell->about);
	if (c->skipped)
		fprintf(out, "  skipped\n");
	for (enum arm arm = 0; arm < ARMS; arm++)
		if (c->arm[arm].measured || c->arm[arm].failures)
			row(out, c, arm);
	for (unsigned i = 0; i < c->nnotes; i++)
		fprintf(out, "  ! %s\n", c->note[i]);
}

void report_table(FILE *out, const struct report *r)
{
	struct claim claim[CLAIMS_MAX];
	unsigned n = report_judge(r, claim);

	fprintf(out, "%s, driver %s, %s, %s%s\n\n", r->gpu[0] ? r->gpu : "unknown GPU",
	        r->driver[0] ? r->driver : "unknown", r->machine, r->date,
	        r->quick ? ", QUICK: a smoke test, not a measurement" : "");
	fprintf(out, "  %-10s  %8s  %8s  %8s  %8s  %9s  %8s  %8s\n", "", "", "p50", "p99", "max",
	        "p99 added", "be, % of", "lost per");
	fprintf(out, "  %-10s  %8s  %8s  %8s  %8s  %9s  %8s  %8s\n", "arm", "requests", "us", "us",
	        "us", "us", "alone", "req., us");
	for (unsigned i = 0; i < r->ncells; i++)
		cell_rows(out, &r->cell[i]);
	fputc('\n', out);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "%-12s  %-2s  %-50s  %s\n", verdict_name(claim[i].verdict),
		        claim[i].name, claim[i].says, claim[i].detail);
}
