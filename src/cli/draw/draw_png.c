/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNG with cairo. The library is loaded with dlopen when a PNG is drawn: linking it would load
 * twenty libraries in every run of every command, including those of root.
 */
#include "build_config.h"

#if GP_HAVE_DAEMON
#include <cairo.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/draw/draw.h"

/* clang-format off */
#define CALLS \
	CALL(create) CALL(destroy) CALL(fill) CALL(get_target) \
	CALL(image_surface_create) CALL(line_to) CALL(matrix_init_scale) CALL(move_to) \
	CALL(new_path) CALL(pattern_create_for_surface) CALL(pattern_destroy) \
	CALL(pattern_set_extend) CALL(pattern_set_matrix) CALL(rectangle) CALL(scale) \
	CALL(select_font_face) CALL(set_dash) CALL(set_font_size) CALL(set_line_width) \
	CALL(set_source) CALL(set_source_rgb) CALL(show_text) CALL(status) CALL(stroke) \
	CALL(surface_destroy) CALL(surface_write_to_png_stream) CALL(text_extents)
/* clang-format on */

static struct {
#define CALL(name) __typeof__(cairo_##name) *(name);
	CALLS
#undef CALL
} cairo;

static bool load(void)
{
	void *library = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL); /* never closed */
	bool complete = library != NULL;

#define CALL(call)                                                      \
	if (complete) {                                                 \
		*(void **)&cairo.call = dlsym(library, "cairo_" #call); \
		complete = cairo.call != NULL;                          \
	}
	CALLS
#undef CALL
	if (!complete)
		memset(&cairo, 0, sizeof cairo);
	return complete;
}

bool gp_draw_png_loads(void)
{
	return cairo.create || load();
}

#define SCALE    2.0   /* pixels of the PNG per pixel of the SVG */
#define SIDE_MAX 32000 /* cairo's own limit is 32767 */

struct png {
	struct gp_draw base;
	cairo_t *cr;
	cairo_pattern_t *pattern[GP_FILL_DOTS + 1];
};

static void set_colour(cairo_t *cr, uint32_t c)
{
	cairo.set_source_rgb(cr, (c >> 16 & 255) / 255.0, (c >> 8 & 255) / 255.0,
			     (c & 255) / 255.0);
}

static void fill_rect(cairo_t *cr, double x, double y, double w, double h, uint32_t colour)
{
	set_colour(cr, colour);
	cairo.rectangle(cr, x, y, w, h);
	cairo.fill(cr);
}

/* Patterns are small images that repeat. Three diagonals make the hatch continuous across tiles. */
static void draw_hatch(cairo_t *cr, double side)
{
	fill_rect(cr, 0, 0, side, side, 0xffffff);
	set_colour(cr, 0x777777);
	cairo.set_line_width(cr, 2);
	for (int i = -1; i <= 1; i++) {
		cairo.move_to(cr, -1 + i * side, side + 1);
		cairo.line_to(cr, side + 1 + i * side, -1);
	}
	cairo.stroke(cr);
}

static void draw_stripes(cairo_t *cr, double side)
{
	fill_rect(cr, 0, 0, side, side, 0xffffff);
	fill_rect(cr, 0, 0, side, 1.5, 0x999999);
}

static void draw_dots(cairo_t *cr, double side)
{
	fill_rect(cr, 0, 0, side, side, 0xcccccc);
	fill_rect(cr, 1, 1, 2, 2, 0x555555);
}

static cairo_pattern_t *make_pattern(void (*draw)(cairo_t *, double), int side)
{
	int pixels = (int)(side * SCALE);
	cairo_surface_t *s = cairo.image_surface_create(CAIRO_FORMAT_RGB24, pixels, pixels);
	cairo_t *cr = cairo.create(s);
	cairo_pattern_t *pattern;
	cairo_matrix_t matrix;

	cairo.scale(cr, SCALE, SCALE);
	draw(cr, side);
	cairo.destroy(cr);
	pattern = cairo.pattern_create_for_surface(s);
	cairo.surface_destroy(s);
	cairo.pattern_set_extend(pattern, CAIRO_EXTEND_REPEAT);
	cairo.matrix_init_scale(&matrix, SCALE, SCALE);
	cairo.pattern_set_matrix(pattern, &matrix);
	return pattern;
}

static struct png *png_of(struct gp_draw *d)
{
	return (struct png *)d;
}

static void rect(struct gp_draw *d, double x, double y, double w, double h, enum gp_fill fill,
		 uint32_t colour)
{
	struct png *p = png_of(d);

	if (fill == GP_FILL_SOLID) {
		fill_rect(p->cr, x, y, w, h, colour);
		return;
	}
	cairo.set_source(p->cr, p->pattern[fill]);
	cairo.rectangle(p->cr, x, y, w, h);
	cairo.fill(p->cr);
}

static void follow(cairo_t *cr, const struct gp_point *point, unsigned n)
{
	cairo.new_path(cr);
	for (unsigned i = 0; i < n; i++)
		cairo.line_to(cr, point[i].x, point[i].y);
}

static void lines(struct gp_draw *d, const struct gp_point *point, unsigned n,
		  const struct gp_stroke *s)
{
	cairo_t *cr = png_of(d)->cr;
	int dashes = 0;

	while (dashes < GP_DASHES && s->dash[dashes] > 0)
		dashes++;
	follow(cr, point, n);
	set_colour(cr, s->colour);
	cairo.set_line_width(cr, s->width);
	cairo.set_dash(cr, s->dash, dashes, 0);
	cairo.stroke(cr);
}

static void shape(struct gp_draw *d, const struct gp_point *point, unsigned n, uint32_t colour)
{
	cairo_t *cr = png_of(d)->cr;

	follow(cr, point, n);
	set_colour(cr, colour);
	cairo.fill(cr);
}

/* Invalid UTF-8 puts cairo into an error state: nothing after it is drawn. */
static void text(struct gp_draw *d, double x, double y, const char *words, const struct gp_font *f)
{
	cairo_t *cr = png_of(d)->cr;
	cairo_text_extents_t extents;

	cairo.select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
			       f->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
	cairo.set_font_size(cr, f->size);
	cairo.text_extents(cr, words, &extents);
	set_colour(cr, f->colour);
	cairo.move_to(cr, x - extents.x_advance * (double)f->anchor / 2, y);
	cairo.show_text(cr, words);
}

static cairo_status_t put_bytes(void *file, const unsigned char *data, unsigned length)
{
	return fwrite(data, 1, length, file) == length ? CAIRO_STATUS_SUCCESS
						       : CAIRO_STATUS_WRITE_ERROR;
}

static int end(struct gp_draw *d)
{
	struct png *p = png_of(d);
	cairo_surface_t *surface = cairo.get_target(p->cr);
	cairo_status_t status = cairo.status(p->cr);

	errno = 0;
	if (!status)
		status = cairo.surface_write_to_png_stream(surface, put_bytes, d->out);
	for (unsigned i = GP_FILL_HATCH; i <= GP_FILL_DOTS; i++)
		cairo.pattern_destroy(p->pattern[i]);
	cairo.destroy(p->cr);
	free(p);
	if (status == CAIRO_STATUS_WRITE_ERROR)
		return errno ? -errno : -EIO;
	return status == CAIRO_STATUS_NO_MEMORY ? -ENOMEM : status ? -EIO : 0;
}

static const struct gp_draw_ops ops = {rect, lines, shape, text, end};

struct gp_draw *gp_draw_png(FILE *out, double width, double height)
{
	struct png *p;
	cairo_surface_t *surface;

	if (width * SCALE > SIDE_MAX || height * SCALE > SIDE_MAX)
		return NULL;
	p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->base = (struct gp_draw){&ops, out};
	surface = cairo.image_surface_create(CAIRO_FORMAT_RGB24, (int)(width * SCALE),
					     (int)(height * SCALE));
	p->cr = cairo.create(surface); /* an error is stored in it; end() reads it */
	cairo.surface_destroy(surface);
	cairo.scale(p->cr, SCALE, SCALE);
	p->pattern[GP_FILL_HATCH] = make_pattern(draw_hatch, 7);
	p->pattern[GP_FILL_STRIPES] = make_pattern(draw_stripes, 4);
	p->pattern[GP_FILL_DOTS] = make_pattern(draw_dots, 5);
	fill_rect(p->cr, 0, 0, width, height, 0xffffff);
	return &p->base;
}
#endif
