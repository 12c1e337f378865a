/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_page.h"

#include <errno.h>

#include "cli/cli.h"

/* The window around the slowest request: TIMES as long as the request, within these bounds. */
#define TIMES   3u
#define FOR_MIN (12 * GP_NS_PER_MS)
#define FOR_MAX (90 * GP_NS_PER_MS)

static uint64_t took_ns(const struct gp_tails *t)
{
	return t->slow_end_ns - t->slow_arrival_ns;
}

static bool fits(const struct gp_tails *t)
{
	return took_ns(t) <= FOR_MAX / TIMES;
}

/*
 * The slowest request of all runs that fits into the window. If none fits, as under overload, the
 * shortest of the slowest requests. NULL: no request was finished.
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
	struct gp_timeline *t = &p->timeline;
	uint64_t end_ns = p->report->scenario->duration_ns;
	uint64_t slow_ns = slow ? took_ns(slow) : 0;
	uint64_t for_ns =
		asked->has_for ? asked->for_ns : within(TIMES * slow_ns, FOR_MIN, FOR_MAX);
	uint64_t middle_ns =
		slow ? slow->slow_arrival_ns + within(slow_ns / 2, 0, for_ns / 4) : end_ns / 2;
	struct gp_short_text length;
	char from[32];

	for_ns = for_ns < end_ns ? for_ns : end_ns;
	if (asked->has_from)
		t->from_ns = asked->from_ns;
	else
		t->from_ns = middle_ns > for_ns / 2 ? middle_ns - for_ns / 2 : 0;
	if (!asked->has_from && t->from_ns + for_ns > end_ns)
		t->from_ns = end_ns - for_ns;
	t->to_ns = t->from_ns + for_ns < end_ns ? t->from_ns + for_ns : end_ns;

	length = gp_cli_duration(t->to_ns - t->from_ns);
	snprintf(from, sizeof from, "%.6g s", (double)t->from_ns / 1e9);
	if (slow && !asked->has_from)
		snprintf(t->window, sizeof t->window,
			 "%s from %s on, around the slowest request under %s: %s, %s", length.text,
			 from, p->report->label[run],
			 p->report->scenario->task[slow->slow_task].name,
			 gp_cli_duration(slow_ns).text);
	else
		snprintf(t->window, sizeof t->window, "%s from %s on", length.text, from);
}

/* Rows for all tasks of all devices if they fit, else for the device of the slowest request. */
static void choose_rows(struct gp_sim_page *p, const struct gp_tails *slow)
{
	struct gp_timeline *t = &p->timeline;
	uint32_t ntasks = p->report->scenario->ntasks;
	uint64_t all, first = 0;

	for (unsigned i = 0; i < p->report->nruns; i++)
		if (p->tails[i].devices > t->devices)
			t->devices = p->tails[i].devices;
	all = (uint64_t)t->devices * ntasks;
	if (all > GP_TIMELINE_ROWS && slow) {
		first = (uint64_t)slow->slow_device * ntasks;
		if (slow->slow_task >= GP_TIMELINE_ROWS)
			first += slow->slow_task - GP_TIMELINE_ROWS + 1;
	}
	for (uint64_t i = first; i < all && t->nrows < GP_TIMELINE_ROWS; i++) {
		if (all > GP_TIMELINE_ROWS && i / ntasks != first / ntasks)
			break;
		t->row[t->nrows].device = (uint32_t)(i / ntasks);
		t->row[t->nrows++].task = (uint32_t)(i % ntasks);
	}
	t->rows_left_out = (uint32_t)(all - t->nrows);
}

static double draw_page(struct gp_draw *d, const struct gp_sim_page *p)
{
	return gp_tail_chart(d, gp_timeline_chart(d, 0, &p->timeline), p);
}

static int write_page(FILE *out, enum gp_draw_format format, const struct gp_sim_page *p,
		      struct gp_error *err)
{
	struct gp_draw *d = gp_draw_begin(out, format, GP_CHART_WIDTH, draw_page(NULL, p));

	if (!d)
		return gp_fail(err, -ENOMEM,
			       "no memory for the picture, or it is too large for a PNG; try "
			       ".svg or fewer policies");
	draw_page(d, p);
	return gp_draw_end(d);
}

int gp_sim_page_runs(FILE *out, enum gp_draw_format format, const struct gp_report *report,
		     struct gp_scenario *scenario, const struct gp_policy_choice *policy,
		     const struct gp_tails *tails, const struct gp_sim_page_window *window,
		     struct gp_error *err)
{
	struct gp_sim_page p = {
		.report = report, .tails = tails, .timeline = {.scenario = scenario, .devices = 1}};
	const struct gp_tails *slow;
	char title[96];
	unsigned run = 0;
	int r = 0;

	snprintf(title, sizeof title, "Device use over time: %s", scenario->name);
	p.timeline.title = title;
	slow = find_slow(&p, &run);
	choose_window(&p, slow, run, window);
	choose_rows(&p, slow);
	for (unsigned i = 0; i < report->nruns && !r; i++)
		if (!gp_report_cannot(report, i))
			r = gp_timeline_record(&p.timeline, report->label[i], scenario, &policy[i],
					       NULL, err);
	if (!r)
		r = write_page(out, format, &p, err);
	gp_timeline_free(&p.timeline);
	return r;
}
