/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt stats, when a daemon answers: what tasks had while it watched, and what it counted. */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/ask/ask.h"
#include "cli/ask/with_daemon.h"
#include "cli/ask/run_times.h"
#include "cli/ask/device_line.h"
#include "cli/lib/stop.h"

static void print_tasks(struct json_object *tasks)
{
	static const struct gp_column columns[] = {
		{"PID", 0},
		{"DEVICE", 0},
		{"CLASS", GP_COLUMN_LEFT},
		{"RUN", 0},
		{"GPU", 0},
		{"PREEMPTED", 0},
		{"HELD", 0},
		{"WAITS", 0},
		{"P50", 0},
		{"P99", 0},
		{"SOURCE", GP_COLUMN_LEFT},
		{"NAME", GP_COLUMN_LEFT},
	};
	struct gp_grid grid;
	char text[32];

	if (!json_object_array_length(tasks)) {
		puts("nobody has queues on a GPU");
		return;
	}
	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < json_object_array_length(tasks); i++) {
		struct json_object *t = json_object_array_get_idx(tasks, i);
		struct json_object *waits = gp_field(t, "waits");

		gp_field_cell(&grid, t, "pid");
		gp_field_cell(&grid, t, "device");
		gp_field_cell(&grid, t, "class");
		gp_field_cell_ns(&grid, t, "ran_ns");
		gp_grid_text(&grid, gp_ran_text(t, text, sizeof text));
		gp_field_cell(&grid, t, "preempted");
		gp_field_cell_ns(&grid, t, "held_ns");
		gp_field_cell(&grid, waits, "count");
		gp_field_cell_ns(&grid, waits, "p50_ns");
		gp_field_cell_ns(&grid, waits, "p99_ns");
		gp_field_cell(&grid, t, "run_source");
		gp_field_cell(&grid, t, "name");
	}
	gp_grid_end(&grid, stdout);
}

/* "holds 12, releases 12, ...": what is not there is not known, and not said. */
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
	char text[32];

	putchar('\n');
	gp_show_device(device);
	printf(", since %s\n",
	       gp_cli_duration(text, sizeof text, gp_field_number_or(stats, "since_ns", 0)));
	gp_show_ejection(device);
	print_counts(stats, done);
	print_counts(stats, wrong);
	print_times(gp_field(device, "times"));
}

static void print_daemon(struct json_object *daemon)
{
	char up[32], cpu[32], memory[32];

	printf("\ndaemon %llu: up %s, CPU %s, memory %s, clients %llu, requests %llu, keeper %s\n",
	       (unsigned long long)gp_field_number_or(daemon, "pid", 0),
	       gp_cli_duration(up, sizeof up, gp_field_number_or(daemon, "uptime_ns", 0)),
	       gp_cli_duration(cpu, sizeof cpu, gp_field_number_or(daemon, "cpu_ns", 0)),
	       gp_cli_bytes(memory, sizeof memory, gp_field_number_or(daemon, "rss_bytes", 0)),
	       (unsigned long long)gp_field_number_or(daemon, "clients", 0),
	       (unsigned long long)gp_field_number_or(daemon, "requests", 0),
	       gp_field_text(daemon, "keeper") ? gp_field_text(daemon, "keeper") : "unknown");
}

static void print_all(struct json_object *stats, struct json_object *tasks)
{
	struct json_object *devices = gp_field(stats, "devices");

	print_tasks(tasks);
	for (size_t i = 0; i < gp_field_count(stats, "devices"); i++)
		print_device(json_object_array_get_idx(devices, i));
	print_daemon(gp_field(stats, "daemon"));
}

static int stats(struct gp_client *client, uint64_t for_ns, bool json, struct gp_error *err)
{
	struct json_object *devices, *tasks = NULL, *answer = NULL;
	int r = gp_ask_devices(client, &devices, err);

	if (r)
		return r;
	r = gp_ran_ask(client, devices, for_ns ? for_ns : 1, &tasks, err);
	json_object_put(devices);
	if (!r)
		r = gp_ask(client, "stats", NULL, &answer, err);
	if (!r && json) {
		json_object_object_add(answer, "tasks", json_object_get(tasks));
		gp_print_json(answer);
	} else if (!r) {
		print_all(answer, tasks);
	}
	json_object_put(tasks);
	json_object_put(answer);
	return r;
}

bool gp_daemon_stats(uint64_t for_ns, bool json, int *exit)
{
	struct gp_client *client = gp_ask_if_there();
	struct gp_error err = {0};

	if (!client)
		return false;
	*exit = stats(client, for_ns, json, &err) ? gp_cli_fail(&err) : GP_EXIT_DONE;
	gp_client_close(client);
	return true;
}
