/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt schedule: schedules running processes in the foreground, without a daemon. At the end
 * all of them are put back as they were.
 *
 * In this file: one device with the thread that drives its engine; the counters at the end; the
 * options; all devices from the beginning to the end.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/process.h"
#include "cli/cli.h"
#include "cli/lib/options.h"
#include "cli/lib/grid.h"
#include "cli/lib/stop.h"
#include "engine/engine.h"
#include "engine/real_time.h"
#include "hold/devices.h"
#include "hold/hold.h"
#include "hold/replay.h"
#include "undo/undo.h"

#define NAMED_MAX     256
#define UNDO_CHECK_NS (250 * GP_NS_PER_MS) /* whether the undo file is still there */

/* A process of the command line, or one queue of it, with its attributes. */
struct named {
	pid_t pid;
	uint32_t queue; /* or GP_QUEUE_ALL */
	struct gp_task_attr attr;
	bool found;
	uint64_t key; /* of its task: the pid may be reused */
	uint64_t start_time;
};

/* The options of the command line. */
struct schedule_options {
	struct named named[NAMED_MAX];
	unsigned nnamed;
	struct gp_policy_choice policy;
	uint64_t for_ns;
	bool json;
	bool force;
};

/* A GPU with at least one of these processes. */
struct scheduled {
	const struct schedule_options *what;
	struct gp_gpu *gpu;
	struct gp_engine *engine;
	struct gp_undo_file *undo;
	int slot[NAMED_MAX]; /* undo records that were written */
	unsigned nslots;
	uint64_t epoch;
	unsigned undo_files; /* new files that replaced the first */
	uint64_t undo_check_ns;
	pthread_t thread;
	int stop_fd;
	int ready_fd;
	bool ready;
	bool complained; /* it was reported that a task cannot be held */
	bool warned;     /* it was reported that the activity of a task cannot be seen */
	bool failed;     /* actions failed and none took effect */
	struct json_object *counters; /* of the end; NULL: not to be reported */
	unsigned held;                /* tasks that are held at the end of the thread */
	atomic_int over;              /* enum over, or -errno */
};

/* Why a device thread ended by itself. */
enum over { RUNS, RESUMED, NO_UNDO_FILE };

struct json_object;

static const struct named *find_named(const struct schedule_options *what,
				      const struct gp_seen *seen)
{
	for (unsigned i = 0; i < what->nnamed; i++)
		if (what->named[i].found && what->named[i].key == seen->key)
			return &what->named[i];
	return NULL;
}

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	const struct scheduled *s = arg;
	const struct named *n = find_named(s->what, seen);

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
			return slot;
	if (s->nslots == NAMED_MAX)
		return -ENOSPC;
	s->slot[s->nslots++] = slot;
	return slot;
}

/* Whether another process asks for the release of a task: then all tasks are released. */
static bool is_resumed(const struct scheduled *s)
{
	struct gp_undo_entry e;

	if (gp_undo_epoch(s->undo) == s->epoch)
		return false;
	for (unsigned i = 0; i < s->nslots; i++)
		if (!gp_undo_get(s->undo, (unsigned)s->slot[i], &e) || e.owner != getpid() ||
		    e.release_asked)
			return true;
	return false;
}

static uint64_t epoch(void *arg)
{
	const struct scheduled *s = arg;

	return gp_undo_epoch(s->undo) + ((uint64_t)s->undo_files << 32);
}

static uint64_t undone_ns(void *arg, int slot)
{
	const struct scheduled *s = arg;

	return gp_undo_undone_ns(s->undo, (unsigned)slot);
}

/* If the undo file was removed, replaced or truncated, uses the new one. The new value of epoch()
 * makes the engine write its records again. False: no new one can be made. */
static bool follow_undo_file(struct scheduled *s, uint64_t now_ns)
{
	struct gp_undo_file *file;
	struct gp_error err = {0};

	if (now_ns < s->undo_check_ns)
		return true;
	s->undo_check_ns = now_ns + UNDO_CHECK_NS;
	if (gp_undo_is_current(s->undo))
		return true;
	if (gp_undo_open(&file, true, &err)) {
		fprintf(stderr,
			"gpreempt: the undo file was lost, so that nothing would release the "
			"processes if this command were killed; so it ends early: %s\n",
			err.text);
		return false;
	}
	gp_undo_close(s->undo);
	s->undo = file;
	s->undo_files++;
	s->nslots = 0;
	s->epoch = gp_undo_epoch(file);
	return true;
}

/* Whether every named task is as the plan wants it. */
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

/* Prints once why a task could not be held, if the back end knows the reason. */
static void complain(struct scheduled *s)
{
	for (unsigned i = 0; i < gp_engine_tasks(s->engine) && gp_gpu_commands(s->gpu)->why; i++) {
		struct gp_error why = {0};
		struct gp_task_stats t;

		gp_engine_task_stats(s->engine, i, &t);
		if (!t.failures || t.held_ns || t.attr.class == GP_UNMANAGED)
			continue;
		gp_gpu_why(s->gpu, t.handle, &why);
		if (!*why.text)
			continue;
		fprintf(stderr, "gpreempt: %s\n", why.text);
		s->complained = true;
	}
}

/* Prints once why the activity of a service is not visible: no task is held for such a service. */
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
		gp_gpu_why(s->gpu, stats.handle, &why);
		if (!*why.text)
			continue;
		fprintf(stderr, "gpreempt: %s\n", why.text);
		s->warned = true;
	}
}

static int after_tick(void *arg, uint64_t now_ns)
{
	struct scheduled *s = arg;

	if (!follow_undo_file(s, now_ns))
		return NO_UNDO_FILE;
	/* The keeper releases the tasks if this thread or the back end hangs or is frozen. */
	for (unsigned i = 0; i < s->nslots; i++)
		gp_hold_heartbeat(s->undo, s->slot[i], s->gpu, now_ns);
	if (is_resumed(s))
		return RESUMED;
	if (!s->complained && gp_engine_stats(s->engine)->failures)
		complain(s);
	if (!s->warned && gp_gpu_commands(s->gpu)->why && gp_engine_policy(s->engine)->watches)
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

	s->over = gp_drive(s->engine, s->gpu, s->stop_fd, after_tick, s);
	return NULL;
}

/* Finds the task of a named process on a GPU. */
static int find_task(struct gp_gpu *gpu, const struct named *n, struct gp_seen *seen,
		     struct gp_error *why)
{
	if (n->queue == GP_QUEUE_ALL)
		return gp_gpu_find(gpu, n->pid, seen, why);
	if (!gp_gpu_commands(gpu)->split)
		return gp_fail(why, -ENOTSUP,
			       "%s schedules whole processes only: name %d without a queue",
			       gpu->info.name, n->pid);
	return gp_gpu_split(gpu, n->pid, n->queue, seen, why);
}

/* Finds the named processes on a GPU. Returns their number; `err` has the reason for a failure. */
static int find_all(struct schedule_options *what, struct gp_gpu *gpu,
		    const struct gp_undo_file *undo, struct gp_error *err)
{
	int found = 0;

	for (unsigned i = 0; i < what->nnamed; i++) {
		struct named *n = &what->named[i];
		struct gp_error why = {0};
		struct gp_seen seen = {0};
		int r = find_task(gpu, n, &seen, &why);

		if (!r)
			r = gp_refuse_shared(&seen, n->pid, what->force,
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
		} else if (r != -ENODEV && r != -ENODATA && r != -ENOENT) {
			return gp_fail(err, r, "%s", why.text);
		}
	}
	return found;
}

/* Starts the thread. It ends when stop_fd is readable, or by itself, which `over` tells. */
static int start(struct scheduled *s, struct gp_error *err)
{
	struct gp_engine_config config = {
		.gpu = s->gpu,
		.classify = classify,
		.before_change = before_change,
		.epoch = epoch,
		.undone_ns = undone_ns,
		.arg = s,
		.decide_clock = &gp_clock_thread_cpu,
	};
	int r = gp_engine_new(&config, &s->engine);

	if (!r)
		r = gp_engine_set_policy(s->engine, gp_monotonic_ns(), &s->what->policy, err);
	if (!r)
		r = -pthread_create(&s->thread, NULL, drive, s);
	return r ? gp_fail(err, r, "cannot start: %s", gp_error_name(r)) : 0;
}

static void add_task(struct json_object *list, const struct gp_task_stats *t)
{
	struct json_object *o = gp_list_object(list);

	gp_field_put(o, "pid", (uint64_t)t->pid);
	gp_field_put_text(o, "class", gp_class_name(t->attr.class));
	gp_field_put_text(o, "name", t->name);
	if (t->run_source != GP_RUN_UNKNOWN)
		gp_field_put(o, "run_ns", t->run_ns);
	gp_field_put_known(o, "scheduled", t->scheduled);
	if (t->held_ns || t->settled) /* else a hold is under way that may have taken effect */
		gp_field_put(o, "held_ns", t->held_ns);
	gp_field_put(o, "preemptions", t->preemptions);
	gp_field_put(o, "failures", t->failures);
	gp_field_put(o, "undone", t->undone);
	gp_field_put_bool(o, "refused", t->refused);
}

/* Fills in the next scheduled task from index *i on. False: there is none. */
static bool next_task(const struct scheduled *s, unsigned *i, struct gp_task_stats *t)
{
	while (*i < gp_engine_tasks(s->engine)) {
		gp_engine_task_stats(s->engine, (*i)++, t);
		if (t->attr.class != GP_UNMANAGED)
			return true;
	}
	return false;
}

static void print_table(FILE *out, struct json_object *o)
{
	static const struct gp_task_column columns[] = {
		{"PID", "pid", GP_CELL_PLAIN, false},
		{"CLASS", "class", GP_CELL_PLAIN, true},
		{"RUN TIME", "run_ns", GP_CELL_NS, false},
		{"SCHEDULED", "scheduled", GP_CELL_PLAIN, false},
		{"HELD", "held_ns", GP_CELL_NS, false},
		{"PREEMPTED", "preemptions", GP_CELL_PLAIN, false},
		{"CHANGED BACK", "undone", GP_CELL_PLAIN, false},
		{"PROMISE", "refused", GP_CELL_FLAG, true},
		{"NAME", "name", GP_CELL_PLAIN, true},
		{0},
	};

	fprintf(out, "%s, policy %s: ", gp_field_text(o, "device"), gp_field_text(o, "policy"));
	fprintf(out, "%llu holds, %llu releases, %llu slices set, %llu failures\n",
		(unsigned long long)gp_field_number_or(o, "holds", 0),
		(unsigned long long)gp_field_number_or(o, "releases", 0),
		(unsigned long long)gp_field_number_or(o, "slices", 0),
		(unsigned long long)gp_field_number_or(o, "failures", 0));
	gp_table_print(out, gp_field(o, "tasks"), columns);
}

static struct json_object *to_json(const struct scheduled *s)
{
	const struct gp_engine_stats *stats = gp_engine_stats(s->engine);
	struct json_object *o = json_object_new_object(), *tasks;
	struct gp_task_stats t;

	gp_field_put_text(o, "device", s->gpu->info.name);
	gp_field_put_text(o, "policy", gp_engine_policy(s->engine)->name);
	gp_field_put(o, "ticks", stats->ticks);
	gp_field_put(o, "holds", stats->holds);
	gp_field_put(o, "releases", stats->releases);
	gp_field_put(o, "slices", stats->slices);
	gp_field_put(o, "failures", stats->failures);
	gp_field_put(o, "ejections", stats->ejections);
	tasks = gp_field_put_list(o, "tasks");
	for (unsigned i = 0; next_task(s, &i, &t);)
		add_task(tasks, &t);
	return o;
}

/* The number of living tasks that are held, or whose last release is not confirmed yet. */
static unsigned count_held(const struct scheduled *s)
{
	struct gp_task_stats t;
	unsigned n = 0;

	for (unsigned i = 0; next_task(s, &i, &t);)
		n += (t.held || !t.settled) && gp_process_lives(t.pid, t.start_time);
	return n;
}

/* Counts the releases of tasks that were held at the end. They were put back, and this was
 * confirmed. The release of a hold that was not counted does not count: a hold counts when it is
 * proven. */
static void count_last_releases(struct scheduled *s)
{
	uint64_t holds = gp_field_number_or(s->counters, "holds", 0);
	uint64_t releases = gp_field_number_or(s->counters, "releases", 0) + s->held;

	gp_field_put(s->counters, "releases", releases < holds ? releases : holds);
}

/* Whether no action took effect: every attempt failed. */
static bool is_without_effect(const struct scheduled *s)
{
	const struct gp_engine_stats *stats = gp_engine_stats(s->engine);
	struct gp_task_stats t;

	for (unsigned i = 0; next_task(s, &i, &t);)
		if (t.held_ns || t.slice_us)
			return false;
	return stats->failures;
}

/* After the end of the thread: keeps the counters, and says what has failed. */
static void sum_up(struct scheduled *s)
{
	const struct gp_ejection *ejection = gp_engine_ejection(s->engine);

	s->counters = to_json(s);
	s->held = count_held(s);
	s->failed = is_without_effect(s);
	if (s->failed && !s->complained)
		fprintf(stderr,
			"gpreempt: no hold and no slice took effect on %s; see the kernel log "
			"(dmesg) for the cause\n",
			s->gpu->info.name);
	if (ejection)
		fprintf(stderr, "gpreempt: policy %s was ejected: %s\n", ejection->policy->name,
			ejection->text);
}

static struct schedule_options env;

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

static void add_lc(struct argp_state *state, char *arg)
{
	add_named(state, arg, GP_LATENCY_CRITICAL);
}

static void add_be(struct argp_state *state, char *arg)
{
	add_named(state, arg, GP_BEST_EFFORT);
}

static void take_policy(struct argp_state *state, char *arg)
{
	struct gp_error err = {0};

	if (gp_policy_parse(arg, &env.policy, &err))
		argp_error(state, "%s", err.text);
}

static const struct gp_option options[] = {
	{"lc", 'l', "PID[:QUEUE]", "A latency-critical process, or one queue of it",
	 .call = add_lc},
	{"be", 'b', "PID[:QUEUE]", "A best-effort process, or one queue of it", .call = add_be},
	{"policy", 'p', "NAME[:PARAM=VALUE...]", "Policy (default: priority)", .call = take_policy},
	{"for", 'f', "TIME", "End after this time, such as 500ms, 10s or 5m (default: at Ctrl-C)",
	 .time_ns = &env.for_ns},
	{"force", 'F', NULL, "Also for servers that work for many programs", .flag = &env.force},
	{"json", 'j', NULL, "Write the statistics as JSON", .flag = &env.json},
	{0},
};

static void refuse_argument(struct argp_state *state, char *arg)
{
	argp_error(state, "'%s': give it with --lc or --be", arg);
}

static void check(struct argp_state *state)
{
	if (!env.nnamed)
		argp_error(state, "give processes: --lc PID and --be PID");
}

static error_t parse_attr(int key, char *arg, struct argp_state *state)
{
	return gp_attr_parse(key, arg, state, env.nnamed ? &env.named[env.nnamed - 1].attr : NULL);
}

/* Checks that every named process has queues on some device. */
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

/* Keeps the devices that have one of the processes, and closes the rest. Their number or -errno. */
static int keep_devices(struct scheduled *list, const struct gp_devices *devices,
			struct gp_undo_file *undo, struct gp_error *err)
{
	int n = 0, r = 0;

	for (unsigned i = 0; i < devices->n; i++) {
		struct gp_gpu *gpu = devices->device[i].gpu;
		int found = r < 0 ? 0 : find_all(&env, gpu, undo, err);

		if (found > 0)
			list[n++] = (struct scheduled){.what = &env, .gpu = gpu};
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
		if (!gp_process_gone(env.named[i].pid, env.named[i].start_time))
			return true;
	return false;
}

/* The reason why a device thread ended by itself: enum over, or -errno. */
static int is_over(const struct scheduled *list)
{
	for (const struct scheduled *s = list; s->gpu; s++)
		if (s->over)
			return s->over;
	return RUNS;
}

/* Waits for a signal, the end of the time, or the end of all named processes. 0 or -errno. */
static int wait_for_end(const struct scheduled *list, unsigned devices, int ready_fd)
{
	uint64_t end_ns = env.for_ns ? gp_monotonic_ns() + env.for_ns : GP_NEVER;
	unsigned ready = 0;

	while (any_left() && gp_monotonic_ns() < end_ns) {
		struct pollfd p[2] = {{.fd = gp_stop_fd(), .events = POLLIN},
				      {.fd = ready_fd, .events = POLLIN}};
		uint64_t left_ns = end_ns - gp_monotonic_ns();
		int over = is_over(list);
		eventfd_t more;

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

/* Prints the counters of all devices and frees them. */
static void report(struct scheduled *list, bool all_put_back)
{
	struct json_object *json = env.json ? json_object_new_array() : NULL;

	for (int i = 0; i < GP_DEVICES_MAX && list[i].gpu; i++) {
		if (!list[i].counters)
			continue;
		if (all_put_back)
			count_last_releases(&list[i]);
		if (json) {
			json_object_array_add(json, list[i].counters);
		} else {
			print_table(stdout, list[i].counters);
			json_object_put(list[i].counters);
		}
		list[i].counters = NULL;
	}
	if (json)
		gp_print_json_once(json);
}

/*
 * Releases all tasks before anything is written, because a reader of the output may block this
 * program. Then replays the records: a task that could not be put back keeps its record, and the
 * caller gets the error.
 */
static int end_all(struct scheduled *list, int started, bool with_stats, struct gp_error *err)
{
	int r = 0;

	for (int i = 0; i < GP_DEVICES_MAX && list[i].gpu; i++) {
		if (i < started)
			pthread_join(list[i].thread, NULL);
		if (with_stats)
			sum_up(&list[i]);
		if (list[i].engine)
			gp_engine_free(list[i].engine);
		list[i].gpu->ops->close(list[i].gpu);
	}
	for (int i = 0; i < GP_DEVICES_MAX && list[i].gpu; i++) {
		int code = list[i].undo ? gp_records_settle(list[i].undo, err) : 0;

		r = r ? r : code;
		gp_undo_close(list[i].undo);
	}
	if (is_over(list) == RESUMED)
		fprintf(stderr,
			"gpreempt: another process released a task, or asked for its release "
			"(gpreempt resume), so this schedule has ended%s\n",
			r ? "" : "; all tasks were put back");
	if (with_stats)
		report(list, !r);
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
		r = gp_undo_open(&list[i].undo, true, err);
		if (r)
			break;
		list[i].epoch = gp_undo_epoch(list[i].undo);
		r = start(&list[i], err);
		started += !r;
	}
	if (!r)
		r = wait_for_end(list, (unsigned)n, ready_fd);
	eventfd_write(stop_fd, 1);
	ended = end_all(list, started, started == n, err);
	gp_undo_close(undo);
	close(ready_fd);
	close(stop_fd);
	return r ? gp_fail(err, r, "the GPU is lost: %s", gp_error_name(r)) : ended;
}

static int run(struct gp_error *err)
{
	static struct scheduled list[GP_DEVICES_MAX + 1];
	int r;

	if (!env.policy.ops)
		gp_policy_defaults(&gp_policy_priority, &env.policy);
	gp_stop_open(); /* before the first thread starts */
	r = schedule(list, err);
	if (r)
		return r;
	for (unsigned i = 0; i < GP_DEVICES_MAX; i++)
		if (list[i].failed || list[i].over == NO_UNDO_FILE)
			return GP_EXIT_FAILED; /* the reason was printed when it happened */
	return GP_EXIT_DONE;
}

static const struct argp attrs = {.options = gp_attr_options, .parser = parse_attr};

const struct gp_verb gp_verb_schedule = {
	.name = "schedule",
	.summary = "schedule running processes: latency-critical before best-effort",
	.argument = refuse_argument,
	.options = options,
	.more = {.argp = &attrs, .header = "Attributes of the preceding process:", .group = 1},
	.check = check,
	.doc = "Schedule running GPU processes until Ctrl-C, without a daemon. Then all of them "
	       "are "
	       "put back as they were.\v"
	       "A service beside two training jobs, all of them unmodified:\n"
	       "  gpreempt schedule --lc 4711 --be 4712 --be 4713\n"
	       "A busy service with a deadline of 3 ms for each request:\n"
	       "  gpreempt schedule --policy qos --lc 4711 --deadline 3ms --budget 200us --be "
	       "4712\n\n"
	       "Prints `ready` when the first plan is in force, and statistics at the end. If it "
	       "is "
	       "killed, gpreempt resume --all puts everything back.\n",
	.run = run,
};
