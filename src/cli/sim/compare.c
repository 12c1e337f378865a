/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_report.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/lib/grid.h"

#define POINTS     2.0  /* tolerance of shares and ceilings, percent of the device */
#define ALL        0.98 /* of its work without other tasks: the task did not want more */
#define LEFT_SHARE 100  /* more than one in LEFT_SHARE requests left over is broken, */
#define LEFT_FEW   2    /* if more than LEFT_FEW per device are left over */
#define LATE_SHARE 100  /* a target is missed if more than one in LATE_SHARE requests is late */
#define NAMED      3    /* claims named in a table line; JSON has all */

/* A requirement of one task, and whether a policy kept it. */
enum verdict { NOT_ASKED, KEPT, BROKEN };

struct claim {
	enum verdict verdict;
	char text[160];
};

/* How long the task existed, summed over the devices. */
static double present_ns(const struct gp_report *r, uint32_t task)
{
	uint64_t end_ns = r->scenario->duration_ns, start_ns = r->scenario->task[task].start_ns;

	if (r->scenario->task[task].stop_ns < end_ns)
		end_ns = r->scenario->task[task].stop_ns;
	return end_ns > start_ns ? (double)(end_ns - start_ns) * r->scenario->devices : 0;
}

/* The fraction of the time that tasks can use: all but switching. */
static double usable_fraction(const struct gp_run *run)
{
	return run->duration_ns > run->device.switch_ns
		       ? 1 - (double)run->device.switch_ns / (double)run->duration_ns
		       : 0;
}

/* The work of a task in time of the whole device; a narrow task uses a part of it. */
static double device_ns(const struct gp_scenario *s, uint32_t task, uint64_t work_ns)
{
	uint32_t width = s->task[task].width_permille;

	if (s->device.model == GP_SIM_RUNLIST || !width)
		return (double)work_ns;
	return (double)work_ns * width / 1000;
}

/*
 * The share that a task got, in percent of the usable time while it existed. A closed loop wants
 * the device all the time but pauses between kernels; for it, its work without other tasks is
 * 100 %.
 */
static double share_of(const struct gp_report *r, unsigned run, uint32_t task)
{
	const struct gp_run_task *t = &r->run[run].task[task];
	bool closed = r->scenario->task[task].load == GP_LOAD_CLOSED;
	double whole = (closed ? (double)t->alone_ns : present_ns(r, task)) *
		       usable_fraction(&r->run[run]);

	return whole > 0 ? 100 * (double)t->work_ns / whole : 0;
}

static struct claim share_claim(const struct gp_report *r, unsigned run, uint32_t task)
{
	const struct gp_run_task *t = &r->run[run].task[task];
	double asked = r->scenario->attr[task].share_permille / 10.0;
	double got = share_of(r, run, task);
	struct claim c = {KEPT, ""};

	if (asked <= 0 || !t->alone_ns)
		return (struct claim){NOT_ASKED, ""};
	if (got < asked - POINTS && (double)t->work_ns < ALL * (double)t->alone_ns)
		c.verdict = BROKEN;
	else if (t->refused)
		return (struct claim){NOT_ASKED, ""};
	snprintf(c.text, sizeof c.text, "share %.1f of %.1f %%", got, asked);
	return c;
}

static struct claim ceiling_claim(const struct gp_report *r, unsigned run, uint32_t task)
{
	const struct gp_run_task *t = &r->run[run].task[task];
	double allowed = r->scenario->attr[task].ceiling_permille / 10.0;
	double got = share_of(r, run, task);
	struct claim c = {KEPT, ""};

	if (allowed <= 0 || !t->alone_ns)
		return (struct claim){NOT_ASKED, ""};
	if (got > allowed + POINTS)
		c.verdict = BROKEN;
	snprintf(c.text, sizeof c.text, "ceiling %.1f of %.1f %%", got, allowed);
	return c;
}

/* Requests that pile up are a broken requirement for every task, also one without a deadline. */
static struct claim answer_claim(const struct gp_report *r, unsigned run, uint32_t task)
{
	const struct gp_run_task *t = &r->run[run].task[task];
	unsigned long long all = t->finished + t->left;
	struct claim c = {BROKEN, ""};

	if (r->scenario->task[task].load == GP_LOAD_CLOSED ||
	    t->left <= (uint64_t)LEFT_FEW * r->scenario->devices ||
	    t->left <= t->finished / LEFT_SHARE)
		return (struct claim){NOT_ASKED, ""};
	snprintf(c.text, sizeof c.text, "%llu of %llu requests left over",
		 (unsigned long long)t->left, all);
	return c;
}

/* Policies with an admission test promise the deadline to every request. For all other policies it
 * is a target for 99 % of the requests. */
static bool is_in_time(const struct gp_run *run, const struct gp_run_task *t)
{
	return !t->missed ||
	       (!run->policy->every_deadline && t->missed <= t->finished / LATE_SHARE);
}

static struct claim deadline_claim(const struct gp_report *r, unsigned run, uint32_t task)
{
	const struct gp_run_task *t = &r->run[run].task[task];
	uint64_t deadline_ns = r->scenario->attr[task].deadline_ns;
	struct claim c = {KEPT, "deadline"};
	struct gp_short_text after = gp_cli_duration(deadline_ns);

	if (!deadline_ns || !(t->finished || t->left))
		return (struct claim){NOT_ASKED, ""};
	if (!is_in_time(&r->run[run], t)) {
		c.verdict = BROKEN;
		snprintf(c.text, sizeof c.text, "deadline %s missed by %llu of %llu", after.text,
			 (unsigned long long)t->missed, (unsigned long long)t->finished);
		return c;
	}
	/* No claim about the deadline if the policy refused the task, if no request finished, or if
	 * the claim about answers is broken anyway. */
	if (t->refused || !t->finished || answer_claim(r, run, task).verdict == BROKEN)
		return (struct claim){NOT_ASKED, ""};
	if (t->missed)
		snprintf(c.text, sizeof c.text, "deadline %s in %.2f %%", after.text,
			 100 - 100 * (double)t->missed / (double)t->finished);
	return c;
}

static struct claim refusal_claim(const struct gp_report *r, unsigned run, uint32_t task)
{
	struct claim c = {BROKEN, "refused"};

	return r->run[run].task[task].refused ? c : (struct claim){NOT_ASKED, ""};
}

static struct claim (*const claims[])(const struct gp_report *, unsigned, uint32_t) = {
	refusal_claim, deadline_claim, share_claim, ceiling_claim, answer_claim,
};

typedef void claim_fn(void *arg, const char *name, const char *text);

static void each_claim(const struct gp_report *r, unsigned run, enum verdict wanted, claim_fn *fn,
		       void *arg)
{
	for (uint32_t task = 0; task < r->run[run].ntasks; task++) {
		for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
			struct claim c = claims[i](r, run, task);

			if (c.verdict == wanted)
				fn(arg, r->scenario->task[task].name, c.text);
		}
	}
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

struct gp_compare_lc gp_compare_lc(const struct gp_report *r, unsigned run)
{
	struct gp_compare_lc lc = {0};

	for (uint32_t i = 0; i < r->run[run].ntasks; i++) {
		const struct gp_run_task *t = &r->run[run].task[i];

		if (r->scenario->attr[i].class != GP_LATENCY_CRITICAL)
			continue;
		lc.has_response |= t->has_response;
		lc.has_deadline |= r->scenario->attr[i].deadline_ns != 0;
		lc.p50_ns = max(lc.p50_ns, t->p50_ns);
		lc.p99_ns = max(lc.p99_ns, t->p99_ns);
		lc.p999_ns = max(lc.p999_ns, t->p999_ns);
		lc.left += t->left;
		lc.missed += t->missed;
	}
	return lc;
}

/* Several tasks that each fill the device together get at most the whole device. */
bool gp_compare_be_work(const struct gp_report *r, unsigned run, double *percent)
{
	double done = 0, alone = 0;

	for (uint32_t i = 0; i < r->run[run].ntasks; i++) {
		if (r->scenario->attr[i].class != GP_BEST_EFFORT)
			continue;
		done += device_ns(r->scenario, i, r->run[run].task[i].work_ns);
		alone += device_ns(r->scenario, i, r->run[run].task[i].alone_ns);
	}
	if (alone > (double)r->run[run].duration_ns)
		alone = (double)r->run[run].duration_ns;
	*percent = alone > 0 ? 100 * done / alone : 0;
	return alone > 0;
}

struct line {
	FILE *out;
	unsigned n;
};

static void add_to_line(void *arg, const char *name, const char *text)
{
	struct line *l = arg;

	if (l->n++ >= NAMED)
		return;
	fprintf(l->out, "%s%s%s%s", l->n > 1 ? "; " : "", name, name[0] ? ": " : "", text);
}

/* "inference: deadline; training: share 29.6 of 30.0 %"; NULL: no such claim. The caller frees
 * it. */
static char *claims_text(const struct gp_report *r, unsigned run, enum verdict wanted)
{
	char *text = NULL;
	size_t size;
	struct line l = {.out = open_memstream(&text, &size)};

	if (!l.out)
		return NULL;
	if (wanted == BROKEN && r->run[run].ejections)
		add_to_line(&l, "", "ejected, see above");
	each_claim(r, run, wanted, add_to_line, &l);
	if (l.n > NAMED)
		fprintf(l.out, "; and %u more", l.n - NAMED);
	if (fclose(l.out) || !l.n) {
		free(text);
		return NULL;
	}
	return text;
}

/* Best-effort work of the first run of policy `none`. False: `none` was not run. */
static bool work_of_none(const struct gp_report *r, double *percent)
{
	for (unsigned i = 0; i < r->nruns; i++)
		if (!gp_report_cannot(r, i) && !strcmp(r->run[i].policy->name, "none"))
			return gp_compare_be_work(r, i, percent);
	return false;
}

static void add_run(struct gp_grid *grid, const struct gp_report *r, unsigned run)
{
	char *kept = claims_text(r, run, KEPT), *broke = claims_text(r, run, BROKEN);
	struct gp_compare_lc lc = gp_compare_lc(r, run);
	bool has_be, has_none;
	double work = 0, more, none = 0;

	has_be = gp_compare_be_work(r, run, &work);
	has_none = has_be && work_of_none(r, &none);
	gp_grid_text(grid, r->label[run]);
	gp_grid_cell_if(grid, lc.has_response, "%s", gp_cli_duration(lc.p99_ns).text);
	gp_grid_cell_if(grid, has_be, "%.1f", work);
	more = work - none;
	if (more < 0 && more > -0.05)
		more = 0; /* avoids "-0.0" */
	gp_grid_cell_if(grid, has_none, "%+.1f", more);
	gp_grid_text(grid, kept);
	gp_grid_text(grid, broke);
	free(kept);
	free(broke);
}

void gp_compare_print(FILE *out, const struct gp_report *r)
{
	static const struct gp_column columns[] = {
		{"compared", GP_COLUMN_LEFT | GP_COLUMN_ALWAYS},
		{"lc p99", 0},
		{"be work %", 0},
		{"vs none", 0},
		{"kept", GP_COLUMN_LEFT},
		{"broke", GP_COLUMN_LEFT | GP_COLUMN_ALWAYS},
	};
	struct gp_grid grid;

	gp_grid_begin(&grid, columns, sizeof columns / sizeof *columns);
	for (unsigned i = 0; i < r->nruns; i++) {
		if (!gp_report_cannot(r, i)) {
			add_run(&grid, r, i);
			continue;
		}
		gp_grid_text(&grid, r->label[i]);
		for (unsigned empty = 0; empty < 4; empty++)
			gp_grid_text(&grid, NULL);
		gp_grid_cell(&grid, "cannot run: %s", gp_report_cannot(r, i));
	}
	gp_grid_end(&grid, out);
}

static void add_to_list(void *list, const char *name, const char *text)
{
	char both[256];

	snprintf(both, sizeof both, "%s: %s", name, text);
	json_object_array_add(list, json_object_new_string(both));
}

void gp_compare_to_json(struct json_object *o, const struct gp_report *r, unsigned run)
{
	each_claim(r, run, KEPT, add_to_list, gp_field_put_list(o, "kept"));
	each_claim(r, run, BROKEN, add_to_list, gp_field_put_list(o, "broke"));
}
