/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What charts share: styles that can be told apart without colour, legends that wrap, axes. The
 * colours are Okabe and Ito's, which the colour-blind can tell; each comes with dashes and a mark.
 */
#ifndef GP_CLI_DRAW_CHART_H
#define GP_CLI_DRAW_CHART_H

#include "cli/draw/draw.h"

#define GP_INK     0x222222u
#define GP_GREY    0x666666u
#define GP_GRID    0xdddddd
#define GP_LC      0x0072b2u /* dark and light enough to differ in grey */
#define GP_BE      0xe69f00u
#define GP_REQUEST 0xd55e00u

extern const struct gp_font gp_font_title, gp_font_head, gp_font_plain, gp_font_small;
extern const struct gp_stroke gp_stroke_grid, gp_stroke_axis;

/* The font, anchored otherwise. */
struct gp_font gp_font_at(struct gp_font font, enum gp_anchor anchor);

/* Style i of a series; there are eight, then they begin anew with hollow marks. */
struct gp_stroke gp_chart_stroke(unsigned style);
void gp_chart_mark(struct gp_draw *d, double x, double y, unsigned style);

/* Legend entries from left to right, then in the next row. */
struct gp_legend {
	double left, right;
	double x, y; /* of the next entry: its left end, and the line its words stand on */
};

/* Room for a sample of `sample` pixels and the words; moves on. Returns the sample's left end. */
double gp_legend_add(struct gp_legend *legend, struct gp_draw *d, double sample, const char *words);

/* The same for series i: a piece of its line with its mark. */
void gp_legend_series(struct gp_legend *legend, struct gp_draw *d, unsigned style,
                      const char *words);

/* 1, 2 or 5 times a power of ten, at most `most` steps in the range. */
double gp_chart_step(double range, unsigned most);

/* The next of 1, 2, 5, 10 ... not below, not above. */
double gp_chart_log_below(double value);
double gp_chart_log_above(double value);
double gp_chart_log_next(double value);

/* An area with a logarithmic axis of times below it. */
struct gp_time_area {
	double left, right, top, bottom;
	double low_us, high_us; /* 1, 2 or 5 times a power of ten */
};

/* Where on it a time lies. */
double gp_time_x(const struct gp_time_area *area, double us);

/* Lines and times, as many as there is room for, and the words below them. */
void gp_time_axis(struct gp_draw *d, const struct gp_time_area *area, const char *words);

/* As much of the text as fits into `width`, with "..." where it is cut. Returns `out`. */
const char *gp_chart_fit(char *out, size_t size, const char *text, double width, double font_size);

#endif
