/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt schedule: schedules running processes in the foreground, without a daemon. At the end
 * all of them are put back as they were.
 */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/process.h"
#include "cli/lib/attrs.h"
#include "cli/cli.h"
#include "cli/lib/fields.h"
#include "cli/verb/schedule.h"
#include "cli/lib/stop.h"
#include "hold/devices.h"
#include "hold/replay.h"

static struct gp_schedule env;

static const struct argp_option options[] = {
	{"lc", 'l', "PID[:QUEUE]", 0, "A latency-critical process, or one queue of it", 0},
	{"be", 'b', "PID[:QUEUE]", 0, "A best-effort process, or one queue of it", 0},
	{"policy", 'p', "NAME[:PARAM=VALUE...]", 0, "Policy (default: priority)", 0},
	{"for", 'f', "TIME", 0,
	 "End after this time, such as 500ms, 10s or 5m (default: at Ctrl-C)", 0},
	{"force", 'F', NULL, 0, "Also for servers that work for many programs", 0},
	{"json", 'j', NULL, 0, "Write the statistics as JSON", 0},
	{0},
};

static void add_named(struct argp_state *state, const char *text, uint8_t class)
{
	struct gp_named *n = &env.named[env.nnamed];
	const char *colon = strchr(text, ':');
	char pid[16];
	uint64_t number, queue = GP_QUEUE_ALL;

	if (env.nnamed == GP_NAMED_MAX)
		argp_error(state, "at most %d processes", GP_NAMED_MAX);
	snprintf(pid, sizeof pid, "%.*s", colon ? (int)(colon - text) : 15, text);
	if (!gp_cli_number(pid, INT32_MAX, &number) || !number)
		argp_error(state, "'%s' is not a process id", text);
	if (colon && !gp_cli_number(colon + 1, GP_QUEUE_ALL - 1, &queue))
		argp_error(state, "'%s' is not a queue: see gpreempt queues %s", colon + 1, pid);
	for (unsigned i = 0; i < env.nnamed; i++)
		if (env.named[i].pid == (pid_t)number && env.named[i].queue == queue)
			argp_error(state, "%s is named twice", text);
	*n = (struct gp_named){
		.pid = (pid_t)number, .queue = (uint32_t)queue, .attr = GP_TASK_ATTR_DEFAULT};
	n->attr.class = class;
	env.nnamed++;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct gp_error err = {0};

	switch (key) {
	case 'l': add_named(state, arg, GP_LATENCY_CRITICAL); break;
	case 'b': add_named(state, arg, GP_BEST_EFFORT); break;
	case 'p':
		if (gp_policy_parse(arg, &env.policy, &err))
			argp_error(state, "%s", err.text);
		break;
	case 'f':
		if (!gp_cli_duration_parse(arg, &env.for_ns))
			argp_error(state, "--for takes a time such as 500ms, 10s or 5m, not '%s'",
				   arg);
		break;
	case 'F': env.force = true; break;
	case 'j': env.json = true; break;
	case ARGP_KEY_ARG: argp_error(state, "'%s': give it with --lc or --be", arg); break;
	case ARGP_KEY_END:
		if (!env.nnamed)
			argp_error(state, "give processes: --lc PID and --be PID");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static error_t parse_attr(int key, char *arg, struct argp_state *state)
{
	return gp_attr_parse(key, arg, state, env.nnamed ? &env.named[env.nnamed - 1].attr : NULL);
}

/* Checks that every named process has queues on some device. */
static int check_found(struct gp_error *err)
{
	for (unsigned i = 0; i < env.nnamed; i++) {
		const struct gp_named *n = &env.named[i];

		if (n->found)
			continue;
		if (n->queue != GP_QUEUE_ALL)
			return gp_fail(err, -ESRCH, "process %d has no compute queue %u", n->pid,
				       n->queue);
		return gp_fail(err, -ESRCH, "process %d has no compute queues on any GPU", n->pid);
	}
	return 0;
}

/* Keeps the devices that have one of the processes, and closes the rest. Their number or -errno. */
static int keep_devices(struct gp_scheduled *list, const struct gp_devices *devices,
			struct gp_undo_file *undo, struct gp_error *err)
{
	int n = 0, r = 0;

	for (unsigned i = 0; i < devices->n; i++) {
		struct gp_gpu *gpu = devices->device[i].gpu;
		int found = r < 0 ? 0 : gp_schedule_find(&env, gpu, undo, err);

		if (found > 0)
			list[n++] = (struct gp_scheduled){.what = &env, .gpu = gpu, .undo = undo};
		else
			gpu->ops->close(gpu);
		r = found < 0 ? found : r;
	}
	if (!r)
		r = check_found(err);
	return r < 0 ? r : n;
}

static bool any_left(void)
{
	for (unsigned i = 0; i < env.nnamed; i++)
		if (gp_process_start_time(env.named[i].pid) == env.named[i].start_time)
			return true;
	return false;
}

/* The reason why a device thread ended by itself; 0 = all run. */
static int is_over(const struct gp_scheduled *list)
{
	for (const struct gp_scheduled *s = list; s->gpu; s++)
		if (s->over)
			return s->over;
	return 0;
}

/* Waits for a signal, the end of the time, or the end of all named processes. 0 or -errno. */
static int wait_for_end(const struct gp_scheduled *list, unsigned devices, int ready_fd)
{
	uint64_t end_ns = env.for_ns ? gp_monotonic_ns() + env.for_ns : GP_NEVER;
	unsigned ready = 0;

	while (any_left() && gp_monotonic_ns() < end_ns) {
		struct pollfd p[2] = {{.fd = gp_stop_fd(), .events = POLLIN},
				      {.fd = ready_fd, .events = POLLIN}};
		uint64_t left_ns = end_ns - gp_monotonic_ns();
		int over = is_over(list);
		eventfd_t more;

		if (over == 1)
			fputs("gpreempt: another process released all tasks (gpreempt resume)\n",
			      stderr);
		if (over)
			return over < 0 ? over : 0;
		poll(p, 2, left_ns < 50 * GP_NS_PER_MS ? (int)(left_ns / GP_NS_PER_MS) : 50);
		if (p[0].revents)
			break;
		if (!p[1].revents || eventfd_read(ready_fd, &more))
			continue;
		ready += (unsigned)more;
		if (ready == devices && !env.json) {
			puts("ready");
			fflush(stdout);
		}
	}
	return 0;
}

/*
 * Releases all tasks before anything is written, because a reader of the output may block this
 * program. Then replays the records: a task that could not be put back keeps its record, and the
 * caller gets the error.
 */
static int end_all(struct gp_scheduled *list, struct gp_undo_file *undo, int started,
		   bool with_stats, struct gp_error *err)
{
	struct json_object *json = with_stats && env.json ? json_object_new_array() : NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *out = with_stats ? open_memstream(&text, &size) : NULL;
	int r;

	for (int i = 0; i < GP_DEVICES_MAX && list[i].gpu; i++) {
		if (i < started)
			pthread_join(list[i].thread, NULL);
		if (out)
			gp_schedule_report(&list[i], out, json);
		if (list[i].engine)
			gp_engine_free(list[i].engine);
		list[i].gpu->ops->close(list[i].gpu);
	}
	r = gp_records_settle(undo, err);
	if (out)
		fclose(out);
	if (json)
		gp_print_json_once(json);
	else if (out)
		fputs(text, stdout);
	free(text);
	return r;
}

/* Exact activity is needed only where best-effort tasks take turns. */
static bool can_be_quiet(void)
{
	unsigned lc = 0;

	for (unsigned i = 0; i < env.nnamed; i++)
		lc += env.named[i].attr.class == GP_LATENCY_CRITICAL;
	/* Other policies use run times. */
	return env.policy.ops == &gp_policy_priority && lc && env.nnamed - lc <= 1;
}

static int schedule(struct gp_scheduled *list, struct gp_error *err)
{
	struct gp_devices devices;
	struct gp_undo_file *undo;
	int ready_fd, stop_fd, n,
		started = 0, ended,
		r = gp_devices_open(&devices, can_be_quiet() ? GP_OPEN_QUIET : 0, err);

	if (r)
		return r;
	r = gp_undo_open(&undo, true, err);
	if (r) {
		gp_devices_close(&devices);
		return r;
	}
	ready_fd = eventfd(0, EFD_CLOEXEC);
	stop_fd = eventfd(0, EFD_CLOEXEC);
	gp_records_replay_dead(undo);
	n = keep_devices(list, &devices, undo, err);
	r = n < 0 ? n : 0;
	for (int i = 0; !r && i < n; i++) {
		list[i].ready_fd = ready_fd;
		list[i].stop_fd = stop_fd;
		list[i].epoch = gp_undo_epoch(undo);
		r = gp_schedule_begin(&list[i], err);
		started += !r;
	}
	if (!r)
		r = wait_for_end(list, (unsigned)n, ready_fd);
	eventfd_write(stop_fd, 1);
	ended = end_all(list, undo, started, started == n, err);
	gp_undo_close(undo);
	close(ready_fd);
	close(stop_fd);
	return r ? gp_fail(err, r, "the GPU is lost: %s", gp_error_name(r)) : ended;
}

static int run(int argc, char **argv)
{
	static const struct argp attrs = {.options = gp_attr_options, .parser = parse_attr};
	static const struct argp_child children[] = {
		{.argp = &attrs, .header = "Attributes of the preceding process:", .group = 1},
		{0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = children,
		.doc = "Schedule running GPU processes until Ctrl-C, without a daemon. Then all of "
		       "them are put back as they were.\v"
		       "A service beside two training jobs, all of them unmodified:\n"
		       "  gpreempt schedule --lc 4711 --be 4712 --be 4713\n"
		       "A busy service with a deadline of 3 ms for each request:\n"
		       "  gpreempt schedule --policy qos --lc 4711 --deadline 3ms --budget 200us "
		       "--be "
		       "4712\n\n"
		       "Prints `ready` when the first plan is in force, and statistics at the end. "
		       "If it is killed, gpreempt resume --all puts everything back.\n",
	};
	static struct gp_scheduled list[GP_DEVICES_MAX + 1];
	struct gp_error err = {0};

	gp_policy_defaults(&gp_policy_priority, &env.policy);
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	gp_stop_open(); /* before the first thread starts */
	if (schedule(list, &err))
		return gp_cli_fail(&err);
	for (unsigned i = 0; i < GP_DEVICES_MAX; i++)
		if (list[i].failed)
			return GP_EXIT_FAILED; /* the reason was printed when it happened */
	return GP_EXIT_DONE;
}

const struct gp_verb gp_verb_schedule = {
	.name = "schedule",
	.summary = "schedule running processes: latency-critical before best-effort",
	.run = run,
};
