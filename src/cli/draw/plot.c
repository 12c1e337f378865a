/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/draw/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cli/draw/chart.h"

enum {
	WIDTH = 900,
	LEFT = 60,
	RIGHT = 30,
	TITLE = 30, /* base line of the title */
	PLOT = 262, /* height of the area with the lines */
	BOTTOM = 54,
	SPREAD_MAX = 6, /* with more lines, equal values are drawn on top of each other */
	MARKS = 60,     /* marks per line, about */
	TICKS = 6,
};

#define SPREAD   2.5  /* pixels between lines with equal values */
#define HEADROOM 1.08 /* the axis ends above the largest value */

int gp_plot_add(struct gp_plot_line *line, uint64_t at_ns, unsigned value)
{
	if (line->n && line->step[line->n - 1].value == value)
		return 0;
	if (line->n == line->capacity) {
		unsigned capacity = line->capacity ? 2 * line->capacity : 16;
		struct gp_plot_step *step = realloc(line->step, capacity * sizeof *step);

		if (!step)
			return -ENOMEM;
		line->step = step;
		line->capacity = capacity;
	}
	line->step[line->n++] = (struct gp_plot_step){.at_ns = at_ns, .value = value};
	return 0;
}

struct frame {
	const struct gp_plot *plot;
	double top, bottom; /* of the area with the lines */
	double max;         /* largest value */
	double for_ns;
};

static struct frame frame_of(const struct gp_plot *plot)
{
	struct frame f = {.plot = plot, .max = 1, .for_ns = (double)(plot->to_ns - plot->from_ns)};

	for (unsigned i = 0; i < plot->n; i++)
		for (unsigned k = 0; k < plot->line[i].n; k++)
			f.max = fmax(f.max, plot->line[i].step[k].value);
	f.for_ns = fmax(f.for_ns, 1);
	return f;
}

static double x_of(const struct frame *f, uint64_t at_ns)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * (double)(at_ns - f->plot->from_ns) / f->for_ns;
}

static double y_of(const struct frame *f, double value)
{
	return f->bottom - PLOT * value / (f->max * HEADROOM);
}

static struct gp_point point_of(const struct frame *f, uint64_t at_ns, unsigned value,
				unsigned line)
{
	double middle = (f->plot->n - 1) / 2.0;
	double spread = f->plot->n <= SPREAD_MAX ? SPREAD * (line - middle) : 0;

	return (struct gp_point){x_of(f, at_ns), y_of(f, value) + spread};
}

static void draw_values(struct gp_draw *d, const struct frame *f)
{
	struct gp_font font = gp_font_at(gp_font_plain, GP_ANCHOR_END);
	double step = fmax(gp_chart_step(f->max, TICKS), 1);
	char text[32];

	for (unsigned i = 0; i * step <= f->max; i++) {
		double value = i * step, y = y_of(f, value);

		gp_draw_line(d, LEFT, y, WIDTH - RIGHT, y, &gp_stroke_grid);
		snprintf(text, sizeof text, "%.0f", value);
		gp_draw_text(d, LEFT - 8, y + 4, text, &font);
	}
	gp_draw_text(d, LEFT, f->top - 4, f->plot->unit, &gp_font_plain);
}

static void draw_times(struct gp_draw *d, const struct frame *f)
{
	struct gp_font font = gp_font_at(gp_font_plain, GP_ANCHOR_MIDDLE);
	double range_ms = floor(f->for_ns / 1e6);
	double step_ms = range_ms > 0 ? fmax(gp_chart_step(range_ms, TICKS), 1) : 1;
	char text[32];

	for (unsigned i = 0; i * step_ms <= range_ms; i++) {
		double ms = i * step_ms;
		double x = LEFT + (WIDTH - LEFT - RIGHT) * ms * 1e6 / f->for_ns;

		gp_draw_line(d, x, f->bottom, x, f->bottom + 5, &gp_stroke_axis);
		snprintf(text, sizeof text, "%g", ms / 1000);
		gp_draw_text(d, x, f->bottom + 20, text, &font);
	}
	gp_draw_line(d, LEFT, f->bottom, WIDTH - RIGHT, f->bottom, &gp_stroke_axis);
	gp_draw_text(d, (LEFT + WIDTH - RIGHT) / 2.0, f->bottom + 42, "seconds", &font);
}

static void draw_line(struct gp_draw *d, const struct frame *f, unsigned i)
{
	const struct gp_plot_line *line = &f->plot->line[i];
	struct gp_point *point = calloc(2 * (size_t)line->n + 1, sizeof *point);
	struct gp_stroke stroke = gp_chart_stroke(i);
	unsigned n = 0, every = line->n / MARKS + 1;

	for (unsigned k = 0; point && k < line->n; k++) {
		struct gp_point next = point_of(f, line->step[k].at_ns, line->step[k].value, i);

		if (n) {
			point[n] = (struct gp_point){next.x, point[n - 1].y};
			n++;
		}
		point[n++] = next;
	}
	if (n) {
		point[n] = (struct gp_point){WIDTH - RIGHT, point[n - 1].y};
		gp_draw_lines(d, point, n + 1, &stroke);
	}
	for (unsigned k = 0; k < n; k += 2 * every)
		gp_chart_mark(d, point[k].x, point[k].y, i);
	free(point);
}

static double draw(struct gp_draw *d, const struct gp_plot *plot)
{
	struct gp_legend legend = {LEFT, WIDTH - RIGHT, LEFT, TITLE + 26};
	struct frame f = frame_of(plot);

	gp_draw_text(d, LEFT, TITLE, plot->title, &gp_font_title);
	for (unsigned i = 0; i < plot->n; i++)
		gp_legend_series(&legend, d, i, plot->line[i].label);
	f.top = legend.y + 28;
	f.bottom = f.top + PLOT;
	draw_values(d, &f);
	draw_times(d, &f);
	for (unsigned i = 0; d && i < plot->n; i++)
		draw_line(d, &f, i);
	return f.bottom + BOTTOM;
}

int gp_plot_svg(FILE *out, const struct gp_plot *plot)
{
	struct gp_draw *d = gp_draw_begin(out, GP_DRAW_SVG, WIDTH, draw(NULL, plot));

	if (!d)
		return -ENOMEM;
	draw(d, plot);
	return gp_draw_end(d);
}
