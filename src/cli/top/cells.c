/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/cells.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

int gp_sheet_begin(struct gp_sheet *sheet, unsigned rows, unsigned cols)
{
	struct gp_cell *cell = reallocarray(sheet->cell, (size_t)rows * cols + 1, sizeof *cell);

	sheet->rows = sheet->cols = 0;
	if (!cell)
		return -ENOMEM;
	sheet->cell = cell;
	sheet->rows = rows;
	sheet->cols = cols;
	for (size_t i = 0; i < (size_t)rows * cols; i++)
		cell[i] = (struct gp_cell){L' ', GP_STYLE_PLAIN};
	return 0;
}

void gp_sheet_free(struct gp_sheet *sheet)
{
	free(sheet->cell);
	*sheet = (struct gp_sheet){0};
}

/* The character at *text, which moves on; what is no UTF-8 is U+FFFD, byte by byte. */
static uint32_t next_character(const char **text)
{
	const unsigned char *p = (const unsigned char *)*text;
	unsigned n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t c = n > 1 ? p[0] & (0xffu >> (n + 1)) : p[0];

	for (unsigned i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			n = 0;
			break;
		}
		c = c << 6 | (p[i] & 0x3fu);
	}
	*text += n ? n : 1;
	return n && c <= 0x10ffff ? c : 0xfffd;
}

/* What stands for it here, and its columns: 0 for what only changes the one before. */
static wchar_t shown(const struct gp_sheet *sheet, uint32_t c, unsigned *width)
{
	int columns = c < 0x80 || sheet->utf8 ? wcwidth((wchar_t)c) : -1;

	*width = columns < 0 ? 1 : (unsigned)columns;
	return columns < 0 ? L'?' : (wchar_t)c;
}

unsigned gp_sheet_width(const struct gp_sheet *sheet, const char *text)
{
	unsigned sum = 0, width;

	while (*text) {
		shown(sheet, next_character(&text), &width);
		sum += width;
	}
	return sum;
}

void gp_sheet_fill(struct gp_sheet *sheet, unsigned row, unsigned col, unsigned width,
                   unsigned style)
{
	for (unsigned i = col; row < sheet->rows && i < sheet->cols && i - col < width; i++)
		sheet->cell[(size_t)row * sheet->cols + i] = (struct gp_cell){L' ', (uint8_t)style};
}

unsigned gp_sheet_put(struct gp_sheet *sheet, unsigned row, unsigned col, unsigned width,
                      unsigned style, const char *text)
{
	struct gp_cell *cell;
	unsigned used = 0, n;
	bool cut;

	if (row >= sheet->rows || col >= sheet->cols || !width)
		return 0;
	if (width > sheet->cols - col)
		width = sheet->cols - col;
	cut = gp_sheet_width(sheet, text) > width;
	cell = &sheet->cell[(size_t)row * sheet->cols + col];
	while (*text) {
		wchar_t c = shown(sheet, next_character(&text), &n);

		if (used + n > width - cut)
			break;
		for (unsigned i = 0; i < n; i++)
			cell[used + i] = (struct gp_cell){i ? 0 : c, (uint8_t)style};
		used += n;
	}
	if (cut)
		cell[used++] = (struct gp_cell){sheet->utf8 ? L'…' : L'~', (uint8_t)style};
	return used;
}

void gp_sheet_put_right(struct gp_sheet *sheet, unsigned row, unsigned col, unsigned width,
                        unsigned style, const char *text)
{
	unsigned needs = gp_sheet_width(sheet, text);

	if (needs > width)
		needs = width;
	gp_sheet_put(sheet, row, col + width - needs, needs, style, text);
}

void gp_sheet_print(const struct gp_sheet *sheet, FILE *out)
{
	for (unsigned row = 0; row < sheet->rows; row++) {
		const struct gp_cell *cell = &sheet->cell[(size_t)row * sheet->cols];
		unsigned n = sheet->cols;

		while (n && cell[n - 1].c == L' ')
			n--;
		for (unsigned i = 0; i < n; i++) {
			char bytes[MB_LEN_MAX];
			mbstate_t state = {0};
			size_t length = cell[i].c ? wcrtomb(bytes, cell[i].c, &state) : 0;

			if (length != (size_t)-1)
				fwrite(bytes, 1, length, out);
		}
		fputc('\n', out);
	}
}
