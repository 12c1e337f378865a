/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask/trace_tracks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int gp_tracks_open(struct gp_tracks *t, const char *path, struct json_object *devices,
		   struct gp_error *err)
{
	size_t n = json_object_array_length(devices);
	int r = gp_trace_file_open(&t->file, path, err);

	if (r)
		return r;
	t->devices = devices;
	t->device = calloc(n + 1, sizeof *t->device);
	if (!t->device)
		return gp_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < n; i++) {
		struct json_object *d = json_object_array_get_idx(devices, i);
		const char *name = gp_field_text(d, "name");
		char text[128];

		snprintf(text, sizeof text, "device %llu: %s",
			 (unsigned long long)gp_field_number_or(d, "device", i), name ? name : "?");
		t->device[i] = (struct gp_track){t->file.next, t->file.next};
		t->file.next++;
		gp_trace_name(&t->file, t->device[i], "process", text);
		gp_trace_name(&t->file, t->device[i], "thread", "scheduler");
	}
	return 0;
}

/* The track of a device; NULL: there is no such device. */
static const struct gp_track *device_track(const struct gp_tracks *t, uint64_t device)
{
	for (size_t i = 0; i < json_object_array_length(t->devices); i++)
		if (gp_field_number_or(json_object_array_get_idx(t->devices, i), "device", i) ==
		    device)
			return &t->device[i];
	return NULL;
}

static uint64_t since_begin(const struct gp_tracks *t, uint64_t ns)
{
	return ns > t->begin_ns ? ns - t->begin_ns : 0;
}

static struct gp_track_task *add_task(struct gp_tracks *t, struct json_object *from, uint64_t key)
{
	const char *name = gp_field_text(from, "name"), *class = gp_field_text(from, "class");
	uint64_t device = gp_field_number_or(from, "device", 0);
	const struct gp_track *at = device_track(t, device);
	struct gp_track_task *k;
	char text[96];

	if (t->n == t->capacity) {
		unsigned capacity = t->capacity ? 2 * t->capacity : 64;

		k = realloc(t->task, capacity * sizeof *k);
		if (!k)
			return NULL;
		t->task = k;
		t->capacity = capacity;
	}
	if (!at || gp_table_put(&t->index, key, t->n))
		return NULL;
	k = &t->task[t->n++];
	*k = (struct gp_track_task){.device = device,
				    .task = gp_field_number_or(from, "task", 0),
				    .at = {at->pid, t->file.next++}};
	snprintf(k->label, sizeof k->label, "%s %llu", name ? name : "?",
		 (unsigned long long)gp_field_number_or(from, "pid", 0));
	snprintf(text, sizeof text, "%s (%s)", k->label, class ? class : "?");
	gp_trace_name(&t->file, k->at, "thread", text);
	return k;
}

/* The task of a sample or an event; added if it is new. NULL: it names no task. */
static struct gp_track_task *find_task(struct gp_tracks *t, struct json_object *from)
{
	uint64_t task, key, ref;

	if (!gp_field_number(from, "task", &task) || !gp_field(from, "pid"))
		return NULL;
	key = gp_field_number_or(from, "device", 0) << 48 ^ task;
	return gp_table_get(&t->index, key, &ref) ? &t->task[ref] : add_task(t, from, key);
}

static void end_state(struct gp_tracks *t, struct gp_track_task *k, uint64_t now_ns)
{
	if (*k->state && now_ns > k->state_ns)
		gp_trace_span(&t->file, k->at, "state", k->state, since_begin(t, k->state_ns),
			      since_begin(t, now_ns));
	*k->state = 0;
	k->state_ns = now_ns;
}

static void end_hold(struct gp_tracks *t, struct gp_track_task *k, uint64_t now_ns)
{
	char name[80];

	if (!k->held)
		return;
	k->held = false;
	snprintf(name, sizeof name, "%s held", k->label);
	gp_trace_overlapping(&t->file, k->at, "hold", name, since_begin(t, k->held_ns),
			     since_begin(t, now_ns > k->held_ns ? now_ns : k->held_ns));
}

static void begin_hold(struct gp_tracks *t, struct gp_track_task *k, uint64_t now_ns)
{
	end_state(t, k, now_ns);
	if (!k->held)
		k->held_ns = now_ns;
	k->held = true;
}

/* Adds the share since the last sample to the curve. Returns it in percent; 0 if it is not known.
 */
static double sample_run(struct gp_tracks *t, struct gp_track_task *k, struct json_object *task,
			 uint64_t now_ns)
{
	double percent = 0;
	uint64_t run_ns;
	char name[80];

	if (!gp_field_number(task, "run_ns", &run_ns))
		return 0;
	if (k->run_known && now_ns > k->run_at_ns && run_ns >= k->run_ns) {
		percent = 100.0 * (double)(run_ns - k->run_ns) / (double)(now_ns - k->run_at_ns);
		percent = percent < 100 ? percent : 100;
		snprintf(name, sizeof name, "%s GPU %%", k->label);
		gp_trace_value(&t->file, k->at, name, since_begin(t, k->run_at_ns), percent);
	}
	k->run_known = true;
	k->run_ns = run_ns;
	k->run_at_ns = now_ns;
	return percent;
}

/* The daemon takes snapshots at events, when a task has just been interrupted. So a task that ran
 * for most of the time since the last sample is drawn as running. */
static void sample_state(struct gp_tracks *t, struct gp_track_task *k, struct json_object *task,
			 double percent, uint64_t now_ns)
{
	static const char *const drawn[] = {"running", "waiting", "active"};
	const char *state = gp_field_text(task, "state");
	bool held = state && (!strcmp(state, "held") || !strcmp(state, "suspended"));

	/* Events are exact, and a sample may be older than the last event. */
	if (held && !k->held && !t->samples)
		begin_hold(t, k, t->begin_ns);
	if (percent >= 50)
		state = "running";
	if (k->held || held || !state || !strcmp(state, k->state))
		return;
	end_state(t, k, now_ns);
	for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
		if (!strcmp(state, drawn[i]))
			snprintf(k->state, sizeof k->state, "%s", state);
}

void gp_tracks_sample(struct gp_tracks *t, struct json_object *tasks, uint64_t now_ns)
{
	for (size_t i = 0; i < json_object_array_length(tasks); i++) {
		struct json_object *task = json_object_array_get_idx(tasks, i);
		struct gp_track_task *k = find_task(t, task);

		if (!k)
			continue;
		sample_state(t, k, task, sample_run(t, k, task, now_ns), now_ns);
	}
	t->samples++;
}

/* Rare events, and events without a task, are instants on the track of the scheduler or task. */
static void put_moment(struct gp_tracks *t, const struct gp_track_task *k,
		       struct json_object *event, const char *kind, uint64_t now_ns)
{
	const struct gp_track *at =
		k ? &k->at : device_track(t, gp_field_number_or(event, "device", 0));
	const char *policy = gp_field_text(event, "policy");
	char name[96];

	snprintf(name, sizeof name, "%s%s%s", kind, policy ? " " : "", policy ? policy : "");
	if (at)
		gp_trace_moment(&t->file, *at, "event", name, since_begin(t, now_ns));
}

void gp_tracks_event(struct gp_tracks *t, struct json_object *notification)
{
	const char *method = gp_field_text(notification, "method");
	struct json_object *event = gp_field(notification, "params");
	const char *kind = gp_field_text(event, "event");
	struct gp_track_task *k;
	uint64_t now_ns;

	if (method && !strcmp(method, "lost"))
		t->lost += gp_field_number_or(event, "count", 0);
	if (!kind || !gp_field_number(event, "mono_ns", &now_ns) || now_ns < t->begin_ns ||
	    now_ns > t->end_ns)
		return;
	t->events++;
	k = find_task(t, event);
	if (k && !strcmp(kind, "held")) {
		begin_hold(t, k, now_ns);
	} else if (k && !strcmp(kind, "released")) {
		end_hold(t, k, now_ns);
	} else {
		put_moment(t, k, event, kind, now_ns);
	}
	if (k && !strcmp(kind, "task_out")) {
		end_state(t, k, now_ns);
		end_hold(t, k, now_ns);
	}
}

int gp_tracks_close(struct gp_tracks *t, uint64_t now_ns, struct gp_error *err)
{
	for (unsigned i = 0; i < t->n; i++) {
		end_state(t, &t->task[i], now_ns);
		end_hold(t, &t->task[i], now_ns);
	}
	gp_table_free(&t->index);
	free(t->task);
	free(t->device);
	return gp_trace_file_close(&t->file, err);
}
