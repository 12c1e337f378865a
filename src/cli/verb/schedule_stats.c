/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt schedule: the counters at the end, as tables or JSON. */
#include "cli/cli.h"
#include "cli/lib/fields.h"
#include "cli/verb/schedule.h"

static void add_task(struct gp_grid *grid, const struct gp_task_stats *t)
{
	char text[24];

	gp_grid_cell(grid, "%d", t->pid);
	gp_grid_text(grid, gp_class_name(t->attr.class));
	gp_grid_text(grid, t->run_source != GP_RUN_UNKNOWN
				   ? gp_cli_duration(text, sizeof text, t->run_ns)
				   : NULL);
	gp_grid_cell_if(grid, t->scheduled, "%llu", (unsigned long long)t->scheduled);
	gp_grid_text(grid, gp_cli_duration(text, sizeof text, t->held_ns));
	gp_grid_cell(grid, "%llu", (unsigned long long)t->preemptions);
	gp_grid_cell(grid, "%llu", (unsigned long long)t->undone);
	gp_grid_text(grid, t->refused ? "refused" : NULL);
	gp_grid_text(grid, t->name);
}

static struct json_object *task_to_json(const struct gp_task_stats *t)
{
	struct json_object *o = json_object_new_object();

	gp_field_put(o, "pid", (uint64_t)t->pid);
	gp_field_put_text(o, "class", gp_class_name(t->attr.class));
	gp_field_put_text(o, "name", t->name);
	if (t->run_source != GP_RUN_UNKNOWN)
		gp_field_put(o, "run_ns", t->run_ns);
	gp_field_put_known(o, "scheduled", t->scheduled);
	gp_field_put(o, "held_ns", t->held_ns);
	gp_field_put(o, "preemptions", t->preemptions);
	gp_field_put(o, "failures", t->failures);
	gp_field_put(o, "undone", t->undone);
	gp_field_put_bool(o, "refused", t->refused);
	return o;
}

/* Fills in the next scheduled task from index *i on. False: there is none. */
static bool next_task(const struct gp_scheduled *s, unsigned *i, struct gp_task_stats *t)
{
	while (*i < gp_engine_tasks(s->engine)) {
		gp_engine_task_stats(s->engine, (*i)++, t);
		if (t->attr.class != GP_UNMANAGED)
			return true;
	}
	return false;
}

static void print_table(FILE *out, const struct gp_scheduled *s)
{
	static const struct gp_column columns[] = {
		{"PID", 0},
		{"CLASS", GP_COLUMN_LEFT},
		{"RUN TIME", 0},
		{"SCHEDULED", 0},
		{"HELD", 0},
		{"PREEMPTED", 0},
		{"CHANGED BACK", 0},
		{"PROMISE", GP_COLUMN_LEFT},
		{"NAME", GP_COLUMN_LEFT},
	};
	const struct gp_engine_stats *stats = gp_engine_stats(s->engine);
	struct gp_task_stats t;
	struct gp_grid grid;

	fprintf(out, "%s, policy %s: %llu holds, %llu releases, %llu slices set, %llu failures\n",
		s->gpu->info.name, gp_engine_policy(s->engine)->name,
		(unsigned long long)stats->holds, (unsigned long long)stats->releases,
		(unsigned long long)stats->slices, (unsigned long long)stats->failures);
	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (unsigned i = 0; next_task(s, &i, &t);)
		add_task(&grid, &t);
	gp_grid_end(&grid, out);
}

static struct json_object *to_json(const struct gp_scheduled *s)
{
	const struct gp_engine_stats *stats = gp_engine_stats(s->engine);
	struct json_object *o = json_object_new_object(), *tasks = json_object_new_array();
	struct gp_task_stats t;

	gp_field_put_text(o, "device", s->gpu->info.name);
	gp_field_put_text(o, "policy", gp_engine_policy(s->engine)->name);
	gp_field_put(o, "ticks", stats->ticks);
	gp_field_put(o, "holds", stats->holds);
	gp_field_put(o, "releases", stats->releases);
	gp_field_put(o, "slices", stats->slices);
	gp_field_put(o, "failures", stats->failures);
	gp_field_put(o, "ejections", stats->ejections);
	for (unsigned i = 0; next_task(s, &i, &t);)
		json_object_array_add(tasks, task_to_json(&t));
	json_object_object_add(o, "tasks", tasks);
	return o;
}

/* Whether no action took effect: every attempt failed. */
static bool is_without_effect(const struct gp_scheduled *s)
{
	const struct gp_engine_stats *stats = gp_engine_stats(s->engine);
	struct gp_task_stats t;

	for (unsigned i = 0; next_task(s, &i, &t);)
		if (t.held_ns || t.slice_us)
			return false;
	return stats->failures;
}

void gp_schedule_report(struct gp_scheduled *s, FILE *out, struct json_object *list)
{
	const struct gp_ejection *ejection = gp_engine_ejection(s->engine);

	if (list)
		json_object_array_add(list, to_json(s));
	else
		print_table(out, s);
	s->failed = is_without_effect(s);
	if (s->failed && !s->complained)
		fprintf(stderr,
			"gpreempt: no process could be held on %s; see the kernel log (dmesg) for "
			"the cause\n",
			s->gpu->info.name);
	if (ejection)
		fprintf(stderr, "gpreempt: policy %s was ejected: %s\n", ejection->policy->name,
			ejection->text);
}
