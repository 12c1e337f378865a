/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/task_table.h"

#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"

#define COLUMNS_MAX 24

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
