/* SPDX-License-Identifier: Apache-2.0 */
/* Text in SVG. */
#ifndef GP_CLI_DRAW_SVG_TEXT_H
#define GP_CLI_DRAW_SVG_TEXT_H

#include <stdio.h>

/* Names are other people's: what XML does not take becomes a question mark. */
static inline void gp_svg_text(FILE *out, const char *s)
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

#endif
