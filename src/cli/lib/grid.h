/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables as text. A column is as wide as its cells; a column without a known value is left out.
 */
#ifndef GP_CLI_LIB_GRID_H
#define GP_CLI_LIB_GRID_H

#include <stdbool.h>
#include <stdio.h>

enum gp_column_flag {
	GP_COLUMN_LEFT = 1u << 0,   /* words are aligned to the left, numbers to the right */
	GP_COLUMN_ALWAYS = 1u << 1, /* also when all are dashes */
};

struct gp_column {
	const char *head; /* NULL: the last column has no name, and may be empty */
	unsigned flags;   /* GP_COLUMN_* */
};

struct gp_grid {
	const struct gp_column *column;
	unsigned columns;
	unsigned n, capacity; /* cells */
	char **cell;          /* one row after the other; NULL = not known */
	bool failed;          /* an allocation failed */
};

void gp_grid_begin(struct gp_grid *grid, const struct gp_column *column, unsigned columns);

/* The next cell of the row; NULL = not known. */
void gp_grid_text(struct gp_grid *grid, const char *text);
__attribute__((format(printf, 2, 3))) void gp_grid_cell(struct gp_grid *grid, const char *format,
							...);
__attribute__((format(printf, 3, 4))) void gp_grid_cell_if(struct gp_grid *grid, bool known,
							   const char *format, ...);

/* Writes the table and frees it. */
void gp_grid_end(struct gp_grid *grid, FILE *out);

#endif
