/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A screen of characters with a style each. Everything is drawn here first; what becomes of it, a
 * terminal's screen or plain text, is somebody else's matter. Characters that a terminal would take
 * for orders never get here: names of programs are anybody's choice.
 */
#ifndef GP_CLI_TOP_CELLS_H
#define GP_CLI_TOP_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

/* What a text says, not how it looks; that depends on the terminal. */
enum gp_style {
	GP_STYLE_PLAIN,
	GP_STYLE_TITLE,
	GP_STYLE_HEAD,        /* of a table */
	GP_STYLE_HEAD_SORTED, /* the column that it is sorted by */
	GP_STYLE_FAINT,
	GP_STYLE_RUNNING,
	GP_STYLE_WAITING,
	GP_STYLE_HELD,
	GP_STYLE_SUSPENDED,
	GP_STYLE_URGENT, /* the class lc */
	GP_STYLE_BAR,
	GP_STYLE_GOOD,
	GP_STYLE_WARNING,
	GP_STYLE_BAD,
	GP_STYLES,
	GP_STYLE_SELECTED = 1u << 7, /* with any of them */
};

struct gp_cell {
	wchar_t c; /* 0: the right half of the one before */
	uint8_t style;
};

struct gp_cells {
	unsigned rows, cols;
	bool utf8; /* what is not ASCII can be shown; a `?` stands for it otherwise */
	struct gp_cell *cell;
};

/* Blank, of this size. A sheet that was used before is used again. -ENOMEM: it has no rows. */
int gp_cells_begin(struct gp_cells *cells, unsigned rows, unsigned cols);
void gp_cells_free(struct gp_cells *cells);

/* How many columns the text takes. */
unsigned gp_cells_width(const struct gp_cells *cells, const char *text);

/* Fills a part of a row with blanks of this style. */
void gp_cells_fill(struct gp_cells *cells, unsigned row, unsigned col, unsigned width,
                   unsigned style);

/* Writes the text from a column on, cut to `width` (with a mark where it is) and to the row.
 * Returns how many columns it took. */
unsigned gp_cells_put(struct gp_cells *cells, unsigned row, unsigned col, unsigned width,
                      unsigned style, const char *text);

/* The same with its end at the end of the `width`. */
void gp_cells_put_right(struct gp_cells *cells, unsigned row, unsigned col, unsigned width,
                        unsigned style, const char *text);

/* As plain text: no blanks at ends of lines. */
void gp_cells_print(const struct gp_cells *cells, FILE *out);

#endif
