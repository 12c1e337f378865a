/* SPDX-License-Identifier: Apache-2.0 */
/* The page about runs: chooses the window, records it, and puts the charts below each other. */
#include "cli/sim/sim_page.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/cli.h"

#define SPANS_MAX 40000u /* in a record: more are a grey area, and megabytes */

/* The window around a request: so many times as long as it, within bounds. */
#define TIMES   3u
#define FOR_MIN (12 * GP_NS_PER_MS)
#define FOR_MAX (90 * GP_NS_PER_MS)

/* ---- the window -------------------------------------------------------------------------------
 */

static uint64_t took_ns(const struct gp_tails *t)
{
	return t->slow_end_ns - t->slow_arrival_ns;
}

static bool fits(const struct gp_tails *t)
{
	return took_ns(t) <= FOR_MAX / TIMES;
}

/*
 * The slowest request of all runs that a picture can show from beginning to end; if there is none,
 * under overload, the one that comes nearest. NULL: none was finished.
 */
static const struct gp_tails *find_slow(const struct gp_sim_page *p, unsigned *run)
{
	const struct gp_tails *best = NULL;

	for (unsigned i = 0; i < p->report->nruns; i++) {
		const struct gp_tails *t = &p->tails[i];
		bool better;

		if (gp_report_cannot(p->report, i) || !t->any)
			continue;
		better = !best || (fits(t) && fits(best) ? took_ns(t) > took_ns(best)
		                                         : took_ns(t) < took_ns(best));
		best = better ? t : best;
		*run = better ? i : *run;
	}
	return best;
}

static uint64_t within(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

static void choose_window(struct gp_sim_page *p, const struct gp_tails *slow, unsigned run,
                          const struct gp_sim_page_window *asked)
{
	uint64_t end_ns = p->report->scenario->duration_ns;
	uint64_t slow_ns = slow ? took_ns(slow) : 0;
	uint64_t for_ns =
		asked->has_for ? asked->for_ns : within(TIMES * slow_ns, FOR_MIN, FOR_MAX);
	uint64_t middle_ns =
		slow ? slow->slow_arrival_ns + within(slow_ns / 2, 0, for_ns / 4) : end_ns / 2;
	char from[32], length[32], took[32];

	for_ns = for_ns < end_ns ? for_ns : end_ns;
	if (asked->has_from)
		p->from_ns = asked->from_ns;
	else
		p->from_ns = middle_ns > for_ns / 2 ? middle_ns - for_ns / 2 : 0;
	if (!asked->has_from && p->from_ns + for_ns > end_ns)
		p->from_ns = end_ns - for_ns;
	p->to_ns = p->from_ns + for_ns < end_ns ? p->from_ns + for_ns : end_ns;

	snprintf(from, sizeof from, "%.6g s", (double)p->from_ns / 1e9);
	gp_cli_duration(length, sizeof length, p->to_ns - p->from_ns);
	if (slow && !asked->has_from)
		snprintf(p->window, sizeof p->window,
		         "%s from %s on, around the slowest request under %s: %s, %s", length, from,
		         p->report->label[run], p->report->scenario->task[slow->slow_task].name,
		         gp_cli_duration(took, sizeof took, slow_ns));
	else
		snprintf(p->window, sizeof p->window, "%s from %s on", length, from);
}

/* All tasks of all devices where there is room, or else those of the device that matters. */
static void choose_rows(struct gp_sim_page *p, const struct gp_tails *slow)
{
	uint32_t ntasks = p->report->scenario->ntasks;
	uint64_t all, first = 0;

	for (unsigned i = 0; i < p->report->nruns; i++)
		if (p->tails[i].devices > p->devices)
			p->devices = p->tails[i].devices;
	all = (uint64_t)p->devices * ntasks;
	if (all > GP_SIM_PAGE_ROWS && slow) {
		first = (uint64_t)slow->slow_device * ntasks;
		if (slow->slow_task >= GP_SIM_PAGE_ROWS)
			first += slow->slow_task - GP_SIM_PAGE_ROWS + 1;
	}
	for (uint64_t i = first; i < all && p->nrows < GP_SIM_PAGE_ROWS; i++) {
		if (all > GP_SIM_PAGE_ROWS && i / ntasks != first / ntasks)
			break;
		p->row[p->nrows].device = (uint32_t)(i / ntasks);
		p->row[p->nrows++].task = (uint32_t)(i % ntasks);
	}
	p->rows_left_out = (uint32_t)(all - p->nrows);
}

/* ---- the record -------------------------------------------------------------------------------
 */

struct recorder {
	const struct gp_sim_page *picture;
	struct gp_record *record;
	struct gp_spans spans;
};

static bool is_shown(const struct gp_sim_page *p, const struct gp_span *s)
{
	for (unsigned i = 0; i < p->nrows; i++)
		if (p->row[i].device == s->device && p->row[i].task == s->task)
			return true;
	return false;
}

static void keep(void *arg, const struct gp_span *s)
{
	struct recorder *recorder = arg;
	struct gp_record *r = recorder->record;

	if (r->cut || !is_shown(recorder->picture, s))
		return;
	if (r->n == r->capacity) {
		unsigned capacity = r->capacity ? 2 * r->capacity : 256;
		struct gp_span *span = NULL;

		if (r->n < SPANS_MAX)
			span = reallocarray(r->span, capacity, sizeof *span);
		r->cut = !span;
		if (!span)
			return;
		r->span = span;
		r->capacity = capacity;
	}
	r->span[r->n++] = *s;
}

static int record_run(struct gp_sim_page *p, struct gp_scenario *scenario,
                      const struct gp_policy_choice *policy, struct gp_record *record,
                      struct gp_error *err)
{
	struct recorder recorder = {
		.picture = p,
		.record = record,
		.spans = {.from_ns = p->from_ns, .to_ns = p->to_ns, .told = keep}};
	struct gp_run_options options = {.watch = gp_spans_watch, .watch_arg = &recorder.spans};
	struct gp_run run;
	int r = gp_spans_begin(&recorder.spans, scenario);

	recorder.spans.arg = &recorder;
	if (r)
		return gp_fail(err, r, "no memory for the picture");
	r = gp_scenario_run(scenario, policy, &options, &run, err);
	gp_spans_end(&recorder.spans);
	if (!r)
		gp_run_free(&run);
	return r;
}

/* ---- the page ---------------------------------------------------------------------------------
 */

static double draw_page(struct gp_draw *d, const struct gp_sim_page *p)
{
	return gp_tail_chart(d, gp_timeline_chart(d, 0, p), p);
}

static int write_page(FILE *out, enum gp_draw_format format, const struct gp_sim_page *p,
                      struct gp_error *err)
{
	struct gp_draw *d = gp_draw_begin(out, format, GP_SIM_PAGE_WIDTH, draw_page(NULL, p));

	if (!d)
		return gp_fail(err, -ENOMEM,
		               "the picture is too large; try .svg or fewer policies");
	draw_page(d, p);
	return gp_draw_end(d);
}

int gp_sim_page_runs(FILE *out, enum gp_draw_format format, const struct gp_report *report,
                     struct gp_scenario *scenario, const struct gp_policy_choice *policy,
                     const struct gp_tails *tails, const struct gp_sim_page_window *window,
                     struct gp_error *err)
{
	struct gp_record *record = calloc(report->nruns, sizeof *record);
	struct gp_sim_page p = {.report = report, .tails = tails, .record = record, .devices = 1};
	const struct gp_tails *slow;
	unsigned run = 0;
	int r = 0;

	if (!record)
		return gp_fail(err, -ENOMEM, "no memory for the picture");
	slow = find_slow(&p, &run);
	choose_window(&p, slow, run, window);
	choose_rows(&p, slow);
	for (unsigned i = 0; i < report->nruns && !r; i++)
		if (!gp_report_cannot(report, i))
			r = record_run(&p, scenario, &policy[i], &record[i], err);
	if (!r)
		r = write_page(out, format, &p, err);
	for (unsigned i = 0; i < report->nruns; i++)
		free(record[i].span);
	free(record);
	return r;
}
