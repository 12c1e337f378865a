/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt resume: releases held processes, whichever process held them, also if that one died.
 *
 * In this file: the results; what the daemon releases; the replay of undo records; the release of
 * queues without a record.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "gpu/backends.h"
#include "hold/devices.h"
#include "hold/replay.h"
#include "task/json/task_json.h"

static struct {
	struct gp_targets targets;
	bool all, json;
	bool no_daemon;
} env;

#define OWNER_NS (3 * GP_NS_PER_S)     /* for owners to release what they were asked to */
#define UNDO_NS  (5 * GP_NS_PER_S)     /* for a driver to answer */
#define WATCH_NS (1 * GP_NS_PER_S)     /* for an unknown holder to hold again */
#define LOOK_NS  (1200 * GP_NS_PER_MS) /* for released processes to work: NVML is 1 s late */
#define PAUSE_US 10000

static const struct gp_option options[] = {
	{"all", 'a', NULL, "All processes that have queues, with and without an undo record",
	 .flag = &env.all},
	{"no-daemon", 0, NULL, "Use the undo records only, also if a daemon runs",
	 .flag = &env.no_daemon},
	{"json", 'j', NULL, "Write JSON", .flag = &env.json},
	{0},
};

static void check(struct argp_state *state)
{
	if (env.all == (env.targets.n > 0))
		argp_error(state, "give either PIDs or --all");
}

/* The process that held another. The name is read before the release, which may end the process. */
struct owner {
	pid_t pid;
	char name[32];
	enum gp_owner_state state; /* GP_OWNER_RUNS: it released the process */
};

/* A released process, and what is said of it at the end. */
struct released {
	pid_t pid;
	char name[32];
	bool has_owner; /* the process that held it is known */
	bool by_policy; /* the policy of the daemon holds it */
	struct owner owner;
	struct gp_eviction evicted;
	enum gp_evidence evidence;
	const struct gp_gpu_ops *ops; /* looks for its work; NULL: the daemon has looked */
};

/* The results so far. A process is reported once, also if it has several records. */
struct outcome {
	struct released *released;
	unsigned nreleased, released_capacity;
	unsigned unchanged;  /* processes that had nothing to undo */
	unsigned stale;      /* records of processes that have ended */
	bool undid;          /* a record was replayed: another scheduler may have to act again */
	int exit;            /* of the first failure */
	pid_t daemon;        /* that answered: its own tasks stay as they are; 0 = none */
	bool foreign_daemon; /* the daemon's records are not readable for this user */
	struct gp_error *answer;   /* of the daemon, by target; .code 0: it knows the process */
	bool *held_by_other;       /* likewise: a program that the daemon does not know holds it */
	struct json_object *tasks; /* of the daemon that answered; NULL: none */
	unsigned n, capacity;
	pid_t *done;         /* processes that are reported */
	struct freed *freed; /* released without a record, and not reported yet */
};

/* A process that was visibly held, and that no record names. */
struct freed {
	struct freed *next;
	pid_t pid;
	int n;
	struct gp_task_ref ref[]; /* its tasks */
};

static bool is_done(const struct outcome *o, pid_t pid)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->done[i] == pid)
			return true;
	return false;
}

/* Room for one more element of a list. */
static void *grow(void *list, unsigned n, unsigned *capacity, size_t size)
{
	void *p = list;

	if (n == *capacity) {
		*capacity = *capacity ? 2 * *capacity : 64;
		p = realloc(list, *capacity * size);
	}
	if (!p) {
		fputs("gpreempt: no memory\n", stderr);
		exit(GP_EXIT_FAILED);
	}
	return p;
}

/* Marks a process as reported. */
static void note_done(struct outcome *o, pid_t pid)
{
	o->done = grow(o->done, o->n, &o->capacity, sizeof *o->done);
	o->done[o->n++] = pid;
}

/* `owner` NULL: the process that held it is not known. `answer`: of the daemon, or NULL. `ops`: the
 * back end that released it, if that was not the daemon. */
static void note_released(struct outcome *o, pid_t pid, const struct owner *owner,
			  struct json_object *answer, const struct gp_gpu_ops *ops)
{
	struct released *r;

	if (is_done(o, pid))
		return;
	note_done(o, pid);
	o->released = grow(o->released, o->nreleased, &o->released_capacity, sizeof *r);
	r = &o->released[o->nreleased++];
	*r = (struct released){
		.pid = pid,
		.has_owner = owner,
		.by_policy = gp_field_true(answer, "held_by_policy"),
		.evicted = gp_field_eviction(answer),
		.evidence = gp_field_evidence(answer),
		.ops = ops,
	};
	if (owner)
		r->owner = *owner;
	gp_process_name(pid, r->name, sizeof r->name);
}

static void print_released(const struct outcome *o, const struct released *r)
{
	const struct owner *owner = &r->owner;

	if (r->by_policy) {
		printf("%d (%s) is not held by a user any more; the policy of gpreemptd holds it\n",
		       r->pid, r->name);
		return;
	}
	printf("released %d (%s)", r->pid, r->name);
	if (!r->has_owner)
		;
	else if (owner->state == GP_OWNER_ENDED)
		printf("; process %d held it and ended without releasing it", owner->pid);
	else if (owner->state == GP_OWNER_DEAF)
		printf("; process %d (%s) held it and %s: it runs, and may hold it again; its undo "
		       "record stays until process %d drops it or ends",
		       owner->pid, owner->name, gp_owner_state_text(owner->state), owner->pid);
	else if (owner->state != GP_OWNER_RUNS)
		printf("; process %d (%s) held it and %s, so its undo record stays until that "
		       "process runs or ends",
		       owner->pid, owner->name, gp_owner_state_text(owner->state));
	else if (owner->pid == o->daemon)
		printf("; %s (%d) schedules it again if it has a class", owner->name, owner->pid);
	else
		printf(", which %d (%s) held", owner->pid, owner->name);
	gp_print_eviction(&r->evicted);
	gp_print_evidence(r->evidence, false);
	putchar('\n');
}

static void add_released(struct json_object *list, const struct released *r)
{
	struct json_object *process = gp_list_object(list);

	gp_field_put(process, "pid", (uint64_t)r->pid);
	gp_field_put_text(process, "name", r->name);
	gp_field_put_known(process, "owner", r->has_owner ? (uint64_t)r->owner.pid : 0);
	if (r->by_policy)
		gp_field_put_bool(process, "held_by_policy", true);
	gp_evidence_to_json(process, r->evidence);
	gp_field_put_eviction(process, &r->evicted);
}

/* Looks for the work of the processes that a back end has released, if work alone confirms it. */
static void look_for_work(struct outcome *o, const struct gp_gpu_ops *ops)
{
	pid_t pid[GP_SEE_WORK_MAX];
	bool works[GP_SEE_WORK_MAX] = {0};
	unsigned n = 0, k = 0;

	for (unsigned i = 0; i < o->nreleased; i++) {
		if (o->released[i].ops != ops)
			continue;
		o->released[i].evidence = GP_EVIDENCE_DRIVER;
		if (n < GP_SEE_WORK_MAX)
			pid[n++] = o->released[i].pid;
	}
	if (n)
		gp_see_work_within(ops, pid, works, n, LOOK_NS);
	for (unsigned i = 0; i < o->nreleased && k < n; i++)
		if (o->released[i].ops == ops && works[k++])
			o->released[i].evidence = GP_EVIDENCE_ENOUGH;
}

static void note_failed(struct outcome *o, pid_t pid, const struct gp_error *err)
{
	int code;

	if (is_done(o, pid))
		return; /* by another record */
	code = gp_cli_fail(err);
	note_done(o, pid);
	o->exit = o->exit ? o->exit : code == GP_EXIT_USAGE ? GP_EXIT_FAILED : code;
}

static void print_json(const struct outcome *o)
{
	struct json_object *all = json_object_new_object(), *list = json_object_new_array();

	for (unsigned i = 0; i < o->nreleased; i++)
		add_released(list, &o->released[i]);
	json_object_object_add(all, "released", list);
	gp_field_put(all, "unchanged", o->unchanged);
	gp_field_put(all, "ended", o->stale);
	gp_print_json_once(all);
}

static bool is_held_by_user(struct json_object *task)
{
	char words[64];

	return gp_field_words(task, "held_by", words, sizeof words) && strstr(words, "user");
}

/* Whether the daemon schedules the task. Its policy may hold it now. */
static bool is_managed(struct json_object *task)
{
	const char *class = gp_field_text(task, "class");

	return class && strcmp(class, gp_class_name(GP_UNMANAGED)) != 0;
}

/* A task that a user held, or whose last release only the driver confirms: the daemon asks for that
 * again. */
static bool is_to_be_released(struct json_object *task)
{
	char words[64];
	bool is_held = gp_field_words(task, "held_by", words, sizeof words) && *words;

	return is_held ? is_held_by_user(task)
		       : is_managed(task) && gp_field_evidence(task) == GP_EVIDENCE_DRIVER;
}

/* The pid of the daemon, which owns its records; 0: not known. With socket activation the peer of
 * the socket may be another process. */
static pid_t daemon_pid(struct gp_client *client)
{
	struct json_object *answer = NULL;
	pid_t pid;

	gp_client_call(client, "stats", NULL, &answer, NULL);
	pid = (pid_t)gp_field_number_or(gp_field(answer, "daemon"), "pid", 0);
	json_object_put(answer);
	return pid;
}

/* All tasks; NULL if the daemon does not answer. */
static struct json_object *ask_tasks(struct gp_client *client)
{
	struct json_object *devices, *tasks;
	int r = gp_ask_devices(client, &devices, NULL);

	if (r)
		return NULL;
	r = gp_ask_tasks(client, devices, &tasks, NULL);
	json_object_put(devices);
	return r ? NULL : tasks;
}

/* The same task in a later list; NULL: it is gone. */
static struct json_object *find_again(struct json_object *tasks, struct json_object *task)
{
	for (size_t i = 0; i < json_object_array_length(tasks); i++) {
		struct json_object *t = json_object_array_get_idx(tasks, i);

		if (gp_field_number_or(t, "task", 0) == gp_field_number_or(task, "task", 0) &&
		    gp_field_number_or(t, "device", 0) == gp_field_number_or(task, "device", 0))
			return t;
	}
	return NULL;
}

/* Belongs to another user, and this process may not inspect it. */
static bool is_foreign(pid_t pid)
{
	uid_t uid;

	return !gp_have_ptrace() && gp_process_uid(pid, &uid) && uid != geteuid();
}

/* Tasks of other users may stay held: only root and the group gpreempt release them. */
static int ask_release_all(struct gp_client *client, struct outcome *o, const struct owner *daemon,
			   struct gp_error *why)
{
	struct json_object *before = ask_tasks(client);
	int r = gp_client_call(client, "release_all", NULL, NULL, why);
	struct json_object *after = r ? NULL : ask_tasks(client);
	struct gp_error err = {0};
	unsigned others = 0;

	for (size_t i = 0; before && after && i < json_object_array_length(before); i++) {
		struct json_object *t = json_object_array_get_idx(before, i), *now;
		pid_t pid = (pid_t)gp_field_number_or(t, "pid", 0);
		uint64_t start_time = gp_field_number_or(t, "start_time", 0);

		if (!is_to_be_released(t) || (!is_held_by_user(t) && is_foreign(pid)))
			continue;
		if (start_time && gp_process_gone(pid, start_time))
			continue; /* the hold ended with the process */
		now = find_again(after, t);
		if (now && is_held_by_user(now))
			others++;
		else
			note_released(o, pid, daemon, now, NULL);
	}
	json_object_put(before);
	o->tasks = after;
	if (others) {
		gp_fail(&err, -EPERM,
			"%u task%s held by other users stay%s held; root can release them", others,
			others == 1 ? "" : "s", others == 1 ? "s" : "");
		o->exit = gp_cli_fail(&err);
	}
	return r;
}

/* Only such tasks are reported as released. */
static bool any_to_be_released(struct json_object *tasks, pid_t pid)
{
	for (size_t i = 0; tasks && i < json_object_array_length(tasks); i++) {
		struct json_object *t = json_object_array_get_idx(tasks, i);

		if (gp_field_number_or(t, "pid", 0) == (uint64_t)pid && is_to_be_released(t))
			return true;
	}
	return false;
}

/* Whether the daemon schedules the process. It may be attached to it without a record. */
static bool is_scheduled(const struct outcome *o, pid_t pid)
{
	for (size_t i = 0; o->tasks && i < json_object_array_length(o->tasks); i++) {
		struct json_object *t = json_object_array_get_idx(o->tasks, i);

		if (gp_field_number_or(t, "pid", 0) == (uint64_t)pid && is_managed(t))
			return true;
	}
	return false;
}

/* Whether a call failed because the daemon gave no answer. */
static bool is_silence(int code)
{
	return code == -ETIMEDOUT || code == -ECONNRESET || code == -EPROTO;
}

/* Notes the targets that the daemon refused. */
static int ask_release_named(struct gp_client *client, struct outcome *o,
			     const struct owner *daemon, struct gp_error *why)
{
	int r = 0;

	o->tasks = ask_tasks(client);
	o->answer = calloc(env.targets.n, sizeof *o->answer);
	o->held_by_other = calloc(env.targets.n, sizeof *o->held_by_other);
	for (unsigned i = 0; i < env.targets.n && o->answer && o->held_by_other && !r; i++) {
		pid_t pid = env.targets.pid[i];
		struct json_object *answer = NULL;
		int code = gp_ask_about(client, "release", pid, NULL, &answer, &o->answer[i]);

		o->held_by_other[i] = gp_field_true(answer, "held_by_other");
		if (!code && any_to_be_released(o->tasks, pid) && !o->held_by_other[i])
			note_released(o, pid, daemon, answer, NULL);
		json_object_put(answer);
		if (code == -EPERM || code == -EACCES || code == -EBUSY)
			note_failed(o, pid, &o->answer[i]);
		if (is_silence(code))
			r = gp_fail(why, code, "%s", o->answer[i].text);
	}
	return o->answer && o->held_by_other ? r : gp_fail(why, -ENOMEM, "no memory");
}

static bool is_target(pid_t pid)
{
	for (unsigned i = 0; i < env.targets.n; i++)
		if (env.targets.pid[i] == pid)
			return true;
	return env.all;
}

/* Asks every back end: a process may use several. Returns the number of queues, or -errno. */
static int release_everywhere(pid_t pid, bool *released, struct gp_error *err)
{
	int reached = 0, r = -ENODEV;

	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++) {
		struct gp_error why = {0};
		int n = gp_backend_release_process(*b, pid, released, &why);

		if (n >= 0)
			reached += n;
		else if (n != -ENODEV && n != -ENOTSUP)
			r = gp_fail(err, n, "%s", why.text);
	}
	if (reached)
		return reached;
	return gp_fail(err, r, "process %d has no queues to release", pid);
}

static struct owner name_owner(pid_t pid, enum gp_owner_state state)
{
	struct owner owner = {.pid = pid, .state = state};

	gp_process_name(pid, owner.name, sizeof owner.name);
	return owner;
}

/* Lets the daemon release what users held. Holds by the policy stay. */
static void ask_daemon(struct outcome *o)
{
	struct gp_client *client = env.no_daemon ? NULL : gp_ask_if_there();
	struct gp_error err = {0};
	struct owner daemon;
	int r;

	if (!client)
		return;
	gp_client_set_timeout(client, GP_ASK_SHORT_MS);
	o->daemon = daemon_pid(client);
	o->foreign_daemon = o->daemon && is_foreign(o->daemon);
	daemon = name_owner(o->daemon, GP_OWNER_RUNS);
	r = (env.all ? ask_release_all : ask_release_named)(client, o, &daemon, &err);
	gp_client_close(client);
	if (!r)
		return;
	if (is_silence(r))
		fputs("gpreempt: the daemon does not answer; using the undo records instead\n",
		      stderr);
	else
		fprintf(stderr,
			"gpreempt: the daemon could not release all processes (%s); using the undo "
			"records instead\n",
			err.text);
	json_object_put(o->tasks);
	o->tasks = NULL;
	o->daemon = 0;
	o->foreign_daemon = false;
	free(o->answer);
	free(o->held_by_other);
	o->answer = NULL;
	o->held_by_other = NULL;
}

/* The daemon's reason for which it could not release the process; NULL: it could, or refuses to
 * release one process of a gang, or does not know the process, which may still have a record. */
static const struct gp_error *daemon_failure(const struct outcome *o, pid_t pid)
{
	for (unsigned i = 0; o->answer && i < env.targets.n; i++)
		if (env.targets.pid[i] == pid && o->answer[i].code && o->answer[i].code != -ESRCH &&
		    o->answer[i].code != -EBUSY)
			return &o->answer[i];
	return NULL;
}

/* Reports the daemon's failures for which the undo records were of no help. */
static void report_failures(struct outcome *o)
{
	for (unsigned i = 0; i < env.targets.n; i++) {
		const struct gp_error *err = daemon_failure(o, env.targets.pid[i]);

		if (err)
			note_failed(o, env.targets.pid[i], err);
	}
}

/* Whether the daemon confirmed that neither a user nor another program holds the process. */
static bool is_answered(const struct outcome *o, pid_t pid)
{
	for (unsigned i = 0; o->answer && i < env.targets.n; i++)
		if (env.targets.pid[i] == pid)
			return !o->answer[i].code;
	return false;
}

static bool is_held_by_other(const struct outcome *o, pid_t pid)
{
	for (unsigned i = 0; o->held_by_other && i < env.targets.n; i++)
		if (env.targets.pid[i] == pid)
			return o->held_by_other[i];
	return false;
}

/* Without a record it is not known which program that is. */
static void note_held_by_other(struct outcome *o, pid_t pid, const char *what)
{
	struct gp_error err = {0};
	char name[32];

	gp_fail(&err, -EBUSY,
		"process %d (%s) %s by a program that is not known: it has another undo file "
		"(GPREEMPT_RUN, GPREEMPT_UNDO); look for another gpreemptd, gpreempt schedule or "
		"gpreempt suspend, and end it",
		pid, gp_process_name(pid, name, sizeof name), what);
	note_failed(o, pid, &err);
}

/* For a process that the daemon knows and that no user holds: says whether the daemon schedules it.
 * If so, the policy decides whether it runs. */
static void report_known(struct outcome *o, pid_t pid)
{
	if (is_done(o, pid))
		return;
	if (is_held_by_other(o, pid)) {
		note_held_by_other(o, pid, "is held");
		return;
	}
	note_done(o, pid);
	o->unchanged++;
	if (!env.all && !env.json && is_scheduled(o, pid))
		printf("%d is scheduled by the daemon (%d) and not held by a user; gpreempt set %d "
		       "--class unmanaged ends that\n",
		       pid, o->daemon, pid);
}

/* The records of root's daemon are not readable here. */
static void report_foreign(struct outcome *o)
{
	for (unsigned i = 0; i < env.targets.n; i++)
		if (is_answered(o, env.targets.pid[i]))
			report_known(o, env.targets.pid[i]);
}

/* Undoes a record. 0, -ESRCH: the process has ended, or -errno with a sentence. */
static int undo(const struct gp_undo_entry *e, struct gp_error *err)
{
	bool unknown = !gp_backend_find(e->backend);
	int r;

	fflush(stdout); /* or the child process could print the buffer again */
	r = gp_record_undo_within(e, UNDO_NS, err);

	if (unknown && !gp_record_process_lives(e))
		return -ESRCH;
	if (!r || r == -ESRCH)
		return r;
	/* If the record is damaged or of another build, at least the queues are released. */
	if ((r == -EINVAL || unknown) && release_everywhere(e->undo.pid, NULL, NULL) > 0)
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
		   struct outcome *o)
{
	struct owner ended = name_owner(e->owner, GP_OWNER_ENDED);
	struct gp_error err = {0};
	int r = undo(e, &err);

	o->undid = true;
	if (r && r != -ESRCH) {
		note_failed(o, e->undo.pid, &err);
		return;
	}
	gp_undo_drop_same(file, slot, e);
	if (r)
		o->stale++;
	else
		note_released(o, e->undo.pid, e->owner ? &ended : NULL, NULL,
			      gp_backend_find(e->backend));
}

/* A record of a living owner that was asked to release the task. */
struct asked {
	unsigned slot;
	struct gp_undo_entry entry;
	struct owner owner;
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
static void take(struct gp_undo_file *file, struct asked *a, struct outcome *o)
{
	enum gp_owner_state state = gp_record_owner_state(file, a->slot, &a->entry);
	struct gp_undo_entry e = gp_record_to_take(&a->entry);
	struct gp_error err = {0}, all = {0};
	uint64_t began_ns = gp_monotonic_ns();
	pid_t pid = e.undo.pid;
	char name[32];
	int r = undo(&e, &err);

	if (!r)
		gp_undo_note_undone(file, a->slot, began_ns);
	a->owner.state = state == GP_OWNER_RUNS ? GP_OWNER_DEAF : state;
	if (r == -ESRCH) {
		o->stale++;
	} else if (!r) {
		note_released(o, pid, &a->owner, NULL, gp_backend_find(e.backend));
	} else {
		gp_fail(&all, r,
			"process %d (%s) may still be held by process %d (%s), which %s; run kill "
			"-9 "
			"%d, then gpreempt resume %d: %s",
			pid, gp_process_name(pid, name, sizeof name), e.owner, a->owner.name,
			gp_owner_state_text(a->owner.state), e.owner, pid, err.text);
		note_failed(o, pid, &all);
	}
}

/* Reports what became of the request. */
static void finish(struct gp_undo_file *file, struct asked *a, struct outcome *o)
{
	struct gp_undo_entry e;

	if (is_there(file, a) && gp_undo_owner_lives(&a->entry))
		take(file, a, o);
	else if (is_there(file, a) && gp_undo_get(file, a->slot, &e))
		replay(file, a->slot, &e, o);
	else if (gp_record_process_lives(&a->entry)) /* a keeper that claimed it did not hold it */
		note_released(o, a->entry.undo.pid, a->entry.claimed ? NULL : &a->owner, NULL,
			      gp_backend_find(a->entry.backend));
	else
		o->stale++;
}

/*
 * Asks the living owners, and undoes the records of the others: of processes that live, or of those
 * that have ended. Appends to the `n` that were asked and returns their number.
 */
static unsigned begin_replay(struct gp_undo_file *file, bool ended, struct asked *list, unsigned n,
			     struct outcome *o)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		if (!gp_undo_get(file, i, &e) || !is_target(e.undo.pid) ||
		    gp_record_process_lives(&e) == ended)
			continue;
		/* A request that stays in the record was not fulfilled. */
		if (o->daemon && e.owner == o->daemon && !e.release_asked &&
		    !daemon_failure(o, e.undo.pid)) {
			if (!ended) /* the daemon drops the record of a process that has ended */
				report_known(o, e.undo.pid);
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

static int replay_records(struct outcome *o, struct gp_error *err)
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
	if (n || o->undid)
		gp_undo_bump(file); /* the owners look at their records */
	wait_for_owners(file, list, n);
	for (unsigned i = 0; i < n; i++)
		finish(file, &list[i], o);
	if (n)
		gp_undo_bump(file);
	gp_undo_close(file);
	return 0;
}

static bool looks_changed(const struct gp_task_ref *ref, int n)
{
	bool changed = false;

	for (int i = 0; i < n; i++)
		changed |= gp_task_ref_looks_changed(&ref[i]);
	return changed;
}

/* The program that held it may hold it again: gp_watch_freed looks. */
static void note_freed(struct outcome *o, pid_t pid, const struct gp_task_ref *ref, int n)
{
	struct freed *f = malloc(sizeof *f + (size_t)n * sizeof *ref);

	if (!f) {
		note_released(o, pid, NULL, NULL, ref->gpu->ops);
		return;
	}
	*f = (struct freed){.next = o->freed, .pid = pid, .n = n};
	memcpy(f->ref, ref, (size_t)n * sizeof *ref);
	o->freed = f;
}

/* Reports the processes that are held again. Returns whether there are others. */
static bool report_held_again(struct outcome *o)
{
	bool left = false;

	for (struct freed *f = o->freed; f; f = f->next)
		if (is_done(o, f->pid))
			continue;
		else if (looks_changed(f->ref, f->n))
			note_held_by_other(o, f->pid, "was released, and is held again");
		else
			left = true;
	return left;
}

static void watch_freed(struct outcome *o)
{
	uint64_t until_ns = gp_monotonic_ns() + WATCH_NS;
	struct freed *next;

	while (report_held_again(o) && gp_monotonic_ns() < until_ns)
		usleep(PAUSE_US);
	for (struct freed *f = o->freed; f; f = next) {
		next = f->next;
		note_released(o, f->pid, NULL, NULL, f->ref->gpu->ops);
		free(f);
	}
	o->freed = NULL;
}

static bool is_held_again(const struct gp_task_ref *ref, int n)
{
	uint64_t until_ns = gp_monotonic_ns() + WATCH_NS;

	while (!looks_changed(ref, n)) {
		if (gp_monotonic_ns() >= until_ns)
			return false;
		usleep(PAUSE_US);
	}
	return true;
}

static void add_other_holder(struct gp_error *err, pid_t pid)
{
	char name[32];

	gp_error_prefix(err,
			"process %d (%s) is held, perhaps by a program with another undo file "
			"(another gpreemptd, gpreempt schedule or gpreempt suspend); end that "
			"first",
			pid, gp_process_name(pid, name, sizeof name));
}

static bool is_freed(const struct outcome *o, pid_t pid)
{
	for (const struct freed *f = o->freed; f; f = f->next)
		if (f->pid == pid)
			return true;
	return false;
}

/* The tasks of one process. Always asks for a release: not every driver tells that a queue is
 * held. */
static void release_process(const struct gp_task_ref *ref, int n, struct outcome *o)
{
	struct gp_error err = {0};
	pid_t pid = ref->seen.pid;
	bool changed, visible;
	int r;

	if (is_done(o, pid) || is_freed(o, pid))
		return;
	changed = visible = looks_changed(ref, n);
	if (!changed && is_scheduled(o, pid)) {
		report_known(o, pid);
		return;
	}
	r = release_everywhere(pid, &changed, &err);
	if (r == -ESRCH || r == -ENODEV)
		return; /* the process has ended */
	if (r < 0) {
		if (is_held_again(ref, n))
			add_other_holder(&err, pid);
		note_failed(o, pid, &err);
	} else if (visible && !is_scheduled(o, pid)) {
		note_freed(o, pid, ref, n);
	} else if (changed) {
		note_released(o, pid, NULL, NULL, ref->gpu->ops);
	} else {
		o->unchanged++;
		note_done(o, pid);
	}
}

static void release_all(const struct gp_devices *devices, struct outcome *o)
{
	struct gp_error err = {0};
	struct gp_task_ref *ref, found[GP_DEVICES_MAX];
	int n = gp_devices_scan(devices, GP_DEVICES_MAX, &ref, &err);

	if (n < 0 || gp_devices_missing(devices, &err))
		o->exit = gp_cli_fail(&err);
	err = (struct gp_error){0};
	for (int i = 0; i < n; i++) {
		int k = gp_devices_find(devices, ref[i].seen.pid, found, GP_DEVICES_MAX, &err);

		if (k > 0)
			release_process(found, k, o);
		else if (k != -ESRCH && k != -ENODEV) /* else it ended since the scan */
			note_failed(o, ref[i].seen.pid, &err);
	}
	free(ref);
}

static void release_named(const struct gp_devices *devices, struct outcome *o)
{
	for (unsigned i = 0; i < env.targets.n; i++) {
		struct gp_task_ref found[GP_DEVICES_MAX];
		struct gp_error err = {0};
		pid_t pid = env.targets.pid[i];
		int n = is_done(o, pid)
				? 0
				: gp_devices_find(devices, pid, found, GP_DEVICES_MAX, &err);

		/* Some drivers show processes of other users, but not whether they are held. */
		if (n > 0 && is_foreign(pid))
			n = gp_process_denied(&err, pid, -EPERM);
		if ((n == -ESRCH || n == -ENODEV) && is_answered(o, pid))
			report_known(o, pid); /* on a GPU that only the daemon uses */
		else if (n < 0)
			note_failed(o, pid, &err);
		else if (n)
			release_process(found, n, o);
	}
}

static bool all_done(const struct outcome *o)
{
	for (unsigned i = 0; i < env.targets.n; i++)
		if (!is_done(o, env.targets.pid[i]))
			return false;
	return !env.all;
}

/* Whether every back end says so. One that fails to open a device or to look has one, perhaps. */
static bool no_device_is_here(void)
{
	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++)
		if ((*b)->probe && (*b)->probe())
			return false;
	return true;
}

static void note_unexamined(struct outcome *o, struct gp_error *err)
{
	int code;

	gp_error_prefix(err, "not all GPUs could be examined; processes on them may be held");
	code = gp_cli_fail(err);
	o->exit = o->exit ? o->exit : code == GP_EXIT_NOT_PERMITTED ? code : GP_EXIT_FAILED;
}

/* No GPU can be used from here. The daemon may use one, a simulated one for example. Then its
 * answer is the result, also if it does not know the process. */
static void report_unopened(struct outcome *o, const struct gp_error *err)
{
	for (unsigned i = 0; i < env.targets.n; i++) {
		pid_t pid = env.targets.pid[i];

		if (is_answered(o, pid))
			report_known(o, pid);
		else if (o->answer && o->answer[i].code == -ESRCH)
			note_failed(o, pid, &o->answer[i]);
	}
	if (!all_done(o))
		o->exit = o->exit ? o->exit : gp_cli_fail(err);
}

static void release_unrecorded(struct outcome *o)
{
	struct gp_devices devices;
	struct gp_error err = {0};
	int r;

	if (o->foreign_daemon)
		report_foreign(o);
	if (all_done(o) || (o->foreign_daemon && env.all))
		return; /* the rest is scheduled by the daemon */
	r = gp_devices_open(&devices, 0, &err);
	if (r && !env.all)
		report_unopened(o, &err);
	else if (env.all && err.code && !no_device_is_here())
		note_unexamined(o, &err);
	if (r)
		return;
	(env.all ? release_all : release_named)(&devices, o);
	watch_freed(o);
	gp_devices_close(&devices);
}

/* Whether the daemon schedules one of the targets. */
static bool any_scheduled(const struct outcome *o)
{
	for (size_t i = 0; o->tasks && i < json_object_array_length(o->tasks); i++) {
		struct json_object *t = json_object_array_get_idx(o->tasks, i);

		if (is_managed(t) && is_target((pid_t)gp_field_number_or(t, "pid", 0)))
			return true;
	}
	return false;
}

static void end_outcome(struct outcome *o)
{
	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++)
		if (gp_backend_commands(*b)->see_work)
			look_for_work(o, *b);
	if (env.json) {
		print_json(o);
		return;
	}
	for (unsigned i = 0; i < o->nreleased; i++)
		print_released(o, &o->released[i]);
	if (o->stale)
		printf("%u record%s of processes that have ended %s dropped\n", o->stale,
		       o->stale == 1 ? "" : "s", o->stale == 1 ? "was" : "were");
	if (!o->nreleased && !o->exit)
		puts(any_scheduled(o) ? "nothing was held by a user or another program"
				      : "nothing was held");
}

static int run(struct gp_error *err)
{
	struct outcome outcome = {0};
	int r = gp_targets_resolve(&env.targets, err);

	if (r)
		return r;
	ask_daemon(&outcome);
	/* Goes on if the records cannot be read: queues can be released without them. */
	if (replay_records(&outcome, err) && !(err->code == -EACCES && outcome.foreign_daemon))
		outcome.exit = gp_cli_fail(err);
	report_failures(&outcome);
	release_unrecorded(&outcome);
	end_outcome(&outcome);
	json_object_put(outcome.tasks);
	free(outcome.done);
	free(outcome.released);
	free(outcome.answer);
	free(outcome.held_by_other);
	return outcome.exit;
}

const struct gp_verb gp_verb_resume = {
	.name = "resume",
	.summary = "let held processes run again; --all always works",
	.arguments = "PID...\n--all",
	.targets = &env.targets,
	.options = options,
	.check = check,
	.doc = "Resume held processes, whichever process held them. Undo records are used where "
	       "they exist.\v"
	       "Examples:\n"
	       "  gpreempt resume 4711\n"
	       "  gpreempt resume --all\n",
	.run = run,
};
