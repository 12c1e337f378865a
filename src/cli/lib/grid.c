/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"

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

void gp_field_cell(struct gp_grid *grid, struct json_object *object, const char *key)
{
	struct json_object *value = gp_field(object, key);

	gp_grid_text(grid, value ? json_object_get_string(value) : NULL);
}

void gp_field_cell_ns(struct gp_grid *grid, struct json_object *object, const char *key)
{
	uint64_t ns;

	gp_grid_text(grid, gp_field_number(object, key, &ns) ? gp_cli_duration(ns).text : NULL);
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
	unsigned last = 0, rows = g->columns ? g->n / g->columns : 0;

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

/* "waits.p50_ns" stands in the object `waits`. */
static struct json_object *value_of(struct json_object *task, const char *key)
{
	const char *dot = strchr(key, '.');
	char object[32];

	if (!dot)
		return gp_field(task, key);
	snprintf(object, sizeof object, "%.*s", (int)(dot - key), key);
	return gp_field(gp_field(task, object), dot + 1);
}

static void add_share(struct gp_grid *grid, struct json_object *task)
{
	struct json_object *percent = gp_field(task, "gpu_pct");
	const char *source = gp_field_text(task, "run_source");

	gp_grid_cell_if(grid, percent, "%s%.0f %%",
			source && !strcmp(source, "granted") ? "<= " : "",
			json_object_get_double(percent));
}

static void add_slice(struct gp_grid *grid, struct json_object *task)
{
	uint64_t us, max_us;

	if (gp_field_number(task, "slice_us", &us))
		gp_grid_text(grid, gp_cli_duration(us * GP_NS_PER_US).text);
	else if (gp_field_number(task, "slice_min_us", &us) &&
		 gp_field_number(task, "slice_max_us", &max_us))
		gp_grid_cell(grid, "%s-%s", gp_cli_duration(us * GP_NS_PER_US).text,
			     gp_cli_duration(max_us * GP_NS_PER_US).text);
	else
		gp_grid_text(grid, NULL);
}

static void add_mean(struct gp_grid *grid, struct json_object *task)
{
	uint64_t ran_ns, times;

	if (gp_field_number(task, "ran_ns", &ran_ns) && gp_field_number(task, "scheduled", &times))
		gp_grid_text(grid, gp_cli_duration(ran_ns / times).text);
	else
		gp_grid_text(grid, NULL);
}

static void add_name(struct gp_grid *grid, struct json_object *task)
{
	const char *name = gp_field_text(task, "name");

	gp_grid_cell(grid, "%s%s", name ? name : "?",
		     gp_field_true(task, "shared") ? " (a server)" : "");
}

/* The cell for a value that is known. */
static void add_value(struct gp_grid *grid, struct json_object *value,
		      const struct gp_task_column *c)
{
	uint64_t number = json_object_get_uint64(value);

	switch (c->cell) {
	case GP_CELL_FLAG:
		gp_grid_text(grid, json_object_get_boolean(value) ? c->key : NULL);
		break;
	case GP_CELL_YES_NO:
		gp_grid_text(grid, json_object_get_boolean(value) ? "yes" : "no");
		break;
	case GP_CELL_US: gp_grid_text(grid, gp_cli_duration(number * GP_NS_PER_US).text); break;
	case GP_CELL_NS: gp_grid_text(grid, gp_cli_duration(number).text); break;
	case GP_CELL_BYTES: gp_grid_text(grid, gp_cli_bytes(number).text); break;
	default: gp_grid_text(grid, json_object_get_string(value)); break;
	}
}

static void add_cell(struct gp_grid *grid, struct json_object *task, const struct gp_task_column *c)
{
	struct json_object *value = value_of(task, c->key);
	char words[128];

	switch (c->cell) {
	case GP_CELL_WORDS:
		gp_grid_text(grid, gp_field_words(task, c->key, words, sizeof words));
		return;
	case GP_CELL_SHARE: add_share(grid, task); return;
	case GP_CELL_SLICE: add_slice(grid, task); return;
	case GP_CELL_MEAN: add_mean(grid, task); return;
	case GP_CELL_NAME: add_name(grid, task); return;
	case GP_CELL_SOURCE:
		gp_grid_text(grid, gp_field(task, "scheduled") ? "switches"
							       : gp_field_text(task, c->key));
		return;
	default: break;
	}
	if (value)
		add_value(grid, value, c);
	else
		gp_grid_text(grid, NULL);
}

void gp_table_print(FILE *out, struct json_object *list, const struct gp_task_column *columns)
{
	struct gp_column heads[COLUMNS_MAX];
	struct gp_grid grid;
	unsigned n = 0;

	for (; columns[n].head && n < COLUMNS_MAX; n++)
		heads[n] =
			(struct gp_column){columns[n].head, columns[n].left ? GP_COLUMN_LEFT : 0u};
	gp_grid_begin(&grid, heads, n);
	for (size_t i = 0; i < json_object_array_length(list); i++)
		for (unsigned k = 0; k < n; k++)
			add_cell(&grid, json_object_array_get_idx(list, i), &columns[k]);
	gp_grid_end(&grid, out);
}

void gp_task_table_print(struct json_object *tasks, const struct gp_task_column *columns)
{
	if (json_object_array_length(tasks))
		gp_table_print(stdout, tasks, columns);
	else
		puts("no process has queues on a GPU here");
}

void gp_show_device(struct json_object *d)
{
	const char *state = gp_field_text(d, "state"), *name = gp_field_text(d, "name");
	const char *policy = gp_field_text(d, "policy"),
		   *wanted = gp_field_text(d, "policy_wanted"),
		   *source = gp_field_text(d, "policy_source");

	printf("device %llu: %s", (unsigned long long)gp_field_number_or(d, "device", 0),
	       name ? name : "?");
	if (policy)
		printf(", policy %s", policy);
	if (policy && wanted && strcmp(policy, wanted) != 0)
		printf(" instead of %s", wanted);
	if (policy && source && !strcmp(source, "user"))
		fputs(" (chosen by a user)", stdout);
	if (state && strcmp(state, "ok") != 0)
		printf(", %s", state);
}

void gp_show_ejection(struct json_object *d)
{
	struct json_object *ejection = gp_field(d, "ejection");
	const char *policy = gp_field_text(ejection, "policy"),
		   *text = gp_field_text(ejection, "text");

	if (text)
		printf("  policy %s was ejected: %s\n", policy ? policy : "?", text);
}
