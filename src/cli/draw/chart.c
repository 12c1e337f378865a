/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/draw/chart.h"

#include <math.h>
#include <string.h>

#include "cli/cli.h"

const struct gp_font gp_font_title = {.size = 17, .colour = GP_INK, .bold = true};
const struct gp_font gp_font_head = {.size = 13, .colour = GP_INK, .bold = true};
const struct gp_font gp_font_plain = {.size = 12, .colour = GP_INK};
const struct gp_font gp_font_small = {.size = 11, .colour = GP_GREY};
const struct gp_stroke gp_stroke_grid = {.colour = GP_GRID, .width = 1};
const struct gp_stroke gp_stroke_axis = {.colour = GP_GREY, .width = 1};

struct gp_font gp_font_at(struct gp_font font, enum gp_anchor anchor)
{
	font.anchor = anchor;
	return font;
}

#define POINTS 12 /* corners of a mark, at most */

/* clang-format off */
static const struct style {
	uint32_t colour;
	double dash[GP_DASHES];
	unsigned n;
	struct gp_point mark[POINTS]; /* corners around 0,0 */
} styles[] = {
	{0x0072b2, {0},           4, {{-4, -4}, {4, -4}, {4, 4}, {-4, 4}}}, /* square */
	{0xd55e00, {8, 3},        3, {{0, -5.5}, {5.5, 4.5}, {-5.5, 4.5}}}, /* triangle */
	{0x009e73, {2, 2},        8, {{-2, -4.6}, {2, -4.6}, {4.6, -2}, {4.6, 2},
	                              {2, 4.6}, {-2, 4.6}, {-4.6, 2}, {-4.6, -2}}}, /* octagon */
	{0xcc79a7, {10, 3, 2, 3}, 4, {{0, -6}, {6, 0}, {0, 6}, {-6, 0}}}, /* diamond */
	{0x000000, {5, 2},        3, {{0, 5.5}, {5.5, -4.5}, {-5.5, -4.5}}}, /* down */
	{0xe69f00, {14, 4},      12, {{-1.6, -5}, {1.6, -5}, {1.6, -1.6}, {5, -1.6},
	                              {5, 1.6}, {1.6, 1.6}, {1.6, 5}, {-1.6, 5},
	                              {-1.6, 1.6}, {-5, 1.6}, {-5, -1.6}, {-1.6, -1.6}}}, /* plus */
	{0x56b4e9, {3, 3},        4, {{-2.5, -6}, {2.5, -6}, {2.5, 6}, {-2.5, 6}}}, /* upright */
	{0x777777, {1, 3, 6, 3},  4, {{-6, -2.5}, {6, -2.5}, {6, 2.5}, {-6, 2.5}}}, /* lying */
	{0x882255, {7, 7},        5, {{0, -6}, {5.7, -1.8}, {3.5, 4.9}, {-3.5, 4.9},
	                              {-5.7, -1.8}}}, /* pentagon */
	{0x117733, {1, 2, 1, 6}, 12, {{-4.7, -2.4}, {-2.4, -4.7}, {0, -2.3}, {2.4, -4.7},
	                              {4.7, -2.4}, {2.3, 0}, {4.7, 2.4}, {2.4, 4.7},
	                              {0, 2.3}, {-2.4, 4.7}, {-4.7, 2.4}, {-2.3, 0}}}, /* cross */
};
/* clang-format on */

#define STYLES ((unsigned)(sizeof styles / sizeof *styles))

struct gp_stroke gp_chart_stroke(unsigned style)
{
	struct gp_stroke s = {.colour = styles[style % STYLES].colour, .width = 1.8};

	memcpy(s.dash, styles[style % STYLES].dash, sizeof s.dash);
	return s;
}

static void put_mark(struct gp_draw *d, double x, double y, const struct style *s, double scale,
		     uint32_t colour)
{
	struct gp_point p[POINTS];

	for (unsigned i = 0; i < s->n; i++)
		p[i] = (struct gp_point){x + scale * s->mark[i].x, y + scale * s->mark[i].y};
	gp_draw_shape(d, p, s->n, colour);
}

void gp_chart_mark(struct gp_draw *d, double x, double y, unsigned style)
{
	const struct style *s = &styles[style % STYLES];

	put_mark(d, x, y, s, 1.25, 0xffffff); /* a white rim separates it from lines below */
	put_mark(d, x, y, s, 1, s->colour);
	if (style / STYLES % 2)
		put_mark(d, x, y, s, 0.5, 0xffffff);
}

enum { LEGEND_ROW = 20, LEGEND_GAP = 22, SAMPLE_GAP = 6, LINE_SAMPLE = 40 };

double gp_legend_add(struct gp_legend *l, struct gp_draw *d, double sample, const char *words)
{
	double width = sample + SAMPLE_GAP + gp_draw_text_width(words, gp_font_plain.size);
	double at;

	if (l->x > l->left && l->x + width > l->right) {
		l->x = l->left;
		l->y += LEGEND_ROW;
	}
	at = l->x;
	gp_draw_text(d, at + sample + SAMPLE_GAP, l->y, words, &gp_font_plain);
	l->x += width + LEGEND_GAP;
	return at;
}

void gp_legend_series(struct gp_legend *l, struct gp_draw *d, unsigned style, const char *words)
{
	struct gp_stroke stroke = gp_chart_stroke(style);
	double at = gp_legend_add(l, d, LINE_SAMPLE, words);

	gp_draw_line(d, at, l->y - 4, at + LINE_SAMPLE, l->y - 4, &stroke);
	gp_chart_mark(d, at + LINE_SAMPLE / 2.0, l->y - 4, style);
}

/* The member of the series 1, 2, 5, 10, 20 and so on that follows `value`. */
static double log_next(double value)
{
	double digit = value / pow(10, floor(log10(value) + 1e-9));

	return digit > 1.5 && digit < 3 ? 2.5 * value : 2 * value;
}

double gp_chart_step(double range, unsigned most)
{
	double step = pow(10, floor(log10(range / most)));

	while (range / step > most)
		step = log_next(step);
	return step;
}

double gp_chart_log_below(double value)
{
	double ten = pow(10, floor(log10(value) + 1e-9));

	return value >= 5 * ten ? 5 * ten : value >= 2 * ten ? 2 * ten : ten;
}

double gp_chart_log_above(double value)
{
	double below = gp_chart_log_below(value);

	return below < value * (1 - 1e-9) ? log_next(below) : below;
}

double gp_time_x(const struct gp_time_area *a, double us)
{
	return a->left + (a->right - a->left) * log(us / a->low_us) / log(a->high_us / a->low_us);
}

enum { TIME_WIDTH = 62 }; /* room for a time below the axis, pixels */

void gp_time_axis(struct gp_draw *d, const struct gp_time_area *a, const char *words)
{
	struct gp_font font = gp_font_at(gp_font_small, GP_ANCHOR_MIDDLE);
	double free_x = 0, us = a->low_us;

	while (us <= a->high_us * 1.001) {
		double x = gp_time_x(a, us);

		gp_draw_line(d, x, a->top, x, a->bottom, &gp_stroke_grid);
		if (x >= free_x) {
			gp_draw_text(d, x, a->bottom + 16,
				     gp_cli_duration((uint64_t)(us * 1e3 + 0.5)).text, &font);
			free_x = x + TIME_WIDTH;
		}
		us = log_next(us);
	}
	gp_draw_line(d, a->left, a->bottom, a->right, a->bottom, &gp_stroke_axis);
	gp_draw_line(d, a->left, a->top, a->left, a->bottom, &gp_stroke_axis);
	gp_draw_text(d, (a->left + a->right) / 2, a->bottom + 36, words, &font);
}

const char *gp_chart_fit(char *out, size_t size, const char *text, double width, double font_size)
{
	size_t length = strlen(text);

	if (length >= size)
		length = size - 1;
	memcpy(out, text, length);
	out[length] = '\0';
	while (length > 4 && gp_draw_text_width(out, font_size) > width) {
		length -= strcmp(out + length - 3, "...") ? 3 : 4;
		while (length && (out[length] & 0xc0) == 0x80) /* cuts between UTF-8 characters */
			length--;
		memcpy(out + length, "...", 4);
		length += 3;
	}
	return out;
}
