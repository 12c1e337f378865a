/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture of rectangles, lines and words, as SVG or, where cairo was found, as PNG. What is drawn
 * is the same for both. Lengths are in pixels of the SVG; a PNG has twice as many.
 *
 * To draw on NULL does nothing: so a layout is measured by drawing it on NULL first.
 */
#ifndef GP_CLI_DRAW_DRAW_H
#define GP_CLI_DRAW_DRAW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum gp_draw_format { GP_DRAW_SVG, GP_DRAW_PNG };

/*
 * By the end of the file's name. With a sentence: -EINVAL for any other end, -ENOTSUP for .png in
 * a build without cairo, or where it is not installed.
 */
int gp_draw_format_of(const char *path, enum gp_draw_format *format, struct gp_error *err);

enum gp_fill {
	GP_FILL_SOLID,
	GP_FILL_HATCH,   /* diagonal, grey on white: needs no colour to be told from solid */
	GP_FILL_STRIPES, /* horizontal, grey on white */
	GP_FILL_DOTS,    /* dark grey on light grey */
};

struct gp_point {
	double x, y;
};

#define GP_DASHES 4

struct gp_stroke {
	uint32_t colour; /* 0xrrggbb */
	double width;
	double dash[GP_DASHES]; /* on, off, on, off; all 0: a solid line */
};

enum gp_anchor { GP_ANCHOR_START, GP_ANCHOR_MIDDLE, GP_ANCHOR_END };

struct gp_font {
	double size;
	uint32_t colour;
	enum gp_anchor anchor;
	bool bold;
};

struct gp_draw;

/* One table per format. `end` writes what is not written yet and frees; 0 or -errno. */
struct gp_draw_ops {
	void (*rect)(struct gp_draw *d, double x, double y, double w, double h, enum gp_fill fill,
	             uint32_t colour);
	void (*lines)(struct gp_draw *d, const struct gp_point *point, unsigned n,
	              const struct gp_stroke *stroke);
	void (*shape)(struct gp_draw *d, const struct gp_point *point, unsigned n, uint32_t colour);
	void (*text)(struct gp_draw *d, double x, double y, const char *text,
	             const struct gp_font *font);
	int (*end)(struct gp_draw *d);
};

struct gp_draw {
	const struct gp_draw_ops *ops;
	FILE *out; /* not owned */
	double width, height;
};

/* On white. NULL: there is no memory for it, or it is too large for a PNG. */
struct gp_draw *gp_draw_begin(FILE *out, enum gp_draw_format format, double width, double height);

/* The colour counts with GP_FILL_SOLID only. */
static inline void gp_draw_rect(struct gp_draw *d, double x, double y, double w, double h,
                                enum gp_fill fill, uint32_t colour)
{
	if (d)
		d->ops->rect(d, x, y, w, h, fill, colour);
}

static inline void gp_draw_lines(struct gp_draw *d, const struct gp_point *point, unsigned n,
                                 const struct gp_stroke *stroke)
{
	if (d && n > 1)
		d->ops->lines(d, point, n, stroke);
}

static inline void gp_draw_line(struct gp_draw *d, double x1, double y1, double x2, double y2,
                                const struct gp_stroke *stroke)
{
	gp_draw_lines(d, (struct gp_point[]){{x1, y1}, {x2, y2}}, 2, stroke);
}

/* A filled polygon. */
static inline void gp_draw_shape(struct gp_draw *d, const struct gp_point *point, unsigned n,
                                 uint32_t colour)
{
	if (d)
		d->ops->shape(d, point, n, colour);
}

/* y is the line the letters stand on. */
static inline void gp_draw_text(struct gp_draw *d, double x, double y, const char *text,
                                const struct gp_font *font)
{
	if (d)
		d->ops->text(d, x, y, text, font);
}

static inline int gp_draw_end(struct gp_draw *d)
{
	return d->ops->end(d);
}

/* About how wide the text will be: fonts differ, so rather too much. */
double gp_draw_text_width(const char *text, double size);

/* For draw.c. */
struct gp_draw *gp_draw_svg(FILE *out, double width, double height);
struct gp_draw *gp_draw_png(FILE *out, double width, double height); /* once it loads */
bool gp_draw_png_loads(void); /* cairo is there; in builds with it only */

#endif
