/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt monitor: the report, as text and as JSON. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/lib/fields.h"
#include "cli/lib/grid.h"
#include "cli/verb/monitor.h"

#define IDS_SHOWN 40 /* JSON has all */

static const char *advice(const struct gp_monitor *m)
{
	if (m->ended)
		return "the process has ended";
	if (m->counts.samples < 2)
		return "one sample does not show whether the queues are stable: take more (--for, "
		       "--every)";
	if (gp_queue_counts_is_stable(&m->counts))
		return "stable: ready to be scheduled";
	for (unsigned i = 0; i < m->counts.nseries; i++)
		if (!m->counts.series[i].copies &&
		    (m->counts.series[i].count.came || m->counts.series[i].count.went))
			return "changing: schedule the process as a whole, never single queues; "
			       "a new queue runs until it is noticed";
	return "only copy queues change: ready to be scheduled";
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

static void add_count(struct json_object *o, const struct gp_monitor *m,
		      const struct gp_queue_counts_count *n)
{
	gp_field_put(o, "min", n->min);
	gp_field_put(o, "max", n->max);
	gp_field_put_decimal(o, "average", gp_queue_counts_average(&m->counts, n), 2);
}

static struct json_object *series_to_json(const struct gp_monitor *m,
					  const struct gp_queue_counts_series *s)
{
	struct json_object *o = json_object_new_object(), *slices = json_object_new_array();

	gp_field_put(o, "device", s->device);
	gp_field_put_text(o, "type", s->type);
	add_count(o, m, &s->count);
	gp_field_put_decimal(o, "of_all_pct", percent_of_all(m, s), 1);
	gp_field_put(o, "came", s->count.came);
	gp_field_put(o, "went", s->count.went);
	for (unsigned i = 0; i < s->nslices; i++)
		json_object_array_add(slices, json_object_new_uint64(s->slice_us[i]));
	json_object_object_add(o, "slices_us", slices);
	return o;
}

static struct json_object *id_to_json(const struct gp_queue_counts_queue *k)
{
	struct json_object *o = json_object_new_object();

	gp_field_put(o, "device", k->device);
	gp_field_put(o, "id", k->queue.id);
	gp_field_put_text(o, "type", k->queue.type);
	gp_field_put_known(o, "serial", k->queue.serial);
	gp_field_put(o, "seen", k->samples);
	return o;
}

static struct json_object *device_to_json(const struct gp_monitor *m, unsigned i)
{
	const struct gp_share *share = &m->share[i];
	struct json_object *o = json_object_new_object();

	gp_field_put(o, "device", i);
	gp_field_put_text(o, "name", m->ref[i].gpu->info.name);
	if (share->known) {
		gp_field_put_decimal(o, "gpu_pct", gp_share_percent(share), 1);
		gp_field_put_text(o, "run_source",
				  share->source == GP_RUN_GRANTED ? "granted" : "measured");
	}
	return o;
}

void gp_monitor_json(const struct gp_monitor *m, pid_t pid)
{
	struct json_object *o = json_object_new_object(), *total = json_object_new_object(),
			   *queues = json_object_new_array(), *ids = json_object_new_array(),
			   *devices = json_object_new_array();

	gp_field_put(o, "pid", (uint64_t)pid);
	gp_field_put_text(o, "name", m->name);
	gp_field_put(o, "samples", m->counts.samples);
	add_count(total, m, &m->counts.all);
	json_object_object_add(o, "total", total);
	for (unsigned i = 0; i < m->counts.nseries; i++)
		json_object_array_add(queues, series_to_json(m, &m->counts.series[i]));
	for (unsigned i = 0; i < m->counts.nqueues; i++)
		json_object_array_add(ids, id_to_json(&m->counts.queue[i]));
	for (unsigned i = 0; i < m->devices->n; i++)
		if (m->ref[i].gpu)
			json_object_array_add(devices, device_to_json(m, i));
	json_object_object_add(o, "queues", queues);
	json_object_object_add(o, "ids", ids);
	json_object_object_add(o, "devices", devices);
	gp_field_put_bool(o, "stable", gp_queue_counts_is_stable(&m->counts));
	gp_field_put_bool(o, "ended", m->ended);
	gp_field_put_text(o, "advice", advice(m));
	gp_print_json_once(o);
}
