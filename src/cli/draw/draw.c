/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/draw/draw.h"

#include <errno.h>
#include <string.h>

#include "build_config.h"

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
	return gp_draw_svg(out, width, height);
}

/* Latin letters are about half as wide as high, CJK characters (3 bytes of UTF-8) twice that. */
double gp_draw_text_width(const char *text, double size)
{
	double columns = 0;

	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		columns += *c >= 0xe1 ? 1.7 : (*c & 0xc0) != 0x80;
	return 0.61 * size * columns;
}
