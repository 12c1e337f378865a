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
	char text[32];

	gp_grid_text(grid, gp_field_number(object, key, &ns)
				   ? gp_cli_duration(text, sizeof text, ns)
				   : NULL);
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

static const char *share_text(struct json_object *task, char *out, size_t size)
{
	struct json_object *percent = gp_field(task, "gpu_pct");
	const char *source = gp_field_text(task, "run_source");

	if (!percent)
		return NULL;
	snprintf(out, size, "%s%.0f %%", source && !strcmp(source, "granted") ? "<= " : "",
		 json_object_get_double(percent));
	return out;
}

static const char *slice_text(struct json_object *task, char *out, size_t size)
{
	uint64_t us, max_us;
	char low[32], high[32];

	if (gp_field_number(task, "slice_us", &us))
		return gp_cli_duration(out, size, us * GP_NS_PER_US);
	if (!gp_field_number(task, "slice_min_us", &us) ||
	    !gp_field_number(task, "slice_max_us", &max_us))
		return NULL;
	snprintf(out, size, "%s-%s", gp_cli_duration(low, sizeof low, us * GP_NS_PER_US),
		 gp_cli_duration(high, sizeof high, max_us * GP_NS_PER_US));
	return out;
}

static const char *mean_text(struct json_object *task, char *out, size_t size)
{
	uint64_t ran_ns, times;

	if (!gp_field_number(task, "ran_ns", &ran_ns) ||
	    !gp_field_number(task, "scheduled", &times))
		return NULL;
	return gp_cli_duration(out, size, ran_ns / times);
}

static const char *name_text(struct json_object *task, char *out, size_t size)
{
	const char *name = gp_field_text(task, "name");

	snprintf(out, size, "%s%s", name ? name : "?",
		 gp_field_true(task, "shared") ? " (a server)" : "");
	return out;
}

/* NULL: not known. */
static const char *cell_text(struct json_object *task, const struct gp_task_column *c, char *out,
			     size_t size)
{
	struct json_object *value = value_of(task, c->key);

	switch (c->cell) {
	case GP_CELL_PLAIN: return value ? json_object_get_string(value) : NULL;
	case GP_CELL_FLAG: return json_object_get_boolean(value) ? c->key : NULL;
	case GP_CELL_WORDS: return gp_field_words(task, c->key, out, size);
	case GP_CELL_NS:
		return value ? gp_cli_duration(out, size, json_object_get_uint64(value)) : NULL;
	case GP_CELL_BYTES:
		return value ? gp_cli_bytes(out, size, json_object_get_uint64(value)) : NULL;
	case GP_CELL_SHARE: return share_text(task, out, size);
	case GP_CELL_SLICE: return slice_text(task, out, size);
	case GP_CELL_MEAN: return mean_text(task, out, size);
	case GP_CELL_SOURCE:
		return gp_field(task, "scheduled") ? "switches" : gp_field_text(task, c->key);
	case GP_CELL_NAME: return name_text(task, out, size);
	}
	return NULL;
}

void gp_task_table_print(struct json_object *tasks, const struct gp_task_column *columns)
{
	struct gp_column heads[COLUMNS_MAX];
	struct gp_grid grid;
	unsigned n = 0;
	char text[128];

	if (!json_object_array_length(tasks)) {
		puts("no process has queues on a GPU here");
		return;
	}
	for (; columns[n].head && n < COLUMNS_MAX; n++)
		heads[n] =
			(struct gp_column){columns[n].head, columns[n].left ? GP_COLUMN_LEFT : 0u};
	gp_grid_begin(&grid, heads, n);
	for (size_t i = 0; i < json_object_array_length(tasks); i++)
		for (unsigned k = 0; k < n; k++)
			gp_grid_text(&grid, cell_text(json_object_array_get_idx(tasks, i),
						      &columns[k], text, sizeof text));
	gp_grid_end(&grid, stdout);
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
