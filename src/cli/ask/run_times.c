/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask/run_times.h"

#include <time.h>
#include <unistd.h>

#include "base/clock.h"
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

/* The change since `before`; NULL: the task has come since. */
static void put_change(struct json_object *task, struct json_object *before, uint64_t over_ns)
{
	uint64_t now_ns, then_ns, snapshot_ns;

	/* The daemon's snapshots are up to 0.1 s older than its answers, and have a time stamp. */
	if (gp_field_number(task, "mono_ns", &now_ns) &&
	    gp_field_number(before, "mono_ns", &snapshot_ns) && now_ns > snapshot_ns)
		over_ns = now_ns - snapshot_ns;
	json_object_object_del(task, "ran_ns"); /* of the last second */
	json_object_object_del(task, "gpu_pct");
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
	for (size_t i = 0; i < json_object_array_length(tasks); i++) {
		struct json_object *t = json_object_array_get_idx(tasks, i);
		struct json_object *device = device_of(devices, t);
		struct json_object *name = gp_field(device, "name");

		json_object_object_add(t, "device_name", json_object_get(name));
		if (before)
			put_change(t, json_object_array_bsearch(t, before, compare), over_ns);
	}
}

int gp_ran_ask(struct gp_client *client, struct json_object *devices, uint64_t for_ns,
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
