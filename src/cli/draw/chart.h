/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts that all charts share: fonts, colours, line styles, legends, axes. The colours are Okabe
 * and Ito's, which colour-blind readers can tell apart. Each line style also has its own dashes and
 * its own mark, so that charts can be read without colour.
 */
#ifndef GP_CLI_DRAW_CHART_H
#define GP_CLI_DRAW_CHART_H

#include "cli/draw/draw.h"

#define GP_CHART_WIDTH 1100 /* of a page with timelines */

#define GP_INK         0x222222u
#define GP_GREY        0x666666u
#define GP_GRID        0xdddddd
#define GP_LC          0x0072b2u /* latency-critical tasks */
#define GP_BE          0xe69f00u /* best-effort tasks; differs from GP_LC in brightness, too */
#define GP_REQUEST     0xd55e00u

extern const struct gp_font gp_font_title, gp_font_head, gp_font_plain, gp_font_small;
extern const struct gp_stroke gp_stroke_grid, gp_stroke_axis;

/* A copy of the font with another anchor. */
struct gp_font gp_font_at(struct gp_font font, enum gp_anchor anchor);

/* Line style number `style`. There are ten; from the eleventh on they repeat with hollow marks. */
struct gp_stroke gp_chart_stroke(unsigned style);
void gp_chart_mark(struct gp_draw *d, double x, double y, unsigned style);

/* A legend: entries from left to right, then in the next row. */
struct gp_legend {
	double left, right;
	double x, y; /* left end and text base line of the next entry */
};

/* Adds an entry: room for a sample `sample` pixels wide, and the words. Returns the sample's left
 * end. */
double gp_legend_add(struct gp_legend *legend, struct gp_draw *d, double sample, const char *words);

/* Adds an entry with a piece of line and its mark as the sample. */
void gp_legend_series(struct gp_legend *legend, struct gp_draw *d, unsigned style,
		      const char *words);

/* Distance of axis ticks: 1, 2 or 5 times a power of ten; at most `most` steps in the range. */
double gp_chart_step(double range, unsigned most);

/* The series 1, 2, 5, 10, 20 and so on: the largest member <= value, the smallest member >= value.
 */
double gp_chart_log_below(double value);
double gp_chart_log_above(double value);

/* An area above a logarithmic time axis. */
struct gp_time_area {
	double left, right, top, bottom;
	double low_us, high_us; /* 1, 2 or 5 times a power of ten */
};

/* The x coordinate of a time. */
double gp_time_x(const struct gp_time_area *area, double us);

/* Draws grid lines, as many times as have room, and `words` below the axis. */
void gp_time_axis(struct gp_draw *d, const struct gp_time_area *area, const char *words);

/* Copies as much of the text as fits into `width` pixels; a cut text ends with "...". Returns
 * `out`. */
const char *gp_chart_fit(char *out, size_t size, const char *text, double width, double font_size);

#endif
