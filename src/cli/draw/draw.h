/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drawing layer: rectangles, lines, polygons and text, written as SVG or PNG. All pictures of
 * the command line are drawn with it. PNG needs cairo, at build time and at run time. Lengths are
 * in pixels of the SVG; a PNG has twice as many.
 *
 * Drawing on NULL does nothing. A chart measures its height by drawing on NULL first.
 */
#ifndef GP_CLI_DRAW_DRAW_H
#define GP_CLI_DRAW_DRAW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum gp_draw_format { GP_DRAW_SVG, GP_DRAW_PNG };

/*
 * Chooses the format by the file name. 0, or with a message: -EINVAL if the name ends neither with
 * .svg nor with .png, -ENOTSUP for .png without cairo.
 */
int gp_draw_format_of(const char *path, enum gp_draw_format *format, struct gp_error *err);

enum gp_fill {
	GP_FILL_SOLID,
	GP_FILL_HATCH,   /* diagonal, grey on white */
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
	double dash[GP_DASHES]; /* lengths: on, off, on, off; all 0: a solid line */
};

enum gp_anchor { GP_ANCHOR_START, GP_ANCHOR_MIDDLE, GP_ANCHOR_END };

struct gp_font {
	double size;
	uint32_t colour;
	enum gp_anchor anchor;
	bool bold;
};

struct gp_draw;

/* One table per format. `end` writes the rest of the file and frees `d`; 0 or -errno. */
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
};

/* Begins a picture with a white background. NULL: no memory, or too large for a PNG. */
struct gp_draw *gp_draw_begin(FILE *out, enum gp_draw_format format, double width, double height);

/* `colour` is used with GP_FILL_SOLID only. */
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

/* `y` is the base line of the text. */
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

/* An upper estimate of the width of the text; the exact width depends on the font. */
double gp_draw_text_width(const char *text, double size);

/* Private to draw.c and draw_png.c. gp_draw_png needs gp_draw_png_loads() first, which loads cairo.
 */
struct gp_draw *gp_draw_png(FILE *out, double width, double height);
bool gp_draw_png_loads(void);

#endif
