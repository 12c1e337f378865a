/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt suspend: holds processes until Ctrl-C, for a time, or through the daemon.
 *
 * In this file: the options; the output; the choice of tasks; the hold by the daemon; the hold by
 * this program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "cli/lib/stop.h"
#include "hold/hold.h"
#include "task/json/task_json.h"

#define TICK_NS  (100 * GP_NS_PER_MS)
#define PAUSE_NS (5 * GP_NS_PER_MS)
#define LOOK_NS  (60 * GP_NS_PER_MS) /* for work after a release by another process */
#define WORK_NS  (1 * GP_NS_PER_S)   /* for work after a release that the driver confirmed */
#define LEASE_NS (3 * GP_NS_PER_S)   /* without a renewal for this time, the daemon ends the hold */
#define RENEW_NS (500 * GP_NS_PER_MS)

static struct {
	struct gp_targets targets;
	bool json, force, one_queue;
	bool no_daemon;
	const char *type; /* preemption type; NULL = the device's default */
	uint32_t grace;   /* in 1,000 GPU clocks; 0 = not given */
	int device;       /* -1 = all */
	uint32_t queue;
	uint64_t for_ns;
} env = {.device = -1, .for_ns = GP_NEVER};

static const struct gp_option options[] = {
	{"device", 'd', "N", "Only on this device; without a PID, all processes on it",
	 .device = &env.device},
	{"queue", 'q', "ID", "Only this queue of the process (see gpreempt queues)",
	 .number32 = &env.queue, .max = GP_QUEUE_ALL - 1, .given = &env.one_queue},
	{"for", 'f', "TIME",
	 "Release after this time, such as 500ms, 10s or 2m (default: at Ctrl-C)",
	 .time_ns = &env.for_ns},
	{"type", 't', "NAME",
	 "What happens to running work: save (save it at once; the default) or, on AMD GPUs before "
	 "gfx11, drain (let short work finish first). Holds from this program, not through the "
	 "daemon",
	 .text = &env.type},
	{"grace", 'g', "N",
	 "With --type drain: wait at most N times 1,000 GPU clocks, 1 to 255 (255)",
	 .number32 = &env.grace, .min = 1, .max = GP_PREEMPT_GRACE_MAX},
	{"force", 'F', NULL, "Hold also a server that works for many programs", .flag = &env.force},
	{"no-daemon", 0, NULL, "Hold from this program, not through the daemon",
	 .flag = &env.no_daemon},
	{"json", 'j', NULL, "Write JSON: one object per line for each event", .flag = &env.json},
	{0},
};

static void check(struct argp_state *state)
{
	if (!env.targets.n && env.device < 0)
		argp_error(state, "give a PID, or --device N for all processes on it");
	if (env.one_queue && env.targets.n != 1)
		argp_error(state, "--queue needs one PID");
}

/* The output is one line for each event, the same with and without the daemon. */
enum event_kind {
	BEGAN,   /* ns: how long the hold took */
	AGAIN,   /* the task is held again. ns of this and the next: held for */
	ENDED,   /* the process has ended, or has executed another program */
	RESUMED, /* another process released the task, or the daemon's hold ended otherwise */
	KEPT,    /* the task stays held by another command or by the policy */
	RELEASED,
};

struct event {
	enum event_kind kind;
	pid_t pid;
	const char *name;
	int device;                 /* -1: on all devices, held by the daemon */
	const char *device_name;    /* NULL with device -1 */
	uint64_t ns;                /* see the kind */
	unsigned again;             /* how often the task had to be held again */
	struct gp_eviction evicted; /* RELEASED */
	enum gp_evidence evidence;  /* BEGAN, RELEASED, RESUMED */
	bool lives;                 /* ENDED: it executes another program */
	bool by_policy;             /* KEPT */
	bool lapsed;                /* RELEASED: it was not held any more before that */
	bool worked;                /* although the driver said that it was held */
};

static void print_event_json(const struct event *e)
{
	static const char *const kinds[] = {"held",    "again", "ended",
					    "resumed", "kept",  "released"};
	struct json_object *o = json_object_new_object();

	gp_field_put_text(o, "event", kinds[e->kind]);
	gp_field_put(o, "pid", (uint64_t)e->pid);
	gp_field_put_text(o, "name", e->name);
	if (e->device >= 0)
		gp_field_put(o, "device", (uint64_t)e->device);
	gp_field_put_us(o, e->kind == BEGAN ? "took_us" : "held_us", e->ns);
	gp_field_put_known(o, "again", e->again);
	if (e->kind == RELEASED)
		gp_field_put_eviction(o, &e->evicted);
	if (e->by_policy)
		gp_field_put_bool(o, "by_policy", true);
	if (e->kind == RELEASED && e->lapsed)
		gp_field_put_bool(o, "lapsed", true);
	if (e->worked)
		gp_field_put_bool(o, "worked", true);
	if (e->kind == BEGAN || e->kind == RELEASED || e->kind == RESUMED)
		gp_evidence_to_json(o, e->evidence);
	if (e->kind == BEGAN && env.for_ns != GP_NEVER) {
		gp_field_put_text(o, "until", "time");
		gp_field_put_us(o, "for_us", env.for_ns);
	} else if (e->kind == BEGAN) {
		gp_field_put_text(o, "until", e->device < 0 ? "resume" : "signal");
	}
	gp_print_json_once(o);
}

/* How long the hold lasts. */
static void print_lifetime(const struct event *e)
{
	if (env.for_ns != GP_NEVER)
		printf(", for %s", gp_cli_duration(env.for_ns).text);
	else if (e->device < 0)
		fputs(", kept by the daemon until gpreempt resume", stdout);
	else
		fputs(", until Ctrl-C", stdout);
}

static void print_event_text(const struct event *e)
{
	struct gp_short_text time = gp_cli_duration(e->ns);
	char task[160];

	snprintf(task, sizeof task, "%d (%s)%s%s", e->pid, e->name, e->device_name ? " on " : "",
		 e->device_name ? e->device_name : "");
	switch (e->kind) {
	case BEGAN:
		printf("held %s in %s", task, time.text);
		print_lifetime(e);
		break;
	case AGAIN:
		printf(e->worked ? "%s ran again after %s although the driver said that it was held"
				 : "%s ran again, or a part of it, after %s",
		       task, time.text);
		fputs(": holding it again", stdout);
		break;
	case ENDED:
		printf("%s %s; it was held for %s until then", task,
		       e->lives ? "has no queues any more" : "has ended", time.text);
		break;
	case RESUMED:
		if (e->device >= 0)
			printf("%s was released by another process after %s", task, time.text);
		else
			printf("the hold of %s ended after %s: another process released it, it has "
			       "no queues any more, the daemon ended, or this program was stopped",
			       task, time.text);
		break;
	case KEPT:
		printf("%s stays held by %s", task,
		       e->by_policy ? "the policy of gpreemptd" : "another command");
		if (!e->worked)
			printf("; this one held it for %s", time.text);
		break;
	case RELEASED:
		if (e->worked || e->lapsed)
			printf("released %s, which was not held all the time", task);
		else
			printf("released %s after %s", task, time.text);
		if (e->again)
			printf(" (held again %u time%s)", e->again, e->again == 1 ? "" : "s");
		gp_print_eviction(&e->evicted);
		break;
	}
	if (e->kind == BEGAN || (e->kind == RESUMED && e->device >= 0) ||
	    (e->kind == RELEASED && !e->evicted.ns)) /* evicted: it does no work */
		gp_print_evidence(e->evidence, e->kind == BEGAN);
	putchar('\n');
	fflush(stdout); /* a reader may wait at a pipe */
}

/* Whether the driver says that the task is held, and it goes on working. */
static bool works_on(const struct gp_hold *h)
{
	return h->last.unsure && h->last.failed == -EREMOTEIO;
}

static void print_event(const struct gp_hold *h, enum event_kind kind, uint64_t ns)
{
	const struct event event = {
		.kind = kind,
		.pid = h->ref.seen.pid,
		.name = h->ref.seen.name,
		.device = (int)h->ref.device,
		.device_name = h->ref.gpu->info.name,
		.ns = ns,
		.again = h->again,
		.evicted = {h->last.evicted_ns, h->last.evicted_by_reset},
		.evidence = h->last.evidence,
		.lives = gp_process_lives(h->ref.seen.pid, h->ref.seen.start_time),
		.lapsed = h->lapsed,
		.worked = h->worked,
	};

	(env.json ? print_event_json : print_event_text)(&event);
}

struct task_refs {
	struct gp_task_ref *ref;
	unsigned n;
};

static int add_process(const struct gp_devices *devices, pid_t pid, struct task_refs *list,
		       struct gp_error *err)
{
	struct gp_task_ref found[GP_DEVICES_MAX], *p;
	int n = gp_devices_find(devices, pid, found, GP_DEVICES_MAX, err);
	unsigned added = 0;

	if (n < 0)
		return n;
	p = realloc(list->ref, (list->n + (unsigned)n) * sizeof *p);
	if (!p)
		return gp_fail(err, -ENOMEM, "no memory");
	list->ref = p;
	for (int i = 0; i < n; i++) {
		bool twice = false;

		/* A child that shares its parent's queues is the same task. */
		for (unsigned k = 0; k < list->n; k++)
			twice |= p[k].device == found[i].device &&
				 p[k].seen.key == found[i].seen.key;
		if (env.device >= 0 && (unsigned)env.device != found[i].device)
			continue;
		added++;
		if (!twice)
			p[list->n++] = found[i];
	}
	if (!added)
		return gp_fail(err, -ENODEV, "process %d has no queues on device %d", pid,
			       env.device);
	return 0;
}

/* Makes the queue a task of its own, on the one device that has it. */
static int split_queue(struct task_refs *list, struct gp_error *err)
{
	pid_t pid = env.targets.pid[0];
	unsigned kept = 0;

	for (unsigned i = 0; i < list->n; i++) {
		struct gp_task_ref *p = &list->ref[i];
		int r = gp_gpu_split(p->gpu, pid, env.queue, &p->seen, NULL);

		if (r == -ENOENT)
			continue;
		if (r)
			return gp_fail(err, r,
				       "queue %u of process %d cannot be held by itself: %s",
				       env.queue, pid, gp_error_name(r));
		list->ref[kept++] = *p;
	}
	list->n = kept;
	if (!kept)
		return gp_fail(err, -ESRCH,
			       "process %d has no queue %u to hold; see gpreempt queues %d", pid,
			       env.queue, pid);
	if (kept > 1)
		return gp_fail(err, -EINVAL,
			       "queue %u is on %u devices; choose one with --device N", env.queue,
			       kept);
	return 0;
}

static int refuse_shared(const struct task_refs *list, struct gp_error *err)
{
	int r = 0;

	for (unsigned i = 0; i < list->n && !r; i++) {
		const struct gp_seen *seen = &list->ref[i].seen;

		r = gp_refuse_shared(seen, seen->pid, env.force, GP_WOULD_STOP_ALL, err);
	}
	return r;
}

/* The tasks to hold, each once. The caller frees list->ref, also after a failure. */
static int choose_tasks(const struct gp_devices *devices, struct task_refs *list,
			struct gp_error *err)
{
	int r = 0;

	if (env.device >= 0 && (unsigned)env.device >= devices->n)
		r = gp_fail(err, -ENODEV, "there is no device %d; the last one is %u", env.device,
			    devices->n - 1);
	for (unsigned i = 0; i < env.targets.n && !r; i++)
		r = add_process(devices, env.targets.pid[i], list, err);
	if (!r && !env.targets.n) {
		int n = gp_devices_scan(devices, (unsigned)env.device, &list->ref, err);

		list->n = n > 0 ? (unsigned)n : 0;
		r = n < 0    ? n
		    : n == 0 ? gp_fail(err, -ESRCH, "no process has queues on %s",
				       devices->device[env.device].gpu->info.name)
			     : 0;
	}
	if (!r)
		r = refuse_shared(list, err);
	return !r && env.one_queue ? split_queue(list, err) : r;
}

/* The targets that the daemon holds. */
struct held {
	unsigned n; /* the first n targets */
	char name[GP_TARGETS_MAX][32];
	uint64_t start_time[GP_TARGETS_MAX];
	uint64_t lease[GP_TARGETS_MAX]; /* with --for; 0: there is none, or its end was printed */
	bool again[GP_TARGETS_MAX];     /* it was printed that the hold lapsed */
	uint64_t since_ns;
};

/* `answer` of the daemon, or NULL. */
static void print_daemon_event(const struct held *h, unsigned i, enum event_kind kind, uint64_t ns,
			       struct json_object *answer)
{
	const struct event event = {.kind = kind,
				    .pid = env.targets.pid[i],
				    .name = h->name[i],
				    .device = -1,
				    .ns = ns,
				    .again = (unsigned)gp_field_number_or(answer, "again", 0),
				    .by_policy = gp_field_true(answer, "held_by_policy"),
				    .worked = gp_field_true(answer, "worked"),
				    .evicted = gp_field_eviction(answer),
				    .evidence = gp_field_evidence(answer)};

	(env.json ? print_event_json : print_event_text)(&event);
}

/* A target counts as held also where the daemon did not answer: it may be held, now or soon. */
static int hold_all(struct gp_client *client, struct held *h, struct gp_error *err)
{
	int r = 0;

	for (; h->n < env.targets.n && !r; h->n += !r || r == -ETIMEDOUT || r == -ECONNRESET) {
		pid_t pid = env.targets.pid[h->n];
		uint64_t asked_ns = gp_monotonic_ns();
		struct json_object *params = json_object_new_object(), *answer = NULL;

		if (env.force)
			gp_field_put_bool(params, "force", true);
		if (env.for_ns != GP_NEVER)
			gp_field_put(params, "lease_ns", LEASE_NS);
		gp_process_name(pid, h->name[h->n], sizeof h->name[h->n]);
		h->start_time[h->n] = gp_process_start_time(pid);
		r = gp_ask_about(client, "hold", pid, params, &answer, err);
		if (!r && !gp_field_number_or(answer, "tasks", 1))
			r = gp_fail(err, -ENODEV, "process %d has no queues to hold", pid);
		h->lease[h->n] = gp_field_number_or(answer, "lease", 0);
		if (!r)
			print_daemon_event(h, h->n, BEGAN, gp_monotonic_ns() - asked_ns, answer);
		json_object_put(answer);
	}
	return r;
}

static bool has_ended(const struct held *h, unsigned i)
{
	return gp_process_gone(env.targets.pid[i], h->start_time[i]);
}

static int fail_worked(pid_t pid, struct gp_error *err)
{
	return gp_fail(err, -EREMOTEIO,
		       "process %d was not held all the time: it worked although the driver said "
		       "that it was held",
		       pid);
}

static bool is_held(struct json_object *answer)
{
	return gp_field_true(answer, "held") || gp_field_true(answer, "held_by_other") ||
	       gp_field_true(answer, "held_by_policy");
}

/* The end of a lease, or of all holds of the process. */
static void print_release(const struct held *h, unsigned i, uint64_t held_ns,
			  struct json_object *answer, int *exit)
{
	bool released = gp_field_number_or(answer, "tasks", 1);
	struct gp_error err = {0};

	print_daemon_event(h, i,
			   is_held(answer) ? KEPT
			   : released      ? RELEASED
					   : RESUMED,
			   held_ns, answer);
	if (!gp_field_true(answer, "worked"))
		return;
	fail_worked(env.targets.pid[i], &err);
	*exit = gp_cli_fail(&err);
}

/* Ends the lease. Without one, ends all holds of the process. */
static void ask_release(struct gp_client *client, const struct held *h, unsigned i, int *exit)
{
	uint64_t held_ns = gp_monotonic_ns() - h->since_ns;
	struct json_object *params = json_object_new_object(), *answer = NULL;
	struct gp_error err = {0};
	int r = -ESRCH;

	if (h->lease[i])
		gp_field_put(params, "lease", h->lease[i]);
	if (has_ended(h, i))
		json_object_put(params);
	else
		r = gp_ask_about(client, "release", env.targets.pid[i], params, &answer, &err);
	if (r == -ESRCH) {
		print_daemon_event(h, i, ENDED, held_ns, NULL);
	} else if (r) {
		gp_error_prefix(&err, "process %d may still be held (gpreempt resume %d)",
				env.targets.pid[i], env.targets.pid[i]);
		*exit = gp_cli_fail(&err);
	} else {
		print_release(h, i, held_ns, answer, exit);
	}
	json_object_put(answer);
}

/* Uses a new connection: the daemon closes one that is silent for long. */
static int release_all(const struct held *h)
{
	struct gp_client *client;
	struct gp_error err = {0};
	int exit = GP_EXIT_DONE;

	if (gp_client_connect(NULL, &client, &err)) {
		gp_error_prefix(&err, "cannot release (gpreempt resume --all does)");
		return gp_cli_fail(&err);
	}
	for (unsigned i = 0; i < h->n; i++)
		if (env.for_ns == GP_NEVER || h->lease[i])
			ask_release(client, h, i, &exit);
	gp_client_close(client);
	return exit;
}

/* 0, or -errno if the daemon does not answer. */
static int renew(struct gp_client *client, struct held *h, unsigned i, struct gp_error *err)
{
	struct json_object *params = json_object_new_object(), *answer = NULL;
	uint64_t held_ns = gp_monotonic_ns() - h->since_ns;
	int r;

	gp_field_put(params, "lease", h->lease[i]);
	gp_field_put(params, "lease_ns", LEASE_NS);
	r = gp_ask_about(client, "hold", env.targets.pid[i], params, &answer, err);
	if (!h->again[i] && gp_field_number_or(answer, "again", 0)) {
		h->again[i] = true;
		print_daemon_event(h, i, AGAIN, held_ns, answer);
	}
	json_object_put(answer);
	if (r != -ENOENT && r != -ESRCH)
		return r;
	print_daemon_event(h, i, has_ended(h, i) ? ENDED : RESUMED, held_ns, NULL);
	h->lease[i] = 0;
	*err = (struct gp_error){0};
	return 0;
}

/* Renews the leases. Sets *any if one is left. */
static int renew_all(struct held *h, bool *any, struct gp_error *err)
{
	struct gp_client *client;
	int r = gp_client_connect(NULL, &client, err);

	*any = false;
	if (r)
		return r;
	for (unsigned i = 0; i < h->n && !r; i++) {
		if (h->lease[i])
			r = renew(client, h, i, err);
		*any |= h->lease[i] != 0;
	}
	gp_client_close(client);
	return r;
}

/* Waits for the end of --for, as long as the daemon holds a target. */
static int wait_for_end(struct held *h, uint64_t end_ns, struct gp_error *err)
{
	bool any = true;
	uint64_t now_ns;
	int r = 0;

	while (any && !r && (now_ns = gp_monotonic_ns()) < end_ns) {
		if (gp_stop_sleep(end_ns - now_ns < RENEW_NS ? end_ns : now_ns + RENEW_NS))
			break;
		if (gp_monotonic_ns() < end_ns)
			r = renew_all(h, &any, err);
	}
	if (r)
		gp_error_prefix(err,
				"the hold ends with the daemon, or in %d s (gpreempt resume --all "
				"makes sure)",
				(int)(LEASE_NS / GP_NS_PER_S));
	return r;
}

/*
 * Holds the targets through the daemon. Without --for it returns, and the daemon keeps the hold
 * until a resume; otherwise it waits and releases. If one of several targets cannot be held, all
 * are released. False: no daemon runs.
 */
static bool suspend_by_daemon(int *exit)
{
	struct gp_client *client = gp_ask_if_there();
	static struct held h;
	struct gp_error err = {0};
	int r;

	if (!client)
		return false;
	h.since_ns = gp_monotonic_ns();
	r = hold_all(client, &h, &err);
	gp_client_close(client);
	*exit = r ? gp_cli_fail(&err) : GP_EXIT_DONE;
	if (!r && env.for_ns == GP_NEVER && !gp_stop_asked())
		return true;
	if (!r && wait_for_end(&h, gp_time_add(gp_monotonic_ns(), env.for_ns), &err)) {
		*exit = gp_cli_fail(&err);
	} else if (h.n) {
		int code = release_all(&h);

		*exit = *exit ? *exit : code;
	}
	return true;
}

static uint64_t held_for(const struct gp_hold *h)
{
	return gp_monotonic_ns() - h->since_ns;
}

/* What shows that a task is released that is not attached any more. */
static enum gp_evidence look_at(const struct gp_hold *h)
{
	const struct gp_gpu_command_ops *command = gp_gpu_commands(h->ref.gpu);
	pid_t pid = h->ref.seen.pid;
	bool works = false;

	if (!command->see_work)
		return GP_EVIDENCE_ENOUGH;
	command->see_work(&pid, &works, 1, LOOK_NS);
	return works ? GP_EVIDENCE_ENOUGH : GP_EVIDENCE_DRIVER;
}

/* Drops tasks that have ended, and releases those whose release another process asks for. */
static int drop_gone(struct gp_holds *holds, struct gp_error *err)
{
	int r = 0;

	for (unsigned i = holds->n; i-- > 0 && !r;) {
		struct gp_hold h = holds->hold[i];
		uint64_t held_ns = held_for(&h); /* the release may take long */
		bool ended = gp_hold_has_ended(holds, &holds->hold[i]);

		if (!ended && gp_hold_is_recorded(holds, &h))
			continue;
		r = gp_holds_remove(holds, i, err);
		h.last.evidence = r || ended ? GP_EVIDENCE_ENOUGH : look_at(&h);
		if (!r)
			print_event(&h, ended ? ENDED : RESUMED, held_ns);
	}
	return r;
}

/* Holds tasks again that were released, that have a new queue, or that go on working. */
static int hold_again(struct gp_holds *holds, struct gp_error *err)
{
	bool any = false;
	int r;

	for (unsigned i = 0; i < holds->n; i++) {
		struct gp_hold *h = &holds->hold[i];

		if (h->held && !works_on(h))
			continue;
		any = true;
		h->worked |= works_on(h);
		if (!h->again && !h->lapsed)
			print_event(h, AGAIN, held_for(h));
		h->lapsed = true;
	}
	if (!any)
		return 0;
	/* Limits the rate against a process that releases the task all the time. */
	gp_stop_sleep(gp_monotonic_ns() + PAUSE_NS);
	r = gp_stop_asked() ? 0 : gp_holds_hold(holds, err);
	for (unsigned i = 0; i < holds->n; i++) {
		struct gp_hold *h = &holds->hold[i];

		h->again += h->lapsed && h->held;
		h->lapsed &= !h->held;
	}
	return r;
}

static int hold_until_end(struct gp_holds *holds, struct gp_error *err)
{
	uint64_t end_ns = gp_time_add(gp_monotonic_ns(), env.for_ns);
	int r = 0;

	while (holds->n && !r && !gp_stop_asked()) {
		uint64_t now_ns = gp_monotonic_ns();

		if (now_ns >= end_ns)
			break;
		gp_holds_wait(holds, end_ns < now_ns + TICK_NS ? end_ns : now_ns + TICK_NS,
			      gp_stop_fd());
		if (!gp_undo_is_current(holds->undo))
			return gp_fail(err, -ESTALE,
				       "the undo file was removed, replaced or truncated, so that "
				       "nothing would release the processes if this command were "
				       "killed; so it ends early; run gpreempt suspend again");
		gp_holds_heartbeat(holds);
		r = drop_gone(holds, err);
		gp_holds_refresh(holds);
		if (!r && !gp_stop_asked())
			r = hold_again(holds, err);
		if (r == -ESRCH) { /* the process has ended; drop_gone reports it */
			*err = (struct gp_error){0};
			r = 0;
		}
	}
	return r;
}

/* Fails with the preemption types of the device, or only those with a grace. */
static int refuse_type(const struct gp_gpu *gpu, bool with_grace, struct gp_error *err)
{
	unsigned n;
	const struct gp_preempt_type *type = gp_gpu_preempt_types(gpu, &n);
	char offered[128] = "";

	for (unsigned i = 0; i < n; i++)
		if (!with_grace || type[i].grace_max)
			snprintf(offered + strlen(offered), sizeof offered - strlen(offered),
				 "%s%s", *offered ? ", " : "", type[i].name);
	if (!with_grace)
		return gp_fail(err, -EINVAL, "%s has no preemption type '%s'; it offers: %s",
			       gpu->info.name, env.type, offered);
	if (*offered)
		return gp_fail(err, -EINVAL, "--grace goes with --type %s; leave it out", offered);
	return gp_fail(err, -EINVAL, "%s has no preemption type with a grace; leave out --grace",
		       gpu->info.name);
}

/* The device's type that --type names. Without --type it is the default, or with --grace the first
 * type that has one. NULL: the device has no such type. */
static const struct gp_preempt_type *find_type(const struct gp_preempt_type *type, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (env.type ? !strcmp(type[i].name, env.type) : !env.grace || type[i].grace_max)
			return &type[i];
	return NULL;
}

static int choose_type(const struct gp_hold *h, struct gp_error *err)
{
	struct gp_gpu *gpu = h->ref.gpu;
	unsigned n;
	const struct gp_preempt_type *offered = gp_gpu_preempt_types(gpu, &n);
	const struct gp_preempt_type *type = find_type(offered, n);
	int r;

	if (!type)
		return refuse_type(gpu, !env.type, err);
	if (env.grace > type->grace_max)
		return refuse_type(gpu, true, err);
	if (type == offered) /* a task that was just attached has the default */
		return 0;
	r = gp_gpu_set_preempt_type(gpu, h->handle, env.grace ? env.grace : type->value);
	return r ? gp_fail(err, r, "%s refuses preemption type %s: %s", gpu->info.name, type->name,
			   gp_error_name(r))
		 : 0;
}

static int choose_types(const struct gp_holds *holds, struct gp_error *err)
{
	int r = 0;

	for (unsigned i = 0; i < holds->n && !r; i++)
		r = choose_type(&holds->hold[i], err);
	return r;
}

static int suspend(struct gp_holds *holds, struct gp_error *err)
{
	int r = choose_types(holds, err);

	gp_holds_heartbeat(holds); /* the driver may hang after the first of several holds */
	if (!r)
		r = gp_holds_hold(holds, err);
	for (unsigned i = 0; i < holds->n && !r; i++)
		print_event(&holds->hold[i], BEGAN, holds->hold[i].took_ns);
	return r ? r : hold_until_end(holds, err);
}

static bool any_misses_work(const struct gp_holds *holds)
{
	for (unsigned i = 0; i < holds->n; i++)
		if (!holds->hold[i].held && holds->hold[i].last.evidence == GP_EVIDENCE_DRIVER)
			return true;
	return false;
}

/* A program that worked before the hold is usually seen to work after it. */
static void look_for_work(struct gp_holds *holds)
{
	uint64_t until_ns = gp_monotonic_ns() + WORK_NS;

	gp_holds_refresh(holds);
	while (any_misses_work(holds) && gp_monotonic_ns() < until_ns) {
		gp_holds_wait(holds, gp_monotonic_ns() + PAUSE_NS, -1);
		gp_holds_refresh(holds);
	}
}

/* Releases everything, also after a failure. An earlier message in `err` is kept. */
static int release(struct gp_holds *holds, struct gp_error *err)
{
	int r = gp_holds_release(holds, err), last = gp_holds_put_back(holds, err);
	uint64_t now_ns = gp_monotonic_ns();

	r = r ? r : last;
	look_for_work(holds);
	for (unsigned i = 0; i < holds->n; i++) {
		const struct gp_hold *h = &holds->hold[i];

		if (h->status)
			fprintf(stderr,
				"gpreempt: process %d may still be held; run gpreempt "
				"resume %d\n",
				h->ref.seen.pid, h->ref.seen.pid);
		else if (h->since_ns)
			print_event(h, RELEASED, now_ns - h->since_ns);
		if (h->worked && !r)
			r = fail_worked(h->ref.seen.pid, err);
	}
	return r;
}

static int run_on(const struct gp_devices *devices, struct gp_error *err)
{
	struct task_refs list = {0};
	struct gp_holds holds = {0};
	int r = choose_tasks(devices, &list, err), last;

	if (!r) {
		r = gp_holds_begin(&holds, devices, list.ref, list.n, err);
		if (!r)
			r = suspend(&holds, err);
		last = release(&holds, err);
		r = r ? r : last;
		gp_holds_end(&holds);
	}
	free(list.ref);
	return r;
}

/* The daemon holds whole processes, and on all devices. */
static bool is_for_daemon(void)
{
	return !env.no_daemon && !env.one_queue && env.device < 0 && !env.type && !env.grace;
}

static int run(struct gp_error *err)
{
	struct gp_devices devices;
	int r;

	if (env.type && !strcmp(env.type, "reset"))
		return gp_fail(err, -EINVAL,
			       "--type reset is not offered: the program would lose its work; "
			       "--type save keeps it");
	r = gp_stop_begin(err);
	if (!r)
		r = gp_targets_resolve(&env.targets, err);
	if (!r && is_for_daemon() && suspend_by_daemon(&r))
		return r;
	if (!r)
		r = gp_devices_open(&devices, 0, err);
	if (r)
		return r;
	r = run_on(&devices, err);
	gp_devices_close(&devices);
	return r;
}

const struct gp_verb gp_verb_suspend = {
	.name = "suspend",
	.summary = "keep processes off the GPU until Ctrl-C, for a time, or until resume",
	.arguments = "PID...\n--device N",
	.targets = &env.targets,
	.options = options,
	.check = check,
	.doc = "Keep processes off the GPU. Their work waits and is not lost. The first line says "
	       "how long the hold lasts: until Ctrl-C, for the time of --for, or, if a daemon "
	       "runs, "
	       "until gpreempt resume.\v"
	       "If this program is killed, gpreempt resume --all releases the processes.\n\n"
	       "Examples:\n"
	       "  gpreempt suspend 4711\n"
	       "  gpreempt suspend 4711 4712 --for 10s\n"
	       "  gpreempt suspend 4711 --type drain --grace 50\n"
	       "  gpreempt suspend --device 0 --for 500ms\n",
	.run = run,
};
