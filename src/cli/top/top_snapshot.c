/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots, read from the daemon's JSON, and rates from several of them. */
#include "cli/top/top_snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/lib/fields.h"
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

static enum gp_task_state state_of(const char *word)
{
	enum gp_task_state state = 0;

	while (state < GP_TASK_UNKNOWN && strcmp(word, gp_task_state_name(state)) != 0)
		state++;
	return state;
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

#define SECOND_NS (950 * GP_NS_PER_MS) /* less than 1 s, because snapshots may come late */
#define RECENT_NS (3 * GP_NS_PER_S)    /* the interval of recent_share */

static const struct gp_top_task *find_task(const struct gp_top_sample *m,
					   const struct gp_top_task *t)
{
	if (!m || !m->ntasks)
		return NULL;
	return bsearch(t, m->task, m->ntasks, sizeof *m->task, gp_top_compare_tasks);
}

static const struct gp_top_device *find_device(const struct gp_top_sample *m, unsigned number)
{
	for (unsigned i = 0; m && i < m->ndevices; i++)
		if (m->device[i].number == number)
			return &m->device[i];
	return NULL;
}

/* Increase per second. A counter that fell was reset: the rate is unknown. */
static double rate(uint64_t was, uint64_t is, uint64_t over_ns)
{
	if (!over_ns || is < was)
		return GP_TOP_UNKNOWN;
	return (double)(is - was) * (double)GP_NS_PER_S / (double)over_ns;
}

/* Run time is sampled and may be counted late, so that it exceeds the interval: limited to 1. */
static double share(uint64_t was, uint64_t is, uint64_t over_ns)
{
	double part = rate(was, is, over_ns) / (double)GP_NS_PER_S;

	return part < 0 ? GP_TOP_UNKNOWN : part > 1 ? 1 : part;
}

static uint64_t between(uint64_t was_ns, uint64_t is_ns)
{
	return is_ns > was_ns ? is_ns - was_ns : 0;
}

static double share_since(const struct gp_top_sample *m, const struct gp_top_task *t)
{
	const struct gp_top_task *was = find_task(m, t);

	if (!was || !was->run_known || !t->run_known)
		return GP_TOP_UNKNOWN;
	return share(was->run_ns, t->run_ns, between(was->at_ns, t->at_ns));
}

static void rate_task(struct gp_top_task *t, const struct gp_top_sample *second,
		      const struct gp_top_sample *recent)
{
	const struct gp_top_task *was = find_task(second, t);

	t->share = share_since(second, t);
	t->recent_share = share_since(recent, t);
	if (t->recent_share < 0) /* a new task */
		t->recent_share = t->share;
	if (was)
		t->preemptions_per_s =
			rate(was->preemptions, t->preemptions, between(was->at_ns, t->at_ns));
}

static void rate_device(struct gp_top_device *d, const struct gp_top_sample *second)
{
	const struct gp_top_device *was = find_device(second, d->number);
	uint64_t over_ns = was ? between(was->at_ns, d->at_ns) : 0;

	if (!was)
		return;
	if (was->busy_known && d->busy_known)
		d->busy = share(was->busy_ns, d->busy_ns, over_ns);
	d->preemptions_per_s = rate(was->preemptions, d->preemptions, over_ns);
	if (was->inversions_known && d->inversions_known)
		d->inversions_per_s = rate(was->inversions, d->inversions, over_ns);
}

/* The newest sample that is at least age_ns old, else the oldest; NULL: none. */
static const struct gp_top_sample *sample_before(const struct gp_top_history *history,
						 uint64_t now_ns, uint64_t age_ns)
{
	for (unsigned i = history->n; i-- > 0;)
		if (now_ns - history->sample[i].at_ns >= age_ns)
			return &history->sample[i];
	return history->n ? &history->sample[0] : NULL;
}

static void drop_oldest(struct gp_top_history *history)
{
	free(history->sample[0].task);
	free(history->sample[0].device);
	history->n--;
	memmove(&history->sample[0], &history->sample[1], history->n * sizeof history->sample[0]);
}

static void remember(struct gp_top_history *history, const struct gp_top_snapshot *snapshot,
		     uint64_t now_ns)
{
	struct gp_top_sample m = {.at_ns = now_ns};

	m.task = calloc(snapshot->ntasks + 1, sizeof *m.task);
	m.device = calloc(snapshot->ndevices + 1, sizeof *m.device);
	if (m.task && snapshot->ntasks) {
		memcpy(m.task, snapshot->task, snapshot->ntasks * sizeof *m.task);
		m.ntasks = snapshot->ntasks;
	}
	if (m.device && snapshot->ndevices) {
		memcpy(m.device, snapshot->device, snapshot->ndevices * sizeof *m.device);
		m.ndevices = snapshot->ndevices;
	}
	history->sample[history->n++] = m;
}

void gp_top_history_add(struct gp_top_history *history, struct gp_top_snapshot *snapshot,
			uint64_t now_ns)
{
	const struct gp_top_sample *second = sample_before(history, now_ns, SECOND_NS);
	const struct gp_top_sample *recent = sample_before(history, now_ns, RECENT_NS);

	for (unsigned i = 0; i < snapshot->ntasks; i++)
		rate_task(&snapshot->task[i], second, recent);
	for (unsigned i = 0; i < snapshot->ndevices; i++)
		rate_device(&snapshot->device[i], second);
	/* Keeps one sample that is at least RECENT_NS old. */
	while (history->n >= GP_TOP_HISTORY ||
	       (history->n > 1 && now_ns - history->sample[1].at_ns >= RECENT_NS))
		drop_oldest(history);
	remember(history, snapshot, now_ns);
}

void gp_top_history_clear(struct gp_top_history *history)
{
	while (history->n)
		drop_oldest(history);
}
