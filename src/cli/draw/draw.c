/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/draw/draw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"

/* Task names come from users: a control character, which XML forbids, becomes a question mark. */
static void put_text(FILE *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '&')
			fputs("&amp;", out);
		else if (*s == '<')
			fputs("&lt;", out);
		else
			fputc((unsigned char)*s < ' ' ? '?' : *s, out);
	}
}

static void put_fill(FILE *out, enum gp_fill fill, uint32_t colour)
{
	static const char *const pattern[] = {
		[GP_FILL_HATCH] = "hatch", [GP_FILL_STRIPES] = "stripes", [GP_FILL_DOTS] = "dots"};

	if (fill == GP_FILL_SOLID)
		fprintf(out, " fill=\"#%06x\"", colour);
	else
		fprintf(out, " fill=\"url(#%s)\"", pattern[fill]);
}

static void rect(struct gp_draw *d, double x, double y, double w, double h, enum gp_fill fill,
		 uint32_t colour)
{
	fprintf(d->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", x, y, w, h);
	put_fill(d->out, fill, colour);
	fputs("/>\n", d->out);
}

static void put_path(FILE *out, const struct gp_point *p, unsigned n)
{
	fputs("<path d=\"", out);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "%c%.2f %.2f", i ? 'L' : 'M', p[i].x, p[i].y);
}

static void lines(struct gp_draw *d, const struct gp_point *p, unsigned n,
		  const struct gp_stroke *s)
{
	put_path(d->out, p, n);
	fprintf(d->out, "\" fill=\"none\" stroke=\"#%06x\" stroke-width=\"%.2f\"", s->colour,
		s->width);
	for (unsigned i = 0; i < GP_DASHES && s->dash[i] > 0; i++)
		fprintf(d->out, i ? " %g" : " stroke-dasharray=\"%g", s->dash[i]);
	fputs(s->dash[0] > 0 ? "\"/>\n" : "/>\n", d->out);
}

static void shape(struct gp_draw *d, const struct gp_point *p, unsigned n, uint32_t colour)
{
	put_path(d->out, p, n);
	fprintf(d->out, "z\" fill=\"#%06x\"/>\n", colour);
}

static void text(struct gp_draw *d, double x, double y, const char *words, const struct gp_font *f)
{
	static const char *const anchor[] = {
		[GP_ANCHOR_START] = "",
		[GP_ANCHOR_MIDDLE] = " text-anchor=\"middle\"",
		[GP_ANCHOR_END] = " text-anchor=\"end\"",
	};

	fprintf(d->out, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%g\" fill=\"#%06x\"%s%s>", x, y,
		f->size, f->colour, anchor[f->anchor], f->bold ? " font-weight=\"bold\"" : "");
	put_text(d->out, words);
	fputs("</text>\n", d->out);
}

static int end(struct gp_draw *d)
{
	int r;

	fputs("</svg>\n", d->out);
	fflush(d->out);
	r = !ferror(d->out) ? 0 : errno ? -errno : -EIO;
	free(d);
	return r;
}

static const struct gp_draw_ops ops = {rect, lines, shape, text, end};

static struct gp_draw *begin_svg(FILE *out, double width, double height)
{
	struct gp_draw *d = malloc(sizeof *d);

	if (!d)
		return NULL;
	*d = (struct gp_draw){&ops, out};
	errno = 0; /* end() reads it if writing failed */
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\">\n"
		"<defs>"
		"<pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
		"patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"#fff\"/>"
		"<rect width=\"2\" height=\"5\" fill=\"#777\"/></pattern>"
		"<pattern id=\"stripes\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">"
		"<rect width=\"4\" height=\"4\" fill=\"#fff\"/>"
		"<rect width=\"4\" height=\"1.5\" fill=\"#999\"/></pattern>"
		"<pattern id=\"dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
		"<rect width=\"5\" height=\"5\" fill=\"#ccc\"/>"
		"<rect x=\"1\" y=\"1\" width=\"2\" height=\"2\" fill=\"#555\"/></pattern>"
		"</defs>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		width, height, width, height);
	return d;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), n = strlen(end);

	return length > n && !strcmp(text + length - n, end);
}

int gp_draw_format_of(const char *path, enum gp_draw_format *format, struct gp_error *err)
{
	*format = ends_with(path, ".png") ? GP_DRAW_PNG : GP_DRAW_SVG;
	if (*format == GP_DRAW_SVG && !ends_with(path, ".svg"))
		return gp_fail(err, -EINVAL,
			       "cannot draw to '%s': the file name must end with .svg or .png",
			       path);
	if (*format == GP_DRAW_PNG && !GP_HAVE_DAEMON)
		return gp_fail(
			err, -ENOTSUP,
			"this build has no daemon and draws no PNG; use a file name that ends "
			"with .svg, or run `tools/setup daemon` and build again");
#if GP_HAVE_DAEMON
	if (*format == GP_DRAW_PNG && !gp_draw_png_loads())
		return gp_fail(err, -ENOTSUP,
			       "PNG needs cairo (libcairo.so.2), which is not installed; use a "
			       "file name that ends with .svg");
#endif
	return 0;
}

struct gp_draw *gp_draw_begin(FILE *out, enum gp_draw_format format, double width, double height)
{
#if GP_HAVE_DAEMON
	if (format == GP_DRAW_PNG)
		return gp_draw_png(out, width, height);
#endif
	(void)format;
	return begin_svg(out, width, height);
}

/* Latin letters are about half as wide as high, CJK characters (3 bytes of UTF-8) twice that. */
double gp_draw_text_width(const char *text, double size)
{
	double columns = 0;

	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		columns += *c >= 0xe1 ? 1.7 : (*c & 0xc0) != 0x80;
	return 0.61 * size * columns;
}
