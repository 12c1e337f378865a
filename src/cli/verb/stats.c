/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt stats: GPU time of the tasks in an interval, and what the daemon counted. */

#include "base/clock.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "cli/lib/local_tasks.h"
#include "cli/lib/stop.h"
#include "cli/lib/grid.h"

static struct {
	bool json;
	bool no_daemon;
	uint64_t for_ns;
} env = {.for_ns = 2 * GP_NS_PER_S};

static const struct gp_option options[] = {
	{"for", 'f', "TIME", "Observe for this time (2s)", .time_ns = &env.for_ns},
	{"no-daemon", 0, NULL, "Ask the GPUs directly, also if a daemon runs",
	 .flag = &env.no_daemon},
	{"json", 'j', NULL, "Write JSON", .flag = &env.json},
	{0},
};

/* "holds 12, releases 12, ...". A counter that is absent is not known and not printed. */
static void print_counts(struct json_object *stats, const char *const *key)
{
	bool any = false;
	uint64_t value;

	for (; *key; key++)
		if (gp_field_number(stats, *key, &value)) {
			printf("%s%s %llu", any ? ", " : "  ", *key, (unsigned long long)value);
			any = true;
		}
	if (any)
		putchar('\n');
}

/* How long each kind of action took. */
static void print_times(struct json_object *times)
{
	static const struct gp_column columns[] = {
		{" ", GP_COLUMN_LEFT}, {"COUNT", 0}, {"P50", 0}, {"P99", 0}, {"MAX", 0}};
	struct gp_grid grid;

	if (!times || !json_object_object_length(times))
		return;
	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	json_object_object_foreach(times, what, hist)
	{
		gp_grid_cell(&grid, "  %s", what);
		gp_field_cell(&grid, hist, "count");
		gp_field_cell_ns(&grid, hist, "p50_ns");
		gp_field_cell_ns(&grid, hist, "p99_ns");
		gp_field_cell_ns(&grid, hist, "max_ns");
	}
	gp_grid_end(&grid, stdout);
}

static void print_device(struct json_object *device)
{
	static const char *const done[] = {"ticks",  "decisions",   "holds", "releases",
					   "slices", "preemptions", NULL};
	static const char *const wrong[] = {"inversions", "failures",  "undone", "deferred",
					    "blind",      "ejections", NULL};
	struct json_object *stats = gp_field(device, "stats");

	putchar('\n');
	gp_show_device(device);
	printf(", since %s\n", gp_cli_duration(gp_field_number_or(stats, "since_ns", 0)).text);
	gp_show_ejection(device);
	print_counts(stats, done);
	print_counts(stats, wrong);
	print_times(gp_field(device, "times"));
}

static void print_daemon(struct json_object *daemon)
{
	printf("\ndaemon %llu: up %s, CPU %s, memory %s, clients %llu, requests %llu, keeper %s\n",
	       (unsigned long long)gp_field_number_or(daemon, "pid", 0),
	       gp_cli_duration(gp_field_number_or(daemon, "uptime_ns", 0)).text,
	       gp_cli_duration(gp_field_number_or(daemon, "cpu_ns", 0)).text,
	       gp_cli_bytes(gp_field_number_or(daemon, "rss_bytes", 0)).text,
	       (unsigned long long)gp_field_number_or(daemon, "clients", 0),
	       (unsigned long long)gp_field_number_or(daemon, "requests", 0),
	       gp_field_text(daemon, "keeper") ? gp_field_text(daemon, "keeper") : "unknown");
}

/* Devices with tasks, but without a known run time of any. */
static void print_unknown(struct json_object *tasks, struct json_object *devices)
{
	for (size_t d = 0; d < json_object_array_length(devices); d++) {
		const char *name = gp_field_text(json_object_array_get_idx(devices, d), "name");
		bool any = false, known = false;

		for (size_t i = 0; i < json_object_array_length(tasks); i++) {
			struct json_object *t = json_object_array_get_idx(tasks, i);

			if (gp_field_number_or(t, "device", d + 1) != d)
				continue;
			any = true;
			known |= gp_field(t, "ran_ns") != NULL;
		}
		if (any && !known)
			printf("device %zu (%s) has told no run times\n", d, name ? name : "?");
	}
}

static void print_all(struct json_object *answer)
{
	struct json_object *tasks = gp_field(answer, "tasks"),
			   *devices = gp_field(answer, "devices"),
			   *daemon = gp_field(answer, "daemon");

	gp_task_table_print(tasks, gp_stats_columns);
	if (!daemon) {
		print_unknown(tasks, devices);
		return;
	}
	for (size_t i = 0; i < gp_field_count(answer, "devices"); i++)
		print_device(json_object_array_get_idx(devices, i));
	print_daemon(daemon);
}

static int run(struct gp_error *err)
{
	struct json_object *answer = NULL;
	int r = GP_EXIT_DONE;

	gp_stop_open();
	if (env.no_daemon || !gp_daemon_tasks(env.for_ns ? env.for_ns : 1, true, &answer, &r))
		r = gp_local_tasks(env.for_ns, false, &answer, err);
	if (answer && env.json)
		gp_print_json(answer);
	else if (answer)
		print_all(answer);
	json_object_put(answer);
	return r;
}

const struct gp_verb gp_verb_stats = {
	.name = "stats",
	.summary = "GPU time of the tasks in an interval, and the daemon's counters",
	.options = options,
	.doc = "Show the GPU time of the tasks in an interval, and what the daemon counted.\v"
	       "Run times from counted switches are exact while several tasks want the GPU. A task "
	       "that is alone stays on it when its work is finished.\n",
	.run = run,
};
