/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture of a sweep: best-effort work against response times. One point for each value of the
 * sweep, one line for each policy. The best place is the upper left corner.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/draw/chart.h"
#include "cli/cli.h"
#include "cli/sim/sweep.h"

enum {
	WIDTH = 1000,
	MARGIN = 24,
	LEFT = 76,
	RIGHT = 60,
	PLOT = 460,
	BOTTOM = 62,
	LABEL = 11, /* font size of a point's value */
	TICKS = 8,
};

struct frame {
	const struct gp_sweep_result *r;
	struct gp_time_area area; /* horizontal axis: response times */
	double low, high, step;   /* vertical axis: best-effort work, percent */
};

static bool is_drawn(const struct gp_sweep_point *p)
{
	return p->ran && p->lc.has_response && p->has_be;
}

static double us_of(const struct gp_sweep_point *p)
{
	return p->lc.p99_ns ? (double)p->lc.p99_ns / 1e3 : 1e-3;
}

static double y_of(const struct frame *f, double work)
{
	return f->area.bottom -
	       (f->area.bottom - f->area.top) * (work - f->low) / (f->high - f->low);
}

static struct gp_point place(const struct frame *f, const struct gp_sweep_point *p)
{
	return (struct gp_point){gp_time_x(&f->area, us_of(p)), y_of(f, p->be_work)};
}

/* Returns false if no run has both a response time and best-effort work. */
static bool find_range(struct frame *f)
{
	double low_us = INFINITY, high_us = 0, low = INFINITY, high = 0;

	for (unsigned i = 0; i < f->r->n; i++) {
		const struct gp_sweep_point *p = &f->r->point[i];

		if (!is_drawn(p))
			continue;
		low_us = fmin(low_us, us_of(p));
		high_us = fmax(high_us, us_of(p));
		low = fmin(low, p->be_work);
		high = fmax(high, p->be_work);
	}
	if (!(high_us > 0))
		return false;
	f->area.low_us = gp_chart_log_below(low_us * 0.95);
	f->area.high_us = gp_chart_log_above(high_us * 1.05);
	f->step = gp_chart_step(fmax(high - low, 1), TICKS);
	f->low = fmax(0, floor(low / f->step - 0.25) * f->step);
	f->high = ceil(high / f->step + 0.25) * f->step;
	return true;
}

/* Areas that are occupied: marks, and labels that have been placed. */
struct boxes {
	unsigned n;
	struct box {
		double left, top, right, bottom;
	} * box;
};

static bool is_free(const struct boxes *b, const struct box *want, const struct frame *f)
{
	if (want->left < f->area.left || want->right > f->area.right + RIGHT - 4 ||
	    want->top < f->area.top || want->bottom > f->area.bottom)
		return false;
	for (unsigned i = 0; i < b->n; i++)
		if (want->left < b->box[i].right && b->box[i].left < want->right &&
		    want->top < b->box[i].bottom && b->box[i].top < want->bottom)
			return false;
	return true;
}

/* Clips the range t0 to t1 of a segment to from <= at + t * by <= to. False: nothing is left. */
static bool cut(double at, double by, double from, double to, double *t0, double *t1)
{
	double a, b;

	if (fabs(by) < 1e-9)
		return at >= from && at <= to;
	a = (from - at) / by;
	b = (to - at) / by;
	*t0 = fmax(*t0, fmin(a, b));
	*t1 = fmin(*t1, fmax(a, b));
	return *t0 <= *t1;
}

/* The line of any policy crosses the box. */
static bool is_crossed(const struct frame *f, const struct box *b)
{
	for (unsigned series = 0; series < f->r->nseries; series++) {
		const struct gp_sweep_point *last = NULL;

		for (unsigned i = 0; i < f->r->n; i++) {
			const struct gp_sweep_point *p = &f->r->point[i];
			struct gp_point from, to;
			double t0 = 0, t1 = 1;

			if (p->series != series || !is_drawn(p))
				continue;
			to = place(f, p);
			from = last ? place(f, last) : to;
			last = p;
			if (cut(from.x, to.x - from.x, b->left, b->right, &t0, &t1) &&
			    cut(from.y, to.y - from.y, b->top, b->bottom, &t0, &t1))
				return true;
		}
	}
	return false;
}

/*
 * Places a label at the first free position of eight around its point. Positions that no line
 * crosses are tried first. A label without a free position is left out.
 */
static void put_label(struct gp_draw *d, const struct frame *f, struct boxes *b,
		      const struct gp_sweep_point *p)
{
	static const struct gp_point around[] = {{1, 0},  {-1, 0}, {0, -1},  {0, 1},
						 {1, -1}, {1, 1},  {-1, -1}, {-1, 1}};
	const unsigned places = sizeof around / sizeof *around;
	const struct gp_font font = {.size = LABEL, .colour = GP_INK};
	double width = gp_draw_text_width(p->value, LABEL);
	struct gp_point at = place(f, p);

	for (unsigned i = 0; i < 2 * places; i++) {
		double x = at.x + around[i % places].x * (9 + width / 2) - width / 2;
		double y = at.y + around[i % places].y * 15 + 4;
		struct box want = {x - 1, y - LABEL, x + width + 1, y + 3};

		if (!is_free(b, &want, f) || (i < places && is_crossed(f, &want)))
			continue;
		b->box[b->n++] = want;
		gp_draw_text(d, x, y, p->value, &font);
		return;
	}
}

/* An earlier point has the same value at the same position: one label is enough. */
static bool is_labelled(const struct frame *f, unsigned index)
{
	struct gp_point at = place(f, &f->r->point[index]);

	for (unsigned i = 0; i < index; i++) {
		struct gp_point other = place(f, &f->r->point[i]);

		if (is_drawn(&f->r->point[i]) &&
		    !strcmp(f->r->point[i].value, f->r->point[index].value) &&
		    fabs(at.x - other.x) < 8 && fabs(at.y - other.y) < 8)
			return true;
	}
	return false;
}

/* Places the labels at the ends of each line first, since they give its range. */
static void put_labels(struct gp_draw *d, const struct frame *f)
{
	struct boxes b = {.box = calloc(2 * (size_t)f->r->n, sizeof *b.box)};
	const char *first = f->r->sweep->value[0];
	const char *last = f->r->sweep->value[f->r->sweep->n - 1];

	if (!b.box)
		return; /* without memory, draw the picture without labels */
	for (unsigned i = 0; i < f->r->n; i++) {
		struct gp_point at = place(f, &f->r->point[i]);

		if (is_drawn(&f->r->point[i]))
			b.box[b.n++] = (struct box){at.x - 6, at.y - 6, at.x + 6, at.y + 6};
	}
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < f->r->n; i++) {
			const struct gp_sweep_point *p = &f->r->point[i];
			bool is_end = !strcmp(p->value, first) || !strcmp(p->value, last);

			if (is_drawn(p) && p->value[0] && is_end == !pass && !is_labelled(f, i))
				put_label(d, f, &b, p);
		}
	}
	free(b.box);
}

static void draw_axes(struct gp_draw *d, const struct frame *f)
{
	struct gp_font font = gp_font_at(gp_font_small, GP_ANCHOR_END);
	char text[32];

	for (unsigned i = 0; f->low + i * f->step <= f->high * (1 + 1e-9); i++) {
		double y = y_of(f, f->low + i * f->step);

		gp_draw_line(d, f->area.left, y, f->area.right, y, &gp_stroke_grid);
		snprintf(text, sizeof text, "%g %%", f->low + i * f->step);
		gp_draw_text(d, f->area.left - 8, y + 4, text, &font);
	}
	gp_time_axis(d, &f->area,
		     "99th percentile of latency-critical response times (further left is better)");
}

static void draw_series(struct gp_draw *d, const struct frame *f, unsigned series)
{
	struct gp_point *point = calloc(f->r->n, sizeof *point);
	struct gp_stroke stroke = gp_chart_stroke(series);
	unsigned n = 0;

	for (unsigned i = 0; point && i < f->r->n; i++)
		if (f->r->point[i].series == series && is_drawn(&f->r->point[i]))
			point[n++] = place(f, &f->r->point[i]);
	gp_draw_lines(d, point, n, &stroke);
	for (unsigned i = 0; i < n; i++)
		gp_chart_mark(d, point[i].x, point[i].y, series);
	free(point);
}

/* The next drawn point of a series from *i on; NULL: none. Moves *i behind it. */
static const struct gp_sweep_point *next_point(const struct frame *f, unsigned series, unsigned *i)
{
	while (*i < f->r->n) {
		const struct gp_sweep_point *p = &f->r->point[(*i)++];

		if (p->series == series && is_drawn(p))
			return p;
	}
	return NULL;
}

static bool are_same(const struct frame *f, unsigned series, unsigned other)
{
	const struct gp_sweep_point *a, *b;
	unsigned i = 0, j = 0;

	do {
		a = next_point(f, series, &i);
		b = next_point(f, other, &j);
		if (a && b && (us_of(a) != us_of(b) || a->be_work != b->be_work))
			return false;
	} while (a && b);
	return !a && !b;
}

/* A policy without points is left out. A policy hidden by an equal line is named "as" that line. */
static void put_legend(struct gp_draw *d, struct gp_legend *l, const struct frame *f)
{
	for (unsigned i = 0; i < f->r->nseries; i++) {
		char label[96], text[128];
		unsigned first = 0, at = 0;

		if (!next_point(f, i, &at))
			continue;
		while (!are_same(f, i, first))
			first++;
		gp_chart_fit(label, sizeof label, f->r->series[i], 300, gp_font_plain.size);
		if (first < i)
			snprintf(text, sizeof text, "%s (as %.24s)", label, f->r->series[first]);
		else
			snprintf(text, sizeof text, "%s", label);
		gp_legend_series(l, d, i, text);
	}
}

static double draw(struct gp_draw *d, struct frame f)
{
	struct gp_legend l = {MARGIN, WIDTH - MARGIN, MARGIN, 78};
	char text[192];

	snprintf(text, sizeof text, "Response times and best-effort work: %s", f.r->scenario);
	gp_draw_text(d, MARGIN, 32, text, &gp_font_title);
	snprintf(text, sizeof text, "Labels at the points: %s, from %s to %s", f.r->sweep->name,
		 f.r->sweep->value[0], f.r->sweep->value[f.r->sweep->n - 1]);
	gp_draw_text(d, MARGIN, 52, text, &gp_font_plain);
	put_legend(d, &l, &f);
	gp_draw_text(d, MARGIN, l.y + 30,
		     "best-effort work, % of what is possible (higher is better)", &gp_font_small);
	f.area.top = l.y + 44;
	f.area.bottom = f.area.top + PLOT;
	draw_axes(d, &f);
	for (unsigned i = 0; i < f.r->nseries; i++)
		draw_series(d, &f, i);
	put_labels(d, &f);
	return f.area.bottom + BOTTOM;
}

int gp_sweep_picture(FILE *out, enum gp_draw_format format, const struct gp_sweep_result *r,
		     struct gp_error *err)
{
	struct frame f = {.r = r, .area = {.left = LEFT, .right = WIDTH - RIGHT}};
	struct gp_draw *d;

	if (!find_range(&f))
		return gp_fail(err, -EINVAL,
			       "cannot draw the sweep of %s: it needs a latency-critical task that "
			       "finishes requests and a best-effort task",
			       r->scenario);
	d = gp_draw_begin(out, format, WIDTH, draw(NULL, f));
	if (!d)
		return gp_fail(err, -ENOMEM, "no memory for the picture");
	draw(d, f);
	return gp_draw_end(d);
}
