/* SPDX-License-Identifier: Apache-2.0 */
/* Device commands and their answers: sent by the control thread, executed by the device thread. */
#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "base/process.h"
#include "daemon/device_thread_state.h"

#define BACKLOG_MAX 16384               /* commands with an answer that may wait for room */
#define HINT_NS     (10 * GP_NS_PER_MS) /* how long the engine waits for announced work */
/* A hold or release that takes longer has failed. Less than the client's GP_CLIENT_TIMEOUT_MS. */
#define HOLD_LIMIT_NS (9 * GP_NS_PER_S)
#define HOLD_FAILURES \
	8 /* or has this many failures (about 250 ms), if the back end gives a reason */
#define GANG_NS             (50 * GP_NS_PER_MS) /* for the same call to release the rest of the gang, too */
#define WORK_NS             GP_NS_PER_S /* for work after a release that the driver confirmed */
#define HOLD_UNEXPLAINED_NS (2 * GP_NS_PER_S) /* without a reason the failure may be temporary */
/* New attributes whose actions fail are not in force after so many failures (about 30 ms) ... */
#define ATTR_FAILURES 5
#define ATTR_LIMIT_NS GP_NS_PER_S /* ... or after this time */

/* The answer is kept until a snapshot shows the change, because the client may read it next. */
static void answer(struct gp_device_thread *dt, uint64_t token, int status, const char *text)
{
	struct gp_answer *a = &dt->answer[dt->nanswers];

	if (!token)
		return;
	*a = (struct gp_answer){.token = token, .status = status};
	snprintf(a->text, sizeof a->text, "%s", text);
	dt->nanswers++;
}

void gp_device_thread_give_answers(struct gp_device_thread *dt)
{
	for (unsigned i = 0; i < dt->nanswers; i++)
		gp_ring_put(&dt->answers,
			    &dt->answer[i]); /* the ring has room for all open commands */
	dt->wake_control |= dt->nanswers;
	dt->nanswers = 0;
}

/* Why an action failed with `code`: the back end's reason, or else the name of the device. */
static struct gp_error find_reason(struct gp_device_thread *dt, const struct gp_task_stats *t,
				   int code)
{
	struct gp_error why = {0};

	gp_gpu_why(dt->gpu, t->handle, &why);
	if (!*why.text && gp_error_is_local(t->failure))
		gp_fail(&why, code, "gpreemptd could not do it on %s: %s", dt->gpu->info.name,
			gp_error_name(t->failure));
	if (!*why.text)
		gp_fail(&why, code,
			"the driver of %s failed to do it (%s); see the kernel log (dmesg) for the "
			"cause",
			dt->gpu->info.name, gp_error_name(code));
	return why;
}

static void answer_failure(struct gp_device_thread *dt, uint64_t token,
			   const struct gp_task_stats *t, int status)
{
	answer(dt, token, status, find_reason(dt, t, status).text);
}

/* The tasks of the gang on this device, without a gang the task itself. */
static bool is_in_gang(const struct gp_task_stats *t, const struct gp_task_stats *member)
{
	return member->id == t->id || (t->attr.gang && member->attr.gang == t->attr.gang);
}

static uint64_t count_failures(const struct gp_device_thread *dt, const struct gp_task_stats *t)
{
	uint64_t failures = 0;
	struct gp_task_stats m;

	if (!t->attr.gang)
		return t->failures;
	for (unsigned i = 0; i < gp_engine_tasks(dt->engine); i++) {
		gp_engine_task_stats(dt->engine, i, &m);
		failures += is_in_gang(t, &m) ? m.failures : 0;
	}
	return failures;
}

static void begin_waiting(struct gp_device_thread *dt, uint64_t now_ns, const struct gp_command *o)
{
	bool leaves = o->kind == GP_COMMAND_ATTR && o->attr.class == GP_UNMANAGED;
	enum gp_command_kind kind = leaves ? GP_COMMAND_RELEASE : o->kind;
	struct gp_task_stats t = {0};

	if (!o->token || gp_engine_find_task(dt->engine, o->task, &t))
		return;
	dt->waiting[dt->nwaiting++] = (struct gp_waiting){.token = o->token,
							  .task = o->task,
							  .kind = kind,
							  .was_held = t.held || t.unsure,
							  .failures = t.failures,
							  .gang_failures = count_failures(dt, &t),
							  .since_ns = now_ns};
}

static const char *refusal_text(int status)
{
	return status == -ENOTSUP ? "this device cannot hold tasks"
	       : status == -ENOSPC
		       ? "this device cannot hold more tasks at the same time; release one first"
		       : "the task has ended";
}

/* Whether the answer waits for the effect. A task that becomes unmanaged is released first. */
static bool has_to_take_effect(const struct gp_command *o)
{
	return o->kind == GP_COMMAND_HOLD || o->kind == GP_COMMAND_RELEASE ||
	       o->kind == GP_COMMAND_ATTR;
}

static void execute(struct gp_device_thread *dt, uint64_t now_ns, const struct gp_command *o)
{
	struct gp_error err = {0};
	int r = 0;

	switch (o->kind) {
	case GP_COMMAND_ATTR: r = gp_engine_set_attr(dt->engine, o->task, &o->attr); break;
	case GP_COMMAND_HOLD: r = gp_engine_user_hold(dt->engine, o->task); break;
	case GP_COMMAND_RELEASE: r = gp_engine_user_release(dt->engine, o->task); break;
	case GP_COMMAND_POLICY:
		r = gp_engine_set_policy(dt->engine, now_ns, &o->policy, &err);
		break;
	case GP_COMMAND_MARK: r = gp_engine_mark(dt->engine, now_ns, o->key, o->begins); break;
	case GP_COMMAND_HINT: r = gp_engine_hint(dt->engine, now_ns, o->key, HINT_NS); break;
	}
	dt->publish |= o->token != 0;
	if (r || !has_to_take_effect(o))
		answer(dt, o->token, r, *err.text ? err.text : r ? refusal_text(r) : "");
	else
		begin_waiting(dt, now_ns, o);
}

void gp_device_thread_execute(struct gp_device_thread *dt, uint64_t now_ns)
{
	struct gp_command o;

	while (gp_ring_take(&dt->commands, &o))
		execute(dt, now_ns, &o);
}

static bool is_hopeless(struct gp_device_thread *dt, uint64_t now_ns, const struct gp_waiting *w,
			const struct gp_task_stats *t)
{
	uint64_t waited_ns = now_ns - w->since_ns;
	struct gp_error why = {0};

	if (waited_ns >= HOLD_LIMIT_NS)
		return true;
	if (count_failures(dt, t) < w->gang_failures + HOLD_FAILURES)
		return false;
	gp_gpu_why(dt->gpu, t->handle, &why);
	return why.code || waited_ns >= HOLD_UNEXPLAINED_NS;
}

/* Of a best-effort task that runs: why a hold would fail. An earlier hold has failed, or another
 * debugger is in the way. */
static struct gp_error find_obstacle(struct gp_device_thread *dt, const struct gp_task_stats *t)
{
	struct gp_error why = {0};

	if (t->attr.class != GP_BEST_EFFORT || t->held)
		return why;
	if (t->hold_failure && gp_engine_policy(dt->engine) != &gp_policy_none)
		return find_reason(dt, t, t->hold_failure);
	gp_gpu_why(dt->gpu, t->handle, &why);
	return why.code == -EBUSY ? why : (struct gp_error){0};
}

/*
 * New attributes: the answer follows when the task is held or runs, as the policy wants it, or when
 * that fails. The attributes stay then, and the engine tries again.
 */
static bool is_attr_over(struct gp_device_thread *dt, uint64_t now_ns, const struct gp_waiting *w,
			 const struct gp_task_stats *t)
{
	bool late = now_ns - w->since_ns >= ATTR_LIMIT_NS;
	struct gp_error why = {0};

	if (t->failing) {
		bool enough = t->failures >= w->failures + ATTR_FAILURES && t->failing != -EAGAIN;

		if (!late && !enough)
			return false;
		why = find_reason(dt, t, t->failing);
	} else if (t->unsure || t->under_way ||
		   (!t->held_elsewhere && t->held != (t->held_by != 0))) {
		if (!late)
			return false;
		gp_fail(&why, -ETIMEDOUT,
			"the state that the policy wants is not reached on %s yet",
			dt->gpu->info.name);
	} else {
		why = find_obstacle(dt, t);
	}
	answer(dt, w->token, 0, why.text);
	return true;
}

/* A task that worked before its hold is usually seen to work soon after the release. */
static bool may_be_seen_to_work(const struct gp_waiting *w, const struct gp_task_stats *t,
				uint64_t now_ns)
{
	return w->was_held && !t->held && !t->held_by && !t->evicted.ns &&
	       t->evidence == GP_EVIDENCE_DRIVER && !t->in_part && now_ns < w->since_ns + WORK_NS;
}

/* A hold covers the whole gang, and so does its end. Finds another task of the gang that is not
 * held yet, or not released. */
static bool find_straggler(const struct gp_device_thread *dt, const struct gp_task_stats *t,
			   bool held, struct gp_task_stats *straggler)
{
	for (unsigned i = 0; t->attr.gang && i < gp_engine_tasks(dt->engine); i++) {
		gp_engine_task_stats(dt->engine, i, straggler);
		if (straggler->id == t->id || !is_in_gang(t, straggler))
			continue;
		if (held ? !straggler->held || !straggler->settled
			 : !straggler->held_by && !straggler->held_elsewhere &&
				    (straggler->held || !straggler->settled))
			return true;
	}
	return false;
}

static void answer_for_gang(struct gp_device_thread *dt, const struct gp_waiting *w,
			    const struct gp_task_stats *straggler, int status)
{
	struct gp_error why = find_reason(dt, straggler, status);

	gp_error_prefix(&why, w->kind == GP_COMMAND_HOLD
				      ? "another process of its gang cannot be held"
				      : "another process of its gang may still be held");
	answer(dt, w->token, status, why.text);
}

/* Returns true if the wait is over; then it was answered. */
static bool is_over(struct gp_device_thread *dt, uint64_t now_ns, const struct gp_waiting *w)
{
	bool held = w->kind == GP_COMMAND_HOLD, lags = false;
	struct gp_task_stats t, straggler;
	int status;

	if (gp_engine_find_task(dt->engine, w->task, &t)) {
		answer(dt, w->token, -ESRCH, refusal_text(-ESRCH));
		return true;
	}
	if (w->kind == GP_COMMAND_ATTR)
		return is_attr_over(dt, now_ns, w, &t);
	if (held && !(t.held_by & GP_HELD_BY_USER)) {
		answer(dt, w->token, -ECANCELED,
		       "the hold was cancelled: a user released the process meanwhile");
		return true;
	}
	if (!held && t.held_for_gang) {
		if (now_ns - w->since_ns < GANG_NS)
			return false;
		answer(dt, w->token, -EBUSY,
		       "it stays held, because another process of its gang is held; release that "
		       "one, too");
		return true;
	}
	/* A released task may stay held by the policy, a later hold or another program. Otherwise
	 * nothing may stop it any more. */
	if (held ? t.held && t.settled : t.held_by || t.held_elsewhere || (!t.held && t.settled)) {
		if (!held && may_be_seen_to_work(w, &t, now_ns))
			return false;
		lags = find_straggler(dt, &t, held, &straggler);
		if (!lags) {
			answer(dt, w->token, 0, "");
			return true;
		}
	}
	if (!is_hopeless(dt, now_ns, w, lags ? &straggler : &t))
		return false;
	if (held)
		gp_engine_user_release(
			dt->engine,
			w->task); /* so that the failed hold does not take effect later */
	status = now_ns - w->since_ns < HOLD_LIMIT_NS ? -EIO : -ETIMEDOUT;
	if (!gp_process_lives(t.pid, t.start_time))
		answer(dt, w->token, -ESRCH, refusal_text(-ESRCH));
	else if (lags)
		answer_for_gang(dt, w, &straggler, status);
	else
		answer_failure(dt, w->token, &t, status);
	return true;
}

void gp_device_thread_answer_waiting(struct gp_device_thread *dt, uint64_t now_ns)
{
	unsigned left = 0;

	for (unsigned i = 0; i < dt->nwaiting; i++)
		if (!is_over(dt, now_ns, &dt->waiting[i]))
			dt->waiting[left++] = dt->waiting[i];
		else
			dt->publish = true;
	dt->nwaiting = left;
}

/* false: no room for the command or its answer. */
static bool hand_over(struct gp_device_thread *dt, const struct gp_command *command)
{
	if (command->token && dt->unanswered == GP_COMMANDS_MAX)
		return false;
	if (!gp_ring_put(&dt->commands, command))
		return false;
	dt->unanswered += command->token != 0;
	eventfd_write(dt->command_fd, 1);
	return true;
}

void gp_device_thread_push(struct gp_device_thread *dt)
{
	const struct gp_command *command;

	while ((command = gp_backlog_first(&dt->backlog)) && hand_over(dt, command))
		gp_backlog_drop_first(&dt->backlog);
}

/* The backlog of commands with an answer is bounded, because clients send them. */
int gp_device_thread_command(struct gp_device_thread *dt, const struct gp_command *command)
{
	bool passing = command->kind == GP_COMMAND_MARK || command->kind == GP_COMMAND_HINT;

	gp_device_thread_push(dt);
	if ((!dt->backlog.n || passing) && hand_over(dt, command))
		return 0;
	if (passing || (command->token && dt->backlog.n >= BACKLOG_MAX))
		return -EAGAIN;
	return gp_backlog_add(&dt->backlog, command);
}

bool gp_device_thread_next_answer(struct gp_device_thread *dt, struct gp_answer *answer)
{
	if (!gp_ring_take(&dt->answers, answer))
		return false;
	dt->unanswered--;
	gp_device_thread_push(dt);
	return true;
}
