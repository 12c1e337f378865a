/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt monitor: what the samples come to, in words and as JSON. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/lib/grid.h"
#include "cli/verb/monitor.h"

#define IDS_SHOWN 40 /* all are in the JSON */

static const char *advice(const struct gp_monitor *m)
{
	if (m->ended)
		return "the process has ended";
	if (m->counts.samples < 2)
		return "one sample does not tell whether it is stable: take more (--for, --every)";
	if (gp_queue_counts_is_stable(&m->counts))
		return "stable: ready to be scheduled";
	for (unsigned i = 0; i < m->counts.nseries; i++)
		if (!m->counts.series[i].copies &&
		    (m->counts.series[i].count.came || m->counts.series[i].count.went))
			return "changing: schedule the process as a whole, never single queues; "
			       "one that is new runs until it is seen";
	return "only queues that copy change: ready to be scheduled";
}

static double percent_of_all(const struct gp_monitor *m, const struct gp_queue_counts_series *s)
{
	return m->counts.all.sum ? 100.0 * (double)s->count.sum / (double)m->counts.all.sum : 0;
}

static void add_slices(struct gp_grid *grid, const struct gp_queue_counts_series *s)
{
	char text[32], list[192] = "";

	for (unsigned i = 0; i < s->nslices; i++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
		         gp_cli_duration(text, sizeof text, 1000ull * s->slice_us[i]));
	}
	gp_grid_text(grid, s->nslices ? list : NULL);
}

static void print_types(const struct gp_monitor *m)
{
	static const struct gp_column columns[] = {
		{"DEVICE", 0},
		{"TYPE", GP_COLUMN_LEFT},
		{"MIN", 0},
		{"MAX", 0},
		{"AVERAGE", 0},
		{"OF ALL", 0},
		{"CAME", 0},
		{"WENT", 0},
		{"SLICES", GP_COLUMN_LEFT},
	};
	struct gp_grid grid;

	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (unsigned i = 0; i < m->counts.nseries; i++) {
		const struct gp_queue_counts_series *s = &m->counts.series[i];

		gp_grid_cell(&grid, "%u", s->device);
		gp_grid_text(&grid, s->type);
		gp_grid_cell(&grid, "%u", s->count.min);
		gp_grid_cell(&grid, "%u", s->count.max);
		gp_grid_cell(&grid, "%.1f", gp_queue_counts_average(&m->counts, &s->count));
		gp_grid_cell(&grid, "%.0f %%", percent_of_all(m, s));
		gp_grid_cell(&grid, "%u", s->count.came);
		gp_grid_cell(&grid, "%u", s->count.went);
		add_slices(&grid, s);
	}
	gp_grid_end(&grid, stdout);
}

static void print_ids(const struct gp_monitor *m)
{
	static const struct gp_column columns[] = {
		{"ID", 0}, {"DEVICE", 0}, {"TYPE", GP_COLUMN_LEFT}, {"SEEN", 0}};
	unsigned n = m->counts.nqueues < IDS_SHOWN ? m->counts.nqueues : IDS_SHOWN;
	struct gp_grid grid;

	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (unsigned i = 0; i < n; i++) {
		gp_grid_cell(&grid, "%u", m->counts.queue[i].queue.id);
		gp_grid_cell(&grid, "%u", m->counts.queue[i].device);
		gp_grid_text(&grid, m->counts.queue[i].queue.type);
		gp_grid_cell(&grid, "%u of %u", m->counts.queue[i].samples, m->counts.samples);
	}
	gp_grid_end(&grid, stdout);
	if (m->counts.nqueues > n)
		printf("and %u more; --json has them all\n", m->counts.nqueues - n);
}

void gp_monitor_print(const struct gp_monitor *m, pid_t pid)
{
	char text[32];

	printf("%d (%s): %u sample%s in %s; ", pid, m->name, m->counts.samples,
	       m->counts.samples == 1 ? "" : "s",
	       gp_cli_duration(text, sizeof text, m->last_ns - m->begin_ns));
	if (m->counts.all.min == m->counts.all.max)
		printf("%u queue%s all the time\n\n", m->counts.all.max,
		       m->counts.all.max == 1 ? "" : "s");
	else
		printf("%u to %u queues, %.1f on average\n\n", m->counts.all.min, m->counts.all.max,
		       gp_queue_counts_average(&m->counts, &m->counts.all));
	print_types(m);
	putchar('\n');
	print_ids(m);
	putchar('\n');
	for (unsigned i = 0; i < m->devices->n; i++)
		if (m->ref[i].gpu && m->share[i].known)
			printf("share of device %u (%s): %s\n", i, m->ref[i].gpu->info.name,
			       gp_share_text(text, sizeof text, &m->share[i]));
	puts(advice(m));
}

static void json_number(const struct gp_monitor *m, const struct gp_queue_counts_count *n)
{
	printf("\"min\":%u,\"max\":%u,\"average\":%.2f", n->min, n->max,
	       gp_queue_counts_average(&m->counts, n));
}

static void json_series(const struct gp_monitor *m, const struct gp_queue_counts_series *s,
                        bool first)
{
	printf("%s{\"device\":%u,\"type\":", first ? "" : ",", s->device);
	gp_json_string(stdout, s->type);
	putchar(',');
	json_number(m, &s->count);
	printf(",\"of_all_pct\":%.1f,\"came\":%u,\"went\":%u,\"slices_us\":[", percent_of_all(m, s),
	       s->count.came, s->count.went);
	for (unsigned i = 0; i < s->nslices; i++)
		printf("%s%u", i ? "," : "", s->slice_us[i]);
	fputs("]}", stdout);
}

static void json_ids(const struct gp_monitor *m)
{
	fputs("],\"ids\":[", stdout);
	for (unsigned i = 0; i < m->counts.nqueues; i++) {
		const struct gp_queue_counts_queue *k = &m->counts.queue[i];

		printf("%s{\"device\":%u,\"id\":%u,\"type\":", i ? "," : "", k->device,
		       k->queue.id);
		gp_json_string(stdout, k->queue.type);
		gp_json_number("serial", k->queue.serial, k->queue.serial);
		printf(",\"seen\":%u}", k->samples);
	}
}

void gp_monitor_json(const struct gp_monitor *m, pid_t pid)
{
	bool first = true;

	printf("{\"pid\":%d,\"name\":", pid);
	gp_json_string(stdout, m->name);
	printf(",\"samples\":%u,\"total\":{", m->counts.samples);
	json_number(m, &m->counts.all);
	fputs("},\"queues\":[", stdout);
	for (unsigned i = 0; i < m->counts.nseries; i++)
		json_series(m, &m->counts.series[i], !i);
	json_ids(m);
	fputs("],\"devices\":[", stdout);
	for (unsigned i = 0; i < m->devices->n; i++) {
		if (!m->ref[i].gpu)
			continue;
		printf("%s{\"device\":%u,\"name\":", first ? "" : ",", i);
		gp_json_string(stdout, m->ref[i].gpu->info.name);
		gp_share_json(&m->share[i]);
		putchar('}');
		first = false;
	}
	printf("],\"stable\":%s,\"ended\":%s,\"advice\":",
	       gp_queue_counts_is_stable(&m->counts) ? "true" : "false",
	       m->ended ? "true" : "false");
	gp_json_string(stdout, advice(m));
	puts("}");
}
