/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are told apart by colour (Okabe and Ito's, which the colour-blind can tell), by dashes and
 * by the shape that marks their steps.
 */
#include "cli/draw/plot.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/draw/svg_text.h"

enum {
	WIDTH = 900,
	HEIGHT = 380,
	LEFT = 60,
	RIGHT = 30,
	TOP = 64, /* and a row of the legend for each line */
	ROW = 22,
	BOTTOM = 54,
	STYLES = 6,
	MARKS = 60, /* with more steps, not each has a mark */
	TICKS = 6,
};

static const struct {
	const char *colour, *dashes, *mark; /* the mark as a path around 0,0 */
} styles[STYLES] = {
	{"#0072b2", "none", "M-4 -4h8v8h-8z"},
	{"#d55e00", "9 4", "M0 -5l5 9h-10z"},
	{"#009e73", "2 3", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0"},
	{"#cc79a7", "12 3 2 3", "M0 -5l5 5l-5 5l-5 -5z"},
	{"#56b4e9", "5 3", "M0 5l5 -9h-10z"},
	{"#000000", "1 4", "M-4 -4l8 8m0 -8l-8 8"},
};

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

/* ---- where things are --------------------------------------------------------------------------
 */

struct frame {
	const struct gp_plot *plot;
	double top, bottom; /* of the area with the lines */
	unsigned max;       /* of the axis */
	uint64_t for_ns;
};

static struct frame frame_of(const struct gp_plot *plot)
{
	struct frame f = {.plot = plot,
	                  .top = TOP + ROW * plot->n,
	                  .bottom = HEIGHT + ROW * plot->n - BOTTOM,
	                  .max = 1,
	                  .for_ns = plot->to_ns - plot->from_ns};

	for (unsigned i = 0; i < plot->n; i++)
		for (unsigned k = 0; k < plot->line[i].n; k++)
			if (plot->line[i].step[k].value > f.max)
				f.max = plot->line[i].step[k].value;
	f.for_ns = f.for_ns ? f.for_ns : 1;
	return f;
}

static double x_of(const struct frame *f, uint64_t at_ns)
{
	return LEFT +
	       (WIDTH - LEFT - RIGHT) * (double)(at_ns - f->plot->from_ns) / (double)f->for_ns;
}

/* Lines that run on the same height lie beside each other, not on each other. */
static double y_of(const struct frame *f, unsigned value, unsigned line)
{
	double middle = (f->plot->n - 1) / 2.0;

	return f->bottom - (f->bottom - f->top) * value / (f->max * 1.08) +
	       2.5 * (line - middle) * (f->plot->n <= STYLES);
}

/* ---- what is drawn -----------------------------------------------------------------------------
 */

/* The next of 1, 2, 5, 10, 20 ... that makes few enough steps. */
static unsigned step_for(uint64_t range)
{
	static const unsigned factor[] = {1, 2, 5};
	uint64_t ten = 1;

	for (unsigned i = 0;; i++) {
		if (i && i % 3 == 0)
			ten *= 10;
		if (range / (factor[i % 3] * ten) <= TICKS)
			return (unsigned)(factor[i % 3] * ten);
	}
}

static void draw_values(FILE *out, const struct frame *f)
{
	unsigned step = step_for(f->max);

	for (unsigned v = 0; v <= f->max; v += step) {
		double y = f->bottom - (f->bottom - f->top) * v / (f->max * 1.08);

		fprintf(out,
		        "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>"
		        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%u</text>\n",
		        LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4, v);
	}
	fprintf(out, "<text transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\">",
	        (f->top + f->bottom) / 2);
	gp_svg_text(out, f->plot->unit);
	fputs("</text>\n", out);
}

static void draw_times(FILE *out, const struct frame *f)
{
	uint64_t ms = f->for_ns / 1000000;
	uint64_t step = ms ? step_for(ms) : 1;

	for (uint64_t at = 0; at <= ms; at += step) {
		double x = x_of(f, f->plot->from_ns + at * 1000000);

		fprintf(out, "<path d=\"M%.1f %.1fv5\" stroke=\"#555\"/>", x, f->bottom);
		fprintf(out,
		        step % 1000 ? "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g"
		                      "</text>\n"
		                    : "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.0f"
		                      "</text>\n",
		        x, f->bottom + 20, (double)at / 1000);
	}
	fprintf(out,
	        "<path d=\"M%d %.1fH%d\" stroke=\"#555\"/>"
	        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">seconds</text>\n",
	        LEFT, f->bottom, WIDTH - RIGHT, LEFT + (WIDTH - LEFT - RIGHT) / 2, f->bottom + 42);
}

static void draw_mark(FILE *out, double x, double y, unsigned style)
{
	fprintf(out,
	        "<path transform=\"translate(%.1f %.1f)\" d=\"%s\" fill=\"%s\" stroke=\"%s\"/>\n",
	        x, y, styles[style].mark, styles[style].colour, styles[style].colour);
}

static void draw_line(FILE *out, const struct frame *f, unsigned i)
{
	const struct gp_plot_line *line = &f->plot->line[i];
	unsigned style = i % STYLES, every = line->n / MARKS + 1;

	if (!line->n)
		return;
	fprintf(out,
	        "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" ",
	        styles[style].colour, styles[style].dashes);
	for (unsigned k = 0; k < line->n; k++)
		fprintf(out, k ? "H%.1fV%.1f" : "d=\"M%.1f %.1f", x_of(f, line->step[k].at_ns),
		        y_of(f, line->step[k].value, i));
	fprintf(out, "H%d\"/>\n", WIDTH - RIGHT);
	for (unsigned k = 0; k < line->n; k += every)
		draw_mark(out, x_of(f, line->step[k].at_ns), y_of(f, line->step[k].value, i),
		          style);
}

static void draw_legend(FILE *out, const struct gp_plot *plot, unsigned i)
{
	double y = 52 + ROW * i;

	fprintf(out,
	        "<path d=\"M%d %.1fh44\" stroke=\"%s\" stroke-width=\"2\" "
	        "stroke-dasharray=\"%s\"/>\n",
	        LEFT, y, styles[i % STYLES].colour, styles[i % STYLES].dashes);
	draw_mark(out, LEFT + 22, y, i % STYLES);
	fprintf(out, "<text x=\"%d\" y=\"%.1f\">", LEFT + 54, y + 5);
	gp_svg_text(out, plot->line[i].label);
	fputs("</text>\n", out);
}

int gp_plot_svg(FILE *out, const struct gp_plot *plot)
{
	struct frame f = frame_of(plot);
	unsigned height = HEIGHT + ROW * plot->n;

	fprintf(out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
	        "viewBox=\"0 0 %d %u\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
	        "<text x=\"%d\" y=\"30\" font-size=\"17\" font-weight=\"bold\">",
	        WIDTH, height, WIDTH, height, LEFT);
	gp_svg_text(out, plot->title);
	fputs("</text>\n", out);
	for (unsigned i = 0; i < plot->n; i++)
		draw_legend(out, plot, i);
	draw_values(out, &f);
	draw_times(out, &f);
	for (unsigned i = 0; i < plot->n; i++)
		draw_line(out, &f, i);
	fputs("</svg>\n", out);
	return ferror(out) ? -EIO : 0;
}
