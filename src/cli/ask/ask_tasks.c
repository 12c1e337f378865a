/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of the daemon, with the share of the GPU that they had, for gpreempt ps and stats. */
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "cli/lib/stop.h"
#include "task/json/task_json.h"

static uint64_t number(struct json_object *object, const char *key)
{
	return gp_field_number_or(object, key, 0);
}

static int compare(const void *a, const void *b)
{
	static const char *const keys[] = {"device", "pid", "task"};
	struct json_object *p = *(struct json_object *const *)a;
	struct json_object *q = *(struct json_object *const *)b;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (number(p, keys[i]) != number(q, keys[i]))
			return number(p, keys[i]) < number(q, keys[i]) ? -1 : 1;
	return 0;
}

static struct json_object *device_of(struct json_object *devices, struct json_object *task)
{
	for (size_t i = 0; i < json_object_array_length(devices); i++) {
		struct json_object *d = json_object_array_get_idx(devices, i);

		if (number(d, "device") == number(task, "device"))
			return d;
	}
	return NULL;
}

/* How long the daemon can have counted: since the process began, or since the daemon began. */
static uint64_t age_ns(struct json_object *device, struct json_object *task)
{
	uint64_t counted_ns = number(gp_field(device, "stats"), "since_ns");
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK), start;
	struct timespec now;
	uint64_t now_ns, start_ns;

	if (!gp_field_number(task, "start_time", &start) || !ticks)
		return counted_ns;
	clock_gettime(CLOCK_BOOTTIME, &now);
	now_ns = (uint64_t)now.tv_sec * GP_NS_PER_S + (uint64_t)now.tv_nsec;
	start_ns = start / ticks * GP_NS_PER_S + start % ticks * (GP_NS_PER_S / ticks);
	if (now_ns <= start_ns)
		return 0;
	return counted_ns && counted_ns < now_ns - start_ns ? counted_ns : now_ns - start_ns;
}

/* The change since `before`; NULL: the task has come since. */
static void put_change(struct json_object *task, struct json_object *before, uint64_t over_ns)
{
	uint64_t now_ns, then_ns, snapshot_ns;

	/* The daemon's snapshots are up to 0.1 s older than its answers, and have a time stamp. */
	if (gp_field_number(task, "mono_ns", &now_ns) &&
	    gp_field_number(before, "mono_ns", &snapshot_ns) && now_ns > snapshot_ns)
		over_ns = now_ns - snapshot_ns;
	gp_field_put(task, "over_ns", over_ns);
	gp_field_put(task, "preempted",
		     number(task, "preemptions") - number(before, "preemptions"));
	if (!gp_field_number(task, "run_ns", &now_ns))
		return;
	then_ns = number(before, "run_ns");
	if (now_ns < then_ns)
		return;
	gp_field_put(task, "ran_ns", now_ns - then_ns);
	gp_share_to_json(task, now_ns - then_ns, over_ns);
}

static void put_shares(struct json_object *devices, struct json_object *tasks,
		       struct json_object *before, uint64_t over_ns)
{
	uint64_t run_ns;

	for (size_t i = 0; i < json_object_array_length(tasks); i++) {
		struct json_object *t = json_object_array_get_idx(tasks, i);
		struct json_object *device = device_of(devices, t);
		struct json_object *name = gp_field(device, "name");

		json_object_object_add(t, "device_name", json_object_get(name));
		if (before)
			put_change(t, json_object_array_bsearch(t, before, compare), over_ns);
		else if (gp_field_number(t, "run_ns", &run_ns))
			gp_share_to_json(t, run_ns, age_ns(device, t));
	}
}

/*
 * Asks for the tasks, ordered by device and process, and adds `device_name` to each. Where run
 * times are known it adds `gpu_pct`: the share of `for_ns`, during which this function waits (or
 * until a signal, see stop.h). With `for_ns` 0 it is the share of the time since the daemon knows
 * the task. With `for_ns` it also adds `over_ns`, the length of the interval, and the changes in
 * it: `ran_ns` and `preempted`. The caller puts the array.
 */
static int ask_run_times(struct gp_client *client, struct json_object *devices, uint64_t for_ns,
			 struct json_object **tasks, struct gp_error *err)
{
	struct json_object *before = NULL;
	uint64_t begin_ns = gp_monotonic_ns();
	int r = for_ns ? gp_ask_tasks(client, devices, 0, &before, err) : 0;

	if (r)
		return r;
	if (before) {
		json_object_array_sort(before, compare);
		gp_stop_sleep(gp_time_add(begin_ns, for_ns));
	}
	r = gp_ask_tasks(client, devices, 0, tasks, err);
	if (!r) {
		put_shares(devices, *tasks, before, gp_monotonic_ns() - begin_ns);
		json_object_array_sort(*tasks, compare);
	}
	json_object_put(before);
	return r;
}

static int ask_all(struct gp_client *client, uint64_t for_ns, bool counters,
		   struct json_object **answer, struct gp_error *err)
{
	struct json_object *devices, *tasks;
	int r = gp_ask_devices(client, &devices, err);

	if (r)
		return r;
	r = ask_run_times(client, devices, for_ns, &tasks, err);
	if (!r && counters) {
		r = gp_ask(client, "stats", NULL, answer, err);
	} else if (!r) {
		*answer = json_object_new_object();
		json_object_object_add(*answer, "devices", json_object_get(devices));
	}
	if (!r)
		json_object_object_add(*answer, "tasks", json_object_get(tasks));
	json_object_put(tasks);
	json_object_put(devices);
	return r;
}

bool gp_daemon_tasks(uint64_t for_ns, bool counters, struct json_object **answer, int *exit)
{
	struct gp_client *client = gp_ask_if_there();
	struct gp_error err = {0};

	*answer = NULL;
	if (!client)
		return false;
	*exit = ask_all(client, for_ns, counters, answer, &err) ? gp_cli_fail(&err) : GP_EXIT_DONE;
	gp_client_close(client);
	return true;
}
