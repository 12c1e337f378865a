/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables as text. A column is as wide as its cells; a column without a known value is left out.
 */
#ifndef GP_CLI_LIB_GRID_H
#define GP_CLI_LIB_GRID_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/lib/fields.h"
#include "task/json/columns.h"

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

/* Table cells: the value as it is, as a duration, as a size. A dash where it is absent. */
void gp_field_cell(struct gp_grid *grid, struct json_object *object, const char *key);
void gp_field_cell_ns(struct gp_grid *grid, struct json_object *object, const char *key);

/* Writes the table and frees it. */
void gp_grid_end(struct gp_grid *grid, FILE *out);

/* Prints a JSON array of objects, one row each. `columns` ends with a head of NULL. */
void gp_table_print(FILE *out, struct json_object *list, const struct gp_task_column *columns);

/* The same for tasks (see task/json), on standard output. A sentence where there is no task. */
void gp_task_table_print(struct json_object *tasks, const struct gp_task_column *columns);

/* "device 0: NVIDIA H200 #0, policy priority", and its state if that is not "ok"; no newline. */
void gp_show_device(struct json_object *device);

/* A line with the reason why a policy was ejected, or nothing. */
void gp_show_ejection(struct json_object *device);

#endif
