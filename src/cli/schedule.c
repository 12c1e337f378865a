/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt schedule: takes over the scheduling of running processes, in the foreground, until it is
 * told to end; then everything is as it was.
 */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/process.h"
#include "cli/attrs.h"
#include "cli/cli.h"
#include "cli/grid.h"
#include "cli/report.h"
#include "cli/stop.h"
#include "engine/drive.h"
#include "hold/devices.h"
#include "hold/records.h"
#include "undo/undo.h"

#define NAMED_MAX 256

/* A process, or one queue of it, that somebody gave a class. */
struct named {
	pid_t pid;
	uint32_t queue; /* or GP_QUEUE_ALL */
	struct gp_task_attr attr;
	bool found;
	uint64_t key; /* of its task: the pid may become another's */
	uint64_t start_time;
};

static struct {
	struct named named[NAMED_MAX];
	unsigned nnamed;
	struct gp_policy_choice policy;
	uint64_t for_ns;
	bool json;
	bool force;
} env;

/* A GPU with one of them. */
struct scheduled {
	struct gp_gpu *gpu;
	struct gp_engine *engine;
	struct gp_undo_file *undo;
	int slot[NAMED_MAX]; /* undo records that were written */
	unsigned nslots;
	uint64_t epoch;
	pthread_t thread;
	int stop_fd;
	int ready_fd;
	bool ready;
	bool complained; /* that something cannot be held */
	bool warned;     /* that somebody's work cannot be seen */
	bool failed;     /* nothing could be */
	atomic_int over; /* 0: it drives; 1: somebody else put everything back; -errno */
};

static const struct argp_option options[] = {
	{"lc", 'l', "PID[:QUEUE]", 0, "A latency-critical process, or one queue of it", 0},
	{"be", 'b', "PID[:QUEUE]", 0, "A best-effort process, or one queue of it", 0},
	{"policy", 'p', "NAME[:PARAM=VALUE...]", 0, "Policy (default: priority)", 0},
	{"for", 'f', "TIME", 0, "End after this time, as 500ms, 10s or 5m (default: Ctrl-C)", 0},
	{"force", 'F', NULL, 0, "Also servers whose queues run the work of many programs", 0},
	{"json", 'j', NULL, 0, "Write the statistics as JSON", 0},
	{0},
};

/* ---- arguments ---------------------------------------------------------------------------------
 */

static void add_named(struct argp_state *state, const char *text, uint8_t class)
{
	struct named *n = &env.named[env.nnamed];
	const char *colon = strchr(text, ':');
	char pid[16];
	uint64_t number, queue = GP_QUEUE_ALL;

	if (env.nnamed == NAMED_MAX)
		argp_error(state, "at most %d processes", NAMED_MAX);
	snprintf(pid, sizeof pid, "%.*s", colon ? (int)(colon - text) : 15, text);
	if (!gp_cli_number(pid, INT32_MAX, &number) || !number)
		argp_error(state, "'%s' is not a process id", text);
	if (colon && !gp_cli_number(colon + 1, GP_QUEUE_ALL - 1, &queue))
		argp_error(state, "'%s' is not a queue: see gpreempt queues %s", colon + 1, pid);
	for (unsigned i = 0; i < env.nnamed; i++)
		if (env.named[i].pid == (pid_t)number && env.named[i].queue == queue)
			argp_error(state, "%s is named twice", text);
	*n = (struct named){
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
			argp_error(state, "which processes? --lc PID and --be PID");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static error_t parse_attr(int key, char *arg, struct argp_state *state)
{
	return gp_attr_parse(key, arg, state, env.nnamed ? &env.named[env.nnamed - 1].attr : NULL);
}

/* ---- one device --------------------------------------------------------------------------------
 */

static const struct named *find_named(const struct gp_seen *seen)
{
	for (unsigned i = 0; i < env.nnamed; i++)
		if (env.named[i].found && env.named[i].key == seen->key)
			return &env.named[i];
	return NULL;
}

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	const struct named *n = find_named(seen);

	(void)arg;
	if (n)
		*attr = n->attr;
}

static int before_change(void *arg, const struct gp_undo *undo)
{
	struct scheduled *s = arg;
	int slot = gp_undo_put(s->undo, s->gpu->ops->name, undo);

	if (slot < 0)
		return slot;
	for (unsigned i = 0; i < s->nslots; i++)
		if (s->slot[i] == slot)
			return 0;
	if (s->nslots == NAMED_MAX)
		return -ENOSPC;
	s->slot[s->nslots++] = slot;
	return 0;
}

/* Whether somebody else took our records away: then everything runs, and shall. */
static bool is_resumed(const struct scheduled *s)
{
	struct gp_undo_entry e;

	if (gp_undo_epoch(s->undo) == s->epoch)
		return false;
	for (unsigned i = 0; i < s->nslots; i++)
		if (!gp_undo_get(s->undo, (unsigned)s->slot[i], &e) || e.holder != getpid())
			return true;
	return false;
}

/* Whether every named task that is there is as the plan wants it. */
static bool is_in_force(const struct gp_engine *e)
{
	const struct gp_plan *plan = gp_engine_plan(e);
	unsigned managed = 0;

	for (unsigned i = 0; i < gp_engine_tasks(e); i++) {
		struct gp_task_stats t;

		gp_engine_task_stats(e, i, &t);
		if (t.attr.class == GP_UNMANAGED)
			continue;
		managed++;
		if (plan->task[i].want == GP_HOLD ? !t.held
		                                  : t.held || t.slice_us != plan->task[i].slice_us)
			return false;
	}
	return managed;
}

/* Something failed and was never held: why, if the back end knows, is said once. */
static void complain(struct scheduled *s)
{
	for (unsigned i = 0; i < gp_engine_tasks(s->engine) && s->gpu->ops->why; i++) {
		struct gp_error why = {0};
		struct gp_task_stats t;

		gp_engine_task_stats(s->engine, i, &t);
		if (!t.failures || t.held_ns || t.attr.class == GP_UNMANAGED)
			continue;
		s->gpu->ops->why(s->gpu, t.handle, &why);
		if (!*why.text)
			continue;
		fprintf(stderr, "gpreempt: %s\n", why.text);
		s->complained = true;
	}
}

/* Nobody makes way for a service whose work cannot be seen. Said once, if the back end says why. */
static void warn(struct scheduled *s)
{
	const struct gp_view *view = gp_engine_view(s->engine);

	for (unsigned i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		struct gp_error why = {0};
		struct gp_task_stats stats;

		if (t->class != GP_LATENCY_CRITICAL || t->known & GP_KNOWN_ACTIVE)
			continue;
		gp_engine_task_stats(s->engine, i, &stats);
		s->gpu->ops->why(s->gpu, stats.handle, &why);
		if (!*why.text)
			continue;
		fprintf(stderr, "gpreempt: %s\n", why.text);
		s->warned = true;
	}
}

static int after_look(void *arg, uint64_t now_ns)
{
	struct scheduled *s = arg;

	(void)now_ns;
	if (is_resumed(s))
		return 1;
	if (!s->complained && gp_engine_stats(s->engine)->failures)
		complain(s);
	if (!s->warned && s->gpu->ops->why && gp_engine_policy(s->engine)->watches)
		warn(s);
	if (!s->ready && is_in_force(s->engine)) {
		s->ready = true;
		eventfd_write(s->ready_fd, 1);
	}
	return 0;
}

static void *drive(void *arg)
{
	struct scheduled *s = arg;

	s->over = gp_drive(s->engine, s->gpu, s->stop_fd, after_look, s);
	return NULL;
}

/* The task on a GPU that somebody named. */
static int find_task(struct gp_gpu *gpu, const struct named *n, struct gp_seen *seen,
                     struct gp_error *why)
{
	if (n->queue == GP_QUEUE_ALL)
		return gpu->ops->find(gpu, n->pid, seen, why);
	if (!gpu->ops->split)
		return gp_fail(why, -ENOTSUP,
		               "%s schedules whole processes only: name %d without a queue",
		               gpu->info.name, n->pid);
	return gpu->ops->split(gpu, n->pid, n->queue, seen, why);
}

/* Finds the named processes on a GPU. How many; `err` says why one could not be reached. */
static int find_tasks(struct gp_gpu *gpu, const struct gp_undo_file *undo, struct gp_error *err)
{
	int found = 0;

	for (unsigned i = 0; i < env.nnamed; i++) {
		struct named *n = &env.named[i];
		struct gp_error why = {0};
		struct gp_seen seen = {0};
		int r = find_task(gpu, n, &seen, &why);

		if (!r)
			r = gp_refuse_shared(&seen, n->pid, env.force,
			                     "runs the work of many programs; --force schedules "
			                     "all of them as one",
			                     &why);
		if (!r)
			r = gp_records_check_free(undo, seen.pid, seen.start_time, &why);
		if (!r) {
			n->found = true;
			n->key = seen.key;
			n->start_time = seen.start_time;
			found++;
		} else if (r != -ENODEV && r != -ENOENT) {
			return gp_fail(err, r, "%s", why.text);
		}
	}
	return found;
}

static int begin(struct scheduled *s, struct gp_error *err)
{
	struct gp_engine_config config = {
		.gpu = s->gpu,
		.classify = classify,
		.before_change = before_change,
		.arg = s,
		.decide_clock = &gp_clock_thread_cpu,
	};
	int r = gp_engine_new(&config, &s->engine);

	if (!r)
		r = gp_engine_set_policy(s->engine, gp_now_ns(&gp_clock_monotonic), &env.policy,
		                         err);
	if (!r)
		r = -pthread_create(&s->thread, NULL, drive, s);
	return r ? gp_fail(err, r, "cannot start: %s", gp_error_name(r)) : 0;
}

/* ---- statistics --------------------------------------------------------------------------------
 */

static void add_task(struct gp_grid *grid, const struct gp_task_stats *t)
{
	char text[24];

	gp_grid_cell(grid, "%d", t->pid);
	gp_grid_text(grid, gp_class_name(t->attr.class));
	gp_grid_text(grid, t->run_source != GP_RUN_UNKNOWN
	                           ? gp_cli_duration(text, sizeof text, t->run_ns)
	                           : NULL);
	gp_grid_cell_if(grid, t->scheduled, "%llu", (unsigned long long)t->scheduled);
	gp_grid_text(grid, gp_cli_duration(text, sizeof text, t->held_ns));
	gp_grid_cell(grid, "%llu", (unsigned long long)t->preemptions);
	gp_grid_cell(grid, "%llu", (unsigned long long)t->undone);
	gp_grid_text(grid, t->refused ? "refused" : NULL);
	gp_grid_text(grid, t->name);
}

static void json_task(FILE *out, const struct gp_task_stats *t, bool first)
{
	fprintf(out, "%s{\"pid\":%d,\"class\":\"%s\",\"name\":", first ? "" : ",", t->pid,
	        gp_class_name(t->attr.class));
	gp_json_string(out, t->name);
	if (t->run_source != GP_RUN_UNKNOWN)
		fprintf(out, ",\"run_ns\":%llu", (unsigned long long)t->run_ns);
	if (t->scheduled)
		fprintf(out, ",\"scheduled\":%llu", (unsigned long long)t->scheduled);
	fprintf(out,
	        ",\"held_ns\":%llu,\"preemptions\":%llu,\"failures\":%llu,"
	        "\"undone\":%llu,\"refused\":%s}",
	        (unsigned long long)t->held_ns, (unsigned long long)t->preemptions,
	        (unsigned long long)t->failures, (unsigned long long)t->undone,
	        t->refused ? "true" : "false");
}

static void print_stats(FILE *out, struct scheduled *s, bool first)
{
	static const struct gp_column columns[] = {
		{"PID", 0},
		{"CLASS", GP_COLUMN_LEFT},
		{"RUN TIME", 0},
		{"SCHEDULED", 0},
		{"HELD", 0},
		{"PREEMPTED", 0},
		{"CHANGED BACK", 0},
		{"PROMISE", GP_COLUMN_LEFT},
		{"NAME", GP_COLUMN_LEFT},
	};
	const struct gp_engine_stats *stats = gp_engine_stats(s->engine);
	const struct gp_ejection *ejection = gp_engine_ejection(s->engine);
	bool first_task = true;
	struct gp_grid grid;

	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	if (env.json) {
		fprintf(out, "%s{\"device\":", first ? "" : ",");
		gp_json_string(out, s->gpu->info.name);
		fprintf(out,
		        ",\"policy\":\"%s\",\"looks\":%llu,\"holds\":%llu,\"releases\":%llu,"
		        "\"slices\":%llu,\"failures\":%llu,\"ejections\":%llu,\"tasks\":[",
		        gp_engine_policy(s->engine)->name, (unsigned long long)stats->looks,
		        (unsigned long long)stats->holds, (unsigned long long)stats->releases,
		        (unsigned long long)stats->slices, (unsigned long long)stats->failures,
		        (unsigned long long)stats->ejections);
	} else {
		fprintf(out,
		        "%s, policy %s: %llu holds, %llu releases, %llu slices set, %llu "
		        "failures\n",
		        s->gpu->info.name, gp_engine_policy(s->engine)->name,
		        (unsigned long long)stats->holds, (unsigned long long)stats->releases,
		        (unsigned long long)stats->slices, (unsigned long long)stats->failures);
	}
	for (unsigned i = 0; i < gp_engine_tasks(s->engine); i++) {
		struct gp_task_stats t;

		gp_engine_task_stats(s->engine, i, &t);
		if (t.attr.class == GP_UNMANAGED)
			continue;
		if (env.json)
			json_task(out, &t, first_task);
		else
			add_task(&grid, &t);
		first_task = false;
	}
	if (env.json)
		fputs("]}", out);
	else
		gp_grid_end(&grid, out);
	s->failed = s->complained && !stats->holds;
	if (ejection)
		fprintf(stderr, "gpreempt: policy %s was thrown out: %s\n", ejection->policy->name,
		        ejection->text);
}

/* ---- all devices -------------------------------------------------------------------------------
 */

/* Whether every process that was named has queues somewhere. */
static int check_found(struct gp_error *err)
{
	for (unsigned i = 0; i < env.nnamed; i++) {
		const struct named *n = &env.named[i];

		if (n->found)
			continue;
		if (n->queue != GP_QUEUE_ALL)
			return gp_fail(err, -ESRCH, "process %d has no compute queue %u", n->pid,
			               n->queue);
		return gp_fail(err, -ESRCH, "process %d has no compute queues on any GPU", n->pid);
	}
	return 0;
}

/* Keeps every device that has one of the processes, and closes the rest. How many, or -errno. */
static int keep_devices(struct scheduled *list, const struct gp_devices *devices,
                        struct gp_undo_file *undo, struct gp_error *err)
{
	int n = 0, r = 0;

	for (unsigned i = 0; i < devices->n; i++) {
		struct gp_gpu *gpu = devices->device[i].gpu;
		int found = r < 0 ? 0 : find_tasks(gpu, undo, err);

		if (found > 0)
			list[n++] = (struct scheduled){.gpu = gpu, .undo = undo};
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

/* How a device stopped being driven by itself: 0 = it did not. */
static int is_over(const struct scheduled *list)
{
	for (const struct scheduled *s = list; s->gpu; s++)
		if (s->over)
			return s->over;
	return 0;
}

/* Until a signal, the end of the time, or of every process that was named. 0 or -errno. */
static int wait_for_end(const struct scheduled *list, unsigned devices, int ready_fd)
{
	uint64_t end_ns = env.for_ns ? gp_now_ns(&gp_clock_monotonic) + env.for_ns : GP_NEVER;
	unsigned ready = 0;

	while (any_left() && gp_now_ns(&gp_clock_monotonic) < end_ns) {
		struct pollfd p[2] = {{.fd = gp_stop_fd(), .events = POLLIN},
		                      {.fd = ready_fd, .events = POLLIN}};
		uint64_t left_ns = end_ns - gp_now_ns(&gp_clock_monotonic);
		int over = is_over(list);
		eventfd_t more;

		if (over == 1)
			fputs("gpreempt: everything was put back by somebody else\n", stderr);
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
 * Everything is put back before a word is written: whoever reads may let us wait. Then it is done
 * once more by the records, which costs little and tells whether it is so: what could not be put
 * back keeps its record.
 */
static int end_all(struct scheduled *list, struct gp_undo_file *undo, int started, bool with_stats,
                   struct gp_error *err)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = with_stats ? open_memstream(&text, &size) : NULL;
	int r;

	for (int i = 0; i < GP_DEVICES_MAX && list[i].gpu; i++) {
		if (i < started)
			pthread_join(list[i].thread, NULL);
		if (out)
			print_stats(out, &list[i], i == 0);
		if (list[i].engine)
			gp_engine_free(list[i].engine);
		list[i].gpu->ops->close(list[i].gpu);
	}
	r = gp_records_settle(undo, err);
	if (!out)
		return r;
	fclose(out);
	printf(env.json ? "[%s]\n" : "%s", text);
	free(text);
	return r;
}

/* Who is idle must be known well only where best-effort tasks take turns. */
static bool can_be_quiet(void)
{
	unsigned lc = 0;

	for (unsigned i = 0; i < env.nnamed; i++)
		lc += env.named[i].attr.class == GP_LATENCY_CRITICAL;
	/* Other policies go by run times. */
	return env.policy.ops == &gp_policy_priority && lc && env.nnamed - lc <= 1;
}

static int schedule(struct scheduled *list, struct gp_error *err)
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
		r = begin(&list[i], err);
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
		{.argp = &attrs, .header = "Of the process named before:", .group = 1}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = children,
		.doc = "Take over the scheduling of running GPU processes, until Ctrl-C; then all "
		       "is as "
		       "it was.\v"
		       "A service beside two training jobs, none of them prepared for it:\n"
		       "  gpreempt schedule --lc 4711 --be 4712 --be 4713\n"
		       "A busy one whose requests are to be answered within 3 ms:\n"
		       "  gpreempt schedule --policy qos --lc 4711 --deadline 3ms --budget 200us "
		       "--be "
		       "4712\n\n"
		       "Prints `ready` when the first plan is in force, and statistics at the end. "
		       "If it is killed, gpreempt resume --all puts everything back.\n",
	};
	static struct scheduled list[GP_DEVICES_MAX + 1];
	struct gp_error err = {0};

	gp_policy_defaults(&gp_policy_priority, &env.policy);
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	gp_stop_open(); /* before the first thread: signals come to who waits for them */
	if (schedule(list, &err))
		return gp_cli_fail(&err);
	for (unsigned i = 0; i < GP_DEVICES_MAX; i++)
		if (list[i].failed)
			return GP_EXIT_FAILED; /* why was said when it happened */
	return GP_EXIT_DONE;
}

const struct gp_verb gp_verb_schedule = {
	.name = "schedule",
	.summary = "schedule running processes: latency-critical before best-effort",
	.run = run,
};
