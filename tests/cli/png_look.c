/* SPDX-License-Identifier: Apache-2.0 */
/* png-look FILE: size of a PNG, how many colours it has, and how much of it is not white, as JSON.
 */
#include <cairo.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	cairo_surface_t *s = cairo_image_surface_create_from_png(argc == 2 ? argv[1] : "");
	unsigned char *seen = calloc(1 << 24, 1);
	unsigned colours = 0, drawn = 0;

	if (cairo_surface_status(s) || !seen) {
		fprintf(stderr, "%s\n", cairo_status_to_string(cairo_surface_status(s)));
		free(seen);
		return 1;
	}
	for (int y = 0; y < cairo_image_surface_get_height(s); y++) {
		const unsigned char *row = cairo_image_surface_get_data(s) +
					   (ptrdiff_t)y * cairo_image_surface_get_stride(s);

		for (int x = 0; x < cairo_image_surface_get_width(s); x++) {
			uint32_t pixel;

			memcpy(&pixel, row + (ptrdiff_t)4 * x, sizeof pixel);
			pixel &= 0xffffff;
			colours += !seen[pixel];
			seen[pixel] = 1;
			drawn += pixel != 0xffffff;
		}
	}
	printf("{\"width\":%d,\"height\":%d,\"colours\":%u,\"drawn\":%u}\n",
	       cairo_image_surface_get_width(s), cairo_image_surface_get_height(s), colours, drawn);
	cairo_surface_destroy(s);
	free(seen);
	return 0;
}
