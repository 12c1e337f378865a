/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt bench: measures the time and the success rate of holding and releasing a process.
 *
 * In this file: the command of --online; histograms; the options; the measurements; the report.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hist.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/lib/fields.h"
#include "cli/lib/stop.h"
#include "cli/lib/options.h"
#include "hold/hold.h"

#define HEARTBEAT_MS 200

struct online_run {
	bool done;
	uint64_t took_ns;
	int status; /* exit status, or 128 + the signal that ended it */
};

struct online {
	struct online_run alone; /* with the process held */
	struct online_run beside;
};

/* The command's output goes to standard error, because standard output may be JSON. SIGPIPE, which
 * this program ignores, has its default action again. 0 or an errno. */
static int spawn(const char *command, pid_t *pid)
{
	char shell[] = "sh", option[] = "-c", text[4096];
	char *argv[] = {shell, option, text, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t pipe_only;
	int r;

	if (strlen(command) >= sizeof text)
		return E2BIG;
	memcpy(text, command, strlen(command) + 1);
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &pipe_only);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	r = posix_spawn(pid, "/bin/sh", &files, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return r;
}

/* Whether another process has released the task, or asks for its release (gpreempt resume). Or the
 * undo file was lost: nothing would release the task if this program were killed. */
static bool is_taken(const struct gp_holds *holds)
{
	if (!gp_undo_is_current(holds->undo))
		return true;
	for (unsigned i = 0; i < holds->n; i++)
		if (!gp_hold_is_recorded(holds, &holds->hold[i]))
			return true;
	return false;
}

/* Waits for the end of the command. A signal to this program ends the command, too, and so does a
 * request to release the process: the times would be wrong. True: is_taken. */
static bool wait_for(pid_t pid, const struct gp_holds *holds)
{
	int pidfd = gp_pidfd_open(pid);
	struct pollfd p[2] = {{.fd = pidfd, .events = POLLIN},
			      {.fd = gp_stop_fd(), .events = POLLIN}};
	bool taken;

	do {
		gp_holds_heartbeat(holds);
		taken = is_taken(holds);
	} while (!taken && pidfd >= 0 && poll(p, 2, HEARTBEAT_MS) <= 0);
	if (p[1].revents || taken)
		kill(pid, SIGTERM);
	if (pidfd >= 0)
		close(pidfd);
	return taken;
}

/* Runs a shell command to its end; a signal to this program ends it. Its output goes to standard
 * error. */
static int online_run(const char *command, struct online_run *run, const struct gp_holds *holds,
		      struct gp_error *err)
{
	uint64_t begin_ns = gp_monotonic_ns();
	int status = 0, r;
	bool taken;
	pid_t pid;

	r = spawn(command, &pid);
	if (r)
		return gp_fail(err, -EIO, "cannot run the command: %s", strerror(r));
	taken = wait_for(pid, holds);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	run->took_ns = gp_monotonic_ns() - begin_ns;
	run->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	run->done = !gp_stop_asked() && !taken;
	return 0;
}

enum { SLOTS = 64, BAR = 40 };

/* Slot 0 is below 1 us, slot i from 2^(i-1) us to below 2^i us. */
struct bars {
	uint64_t count[SLOTS];
	uint64_t most;
	unsigned first, last;
};

static unsigned slot_of(uint64_t us)
{
	return us ? 64 - (unsigned)__builtin_clzll(us) : 0;
}

static struct bars gather(const struct gp_hist *ns)
{
	struct bars b = {.first = SLOTS};

	for (unsigned i = 0; i < GP_HIST_BUCKETS; i++) {
		uint64_t low, high;
		unsigned slot;

		if (!ns->bucket[i])
			continue;
		gp_hist_bounds(i, &low, &high);
		slot = slot_of((low + (high - low) / 2) / 1000);
		b.count[slot] += ns->bucket[i];
		b.most = b.count[slot] > b.most ? b.count[slot] : b.most;
		b.first = slot < b.first ? slot : b.first;
		b.last = slot > b.last ? slot : b.last;
	}
	return b;
}

static uint64_t from_us(unsigned slot)
{
	return slot ? UINT64_C(1) << (slot - 1) : 0;
}

/* For people: a line for each power of two of microseconds, from the smallest to the largest. */
static void print_bars(FILE *out, const char *title, const struct gp_hist *ns)
{
	static const char stars[] = "****************************************";
	struct bars b = gather(ns);

	if (!ns->count)
		return;
	fprintf(out, "%-8s %9s    %-9s : %-7s distribution\n", title, "us", "", "count");
	for (unsigned i = b.first; i <= b.last; i++) {
		/* Rounded up: a single value is visible. */
		int length = (int)((b.count[i] * BAR + b.most - 1) / b.most);

		fprintf(out, "%-8s %9" PRIu64 " -> %-9" PRIu64 " : %-7" PRIu64 " |%-*.*s|\n", "",
			from_us(i), from_us(i + 1) - 1, b.count[i], BAR, length, stars);
	}
}

/* [{"from_us":256,"to_us":512,"count":7},...]. The caller puts it. */
static void add_bars(struct json_object *list, const struct gp_hist *ns)
{
	struct bars b = gather(ns);

	for (unsigned i = b.first; i <= b.last && ns->count; i++) {
		struct json_object *bar = b.count[i] ? gp_list_object(list) : NULL;

		if (!bar)
			continue;
		gp_field_put(bar, "from_us", from_us(i));
		gp_field_put(bar, "to_us", from_us(i + 1));
		gp_field_put(bar, "count", b.count[i]);
	}
}

#define OPENS          20
#define EFFECTS        100 /* each costs a wait for the next sample */
#define EFFECT_SOON_NS (50 * GP_NS_PER_MS)
#define EFFECT_WAIT_NS (200 * GP_NS_PER_MS)
#define FAILING_NS     (3 * GP_NS_PER_S) /* a hold is tried for seconds if the driver asks for it */
#define BLIND_AFTER    5 /* waits without a sample; the first sample may take longer than one */

static struct {
	struct gp_targets targets;
	bool json, force, histogram;
	const char *online;
	uint32_t count, hold_ms;
} env = {.targets.single = true, .count = 100, .hold_ms = 5};

static const struct gp_option options[] = {
	{"count", 'n', "N", "Number of holds and releases (100)", .number32 = &env.count, .min = 1,
	 .max = 1000000},
	{"hold-ms", 'm', "MS", "Length of a hold, and of the pause after it (5)",
	 .number32 = &env.hold_ms, .max = 10000},
	{"online", 'o', "COMMAND", "Time this command with the process held, and not held",
	 .text = &env.online},
	{"histogram", 'H', NULL, "Draw histograms also if the output is no terminal",
	 .flag = &env.histogram},
	{"force", 'F', NULL, "Also for a server that works for many programs", .flag = &env.force},
	{"json", 'j', NULL, "Write JSON", .flag = &env.json},
	{0},
};

struct side {
	unsigned tried, done;
	unsigned looked;       /* of `done`: at their evidence, after the pause */
	unsigned by_driver;    /* of `looked`: no work was seen to stand still, or to go on */
	struct gp_hist took;   /* ns to the answer, of the successful commands */
	struct gp_hist effect; /* ns until the hardware showed the effect */
	struct gp_error first; /* failure */
};

struct bench {
	struct side hold, release;
	struct gp_hist open, find; /* ns, on a newly opened device */
	struct online online;
	unsigned blind;      /* consecutive samples without an answer of the device */
	uint64_t failing_ns; /* length of the holds that failed since the last success */
	bool stopped;        /* by a signal, because the process ended, or because of failures */
	bool taken;          /* is_taken */
	bool undo_lost;      /* the cause of that: the undo file was lost */
	struct gp_error release_failed;
};

/* Returns whether the command took effect. */
static bool note(struct side *s, const struct gp_holds *holds, int r, bool held,
		 const struct gp_error *err)
{
	uint64_t took_ns = 0;
	bool so = !r;

	for (unsigned i = 0; i < holds->n; i++) {
		so &= holds->hold[i].held == held;
		if (holds->hold[i].took_ns > took_ns)
			took_ns = holds->hold[i].took_ns;
	}
	s->tried++;
	if (so) {
		s->done++;
		gp_hist_add(&s->took, took_ns);
	} else if (!s->first.code) {
		s->first = *err;
		gp_fail(&s->first, -EIO, "the driver accepted the command, but nothing changed");
	}
	return so;
}

/* Whether the device reports when a task goes off and comes on, and early enough to wait for. */
static bool shows_effect(const struct gp_gpu *gpu)
{
	return gpu->info.caps & GP_CAP_ACTIVITY && gpu->info.sample_period_ns &&
	       gpu->info.sample_period_ns <= EFFECT_SOON_NS;
}

/* Waits for a sample of the back end that covers the time until now. Gives up after a limit. */
static void wait_for_sample(struct gp_holds *holds)
{
	uint64_t now_ns = gp_monotonic_ns(), until_ns = now_ns + EFFECT_WAIT_NS;

	for (unsigned i = 0; i < holds->n; i++)
		while (shows_effect(holds->hold[i].ref.gpu) &&
		       holds->hold[i].last.run_at_ns < now_ns && gp_monotonic_ns() < until_ns &&
		       !gp_stop_asked()) {
			gp_stop_sleep(gp_monotonic_ns() + GP_NS_PER_MS);
			gp_holds_refresh(holds);
		}
}

/* A task that was off the hardware at the command shows no effect of a hold. For a task that came
 * on more than once, the first time is not known. */
static void note_effect(struct side *s, const struct gp_hold *h, bool hold, uint64_t scheduled)
{
	const struct gp_observation *o = &h->last;

	if (hold && o->off_at_ns >= h->asked_ns && o->off_at_ns >= o->on_at_ns)
		gp_hist_add(&s->effect, o->off_at_ns - h->asked_ns);
	if (!hold && o->on_at_ns >= h->asked_ns && o->scheduled == scheduled + 1)
		gp_hist_add(&s->effect, o->on_at_ns - h->asked_ns);
}

/* The evidence of a release comes with the next work of the process. */
static void note_evidence(struct side *s, const struct gp_holds *holds)
{
	bool by_driver = false;

	for (unsigned i = 0; i < holds->n; i++)
		by_driver |= holds->hold[i].last.evidence != GP_EVIDENCE_ENOUGH;
	s->looked++;
	s->by_driver += by_driver;
}

/* `scheduled`: of each task before a release; NULL: for a hold, which does not need it. */
static void measure_effect(struct bench *b, struct side *s, struct gp_holds *holds,
			   const uint64_t *scheduled)
{
	bool known = false;

	if (s->tried > EFFECTS)
		return;
	gp_holds_refresh(holds);
	if (b->blind < BLIND_AFTER)
		wait_for_sample(holds);
	note_evidence(s, holds);
	if (b->blind >= BLIND_AFTER)
		return;
	for (unsigned i = 0; i < holds->n; i++)
		if (holds->hold[i].last.known & GP_KNOWN_RUN) {
			note_effect(s, &holds->hold[i], s == &b->hold,
				    scheduled ? scheduled[i] : 0);
			known = true;
		}
	b->blind = known ? 0 : b->blind + 1;
}

/* Waits for the time of --hold, with heartbeats: if this program is stopped while it holds the
 * process, the keeper releases it. Returns early if another process takes the task. */
static void pause_between(const struct gp_holds *holds)
{
	uint64_t until_ns = gp_monotonic_ns() + env.hold_ms * GP_NS_PER_MS, step_ns;

	do {
		gp_holds_heartbeat(holds);
		step_ns = gp_monotonic_ns() + HEARTBEAT_MS * GP_NS_PER_MS;
	} while (!gp_stop_sleep(step_ns < until_ns ? step_ns : until_ns) && step_ns < until_ns &&
		 !is_taken(holds));
}

/* Releases and measures it. A task that is not held, or that another process has released, is
 * released as well, to make sure, but that counts only if it fails. True: stop measuring. */
static bool measure_release(struct bench *b, struct gp_holds *holds, bool held)
{
	uint64_t scheduled[GP_DEVICES_MAX] = {0};
	struct gp_error err = {0};
	int r;

	b->taken = is_taken(holds);
	for (unsigned i = 0; i < holds->n; i++)
		scheduled[i] = holds->hold[i].last.scheduled;
	r = gp_holds_release(holds, &err);
	if (r || (held && !b->taken))
		note(&b->release, holds, r, false, &err);
	if (r) { /* it was tried for seconds, and the process may stand still */
		b->release_failed = err;
		return true;
	}
	if (b->taken)
		return true;
	pause_between(holds);
	if (held)
		measure_effect(b, &b->release, holds, scheduled);
	return false;
}

/* One hold and one release. True: stop measuring. */
static bool measure_once(struct bench *b, struct gp_holds *holds)
{
	uint64_t begin_ns = gp_monotonic_ns();
	struct gp_error err = {0};
	bool held;
	int r;

	b->taken = is_taken(holds);
	if (b->taken)
		return true;
	r = gp_holds_hold(holds, &err);
	if (r == -ESRCH)
		return true;
	b->failing_ns = r ? b->failing_ns + gp_monotonic_ns() - begin_ns : 0;
	held = note(&b->hold, holds, r, true, &err);
	pause_between(holds);
	if (held)
		measure_effect(b, &b->hold, holds, NULL);
	if (measure_release(b, holds, held))
		return true;
	for (unsigned i = 0; i < holds->n; i++)
		if (gp_hold_has_ended(holds, &holds->hold[i]))
			return true;
	return gp_stop_asked() || b->failing_ns >= FAILING_NS;
}

/* The cost of a new program: opening the device and finding the process. */
static void measure_find(struct bench *b, const struct gp_devices *devices,
			 const struct gp_task_ref *ref)
{
	const struct gp_gpu_ops *ops = ref->gpu->ops;

	for (unsigned i = 0; i < OPENS && !gp_stop_asked(); i++) {
		uint64_t begin_ns = gp_monotonic_ns(), open_ns;
		struct gp_gpu *gpu;
		struct gp_seen seen;

		if (ops->open(devices->device[ref->device].index, 0, &gpu))
			continue;
		open_ns = gp_monotonic_ns();
		if (!gp_gpu_find(gpu, ref->seen.pid, &seen, NULL)) {
			gp_hist_add(&b->open, open_ns - begin_ns);
			gp_hist_add(&b->find, gp_monotonic_ns() - open_ns);
		}
		ops->close(gpu);
	}
}

/* The run with the process held comes first: warm caches then favour the other run. */
static int measure_online(struct bench *b, struct gp_holds *holds, struct gp_error *err)
{
	int r = gp_holds_hold(holds, err), last;

	if (!r)
		r = online_run(env.online, &b->online.alone, holds, err);
	b->taken |= is_taken(holds);
	last = gp_holds_release(holds, err);
	r = r ? r : last;
	if (!r && !gp_stop_asked() && !b->taken)
		r = online_run(env.online, &b->online.beside, holds, err);
	return r;
}

static int measure(struct bench *b, const struct gp_devices *devices, const struct gp_task_ref *ref,
		   unsigned n, struct gp_error *err)
{
	struct gp_holds holds;
	int r = gp_holds_begin(&holds, devices, ref, n, err), last, put_back;

	if (!r)
		measure_find(b, devices, ref);
	for (unsigned i = 0; i < env.count && !r && !b->stopped; i++) {
		b->stopped = measure_once(b, &holds) || b->taken;
		gp_progress("%u of %u", i + 1, env.count);
	}
	gp_progress_end();
	if (!r && env.online && !b->stopped)
		r = measure_online(b, &holds, err);
	b->undo_lost = b->taken && !gp_undo_is_current(holds.undo);
	if (b->release_failed.code)
		last = gp_fail(err, b->release_failed.code, "%s", b->release_failed.text);
	else
		last = gp_holds_release(&holds, err);
	put_back = gp_holds_put_back(&holds, err);
	gp_holds_end(&holds);
	return r ? r : last ? last : put_back;
}

static void print_times(const char *what, const struct gp_hist *h)
{
	if (!h->count) {
		printf("%-8s -\n", what);
		return;
	}
	printf("%-8s %9s %9s %9s %9s %9s\n", what, gp_cli_duration(h->min).text,
	       gp_cli_duration(gp_hist_mean(h)).text,
	       gp_cli_duration(gp_hist_quantile(h, 500000)).text,
	       gp_cli_duration(gp_hist_quantile(h, 990000)).text, gp_cli_duration(h->max).text);
}

/* "99.5 %", or "-" if there was nothing to do: a process that was never held is not released. */
static struct gp_short_text success(const struct side *s)
{
	struct gp_short_text out;

	if (s->tried)
		snprintf(out.text, sizeof out.text, "%.1f %%", 100.0 * s->done / s->tried);
	else
		snprintf(out.text, sizeof out.text, "-");
	return out;
}

/* The shortest turn, in whole ms, of which holding and releasing take at most a tenth. */
static uint64_t turn_ms(const struct bench *b)
{
	uint64_t ns = gp_hist_quantile(&b->hold.took, 500000) +
		      gp_hist_quantile(&b->release.took, 500000);

	return (10 * ns + GP_NS_PER_MS - 1) / GP_NS_PER_MS;
}

static void write_advice(const struct bench *b, char *out, size_t size)
{
	const struct side *bad = b->hold.done < b->hold.tried ? &b->hold : &b->release;

	if (!b->hold.tried)
		snprintf(out, size, "nothing was measured: %s before",
			 b->undo_lost ? "the undo file was lost"
			 : b->taken   ? "another process released the process"
				      : "the process ended, or Ctrl-C was pressed,");
	else if (bad->done < bad->tried)
		snprintf(out, size, "%u of %u %s failed, the first with: %s",
			 bad->tried - bad->done, bad->tried, bad == &b->hold ? "holds" : "releases",
			 bad->first.text);
	else
		snprintf(out, size,
			 "with turns of %llu ms or more (--policy NAME:quantum=MS), holding and "
			 "releasing take at most a tenth of the time",
			 (unsigned long long)turn_ms(b));
}

static void print_online_run(const char *when, const struct online_run *run)
{
	if (run->done)
		printf("  %-10s %9s, exit %d\n", when, gp_cli_duration(run->took_ns).text,
		       run->status);
	else
		printf("  %-10s %9s\n", when, "-");
}

static void print_online(const struct online *o)
{
	printf("\n%s\n", env.online);
	print_online_run("held", &o->alone);
	print_online_run("not held", &o->beside);
	if (o->alone.done && o->beside.done && o->alone.took_ns)
		printf("  %.2f times as long while the process is not held\n",
		       (double)o->beside.took_ns / (double)o->alone.took_ns);
}

static void print_success(const struct bench *b)
{
	printf("success: hold %s, release %s\n", success(&b->hold).text, success(&b->release).text);
	if (b->hold.by_driver || b->release.by_driver)
		printf("confirmed by the driver only: %u of %u holds, %u of %u releases (no work "
		       "was seen to stand still, or to go on)\n",
		       b->hold.by_driver, b->hold.looked, b->release.by_driver, b->release.looked);
	putchar('\n');
}

static void print_result(const struct bench *b, const struct gp_task_ref *ref, unsigned n)
{
	char text[512];

	printf("%d (%s) on %s%s: ", ref->seen.pid, ref->seen.name, ref->gpu->info.name,
	       n > 1 ? " and others" : "");
	if (b->hold.done == b->release.done)
		printf("held and released %u times\n\n", b->hold.done);
	else
		printf("held %u and released %u times\n\n", b->hold.done, b->release.done);
	print_success(b);
	printf("command to answer, seen by the caller:\n%-8s %9s %9s %9s %9s %9s\n", "", "min",
	       "average", "p50", "p99", "max");
	print_times("hold", &b->hold.took);
	print_times("release", &b->release.took);
	if (b->hold.effect.count || b->release.effect.count) {
		puts("command to effect, seen on the hardware:");
		print_times("hold", &b->hold.effect);
		print_times("release", &b->release.effect);
	} else {
		puts("command to effect: not visible on this device");
	}
	if (b->find.count)
		printf("a fresh start: %s to open the device, %s to find the process (p50 of %llu)"
		       "\n",
		       gp_cli_duration(gp_hist_quantile(&b->open, 500000)).text,
		       gp_cli_duration(gp_hist_quantile(&b->find, 500000)).text,
		       (unsigned long long)b->find.count);
	if (env.histogram || isatty(STDOUT_FILENO)) {
		putchar('\n');
		print_bars(stdout, "hold", &b->hold.took);
		print_bars(stdout, "release", &b->release.took);
	}
	if (env.online)
		print_online(&b->online);
	write_advice(b, text, sizeof text);
	printf("\n%s\n", text);
}

/* Absent where nothing was measured. */
static void add_times(struct json_object *into, const char *key, const struct gp_hist *h)
{
	struct json_object *o = h->count ? gp_field_put_object(into, key) : NULL;

	if (!o)
		return;
	gp_field_put_us(o, "min", h->min);
	gp_field_put_us(o, "average", gp_hist_mean(h));
	gp_field_put_us(o, "p50", gp_hist_quantile(h, 500000));
	gp_field_put_us(o, "p99", gp_hist_quantile(h, 990000));
	gp_field_put_us(o, "max", h->max);
}

static void add_side(struct json_object *into, const char *key, const struct side *s)
{
	struct json_object *o = gp_field_put_object(into, key);

	gp_field_put(o, "tried", s->tried);
	gp_field_put(o, "done", s->done);
	gp_field_put(o, "looked_at", s->looked);
	gp_field_put(o, "driver_only", s->by_driver);
	add_times(o, "answer_us", &s->took);
	add_times(o, "effect_us", &s->effect);
	add_bars(gp_field_put_list(o, "answer_histogram"), &s->took);
	if (s->first.code)
		gp_field_put_text(o, "error", s->first.text);
}

static void add_command(struct json_object *into, const char *key, const struct online_run *run)
{
	struct json_object *o = run->done ? gp_field_put_object(into, key) : NULL;

	if (!o)
		return;
	gp_field_put_us(o, "took_us", run->took_ns);
	json_object_object_add(o, "exit", json_object_new_int(run->status));
}

static void json_result(const struct bench *b, const struct gp_task_ref *ref, unsigned n)
{
	struct json_object *o = json_object_new_object(), *part;
	char text[512];

	gp_field_put(o, "pid", (uint64_t)ref->seen.pid);
	gp_field_put_text(o, "name", ref->seen.name);
	part = gp_field_put_list(o, "devices");
	for (unsigned i = 0; i < n; i++)
		json_object_array_add(part, json_object_new_string(ref[i].gpu->info.name));
	add_side(o, "hold", &b->hold);
	add_side(o, "release", &b->release);
	add_times(o, "open_us", &b->open);
	add_times(o, "find_us", &b->find);
	if (env.online) {
		part = gp_field_put_object(o, "online");
		add_command(part, "held", &b->online.alone);
		add_command(part, "not_held", &b->online.beside);
	}
	write_advice(b, text, sizeof text);
	gp_field_put_text(o, "advice", text);
	gp_print_json_once(o);
}

static int bench(const struct gp_devices *devices, struct bench *b, struct gp_error *err)
{
	struct gp_task_ref ref[GP_DEVICES_MAX];
	int n = gp_devices_find(devices, env.targets.pid[0], ref, GP_DEVICES_MAX, err), r;

	if (n < 0)
		return n;
	r = gp_refuse_shared(&ref[0].seen, ref[0].seen.pid, env.force, GP_WOULD_STOP_ALL, err);
	if (!r)
		r = measure(b, devices, ref, (unsigned)n, err);
	if (!r)
		(env.json ? json_result : print_result)(b, ref, (unsigned)n);
	if (!r && b->taken && b->undo_lost)
		r = gp_fail(err, -ESTALE,
			    "the undo file was removed, replaced or truncated, so that nothing "
			    "would release process %d (%s) if this command were killed; it was "
			    "released, and the measurement has ended; run gpreempt bench again",
			    ref[0].seen.pid, ref[0].seen.name);
	else if (!r && b->taken)
		fprintf(stderr,
			"gpreempt: another process released %d (%s), as gpreempt resume does; the "
			"measurement has ended\n",
			ref[0].seen.pid, ref[0].seen.name);
	return r;
}

static int run(struct gp_error *err)
{
	static struct bench b;
	struct gp_devices devices;
	int r;

	gp_hist_init(&b.hold.took);
	gp_hist_init(&b.release.took);
	gp_hist_init(&b.hold.effect);
	gp_hist_init(&b.release.effect);
	gp_hist_init(&b.open);
	gp_hist_init(&b.find);
	r = gp_stop_begin(err);
	if (!r)
		r = gp_targets_open(&env.targets, &devices, err);
	if (r)
		return r;
	r = bench(&devices, &b, err);
	gp_devices_close(&devices);
	if (r)
		return r;
	return b.hold.done == b.hold.tried && b.release.done == b.release.tried ? GP_EXIT_DONE
										: GP_EXIT_FAILED;
}

const struct gp_verb gp_verb_bench = {
	.name = "bench",
	.summary = "measure how fast and how reliably a process is held and released",
	.arguments = "PID",
	.targets = &env.targets,
	.options = options,
	.doc = "Hold and release a running process many times; measure times and success rate.\v"
	       "The process loses no work. It runs about half of the time.\n\n"
	       "Examples:\n"
	       "  gpreempt bench 4711 --count 1000\n"
	       "  gpreempt bench 4711 -n 20 --online './infer --batch 1'\n",
	.run = run,
};
