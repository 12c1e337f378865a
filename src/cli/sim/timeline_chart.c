/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline as a chart. It can be read without colour: rows have names, a switch is hatched, and
 * a held task is a thin striped band.
 */
#include "cli/cli.h"
#include "cli/draw/chart.h"
#include "cli/sim/timeline.h"
#include "cli/sim/sim_report.h"

enum {
	MARGIN = 24,
	NAME_MAX_WIDTH = 340,
	HEAD = 26,  /* height of a panel's title */
	BAR = 14,   /* height of a task's bar */
	ROW = 20,   /* height of a row */
	ABOVE = 8,  /* extra height of a row with requests, for the arrows */
	BELOW = 22, /* extra height of a row with requests, for the response times */
	AXIS = 20,
	GAP = 16, /* between panels */
	TICKS = 12,
	LABEL = 10, /* font size of a response time */
	SAMPLE = 22,
};

struct frame {
	const struct gp_timeline *t;
	double left, right; /* of the time axis */
};

static double row_height(const struct gp_timeline *t, unsigned row)
{
	return gp_timeline_has_requests(t, t->row[row].task) ? ABOVE + ROW + BELOW : ROW;
}

static double x_of(const struct frame *f, uint64_t at_ns)
{
	const struct gp_timeline *t = f->t;

	if (at_ns <= t->from_ns)
		return f->left;
	if (at_ns >= t->to_ns)
		return f->right;
	return f->left + (f->right - f->left) * (double)(at_ns - t->from_ns) /
				 (double)(t->to_ns - t->from_ns);
}

static void row_name(const struct gp_timeline *t, unsigned row, char *name, size_t size)
{
	const struct gp_scenario *s = t->scenario;
	uint32_t task = t->row[row].task;
	char device[24] = "";

	if (t->devices > 1)
		snprintf(device, sizeof device, "device %u: ", t->row[row].device);
	snprintf(name, size, "%s%s (%s)", device, s->task[task].name,
		 gp_class_name(s->attr[task].class));
}

static struct frame frame_of(const struct gp_timeline *t)
{
	struct frame f = {.t = t, .left = 0, .right = GP_CHART_WIDTH - MARGIN};
	char name[96];

	for (unsigned i = 0; i < t->nrows; i++) {
		double width;

		row_name(t, i, name, sizeof name);
		width = gp_draw_text_width(name, gp_font_plain.size);
		f.left = width > f.left ? width : f.left;
	}
	f.left = MARGIN + 10 + (f.left < NAME_MAX_WIDTH ? f.left : NAME_MAX_WIDTH);
	return f;
}

static void add_sample(struct gp_legend *l, struct gp_draw *d, enum gp_fill fill, uint32_t colour,
		       double height, const char *words)
{
	double at = gp_legend_add(l, d, SAMPLE, words);

	gp_draw_rect(d, at, l->y - 4 - height / 2, SAMPLE, height, fill, colour);
}

static void put_arrow(struct gp_draw *d, double x, double y)
{
	gp_draw_shape(d, (struct gp_point[]){{x, y}, {x - 4, y - 7}, {x + 4, y - 7}}, 3,
		      GP_REQUEST);
}

static void put_mark(struct gp_draw *d, double from, double to, double y, bool begins, bool ends)
{
	static const struct gp_stroke stroke = {.colour = GP_INK, .width = 1};

	gp_draw_line(d, from, y, to, y, &stroke);
	if (begins)
		gp_draw_line(d, from, y - 4, from, y, &stroke);
	if (ends)
		gp_draw_line(d, to, y - 4, to, y, &stroke);
}

static bool any_class(const struct gp_timeline *t, unsigned class)
{
	for (unsigned i = 0; i < t->nrows; i++)
		if (t->scenario->attr[t->row[i].task].class == class)
			return true;
	return false;
}

static bool any_held(const struct gp_timeline *t)
{
	for (unsigned run = 0; run < t->nruns; run++)
		for (unsigned i = 0; i < t->run[run].n; i++)
			if (t->run[run].span[i].kind == GP_SPAN_HELD)
				return true;
	return false;
}

static bool any_requests(const struct gp_timeline *t)
{
	for (unsigned i = 0; i < t->nrows; i++)
		if (gp_timeline_has_requests(t, t->row[i].task))
			return true;
	return false;
}

static double draw_head(struct gp_draw *d, double y, const struct gp_timeline *t)
{
	struct gp_legend l = {MARGIN, GP_CHART_WIDTH - MARGIN, MARGIN, y + 78};
	double at;

	gp_draw_text(d, MARGIN, y + 32, t->title, &gp_font_title);
	gp_draw_text(d, MARGIN, y + 52, t->window, &gp_font_plain);
	if (any_class(t, GP_LATENCY_CRITICAL))
		add_sample(&l, d, GP_FILL_SOLID, GP_LC, BAR, "latency-critical task runs");
	if (any_class(t, GP_BEST_EFFORT))
		add_sample(&l, d, GP_FILL_SOLID, GP_BE, BAR, "best-effort task runs");
	if (any_class(t, GP_UNMANAGED))
		add_sample(&l, d, GP_FILL_DOTS, 0, BAR, "unmanaged task runs");
	add_sample(&l, d, GP_FILL_HATCH, 0, BAR, "switching");
	if (any_held(t))
		add_sample(&l, d, GP_FILL_STRIPES, 0, BAR / 2.0, "held");
	if (any_requests(t)) {
		at = gp_legend_add(&l, d, 8, "a request arrives");
		put_arrow(d, at + 4, l.y);
		at = gp_legend_add(&l, d, SAMPLE, "its response time");
		put_mark(d, at, at + SAMPLE, l.y - 2, true, true);
	}
	return l.y + 14;
}

static void draw_span(struct gp_draw *d, const struct frame *f, const struct gp_span *s, double y)
{
	double from = x_of(f, s->from_ns), width = x_of(f, s->to_ns) - from;
	unsigned class = f->t->scenario->attr[s->task].class;

	width = width > 0.4 ? width : 0.4; /* a very short span stays visible */
	if (s->kind == GP_SPAN_SWITCH)
		gp_draw_rect(d, from, y, width, BAR, GP_FILL_HATCH, 0);
	else if (s->kind == GP_SPAN_HELD)
		gp_draw_rect(d, from, y + BAR / 4.0, width, BAR / 2.0, GP_FILL_STRIPES, 0);
	else if (class == GP_UNMANAGED)
		gp_draw_rect(d, from, y, width, BAR, GP_FILL_DOTS, 0);
	else
		gp_draw_rect(d, from, y, width, BAR, GP_FILL_SOLID,
			     class == GP_LATENCY_CRITICAL ? GP_LC : GP_BE);
}

/* A response time is written only right of *free_x, so that none covers another. */
static void draw_request(struct gp_draw *d, const struct frame *f, const struct gp_span *s,
			 double y, double *free_x)
{
	const struct gp_font font = {.size = LABEL, .colour = GP_INK};
	bool begins = s->from_ns >= f->t->from_ns, ends = s->to_ns <= f->t->to_ns;
	double from = x_of(f, s->from_ns), to = x_of(f, s->to_ns), width;
	struct gp_short_text took = gp_cli_duration(s->to_ns - s->from_ns);

	if (begins)
		put_arrow(d, from, y - 1);
	put_mark(d, from, to, y + BAR + 7, begins, ends);
	width = gp_draw_text_width(took.text, LABEL);
	if (from < *free_x || from + width > f->right)
		return;
	gp_draw_text(d, from, y + BAR + 18, took.text, &font);
	*free_x = from + width + 6;
}

static double draw_row(struct gp_draw *d, double y, const struct frame *f,
		       const struct gp_timeline_run *run, unsigned row)
{
	const struct gp_timeline *t = f->t;
	bool requests = gp_timeline_has_requests(t, t->row[row].task);
	double bar = y + (requests ? ABOVE : 0) + (ROW - BAR) / 2.0, free_x = 0;
	char name[96], shown[96];

	row_name(t, row, name, sizeof name);
	gp_chart_fit(shown, sizeof shown, name, NAME_MAX_WIDTH, gp_font_plain.size);
	gp_draw_text(d, MARGIN, bar + BAR - 3, shown, &gp_font_plain);
	gp_draw_rect(d, f->left, bar, f->right - f->left, BAR, GP_FILL_SOLID, 0xf2f2f2);
	for (unsigned i = 0; i < run->n; i++) {
		const struct gp_span *s = &run->span[i];

		if (s->device != t->row[row].device || s->task != t->row[row].task)
			continue;
		if (s->kind != GP_SPAN_REQUEST)
			draw_span(d, f, s, bar);
		else if (requests)
			draw_request(d, f, s, bar, &free_x);
	}
	return y + row_height(t, row);
}

static void draw_axis(struct gp_draw *d, double top, double y, const struct frame *f, bool named)
{
	double range_ms = (double)(f->t->to_ns - f->t->from_ns) / 1e6;
	double step = gp_chart_step(range_ms, TICKS);
	struct gp_font font = gp_font_at(gp_font_small, GP_ANCHOR_MIDDLE);
	char text[32];

	for (unsigned i = 0; i * step <= range_ms * (1 + 1e-9); i++) {
		double x = f->left + (f->right - f->left) * i * step / range_ms;

		if (!named) {
			gp_draw_line(d, x, top, x, y + 4, &gp_stroke_grid);
			continue;
		}
		snprintf(text, sizeof text, "%g ms", i * step);
		font.anchor = x + 20 > f->right ? GP_ANCHOR_END : GP_ANCHOR_MIDDLE;
		gp_draw_text(d, x, y + 15, text, &font);
	}
}

static double draw_panel(struct gp_draw *d, double y, const struct frame *f,
			 const struct gp_timeline_run *run)
{
	const struct gp_timeline *t = f->t;
	double top = y + HEAD, bottom = top;
	char label[160];

	gp_chart_fit(label, sizeof label, run->label, f->right - MARGIN, gp_font_head.size);
	gp_draw_text(d, MARGIN, y + 18, label, &gp_font_head);
	if (run->cut)
		gp_draw_text(d, f->left, y + 18,
			     "too many events to draw: the end is missing; try a shorter --for",
			     &gp_font_small);
	for (unsigned i = 0; i < t->nrows; i++)
		bottom += row_height(t, i);
	draw_axis(d, top, bottom, f, false);
	y = top;
	for (unsigned i = 0; i < t->nrows; i++)
		y = draw_row(d, y, f, run, i);
	draw_axis(d, top, bottom, f, true);
	return bottom + AXIS + GAP;
}

double gp_timeline_chart(struct gp_draw *d, double y, const struct gp_timeline *t)
{
	struct frame f = frame_of(t);
	char text[96];

	y = draw_head(d, y, t);
	for (unsigned i = 0; i < t->nruns; i++)
		y = draw_panel(d, y, &f, &t->run[i]);
	if (t->rows_left_out) {
		snprintf(text, sizeof text, "%u more rows are not shown: tasks: %u, devices: %u",
			 t->rows_left_out, t->scenario->ntasks, t->devices);
		gp_draw_text(d, MARGIN, y, text, &gp_font_small);
		y += 20;
	}
	return y;
}
