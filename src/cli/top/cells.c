/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/cells.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

int gp_cells_begin(struct gp_cells *cells, unsigned rows, unsigned cols)
{
	struct gp_cell *cell = reallocarray(cells->cell, (size_t)rows * cols + 1, sizeof *cell);

	cells->rows = cells->cols = 0;
	if (!cell)
		return -ENOMEM;
	cells->cell = cell;
	cells->rows = rows;
	cells->cols = cols;
	for (size_t i = 0; i < (size_t)rows * cols; i++)
		cell[i] = (struct gp_cell){L' ', GP_STYLE_PLAIN};
	return 0;
}

void gp_cells_free(struct gp_cells *cells)
{
	free(cells->cell);
	*cells = (struct gp_cells){0};
}

/* Decodes the character at *text and moves *text on. Each byte of invalid UTF-8 is U+FFFD. */
static uint32_t next_character(const char **text)
{
	const unsigned char *p = (const unsigned char *)*text;
	unsigned n = gp_utf8_length(*text);
	uint32_t c = n > 1 ? p[0] & (0xffu >> (n + 1)) : p[0];

	*text += n ? n : 1;
	for (unsigned i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3fu);
	return n ? c : 0xfffd;
}

/* The character to show for `c` and its number of columns: 0 for a combining character. */
static wchar_t to_show(const struct gp_cells *cells, uint32_t c, unsigned *width)
{
	int columns = c < 0x80 || cells->utf8 ? wcwidth((wchar_t)c) : -1;

	*width = columns < 0 ? 1 : (unsigned)columns;
	return columns < 0 ? L'?' : (wchar_t)c;
}

unsigned gp_cells_width(const struct gp_cells *cells, const char *text)
{
	unsigned sum = 0, width;

	while (*text) {
		to_show(cells, next_character(&text), &width);
		sum += width;
	}
	return sum;
}

void gp_cells_fill(struct gp_cells *cells, unsigned row, unsigned col, unsigned width,
		   unsigned style)
{
	for (unsigned i = col; row < cells->rows && i < cells->cols && i - col < width; i++)
		cells->cell[(size_t)row * cells->cols + i] = (struct gp_cell){L' ', (uint8_t)style};
}

unsigned gp_cells_put(struct gp_cells *cells, unsigned row, unsigned col, unsigned width,
		      unsigned style, const char *text)
{
	struct gp_cell *cell;
	unsigned used = 0, n;
	bool cut;

	if (row >= cells->rows || col >= cells->cols || !width)
		return 0;
	if (width > cells->cols - col)
		width = cells->cols - col;
	cut = gp_cells_width(cells, text) > width;
	cell = &cells->cell[(size_t)row * cells->cols + col];
	while (*text) {
		wchar_t c = to_show(cells, next_character(&text), &n);

		if (used + n > width - cut)
			break;
		for (unsigned i = 0; i < n; i++)
			cell[used + i] = (struct gp_cell){i ? 0 : c, (uint8_t)style};
		used += n;
	}
	if (cut)
		cell[used++] = (struct gp_cell){cells->utf8 ? L'…' : L'~', (uint8_t)style};
	return used;
}

void gp_cells_put_right(struct gp_cells *cells, unsigned row, unsigned col, unsigned width,
			unsigned style, const char *text)
{
	unsigned needs = gp_cells_width(cells, text);

	if (needs > width)
		needs = width;
	gp_cells_put(cells, row, col + width - needs, needs, style, text);
}

void gp_cells_print(const struct gp_cells *cells, FILE *out)
{
	for (unsigned row = 0; row < cells->rows; row++) {
		const struct gp_cell *cell = &cells->cell[(size_t)row * cells->cols];
		unsigned n = cells->cols;

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

void gp_minute_init(struct gp_minute *minute)
{
	minute->last_s = 0;
	for (unsigned i = 0; i < GP_MINUTE; i++)
		minute->value[i] = -1;
}

void gp_minute_add(struct gp_minute *minute, uint64_t now_ns, double value)
{
	uint64_t now_s = now_ns / GP_NS_PER_S, passed;

	if (minute->last_s && now_s - minute->last_s > GP_MINUTE)
		gp_minute_init(minute);
	passed = minute->last_s ? now_s - minute->last_s : 1; /* earlier seconds are not known */
	memmove(minute->value, minute->value + passed,
		(GP_MINUTE - passed) * sizeof minute->value[0]);
	for (uint64_t i = GP_MINUTE - (passed ? passed : 1); i < GP_MINUTE; i++)
		minute->value[i] = (float)value;
	minute->last_s = now_s;
}

/* The mean of the known values from `from` to `to`; negative: none is known. */
static double mean(const struct gp_minute *minute, unsigned from, unsigned to)
{
	double sum = 0;
	unsigned n = 0;

	for (unsigned i = from; i < to; i++)
		if (minute->value[i] >= 0) {
			sum += (double)minute->value[i];
			n++;
		}
	return n ? sum / n : -1;
}

static const char *column(double value, bool utf8)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	unsigned level;

	if (value < 0)
		return " ";
	level = value >= 1 ? 7 : (unsigned)(value * 8);
	return (utf8 ? blocks : ascii)[level];
}

const char *gp_spark(char *out, size_t size, const struct gp_minute *minute, unsigned cells,
		     bool utf8)
{
	size_t used = 0;

	*out = 0;
	if (cells > GP_MINUTE)
		cells = GP_MINUTE;
	for (unsigned i = 0; i < cells && used < size; i++)
		used += (size_t)snprintf(
			out + used, size - used, "%s",
			column(mean(minute, i * GP_MINUTE / cells, (i + 1) * GP_MINUTE / cells),
			       utf8));
	return out;
}

const char *gp_share_bar(char *out, size_t size, double share, unsigned cells, bool utf8)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	unsigned steps = utf8 ? 8 : 1, filled;
	size_t used = 0;

	*out = 0;
	share = share < 0 ? 0 : share > 1 ? 1 : share;
	filled = (unsigned)(share * cells * steps + 0.5);
	if (!filled && share > 0)
		filled = 1;
	for (unsigned i = 0; i < filled / steps && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s", utf8 ? "█" : "#");
	if (utf8 && used < size)
		snprintf(out + used, size - used, "%s", eighths[filled % 8]);
	return out;
}
