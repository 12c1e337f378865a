/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/fields.h"
#include "cli/top/top_snapshot.h"
#include "task/task.h"

/* "" if the field is missing. */
static const char *text(struct json_object *o, const char *key)
{
	const char *value = gp_field_text(o, key);

	return value ? value : "";
}

static void read_ejection(struct gp_top_device *d, struct json_object *o)
{
	struct json_object *ejection = gp_field(o, "ejection");

	/* A user may have chosen another policy after the ejection. */
	d->ejected = ejection && strcmp(d->policy, text(o, "policy_wanted")) != 0;
	snprintf(d->why, sizeof d->why, "%s was ejected: %s", text(ejection, "policy"),
		 text(ejection, "text"));
}

static void read_device(struct gp_top_device *d, struct json_object *o)
{
	struct json_object *stats = gp_field(o, "stats");

	d->number = (unsigned)gp_field_number_or(o, "device", 0);
	snprintf(d->name, sizeof d->name, "%s", text(o, "name"));
	snprintf(d->policy, sizeof d->policy, "%s", text(o, "policy"));
	snprintf(d->state, sizeof d->state, "%s", text(o, "state"));
	d->tasks = (unsigned)gp_field_number_or(o, "tasks", 0);
	d->at_ns = gp_field_number_or(o, "mono_ns", 0);
	d->busy_known = gp_field_number(stats, "busy_ns", &d->busy_ns);
	d->inversions_known = gp_field_number(stats, "inversions", &d->inversions);
	d->preemptions = gp_field_number_or(stats, "preemptions", 0);
	d->busy = d->preemptions_per_s = d->inversions_per_s = GP_TOP_UNKNOWN;
	read_ejection(d, o);
}

int gp_top_read_devices(struct gp_top_snapshot *snapshot, struct json_object *stats, bool keep)
{
	struct json_object *daemon = gp_field(stats, "daemon"), *list = gp_field(stats, "devices");
	size_t n;

	if (!json_object_is_type(list, json_type_array))
		return -EPROTO;
	n = json_object_array_length(list);
	snapshot->device = calloc(n + 1, sizeof *snapshot->device);
	if (!snapshot->device)
		return -ENOMEM;
	snapshot->ndevices = (unsigned)n;
	snapshot->uptime_ns = gp_field_number_or(daemon, "uptime_ns", 0);
	snapshot->keeper_gone = !strcmp(text(daemon, "keeper"), "gone");
	for (unsigned i = 0; i < n; i++) {
		struct json_object *o = json_object_array_get_idx(list, i);

		read_device(&snapshot->device[i], o);
		if (keep)
			snapshot->device[i].json = json_object_get(o);
	}
	return 0;
}

static enum gp_top_state state_of(const char *word)
{
	static const char *const words[] = {
		[GP_TOP_RUNNING] = "running", [GP_TOP_ACTIVE] = "active",
		[GP_TOP_WAITING] = "waiting", [GP_TOP_HELD] = "held",
		[GP_TOP_IDLE] = "idle",       [GP_TOP_SUSPENDED] = "suspended",
	};

	for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
		if (!strcmp(word, words[i]))
			return (enum gp_top_state)i;
	return GP_TOP_STATE_UNKNOWN;
}

static uint8_t class_of(const char *word)
{
	int class = gp_class_find(word);

	return class < 0 ? GP_UNMANAGED : (uint8_t) class;
}

static void read_task(struct gp_top_task *t, struct json_object *o, uint64_t now_ns)
{
	struct json_object *waits = gp_field(o, "waits");

	t->device = (unsigned)gp_field_number_or(o, "device", 0);
	t->id = gp_field_number_or(o, "task", 0);
	t->pid = (pid_t)gp_field_number_or(o, "pid", 0);
	t->start_time = gp_field_number_or(o, "start_time", 0);
	snprintf(t->name, sizeof t->name, "%s", text(o, "name"));
	snprintf(t->user, sizeof t->user, "%s", text(o, "user"));
	t->class = class_of(text(o, "class"));
	t->priority = (uint8_t)gp_field_number_or(o, "priority", 0);
	t->state = state_of(text(o, "state"));
	t->refused = gp_field_true(o, "refused");
	if (!gp_field_number(o, "mono_ns", &t->at_ns))
		t->at_ns = now_ns;
	t->run_known = gp_field_number(o, "run_ns", &t->run_ns);
	t->run_granted = !strcmp(text(o, "run_source"), "granted");
	t->preemptions = gp_field_number_or(o, "preemptions", 0);
	t->waits_known = gp_field_number(waits, "p50_ns", &t->wait_p50_ns) &&
			 gp_field_number(waits, "p99_ns", &t->wait_p99_ns);
	t->share = t->recent_share = t->preemptions_per_s = GP_TOP_UNKNOWN;
}

int gp_top_read_tasks(struct gp_top_snapshot *snapshot, struct json_object *answer, bool keep)
{
	struct json_object *list = gp_field(answer, "tasks");
	uint64_t now_ns = gp_field_number_or(answer, "now_ns", 0);
	size_t n;

	if (!json_object_is_type(list, json_type_array))
		return -EPROTO;
	n = json_object_array_length(list);
	if (snapshot->ntasks + n > snapshot->capacity) {
		unsigned capacity = 2 * snapshot->capacity + (unsigned)n + 16;
		struct gp_top_task *task = reallocarray(snapshot->task, capacity, sizeof *task);

		if (!task)
			return -ENOMEM;
		snapshot->task = task;
		snapshot->capacity = capacity;
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_array_get_idx(list, i);
		struct gp_top_task *t = &snapshot->task[snapshot->ntasks++];

		*t = (struct gp_top_task){0};
		read_task(t, o, now_ns);
		if (keep)
			t->json = json_object_get(o);
	}
	return 0;
}

void gp_top_snapshot_sort(struct gp_top_snapshot *snapshot)
{
	if (snapshot->ntasks)
		qsort(snapshot->task, snapshot->ntasks, sizeof *snapshot->task,
		      gp_top_compare_tasks);
}

int gp_top_compare_tasks(const void *a, const void *b)
{
	const struct gp_top_task *s = a, *t = b;

	if (s->device != t->device)
		return s->device < t->device ? -1 : 1;
	return s->id < t->id ? -1 : s->id > t->id;
}

void gp_top_snapshot_clear(struct gp_top_snapshot *snapshot)
{
	for (unsigned i = 0; i < snapshot->ntasks; i++)
		json_object_put(snapshot->task[i].json);
	for (unsigned i = 0; i < snapshot->ndevices; i++)
		json_object_put(snapshot->device[i].json);
	free(snapshot->task);
	free(snapshot->device);
	*snapshot = (struct gp_top_snapshot){0};
}
