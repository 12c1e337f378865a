/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt trace: records a timeline of the daemon's tasks, for Perfetto. */
#include <argp.h>
#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/ask/ask.h"
#include "cli/ask/trace_tracks.h"
#include "cli/lib/progress.h"
#include "cli/lib/stop.h"
#include "cli/lib/targets.h"

#define EVERY_MIN_NS GP_NS_PER_MS

static struct {
	const char *path;
	uint64_t for_ns, every_ns;
	bool json;
} env = {.for_ns = 5 * GP_NS_PER_S, .every_ns = 10 * GP_NS_PER_MS};

static const struct argp_option options[] = {
	{"for", 'f', "TIME", 0, "Record for this time, as 500ms, 5s (the default), 2m", 0},
	{"every", 'e', "TIME", 0, "Interval between samples of the tasks (10ms)", 0},
	{"json", 'j', NULL, 0, "Write the summary as JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'f': env.for_ns = gp_option_duration(state, "--for", arg); break;
	case 'e':
		env.every_ns = gp_option_duration(state, "--every", arg);
		if (env.every_ns < EVERY_MIN_NS)
			argp_error(state, "--every takes 1ms or more");
		break;
	case 'j': env.json = true; break;
	case ARGP_KEY_ARG:
		if (env.path)
			argp_error(state, "give one file; '%s' is one too many", arg);
		env.path = arg;
		break;
	case ARGP_KEY_END:
		if (!env.path)
			argp_error(state, "give a file: gpreempt trace --for 5s out.json");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int take_events(struct gp_client *client, struct gp_tracks *tracks, struct gp_error *err)
{
	struct json_object *event;
	int r;

	while (!(r = gp_client_next(client, 0, &event, err))) {
		gp_tracks_event(tracks, event);
		json_object_put(event);
	}
	return r == -EAGAIN ? 0 : r;
}

static int take_sample(struct gp_client *client, struct gp_tracks *tracks, struct gp_error *err)
{
	struct json_object *tasks;
	int r = gp_ask_tasks(client, tracks->devices, 0, &tasks, err);

	if (r)
		return r;
	gp_tracks_sample(tracks, tasks, gp_monotonic_ns());
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

static int record(struct gp_client *client, struct gp_tracks *tracks, struct gp_error *err)
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

static void print_summary(const struct gp_tracks *t, uint64_t took_ns)
{
	char duration[32];

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
	       env.path, gp_cli_duration(duration, sizeof duration, took_ns), t->n,
	       (unsigned long long)t->events, (unsigned long long)t->samples);
	if (t->lost)
		printf("%llu events are missing: this program was too slow to read them\n",
		       (unsigned long long)t->lost);
}

/* The file is written also if the daemon ends early. */
static int trace(struct gp_client *client, struct json_object *devices, uint64_t begin_ns,
		 struct gp_error *err)
{
	struct gp_tracks tracks = {.begin_ns = begin_ns,
				   .end_ns = gp_time_add(begin_ns, env.for_ns)};
	uint64_t now_ns;
	int r, closed;

	r = gp_tracks_open(&tracks, env.path, devices, err);
	if (!r)
		r = record(client, &tracks, err);
	now_ns = gp_monotonic_ns();
	now_ns = now_ns < tracks.end_ns ? now_ns : tracks.end_ns;
	closed = gp_tracks_close(&tracks, now_ns, err);
	r = r ? r : closed;
	if (!r)
		print_summary(&tracks, now_ns - begin_ns);
	return r;
}

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "FILE.json",
		.doc = "Write a timeline of the daemon's tasks for Perfetto and Chrome: a track "
		       "for "
		       "each device and task, holds, what ran, and what the daemon did.\v"
		       "Examples:\n"
		       "  gpreempt trace --for 5s out.json\n"
		       "  gpreempt trace --for 500ms --every 2ms out.json\n",
	};
	struct json_object *devices = NULL;
	struct gp_client *client = NULL;
	struct gp_error err = {0};
	uint64_t begin_ns;
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	gp_stop_open();
	r = gp_client_connect(NULL, &client, &err);
	begin_ns = gp_monotonic_ns(); /* no recorded event is earlier */
	if (!r)
		r = gp_ask(client, "subscribe", NULL, NULL, &err);
	if (!r)
		r = gp_ask_devices(client, &devices, &err);
	if (!r)
		r = trace(client, devices, begin_ns, &err);
	json_object_put(devices);
	gp_client_close(client);
	return r ? gp_cli_fail(&err) : GP_EXIT_DONE;
}

const struct gp_verb gp_verb_trace = {
	.name = "trace",
	.summary = "record a timeline of the daemon's tasks, for Perfetto",
	.run = run,
};
