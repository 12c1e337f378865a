/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt trace: records a timeline of the daemon's tasks, for Perfetto. Samples of all tasks give
 * the state and the GPU time between samples; events give the exact times of holds and releases.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/table.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "cli/lib/stop.h"
#include "cli/lib/trace_file.h"

struct track_task {
	uint64_t device, task;
	struct gp_track at;
	char label[64]; /* "train.py 4712" */
	char state[16]; /* as last sampled; "" = nothing to draw */
	uint64_t state_ns;
	bool held;
	uint64_t held_ns; /* since when */
	bool run_known;
	uint64_t run_ns, run_at_ns; /* at the last sample, and the time of that */
};

struct tracks {
	struct gp_trace_file file;
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; times in the file are relative to begin_ns */
	struct json_object *devices; /* borrowed */
	struct gp_track *device;     /* owned; as many as devices */
	struct gp_table index;       /* device and task to the index in `task` */
	struct track_task *task;     /* owned */
	unsigned n, capacity;
	uint64_t samples, events, lost;
};

/* 0 or -errno with a message. The caller closes it in any case. */
static int open_tracks(struct tracks *t, const char *path, struct json_object *devices,
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
static const struct gp_track *device_track(const struct tracks *t, uint64_t device)
{
	for (size_t i = 0; i < json_object_array_length(t->devices); i++)
		if (gp_field_number_or(json_object_array_get_idx(t->devices, i), "device", i) ==
		    device)
			return &t->device[i];
	return NULL;
}

static uint64_t since_begin(const struct tracks *t, uint64_t ns)
{
	return ns > t->begin_ns ? ns - t->begin_ns : 0;
}

static struct track_task *add_task(struct tracks *t, struct json_object *from, uint64_t key)
{
	const char *name = gp_field_text(from, "name"), *class = gp_field_text(from, "class");
	uint64_t device = gp_field_number_or(from, "device", 0);
	const struct gp_track *at = device_track(t, device);
	struct track_task *k;
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
	*k = (struct track_task){.device = device,
				 .task = gp_field_number_or(from, "task", 0),
				 .at = {at->pid, t->file.next++}};
	snprintf(k->label, sizeof k->label, "%s %llu", name ? name : "?",
		 (unsigned long long)gp_field_number_or(from, "pid", 0));
	snprintf(text, sizeof text, "%s (%s)", k->label, class ? class : "?");
	gp_trace_name(&t->file, k->at, "thread", text);
	return k;
}

/* The task of a sample or an event; added if it is new. NULL: it names no task. */
static struct track_task *find_task(struct tracks *t, struct json_object *from)
{
	uint64_t task, key, ref;

	if (!gp_field_number(from, "task", &task) || !gp_field(from, "pid"))
		return NULL;
	key = gp_field_number_or(from, "device", 0) << 48 ^ task;
	return gp_table_get(&t->index, key, &ref) ? &t->task[ref] : add_task(t, from, key);
}

static void end_state(struct tracks *t, struct track_task *k, uint64_t now_ns)
{
	if (*k->state && now_ns > k->state_ns)
		gp_trace_span(&t->file, k->at, "state", k->state, since_begin(t, k->state_ns),
			      since_begin(t, now_ns));
	*k->state = 0;
	k->state_ns = now_ns;
}

static void end_hold(struct tracks *t, struct track_task *k, uint64_t now_ns)
{
	char name[80];

	if (!k->held)
		return;
	k->held = false;
	snprintf(name, sizeof name, "%s held", k->label);
	gp_trace_overlapping(&t->file, k->at, "hold", name, since_begin(t, k->held_ns),
			     since_begin(t, now_ns > k->held_ns ? now_ns : k->held_ns));
}

static void begin_hold(struct tracks *t, struct track_task *k, uint64_t now_ns)
{
	end_state(t, k, now_ns);
	if (!k->held)
		k->held_ns = now_ns;
	k->held = true;
}

/* Adds the share since the last sample to the curve. Returns it in percent; 0 if it is not known.
 */
static double sample_run(struct tracks *t, struct track_task *k, struct json_object *task,
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
static void sample_state(struct tracks *t, struct track_task *k, struct json_object *task,
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

/* Adds a sample of all tasks. */
static void add_sample(struct tracks *t, struct json_object *tasks, uint64_t now_ns)
{
	for (size_t i = 0; i < json_object_array_length(tasks); i++) {
		struct json_object *task = json_object_array_get_idx(tasks, i);
		struct track_task *k = find_task(t, task);

		if (!k)
			continue;
		sample_state(t, k, task, sample_run(t, k, task, now_ns), now_ns);
	}
	t->samples++;
}

/* Rare events, and events without a task, are instants on the track of the scheduler or task. */
static void put_moment(struct tracks *t, const struct track_task *k, struct json_object *event,
		       const char *kind, uint64_t now_ns)
{
	const struct gp_track *at =
		k ? &k->at : device_track(t, gp_field_number_or(event, "device", 0));
	const char *policy = gp_field_text(event, "policy");
	char name[96];

	snprintf(name, sizeof name, "%s%s%s", kind, policy ? " " : "", policy ? policy : "");
	if (at)
		gp_trace_moment(&t->file, *at, "event", name, since_begin(t, now_ns));
}

/* Adds a notification of the daemon. */
static void add_event(struct tracks *t, struct json_object *notification)
{
	const char *method = gp_field_text(notification, "method");
	struct json_object *event = gp_field(notification, "params");
	const char *kind = gp_field_text(event, "event");
	struct track_task *k;
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

/* Ends all open spans. 0 or -errno with a message: the file may be incomplete. */
static int close_tracks(struct tracks *t, uint64_t now_ns, struct gp_error *err)
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

static struct {
	const char *path;
	uint64_t for_ns, every_ns;
	bool json;
} env = {.for_ns = 5 * GP_NS_PER_S, .every_ns = 10 * GP_NS_PER_MS};

static const struct gp_option options[] = {
	{"for", 'f', "TIME", "Record for this time, as 500ms, 5s (the default), 2m",
	 .time_ns = &env.for_ns},
	{"every", 'e', "TIME", "Interval between samples of the tasks (10ms)",
	 .time_ns = &env.every_ns, .min = GP_NS_PER_MS},
	{"json", 'j', NULL, "Write the summary as JSON", .flag = &env.json},
	{0},
};

static void take_file(struct argp_state *state, char *arg)
{
	if (env.path)
		argp_error(state, "give one file; '%s' is one too many", arg);
	env.path = arg;
}

static void check(struct argp_state *state)
{
	if (!env.path)
		argp_error(state, "give a file: gpreempt trace --for 5s out.json");
}

static int take_events(struct gp_client *client, struct tracks *tracks, struct gp_error *err)
{
	struct json_object *event;
	int r;

	while (!(r = gp_client_next(client, 0, &event, err))) {
		add_event(tracks, event);
		json_object_put(event);
	}
	return r == -EAGAIN ? 0 : r;
}

static int take_sample(struct gp_client *client, struct tracks *tracks, struct gp_error *err)
{
	struct json_object *tasks;
	int r = gp_ask_tasks(client, tracks->devices, &tasks, err);

	if (r)
		return r;
	add_sample(tracks, tasks, gp_monotonic_ns());
	json_object_put(tasks);
	return 0;
}

/* Waits until `until_ns`, a signal, or an event. */
static void wait_for_events(struct gp_client *client, uint64_t until_ns)
{
	uint64_t now_ns = gp_monotonic_ns();
	struct timespec left = gp_timespec(until_ns > now_ns ? until_ns - now_ns : 0);
	struct pollfd p[2] = {{.fd = gp_stop_fd(), .events = POLLIN},
			      {.fd = gp_client_fd(client), .events = POLLIN}};

	ppoll(p, 2, &left, NULL);
}

static int record(struct gp_client *client, struct tracks *tracks, struct gp_error *err)
{
	uint64_t next_ns = gp_time_add(tracks->begin_ns, env.every_ns), now_ns;
	/* The first sample comes before the events: they refer to its tasks. */
	int r = take_sample(client, tracks, err);

	while (!r && (now_ns = gp_monotonic_ns()) < tracks->end_ns && !gp_stop_asked()) {
		r = take_events(client, tracks, err);
		if (!r && now_ns >= next_ns) {
			r = take_sample(client, tracks, err);
			/* A slow daemon is not asked more often than it answers. */
			next_ns = gp_monotonic_ns() + env.every_ns;
			gp_progress("%llu samples, %llu events",
				    (unsigned long long)tracks->samples,
				    (unsigned long long)tracks->events);
		}
		if (!r)
			wait_for_events(client,
					next_ns < tracks->end_ns ? next_ns : tracks->end_ns);
	}
	gp_progress_end();
	return r ? r : take_events(client, tracks, err);
}

static void print_summary(const struct tracks *t, uint64_t took_ns)
{
	if (env.json) {
		struct json_object *o = json_object_new_object();

		gp_field_put_text(o, "file", env.path);
		gp_field_put(o, "for_ns", took_ns);
		gp_field_put(o, "devices", json_object_array_length(t->devices));
		gp_field_put(o, "tasks", t->n);
		gp_field_put(o, "samples", t->samples);
		gp_field_put(o, "events", t->events);
		gp_field_put(o, "lost", t->lost);
		gp_print_json_once(o);
		return;
	}
	printf("%s: %s, tasks %u, events %llu, samples %llu; open it in ui.perfetto.dev\n",
	       env.path, gp_cli_duration(took_ns).text, t->n, (unsigned long long)t->events,
	       (unsigned long long)t->samples);
	if (t->lost)
		printf("%llu events are missing: this program was too slow to read them\n",
		       (unsigned long long)t->lost);
}

/* The file is written also if the daemon ends early. */
static int trace(struct gp_client *client, struct json_object *devices, uint64_t begin_ns,
		 struct gp_error *err)
{
	struct tracks tracks = {.begin_ns = begin_ns, .end_ns = gp_time_add(begin_ns, env.for_ns)};
	uint64_t now_ns;
	int r, closed;

	r = open_tracks(&tracks, env.path, devices, err);
	if (!r)
		r = record(client, &tracks, err);
	now_ns = gp_monotonic_ns();
	now_ns = now_ns < tracks.end_ns ? now_ns : tracks.end_ns;
	closed = close_tracks(&tracks, now_ns, err);
	r = r ? r : closed;
	if (!r)
		print_summary(&tracks, now_ns - begin_ns);
	return r;
}

static int run(struct gp_error *err)
{
	struct json_object *devices = NULL;
	struct gp_client *client = NULL;
	uint64_t begin_ns;
	int r;

	gp_stop_open();
	r = gp_client_connect(NULL, &client, err);
	begin_ns = gp_monotonic_ns(); /* no recorded event is earlier */
	if (!r)
		r = gp_client_call(client, "subscribe", NULL, NULL, err);
	if (!r)
		r = gp_ask_devices(client, &devices, err);
	if (!r)
		r = trace(client, devices, begin_ns, err);
	json_object_put(devices);
	gp_client_close(client);
	return r;
}

const struct gp_verb gp_verb_trace = {
	.name = "trace",
	.summary = "record a timeline of the daemon's tasks, for Perfetto",
	.arguments = "FILE.json",
	.argument = take_file,
	.options = options,
	.check = check,
	.doc = "Write a timeline of the daemon's tasks for Perfetto and Chrome: a track for each "
	       "device and task, holds, what ran, and what the daemon did.\v"
	       "Examples:\n"
	       "  gpreempt trace --for 5s out.json\n"
	       "  gpreempt trace --for 500ms --every 2ms out.json\n",
	.run = run,
};
