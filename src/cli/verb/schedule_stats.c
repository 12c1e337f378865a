/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt schedule: what came of it, as tables or JSON. */
#include "cli/cli.h"
#include "cli/lib/grid.h"
#include "cli/sim/sim_report.h"
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

static void json_task(FILE *out, const struct gp_task_stats *t, bool first)
{
	fprintf(out, "%s{\"pid\":%d,\"class\":\"%s\",\"name\":", first ? "" : ",", t->pid,
	        gp_class_name(t->attr.class));
	gp_json_string(out, t->name);
	if (t->run_source != GP_RUN_UNKNOWN)
		fprintf(out, ",\"run_ns\":%llu", (unsigned long long)t->run_ns);
	if (t->scheduled)
		fprintf(out, ",\"scheduled\":%llu", (unsigned long long)t->scheduled);
	fprintf(out,
	        ",\"held_ns\":%llu,\"preemptions\":%llu,\"failures\":%llu,"
	        "\"undone\":%llu,\"refused\":%s}",
	        (unsigned long long)t->held_ns, (unsigned long long)t->preemptions,
	        (unsigned long long)t->failures, (unsigned long long)t->undone,
	        t->refused ? "true" : "false");
}

void gp_schedule_print(FILE *out, struct gp_scheduled *s, bool first)
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
	const struct gp_ejection *ejection = gp_engine_ejection(s->engine);
	bool first_task = true;
	struct gp_grid grid;

	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	if (s->what->json) {
		fprintf(out, "%s{\"device\":", first ? "" : ",");
		gp_json_string(out, s->gpu->info.name);
		fprintf(out,
		        ",\"policy\":\"%s\",\"ticks\":%llu,\"holds\":%llu,\"releases\":%llu,"
		        "\"slices\":%llu,\"failures\":%llu,\"ejections\":%llu,\"tasks\":[",
		        gp_engine_policy(s->engine)->name, (unsigned long long)stats->ticks,
		        (unsigned long long)stats->holds, (unsigned long long)stats->releases,
		        (unsigned long long)stats->slices, (unsigned long long)stats->failures,
		        (unsigned long long)stats->ejections);
	} else {
		fprintf(out,
		        "%s, policy %s: %llu holds, %llu releases, %llu slices set, %llu "
		        "failures\n",
		        s->gpu->info.name, gp_engine_policy(s->engine)->name,
		        (unsigned long long)stats->holds, (unsigned long long)stats->releases,
		        (unsigned long long)stats->slices, (unsigned long long)stats->failures);
	}
	for (unsigned i = 0; i < gp_engine_tasks(s->engine); i++) {
		struct gp_task_stats t;

		gp_engine_task_stats(s->engine, i, &t);
		if (t.attr.class == GP_UNMANAGED)
			continue;
		if (s->what->json)
			json_task(out, &t, first_task);
		else
			add_task(&grid, &t);
		first_task = false;
	}
	if (s->what->json)
		fputs("]}", out);
	else
		gp_grid_end(&grid, out);
	s->failed = s->complained && !stats->holds;
	if (ejection)
		fprintf(stderr, "gpreempt: policy %s was thrown out: %s\n", ejection->policy->name,
		        ejection->text);
}
