/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 24

void gp_grid_begin(struct gp_grid *g, const struct gp_column *column, unsigned columns)
{
	*g = (struct gp_grid){.column = column, .columns = columns};
}

static void add(struct gp_grid *g, char *text)
{
	if (g->n == g->capacity) {
		unsigned capacity = g->capacity ? 2 * g->capacity : 64;
		char **cell = realloc(g->cell, capacity * sizeof(char *));

		if (!cell) {
			g->failed = true;
			free(text);
			return;
		}
		g->cell = cell;
		g->capacity = capacity;
	}
	g->cell[g->n++] = text;
}

void gp_grid_text(struct gp_grid *g, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	g->failed |= text && !copy;
	add(g, copy);
}

static void add_formatted(struct gp_grid *g, const char *format, va_list args)
{
	char text[256];

	vsnprintf(text, sizeof text, format, args);
	gp_grid_text(g, text);
}

void gp_grid_cell(struct gp_grid *g, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_formatted(g, format, args);
	va_end(args);
}

void gp_grid_cell_if(struct gp_grid *g, bool known, const char *format, ...)
{
	va_list args;

	if (!known) {
		gp_grid_text(g, NULL);
		return;
	}
	va_start(args, format);
	add_formatted(g, format, args);
	va_end(args);
}

static const char *shown(const struct gp_grid *g, unsigned row, unsigned column)
{
	const char *text = g->cell[row * g->columns + column];

	return text ? text : g->column[column].head ? "-" : "";
}

/* 0: the column is left out. */
static int width(const struct gp_grid *g, unsigned column)
{
	const char *head = g->column[column].head ? g->column[column].head : "";
	size_t most = strlen(head);
	bool known = g->column[column].flags & GP_COLUMN_ALWAYS;

	for (unsigned row = 0; row < g->n / g->columns; row++) {
		size_t length = strlen(shown(g, row, column));

		known |= g->cell[row * g->columns + column] != NULL;
		most = length > most ? length : most;
	}
	return known ? (int)most : 0;
}

/* The last column is not padded: no blanks at the end of lines. */
static void print_cell(FILE *out, const struct gp_column *column, int w, bool first, bool last,
		       const char *text)
{
	const char *gap = first ? "" : "  ";

	if (column->flags & GP_COLUMN_LEFT)
		fprintf(out, "%s%-*s", gap, last ? 0 : w, text);
	else
		fprintf(out, "%s%*s", gap, w, text);
}

static void print_rows(const struct gp_grid *g, FILE *out)
{
	int w[COLUMNS_MAX];
	unsigned last = 0, rows = g->n / g->columns;

	for (unsigned i = 0; i < g->columns; i++) {
		w[i] = width(g, i);
		last = w[i] ? i : last;
	}
	for (unsigned row = 0; row <= rows; row++) { /* row 0 has the heads */
		bool first = true;

		for (unsigned i = 0; i < g->columns; i++) {
			const char *head = g->column[i].head ? g->column[i].head : "";

			if (!w[i])
				continue;
			print_cell(out, &g->column[i], w[i], first, i == last,
				   row ? shown(g, row - 1, i) : head);
			first = false;
		}
		fputc('\n', out);
	}
}

void gp_grid_end(struct gp_grid *g, FILE *out)
{
	if (g->failed || g->columns > COLUMNS_MAX)
		fputs("gpreempt: no memory for the table\n", stderr);
	else
		print_rows(g, out);
	for (unsigned i = 0; i < g->n; i++)
		free(g->cell[i]);
	free(g->cell);
	*g = (struct gp_grid){0};
}
