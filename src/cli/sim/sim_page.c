/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of gpreempt sim without --sweep: a window of each policy's timeline, and response
 * times. */
#include "cli/sim/sim_page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

struct sim_page {
	const struct gp_report *report;
	const struct gp_tails *tails; /* one for each run of the report */
	struct gp_timeline timeline;
};

/*
 * Response times: the fraction of requests that took longer than a time, on two logarithmic axes,
 * so that the 99.9th percentile is as visible as the median. One panel for each task, one line for
 * each policy. Policies often make no difference to a task: equal lines are named in the panel's
 * title, and their marks stand side by side.
 */
enum {
	MARGIN = 24,
	HEAD = 30,   /* height of a panel's title */
	PANEL = 250, /* height of the axes */
	LEFT = 92,   /* room for the names of percentiles */
	RIGHT = 18,
	BOTTOM = 44,
	MARK = 13, /* room for one mark */
};

/* Grid lines of the vertical axis. */
static const struct level {
	double longer; /* fraction of the requests that took longer */
	const char *name;
	uint32_t per_million; /* the percentile to mark; 0: no marks on this line */
} levels[] = {
	{1, "all", 0},
	{0.5, "p50  half", 500000},
	{0.1, "p90  10 %", 0},
	{0.01, "p99  1 %", 990000},
	{0.001, "p99.9  0.1 %", 999000},
	{0.0001, "p99.99", 0},
};

#define LEVELS (sizeof levels / sizeof *levels)

struct frame {
	const struct sim_page *p;
	uint32_t index; /* of the task in gp_tails */
	struct gp_time_area area;
	double least; /* smallest fraction on the vertical axis */
};

static const struct gp_hist *hist_of(const struct frame *f, unsigned run)
{
	const struct gp_report *r = f->p->report;
	const struct gp_hist *h = NULL;

	if (!gp_report_cannot(r, run))
		h = r->run[run].task[f->p->tails[run].task[f->index]].response;
	return h && h->count ? h : NULL;
}

static double x_of(const struct frame *f, double us)
{
	return gp_time_x(&f->area, us);
}

static double y_of(const struct frame *f, double longer)
{
	longer = longer > f->least ? longer : f->least;
	return f->area.top + (f->area.bottom - f->area.top) * log(longer) / log(f->least);
}

static double us_of(uint64_t ns)
{
	return ns ? (double)ns / 1e3 : 1e-3;
}

/* Returns false if no request was finished. */
static bool find_range(struct frame *f)
{
	double low = INFINITY, high = 0;
	uint64_t most = 0;

	for (unsigned i = 0; i < f->p->report->nruns; i++) {
		const struct gp_hist *h = hist_of(f, i);

		if (!h)
			continue;
		low = fmin(low, us_of(h->min));
		high = fmax(high, us_of(h->max));
		most = h->count > most ? h->count : most;
	}
	if (!most)
		return false;
	f->area.low_us = gp_chart_log_below(low * 0.98);
	f->area.high_us = gp_chart_log_above(high * 1.02);
	f->least = most >= 5000 ? 0.0001 : 0.001;
	return true;
}

static void draw_levels(struct gp_draw *d, const struct frame *f)
{
	struct gp_font font = gp_font_at(gp_font_small, GP_ANCHOR_END);

	for (size_t i = 0; i < LEVELS && levels[i].longer >= f->least * 0.99; i++) {
		double y = y_of(f, levels[i].longer);

		gp_draw_line(d, f->area.left, y, f->area.right, y, &gp_stroke_grid);
		gp_draw_text(d, f->area.left - 8, y + 4, levels[i].name, &font);
	}
}

/* Writes at most two points for each bucket of the histogram. Returns their number. */
static unsigned trace_curve(const struct frame *f, const struct gp_hist *h, struct gp_point *point)
{
	uint64_t longer = h->count;
	unsigned n = 0;

	point[n++] = (struct gp_point){x_of(f, us_of(h->min)), y_of(f, 1)};
	for (unsigned i = 0; i < GP_HIST_BUCKETS; i++) {
		uint64_t low, high;
		double x;

		if (!h->bucket[i])
			continue;
		gp_hist_bounds(i, &low, &high);
		high = high < h->max ? high : h->max;
		x = x_of(f, us_of(high > h->min ? high : h->min));
		point[n] = (struct gp_point){x, point[n - 1].y};
		n++;
		longer -= h->bucket[i];
		point[n++] = (struct gp_point){x, y_of(f, (double)longer / (double)h->count)};
	}
	return n;
}

static void draw_run(struct gp_draw *d, const struct frame *f, unsigned run)
{
	const struct gp_hist *h = hist_of(f, run);
	struct gp_stroke stroke = gp_chart_stroke(run);
	struct gp_point *point;

	if (!h || !d)
		return;
	point = malloc((2 * GP_HIST_BUCKETS + 1) * sizeof *point);
	if (!point)
		return; /* without memory, draw the picture without this line */
	gp_draw_lines(d, point, trace_curve(f, h, point), &stroke);
	free(point);
}

/* Neighbouring marks that would cover each other: drawn side by side around their mean. */
struct row {
	unsigned first, n;
	double sum; /* of their x coordinates */
};

static double left_of(const struct frame *f, const struct row *r)
{
	double width = MARK * (r->n - 1.0), left = r->sum / r->n - width / 2;

	left = left > f->area.right - width ? f->area.right - width : left;
	return left < f->area.left ? f->area.left : left;
}

struct mark {
	double x;
	unsigned run;
};

static void draw_rows(struct gp_draw *d, const struct frame *f, double y, const struct mark *mark,
		      const struct row *row, unsigned rows)
{
	for (unsigned i = 0; i < rows; i++)
		for (unsigned k = 0; k < row[i].n; k++)
			gp_chart_mark(d, left_of(f, &row[i]) + MARK * k, y,
				      mark[row[i].first + k].run);
}

/* The marks of one level, sorted from left to right. Returns their number. */
static unsigned find_marks(const struct frame *f, const struct level *level, struct mark *mark)
{
	unsigned n = 0;

	for (unsigned run = 0; run < f->p->report->nruns; run++) {
		const struct gp_hist *h = hist_of(f, run);
		unsigned at;
		double x;

		if (!h || (double)h->count * level->longer < 1)
			continue;
		x = x_of(f, us_of(gp_hist_quantile(h, level->per_million)));
		for (at = n++; at && mark[at - 1].x > x; at--)
			mark[at] = mark[at - 1];
		mark[at] = (struct mark){x, run};
	}
	return n;
}

static void draw_level(struct gp_draw *d, const struct frame *f, const struct level *level,
		       struct mark *mark, struct row *row)
{
	unsigned n = find_marks(f, level, mark), rows = 0;

	for (unsigned i = 0; i < n; i++) {
		row[rows++] = (struct row){i, 1, mark[i].x};
		while (rows > 1 && left_of(f, &row[rows - 2]) + MARK * row[rows - 2].n >
					   left_of(f, &row[rows - 1])) {
			rows--;
			row[rows - 1].n += row[rows].n;
			row[rows - 1].sum += row[rows].sum;
		}
	}
	draw_rows(d, f, y_of(f, level->longer), mark, row, rows);
}

static void draw_marks(struct gp_draw *d, const struct frame *f)
{
	unsigned runs = f->p->report->nruns;
	struct mark *mark;
	struct row *row;

	if (!runs)
		return;
	mark = calloc(runs, sizeof *mark);
	row = calloc(runs, sizeof *row);
	for (size_t i = 0; i < LEVELS && mark && row; i++)
		if (levels[i].per_million)
			draw_level(d, f, &levels[i], mark, row);
	free(row);
	free(mark);
}

/* The two lines are nowhere more than 2 pixels apart. */
static bool are_same(const struct frame *f, unsigned run, unsigned other)
{
	static const uint32_t per_million[] = {1,      100000, 250000, 500000, 750000,
					       900000, 990000, 999000, 999900, 1000000};
	const struct gp_hist *a = hist_of(f, run), *b = hist_of(f, other);

	for (size_t i = 0; a && b && i < sizeof per_million / sizeof *per_million; i++)
		if (fabs(x_of(f, us_of(gp_hist_quantile(a, per_million[i]))) -
			 x_of(f, us_of(gp_hist_quantile(b, per_million[i])))) > 2)
			return false;
	return a && b;
}

/* The first run whose line equals the line of this run. */
static unsigned first_like(const struct frame *f, unsigned run)
{
	unsigned first = 0;

	while (first < run && !are_same(f, run, first))
		first++;
	return first;
}

/* Right of the title, as "one line: none, priority; rr, fair". */
static void put_same(struct gp_draw *d, const struct frame *f, double title_right, double y)
{
	struct gp_font font = gp_font_at(gp_font_small, GP_ANCHOR_END);
	char text[512] = "one line: ", fit[512];
	size_t begin = strlen(text), at = begin;

	for (unsigned i = 0; i < f->p->report->nruns; i++) {
		size_t before = at;
		unsigned members = 0;

		if (!hist_of(f, i) || first_like(f, i) < i)
			continue;
		for (unsigned k = i; k < f->p->report->nruns && at < sizeof text; k++)
			if (hist_of(f, k) && first_like(f, k) == i)
				at += (size_t)snprintf(text + at, sizeof text - at, "%s%s",
						       members++    ? ", "
						       : at > begin ? "; "
								    : "",
						       f->p->report->label[k]);
		if (members < 2)
			at = before;
		at = at < sizeof text ? at : sizeof text - 1;
		text[at] = '\0';
	}
	if (at > begin)
		gp_draw_text(d, f->area.right, y,
			     gp_chart_fit(fit, sizeof fit, text, f->area.right - title_right - 12,
					  font.size),
			     &font);
}

static void draw_panel(struct gp_draw *d, double x, double y, double width,
		       const struct sim_page *p, uint32_t index)
{
	struct frame f = {.p = p,
			  .index = index,
			  .area = {.left = x + LEFT,
				   .right = x + width - RIGHT,
				   .top = y + HEAD,
				   .bottom = y + HEAD + PANEL}};
	const struct gp_tails *t = &p->tails[0];

	const char *name = p->report->scenario->task[t->task[index]].name;

	gp_draw_text(d, x, y + 18, name, &gp_font_head);
	if (!find_range(&f)) {
		gp_draw_text(d, f.area.left, f.area.top + 20, "no request was finished",
			     &gp_font_plain);
		return;
	}
	draw_levels(d, &f);
	gp_time_axis(d, &f.area, "response time");
	for (unsigned i = 0; i < p->report->nruns; i++)
		draw_run(d, &f, i);
	draw_marks(d, &f);
	put_same(d, &f, x + gp_draw_text_width(name, gp_font_head.size) * 1.1, y + 18);
}

static double draw_head(struct gp_draw *d, double y, const struct sim_page *p)
{
	struct gp_legend l = {MARGIN, GP_CHART_WIDTH - MARGIN, MARGIN, y + 74};
	char label[96];

	gp_draw_text(d, MARGIN, y + 28, "Response times", &gp_font_title);
	gp_draw_text(
		d, MARGIN, y + 48,
		"From scheduled arrival to end, over the whole run: the fraction of requests that "
		"took longer. Marks at p50, p99 and p99.9, side by side where they would overlap.",
		&gp_font_plain);
	for (unsigned i = 0; i < p->report->nruns; i++)
		if (!gp_report_cannot(p->report, i))
			gp_legend_series(&l, d, i,
					 gp_chart_fit(label, sizeof label, p->report->label[i], 400,
						      gp_font_plain.size));
	return l.y + 12;
}

static double draw_tails(struct gp_draw *d, double y, const struct sim_page *p)
{
	const struct gp_tails *t = &p->tails[0];
	unsigned columns = t->n > 1 ? 2 : 1;
	double width = (GP_CHART_WIDTH - 2.0 * MARGIN) / columns;
	char text[96];

	if (!t->n)
		return y;
	y = draw_head(d, y, p);
	for (uint32_t i = 0; i < t->n; i++) {
		draw_panel(d, MARGIN + width * (i % columns), y, width, p, i);
		if ((i + 1) % columns == 0 || i + 1 == t->n)
			y += HEAD + PANEL + BOTTOM;
	}
	if (t->more) {
		snprintf(text, sizeof text, "%u more tasks with requests are not shown", t->more);
		gp_draw_text(d, MARGIN, y + 4, text, &gp_font_small);
		y += 16;
	}
	return y + MARGIN / 2.0;
}

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
static const struct gp_tails *find_slow(const struct sim_page *p, unsigned *run)
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

static void choose_window(struct sim_page *p, const struct gp_tails *slow, unsigned run,
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
static void choose_rows(struct sim_page *p, const struct gp_tails *slow)
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

static double draw_page(struct gp_draw *d, const struct sim_page *p)
{
	return draw_tails(d, gp_timeline_chart(d, 0, &p->timeline), p);
}

static int write_page(FILE *out, enum gp_draw_format format, const struct sim_page *p,
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
	struct sim_page p = {
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
