/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt ps, when a daemon answers: its picture of the tasks. */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/ask/ask.h"
#include "cli/ask/with_daemon.h"
#include "cli/ask/run_times.h"
#include "cli/ask/device_line.h"

static void add_row(struct gp_grid *grid, struct json_object *task)
{
	struct json_object *waits = gp_field(task, "waits");
	char text[64];
	uint64_t us;

	gp_field_cell(grid, task, "pid");
	gp_field_cell(grid, task, "user");
	gp_field_cell(grid, task, "device");
	gp_field_cell(grid, task, "class");
	gp_field_cell(grid, task, "priority");
	gp_field_cell(grid, task, "state");
	gp_grid_text(grid, gp_field_words(task, "held_by", text, sizeof text));
	gp_grid_text(grid, gp_field_number(task, "slice_us", &us)
	                           ? gp_cli_duration(text, sizeof text, us * GP_NS_PER_US)
	                           : NULL);
	gp_grid_text(grid, gp_ran_text(task, text, sizeof text));
	gp_field_cell_ns(grid, waits, "p50_ns");
	gp_field_cell_ns(grid, waits, "p99_ns");
	gp_field_cell_bytes(grid, task, "memory");
	gp_grid_text(grid, gp_field_true(task, "refused") ? "refused" : NULL);
	gp_field_cell(grid, task, "name");
}

static void print_table(struct json_object *tasks)
{
	static const struct gp_column columns[] = {
		{"PID", 0},
		{"USER", GP_COLUMN_LEFT},
		{"DEVICE", 0},
		{"CLASS", GP_COLUMN_LEFT},
		{"PRIO", 0},
		{"STATE", GP_COLUMN_LEFT},
		{"HELD BY", GP_COLUMN_LEFT},
		{"SLICE", 0},
		{"GPU", 0},
		{"WAIT P50", 0},
		{"P99", 0},
		{"MEMORY", 0},
		{"PROMISE", GP_COLUMN_LEFT},
		{"NAME", GP_COLUMN_LEFT},
	};
	struct gp_grid grid;

	if (!json_object_array_length(tasks)) {
		puts("no process has queues on a GPU here");
		return;
	}
	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < json_object_array_length(tasks); i++)
		add_row(&grid, json_object_array_get_idx(tasks, i));
	gp_grid_end(&grid, stdout);
}

static void print_devices(struct json_object *devices)
{
	putchar('\n');
	for (size_t i = 0; i < json_object_array_length(devices); i++) {
		gp_show_device(json_object_array_get_idx(devices, i));
		putchar('\n');
		gp_show_ejection(json_object_array_get_idx(devices, i));
	}
}

static int list(struct gp_client *client, uint64_t for_ns, bool json, struct gp_error *err)
{
	struct json_object *devices, *tasks;
	int r = gp_ask_devices(client, &devices, err);

	if (r)
		return r;
	r = gp_ran_ask(client, devices, for_ns, &tasks, err);
	if (!r && json) {
		gp_print_json(tasks);
	} else if (!r) {
		print_table(tasks);
		print_devices(devices);
	}
	if (!r)
		json_object_put(tasks);
	json_object_put(devices);
	return r;
}

bool gp_daemon_ps(uint64_t for_ns, bool json, int *exit)
{
	struct gp_client *client = gp_ask_if_there();
	struct gp_error err = {0};

	if (!client)
		return false;
	*exit = list(client, for_ns, json, &err) ? gp_cli_fail(&err) : GP_EXIT_DONE;
	gp_client_close(client);
	return true;
}
