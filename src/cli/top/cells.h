/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An off-screen grid of terminal cells: one character and one style per cell. gpreempt top draws
 * every screen here first; live.c copies it to the terminal, gp_cells_print writes it as text.
 * Control characters become `?`, because task names come from users and could contain terminal
 * escape sequences.
 *
 * And small charts of characters: a sparkline of the last minute, and a bar for a share.
 */
#ifndef GP_CLI_TOP_CELLS_H
#define GP_CLI_TOP_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

#include "cli/top/colours.h"

struct gp_cell {
	wchar_t c;     /* 0: right half of the wide character before it */
	uint8_t style; /* enum gp_style, with or without GP_STYLE_SELECTED */
};

struct gp_cells {
	unsigned rows, cols;
	bool utf8; /* false: a `?` stands for every character that is not ASCII */
	struct gp_cell *cell;
};

/* Makes a blank grid of this size. Memory of an earlier grid is used again. 0, or -ENOMEM and the
 * grid has no rows. */
int gp_cells_begin(struct gp_cells *cells, unsigned rows, unsigned cols);
void gp_cells_free(struct gp_cells *cells);

/* The number of columns that the text needs. */
unsigned gp_cells_width(const struct gp_cells *cells, const char *text);

/* Fills a part of a row with blanks of this style. */
void gp_cells_fill(struct gp_cells *cells, unsigned row, unsigned col, unsigned width,
		   unsigned style);

/* Writes the text from column `col` on, at most `width` columns and not beyond the row. A cut text
 * ends with an ellipsis. Returns the number of columns written. */
unsigned gp_cells_put(struct gp_cells *cells, unsigned row, unsigned col, unsigned width,
		      unsigned style, const char *text);

/* The same, aligned to the right end of `width`. */
void gp_cells_put_right(struct gp_cells *cells, unsigned row, unsigned col, unsigned width,
			unsigned style, const char *text);

/* Writes plain text, without blanks at the ends of lines. */
void gp_cells_print(const struct gp_cells *cells, FILE *out);

#define GP_MINUTE 60

/* One value per second, 0 to 1; negative: not known. Begin with gp_minute_init. */
struct gp_minute {
	uint64_t last_s; /* time of the newest value; 0: none yet */
	float value[GP_MINUTE];
};

void gp_minute_init(struct gp_minute *minute);

/* `value` is the mean since the last call; all seconds in between get it. Negative: not known. */
void gp_minute_add(struct gp_minute *minute, uint64_t now_ns, double value);

/*
 * The minute in `cells` columns, at most 60, the newest at the right. Each column is the mean of
 * the known values of its seconds, and blank without any. Returns `out`.
 */
const char *gp_spark(char *out, size_t size, const struct gp_minute *minute, unsigned cells,
		     bool utf8);

/* A bar of at most `cells` columns. A share above 0 always shows. Returns `out`. */
const char *gp_share_bar(char *out, size_t size, double share, unsigned cells, bool utf8);

#endif
