/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt resume: releases held processes, whichever process held them, also if that one died. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/ask/with_daemon.h"
#include "cli/verb/resume.h"
#include "cli/lib/targets.h"
#include "hold/devices.h"
#include "gpu/backends.h"
#include "hold/replay.h"

static struct {
	struct gp_targets targets;
	bool all, json;
	bool no_daemon;
} env;

#define OWNER_NS (3 * GP_NS_PER_S) /* for owners to release what they were asked to */
#define UNDO_NS  (5 * GP_NS_PER_S) /* for a driver to answer */
#define PAUSE_US 10000

enum { NO_DAEMON = 0x2000 };

static const struct argp_option options[] = {
	{"all", 'a', NULL, 0, "All processes that have queues, with and without an undo record", 0},
	{"no-daemon", NO_DAEMON, NULL, 0, "Use the undo records only, also if a daemon runs", 0},
	{"json", 'j', NULL, 0, "Write JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT: gp_targets_init(&env.targets, GP_TARGETS_MAX, state); break;
	case 'a': env.all = true; break;
	case 'j': env.json = true; break;
	case NO_DAEMON: env.no_daemon = true; break;
	case ARGP_KEY_END:
		if (env.all == (env.targets.n > 0))
			argp_error(state, "give either PIDs or --all");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static bool is_target(pid_t pid)
{
	for (unsigned i = 0; i < env.targets.n; i++)
		if (env.targets.pid[i] == pid)
			return true;
	return env.all;
}

/* Belongs to another user, and this process may not inspect it. */
static bool is_foreign(pid_t pid)
{
	uid_t uid;

	return !gp_have_ptrace() && gp_process_uid(pid, &uid) && uid != geteuid();
}

/* Asks every back end: a process may use several. Returns the number of queues, or -errno. */
static int release_everywhere(pid_t pid, struct gp_error *err)
{
	int reached = 0, r = -ENODEV;

	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++) {
		struct gp_error why = {0};
		int n = gp_backend_release_process(*b, pid, &why);

		if (n >= 0)
			reached += n;
		else if (n != -ENODEV && n != -ENOTSUP)
			r = gp_fail(err, n, "%s", why.text);
	}
	if (reached)
		return reached;
	return gp_fail(err, r, "process %d has no queues to release", pid);
}

static struct gp_outcome_owner name_owner(pid_t pid, enum gp_owner_state state)
{
	struct gp_outcome_owner owner = {.pid = pid, .state = state};

	gp_process_name(pid, owner.name, sizeof owner.name);
	return owner;
}

/* Lets the daemon release what users held, and notes the targets that it refused. */
static void ask_daemon(struct gp_outcome *o)
{
	struct gp_daemon_released released;
	struct gp_outcome_owner daemon;

	if (env.no_daemon || !gp_daemon_resume(&env.targets, env.all, &released))
		return;
	o->daemon = released.daemon;
	o->foreign_daemon = o->daemon && is_foreign(o->daemon);
	o->answer = released.err;
	daemon = name_owner(o->daemon, GP_OWNER_RUNS);
	for (unsigned i = 0; i < released.n; i++)
		gp_outcome_released(o, released.pid[i], &daemon);
	if (released.others) {
		struct gp_error err = {0};

		gp_fail(&err, -EPERM,
			"%u task%s held by other users stay%s held; root can release them",
			released.others, released.others == 1 ? "" : "s",
			released.others == 1 ? "s" : "");
		o->exit = gp_cli_fail(&err);
	}
	for (unsigned i = 0; released.err && i < env.targets.n; i++)
		if (released.err[i].code == -EPERM || released.err[i].code == -EACCES)
			gp_outcome_failed(o, env.targets.pid[i], &released.err[i]);
	free(released.pid);
}

/* The daemon's reason for which it could not release the process; NULL: it could, or the daemon
 * does not know the process, which may still have a record. */
static const struct gp_error *daemon_failure(const struct gp_outcome *o, pid_t pid)
{
	for (unsigned i = 0; o->answer && i < env.targets.n; i++)
		if (env.targets.pid[i] == pid && o->answer[i].code && o->answer[i].code != -ESRCH)
			return &o->answer[i];
	return NULL;
}

/* Reports the daemon's failures for which the undo records were of no help. */
static void report_failures(struct gp_outcome *o)
{
	for (unsigned i = 0; i < env.targets.n; i++) {
		const struct gp_error *err = daemon_failure(o, env.targets.pid[i]);

		if (err)
			gp_outcome_failed(o, env.targets.pid[i], err);
	}
}

/* The daemon's policy decides whether it runs; there is nothing to undo. */
static void report_scheduled(struct gp_outcome *o, pid_t pid)
{
	if (gp_outcome_is_done(o, pid))
		return;
	gp_outcome_note(o, pid);
	o->unchanged++;
	if (!env.all && !env.json)
		printf("%d is scheduled by the daemon (%d) and not held by a user; gpreempt set %d "
		       "--class unmanaged ends that\n",
		       pid, o->daemon, pid);
}

/* Targets that root's daemon knows, and that no user held. Its records are not readable here. */
static void report_foreign(struct gp_outcome *o)
{
	for (unsigned i = 0; o->answer && i < env.targets.n; i++)
		if (!o->answer[i].code)
			report_scheduled(o, env.targets.pid[i]);
}

/* Undoes a record. 0, -ESRCH: the process has ended, or -errno with a sentence. */
static int undo(const struct gp_undo_entry *e, struct gp_error *err)
{
	int r = gp_record_undo_within(e, UNDO_NS, err);
	bool unknown = !gp_backend_find(e->backend);

	if (unknown && !gp_record_process_lives(e))
		return -ESRCH;
	if (!r || r == -ESRCH)
		return r;
	/* If the record is damaged or of another build, at least the queues are released. */
	if ((r == -EINVAL || unknown) && release_everywhere(e->undo.pid, NULL) > 0)
		return 0;
	if (unknown)
		return gp_fail(err, r,
			       "the record of process %d is for back end '%s', which this build "
			       "does not have",
			       e->undo.pid, e->backend);
	return gp_fail(err, r, "cannot release process %d: %s", e->undo.pid, gp_error_name(r));
}

/* Also if the process has ended: a child may have its queues. */
static void replay(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *e,
		   struct gp_outcome *o)
{
	struct gp_outcome_owner ended = name_owner(e->owner, GP_OWNER_ENDED);
	struct gp_error err = {0};
	int r = undo(e, &err);

	if (r && r != -ESRCH) {
		gp_outcome_failed(o, e->undo.pid, &err);
		return;
	}
	gp_undo_drop_same(file, slot, e);
	if (r)
		o->stale++;
	else
		gp_outcome_released(o, e->undo.pid, e->owner ? &ended : NULL);
}

/* A record of a living owner that was asked to release the task. */
struct asked {
	unsigned slot;
	struct gp_undo_entry entry;
	struct gp_outcome_owner owner;
};

/* Whether the owner has not dropped its record yet. A dropped record means that the owner has seen
 * the release. */
static bool is_there(const struct gp_undo_file *file, const struct asked *a)
{
	struct gp_undo_entry e;

	return gp_undo_get(file, a->slot, &e) && e.undo.key == a->entry.undo.key &&
	       e.undo.pid == a->entry.undo.pid && e.undo.start_time == a->entry.undo.start_time &&
	       (e.claimed || !gp_undo_owner_lives(&e) ||
		(e.release_asked && e.owner == a->entry.owner));
}

/* Whether to wait for the owner. One that is stopped, frozen or silent does not answer. */
static bool may_answer(const struct gp_undo_file *file, const struct asked *a)
{
	return is_there(file, a) &&
	       gp_record_owner_state(file, a->slot, &a->entry) == GP_OWNER_RUNS;
}

static void wait_for_owners(const struct gp_undo_file *file, const struct asked *list, unsigned n)
{
	uint64_t until_ns = gp_monotonic_ns() + OWNER_NS;

	for (unsigned i = 0; i < n; i++)
		while (gp_monotonic_ns() < until_ns && may_answer(file, &list[i]))
			usleep(PAUSE_US);
}

/*
 * The owner lives and does not release the task: takes the task from it. The record stays, because
 * the owner may continue in the middle of a hold. It then finds that the release was asked for.
 */
static void take(const struct gp_undo_file *file, struct asked *a, struct gp_outcome *o)
{
	enum gp_owner_state state = gp_record_owner_state(file, a->slot, &a->entry);
	struct gp_undo_entry e = gp_record_to_take(&a->entry);
	struct gp_error err = {0}, all = {0};
	pid_t pid = e.undo.pid;
	char name[32];
	int r = undo(&e, &err);

	a->owner.state = state == GP_OWNER_RUNS ? GP_OWNER_DEAF : state;
	if (r == -ESRCH) {
		o->stale++;
	} else if (!r) {
		gp_outcome_released(o, pid, &a->owner);
	} else {
		gp_fail(&all, r,
			"process %d (%s) may still be held by process %d (%s), which %s; run kill "
			"-9 "
			"%d, then gpreempt resume %d: %s",
			pid, gp_process_name(pid, name, sizeof name), e.owner, a->owner.name,
			gp_owner_state_text(a->owner.state), e.owner, pid, err.text);
		gp_outcome_failed(o, pid, &all);
	}
}

/* Reports what became of the request. */
static void finish(struct gp_undo_file *file, struct asked *a, struct gp_outcome *o)
{
	struct gp_undo_entry e;

	if (is_there(file, a) && gp_undo_owner_lives(&a->entry))
		take(file, a, o);
	else if (is_there(file, a) && gp_undo_get(file, a->slot, &e))
		replay(file, a->slot, &e, o);
	else if (gp_record_process_lives(&a->entry))
		gp_outcome_released(o, a->entry.undo.pid, &a->owner);
	else
		o->stale++;
}

/*
 * Asks the living owners, and undoes the records of the others: of processes that live, or of those
 * that have ended. Appends to the `n` that were asked and returns their number.
 */
static unsigned begin_replay(struct gp_undo_file *file, bool ended, struct asked *list, unsigned n,
			     struct gp_outcome *o)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		if (!gp_undo_get(file, i, &e) || !is_target(e.undo.pid) ||
		    gp_record_process_lives(&e) == ended)
			continue;
		/* A request that stays in the record was not fulfilled. */
		if (o->daemon && e.owner == o->daemon && !e.release_asked &&
		    !daemon_failure(o, e.undo.pid)) {
			report_scheduled(o, e.undo.pid);
		} else if (!gp_undo_owner_lives(&e)) {
			replay(file, i, &e, o);
		} else if (n < GP_UNDO_SLOTS) {
			gp_undo_ask_release(file, i, &e);
			list[n++] = (struct asked){
				.slot = i, .entry = e, .owner = name_owner(e.owner, GP_OWNER_RUNS)};
		}
	}
	return n;
}

static int replay_records(struct gp_outcome *o, struct gp_error *err)
{
	static struct asked list[GP_UNDO_SLOTS];
	struct gp_undo_file *file;
	unsigned n;
	int r = gp_undo_open(&file, false, err);

	if (r == -ENOENT) {
		*err = (struct gp_error){0};
		return 0;
	}
	if (r)
		return r;
	/* The search for the heirs of an ended process looks at all processes. */
	n = begin_replay(file, false, list, 0, o);
	n = begin_replay(file, true, list, n, o);
	gp_undo_bump(file); /* the owners look at their records */
	wait_for_owners(file, list, n);
	for (unsigned i = 0; i < n; i++)
		finish(file, &list[i], o);
	if (n)
		gp_undo_bump(file);
	gp_undo_close(file);
	return 0;
}

/* The tasks of one process. Always asks for a release: not every driver tells that a queue is
 * held. */
static void release_process(const struct gp_task_ref *ref, int n, struct gp_outcome *o)
{
	struct gp_error err = {0};
	pid_t pid = ref->seen.pid;
	bool changed = false;
	int r;

	if (gp_outcome_is_done(o, pid))
		return;
	for (int i = 0; i < n; i++)
		changed |= gp_task_ref_looks_changed(&ref[i]);
	r = release_everywhere(pid, &err);
	if (r == -ESRCH || r == -ENODEV)
		return; /* the process has ended */
	if (r < 0) {
		gp_outcome_failed(o, pid, &err);
	} else if (changed) {
		gp_outcome_released(o, pid, NULL);
	} else {
		o->unchanged++;
		gp_outcome_note(o, pid);
	}
}

static void release_all(const struct gp_devices *devices, struct gp_outcome *o)
{
	struct gp_error err = {0};
	struct gp_task_ref *ref, found[GP_DEVICES_MAX];
	int n = gp_devices_scan(devices, GP_DEVICES_MAX, &ref, &err);

	if (n < 0)
		o->exit = gp_cli_fail(&err);
	for (int i = 0; i < n; i++) {
		int k = gp_devices_find(devices, ref[i].seen.pid, found, GP_DEVICES_MAX, NULL);

		if (k > 0)
			release_process(found, k, o);
	}
	free(ref);
}

static void release_named(const struct gp_devices *devices, struct gp_outcome *o)
{
	for (unsigned i = 0; i < env.targets.n; i++) {
		struct gp_task_ref found[GP_DEVICES_MAX];
		struct gp_error err = {0};
		pid_t pid = env.targets.pid[i];
		int n = gp_outcome_is_done(o, pid)
				? 0
				: gp_devices_find(devices, pid, found, GP_DEVICES_MAX, &err);

		/* Some drivers show processes of other users, but not whether they are held. */
		if (n > 0 && is_foreign(pid))
			n = gp_process_denied(&err, pid, -EPERM);
		if (n < 0)
			gp_outcome_failed(o, pid, &err);
		else if (n)
			release_process(found, n, o);
	}
}

static bool all_done(const struct gp_outcome *o)
{
	for (unsigned i = 0; i < env.targets.n; i++)
		if (!gp_outcome_is_done(o, env.targets.pid[i]))
			return false;
	return !env.all;
}

static void release_unrecorded(struct gp_outcome *o)
{
	struct gp_devices devices;
	struct gp_error err = {0};

	if (o->foreign_daemon)
		report_foreign(o);
	if (all_done(o) || (o->foreign_daemon && env.all))
		return; /* the rest is scheduled by the daemon */
	if (gp_devices_open(&devices, 0, &err)) {
		/* Without a device nothing can be held. */
		if (!env.all || err.code != -ENODEV)
			o->exit = o->exit ? o->exit : gp_cli_fail(&err);
		return;
	}
	(env.all ? release_all : release_named)(&devices, o);
	gp_devices_close(&devices);
}

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		GP_TARGETS_ARGP("PID...\n--all"),
		.doc = "Resume held processes, whichever process held them. Undo records are used "
		       "where "
		       "they exist.\v"
		       "Examples:\n"
		       "  gpreempt resume 4711\n"
		       "  gpreempt resume --all\n",
	};
	struct gp_outcome outcome = {0};
	struct gp_error err = {0};

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (gp_targets_resolve(&env.targets, &err))
		return gp_cli_fail(&err);
	outcome.json = env.json;
	gp_outcome_begin(&outcome);
	ask_daemon(&outcome);
	/* Goes on if the records cannot be read: queues can be released without them. */
	if (replay_records(&outcome, &err) && !(err.code == -EACCES && outcome.foreign_daemon))
		outcome.exit = gp_cli_fail(&err);
	report_failures(&outcome);
	release_unrecorded(&outcome);
	gp_outcome_end(&outcome);
	free(outcome.done);
	free(outcome.answer);
	return outcome.exit;
}

const struct gp_verb gp_verb_resume = {
	.name = "resume",
	.summary = "let held processes run again; --all always works",
	.run = run,
};
