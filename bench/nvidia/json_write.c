/* SPDX-License-Identifier: Apache-2.0 */
/* The report for programs. Unknown is null, never 0. */
#include "report.h"

static void string(FILE *out, const char *name, const char *text)
{
	fprintf(out, "\"%s\":\"", name);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}

static void number(FILE *out, const char *name, bool known, double value)
{
	if (known)
		fprintf(out, ",\"%s\":%.5f", name, value);
	else
		fprintf(out, ",\"%s\":null", name);
}

static void arm_json(FILE *out, const struct cell_result *c, enum arm arm)
{
	const struct arm_result *a = &c->arm[arm];

	fprintf(out, "{\"arm\":\"%s\",\"runs\":%u,\"failures\":%u,\"mismatches\":%u,\"starved\":%u",
	        arm_name[arm], a->runs, a->failures, a->mismatches, a->starved);
	if (a->of[0]) {
		fputc(',', out);
		string(out, "of", a->of);
	}
	fprintf(out, ",\"requests\":%u,\"late\":%u", a->requests, a->late);
	number(out, "p50_us", a->requests, a->p50_us);
	number(out, "p99_us", a->requests, a->p99_us);
	number(out, "p999_us", a->requests, a->p999_us);
	number(out, "max_us", a->requests, a->max_us);
	number(out, "p99_added_us", a->has_added, a->added_us);
	number(out, "window_s", a->has_share, a->window_s);
	number(out, "be_share", a->has_share, a->share);
	fputs(",\"be_share_each\":[", out);
	for (unsigned i = 0; a->has_share && i < c->cell->nbe; i++)
		fprintf(out, "%s%.4f", i ? "," : "", a->each[i]);
	fputc(']', out);
	number(out, "lost_us_per_request", a->has_lost, a->lost_us);
	fputc('}', out);
}

static void cell_json(FILE *out, const struct cell_result *c)
{
	bool first = true;

	fputs("\n {", out);
	string(out, "name", c->cell->name);
	fputc(',', out);
	string(out, "about", c->cell->about);
	number(out, "kernel_us", c->kernel_us > 0, c->kernel_us);
	number(out, "period_us", c->cell->lc, c->cell->lc ? c->cell->lc->period_us : 0);
	fprintf(out, ",\"skipped\":%s,\"be\":[", c->skipped ? "true" : "false");
	for (unsigned i = 0; i < c->cell->nbe; i++)
		fprintf(out, "%s\"%s\"", i ? "," : "", be_name[c->cell->be[i]]);
	fputs("],\"arms\":[", out);
	for (enum arm arm = 0; arm < ARMS; arm++) {
		if (!c->arm[arm].measured && !c->arm[arm].failures)
			continue;
		fputs(first ? "\n  " : ",\n  ", out);
		arm_json(out, c, arm);
		first = false;
	}
	fputs("],\"notes\":[", out);
	for (unsigned i = 0; i < c->nnotes; i++) {
		fputs(i ? ",{" : "{", out);
		string(out, "note", c->note[i]);
		fputc('}', out);
	}
	fputs("]}", out);
}

void report_json(FILE *out, const struct report *r)
{
	struct claim claim[CLAIMS_MAX];
	unsigned n = report_judge(r, claim);

	fputs("{\"benchmark\":\"gpreempt-nvidia\",\"version\":1,\n", out);
	string(out, "machine", r->machine);
	fputs(",\n", out);
	string(out, "gpu", r->gpu);
	fputs(",\n", out);
	string(out, "driver", r->driver);
	fputs(",\n", out);
	string(out, "date", r->date);
	fputs(",\n", out);
	string(out, "command", r->command);
	fprintf(out, ",\n\"rounds\":%u,\"quick\":%s,\n\"cells\":[", r->rounds,
	        r->quick ? "true" : "false");
	for (unsigned i = 0; i < r->ncells; i++) {
		if (i)
			fputc(',', out);
		cell_json(out, &r->cell[i]);
	}
	fputs("],\n\"verdicts\":[", out);
	for (unsigned i = 0; i < n; i++) {
		fputs(i ? ",\n {" : "\n {", out);
		string(out, "criterion", claim[i].name);
		fputc(',', out);
		string(out, "says", claim[i].says);
		fputc(',', out);
		string(out, "verdict", verdict_name(claim[i].verdict));
		fputc(',', out);
		string(out, "detail", claim[i].detail);
		fputc('}', out);
	}
	fputs("]}\n", out);
}
