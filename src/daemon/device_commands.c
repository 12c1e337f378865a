/* SPDX-License-Identifier: Apache-2.0 */
/* Device commands and their answers: sent by the control thread, executed by the device thread. */
#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "base/process.h"
#include "daemon/device_thread_state.h"

#define BACKLOG_MAX   16384               /* commands with an answer that may wait for room */
#define HINT_NS       (10 * GP_NS_PER_MS) /* how long the engine waits for announced work */
#define HOLD_LIMIT_NS (10 * GP_NS_PER_S)  /* a hold that takes longer fails */
#define HOLD_FAILURES \
	8 /* or has this many failures (about 250 ms), if the back end gives a reason */
#define HOLD_UNEXPLAINED_NS (2 * GP_NS_PER_S) /* without a reason the failure may be temporary */

/* The answer is kept until a snapshot shows the change, because the client may read it next. */
static void answer(struct gp_device_thread *h, uint64_t token, int status, const char *text)
{
	struct gp_answer *a = &h->answer[h->nanswers];

	if (!token)
		return;
	*a = (struct gp_answer){.token = token, .status = status};
	snprintf(a->text, sizeof a->text, "%s", text);
	h->nanswers++;
}

void gp_device_thread_give_answers(struct gp_device_thread *h)
{
	for (unsigned i = 0; i < h->nanswers; i++)
		gp_ring_put(&h->answers,
		            &h->answer[i]); /* the ring has room for all open commands */
	h->wake_control |= h->nanswers;
	h->nanswers = 0;
}

/* Answers with the back end's reason, or else with the name of the device. */
static void answer_failure(struct gp_device_thread *h, uint64_t token,
                           const struct gp_task_stats *t, int status)
{
	struct gp_error why = {0};

	if (t)
		gp_gpu_why(h->gpu, t->handle, &why);
	if (!*why.text)
		gp_fail(&why, status,
		        "the driver of %s failed to do it (%s); see the kernel log (dmesg) for the "
		        "cause",
		        h->gpu->info.name, gp_error_name(status));
	answer(h, token, status, why.text);
}

static void begin_waiting(struct gp_device_thread *h, uint64_t now_ns, const struct gp_command *o)
{
	struct gp_task_stats t = {0};

	if (!o->token || gp_engine_find_task(h->engine, o->task, &t))
		return;
	h->waiting[h->nwaiting++] = (struct gp_waiting){.token = o->token,
	                                                .task = o->task,
	                                                .held = o->kind == GP_COMMAND_HOLD,
	                                                .failures = t.failures,
	                                                .since_ns = now_ns};
}

static const char *refusal_text(int status)
{
	return status == -ENOTSUP ? "this device cannot hold tasks"
	       : status == -ENOSPC
	               ? "this device cannot hold more tasks at the same time; release one first"
	               : "the task has ended";
}

static void execute(struct gp_device_thread *h, uint64_t now_ns, const struct gp_command *o)
{
	struct gp_error err = {0};
	int r = 0;

	switch (o->kind) {
	case GP_COMMAND_ATTR: r = gp_engine_set_attr(h->engine, o->task, &o->attr); break;
	case GP_COMMAND_HOLD: r = gp_engine_user_hold(h->engine, o->task); break;
	case GP_COMMAND_RELEASE: r = gp_engine_user_release(h->engine, o->task); break;
	case GP_COMMAND_POLICY:
		r = gp_engine_set_policy(h->engine, now_ns, &o->policy, &err);
		break;
	case GP_COMMAND_MARK: r = gp_engine_mark(h->engine, now_ns, o->key, o->begins); break;
	case GP_COMMAND_HINT: r = gp_engine_hint(h->engine, now_ns, o->key, HINT_NS); break;
	}
	h->publish |= o->token != 0;
	if (r || (o->kind != GP_COMMAND_HOLD && o->kind != GP_COMMAND_RELEASE))
		answer(h, o->token, r, *err.text ? err.text : r ? refusal_text(r) : "");
	else
		begin_waiting(h, now_ns, o);
}

void gp_device_thread_execute(struct gp_device_thread *h, uint64_t now_ns)
{
	struct gp_command o;

	while (gp_ring_take(&h->commands, &o))
		execute(h, now_ns, &o);
}

static bool is_hopeless(struct gp_device_thread *h, uint64_t now_ns, const struct gp_waiting *w,
                        const struct gp_task_stats *t)
{
	uint64_t waited_ns = now_ns - w->since_ns;
	struct gp_error why = {0};

	if (waited_ns >= HOLD_LIMIT_NS)
		return true;
	if (t->failures < w->failures + HOLD_FAILURES)
		return false;
	gp_gpu_why(h->gpu, t->handle, &why);
	return why.code || waited_ns >= HOLD_UNEXPLAINED_NS;
}

/* Returns true if the wait is over; then it was answered. */
static bool is_over(struct gp_device_thread *h, uint64_t now_ns, const struct gp_waiting *w)
{
	struct gp_task_stats t;

	if (gp_engine_find_task(h->engine, w->task, &t)) {
		answer(h, w->token, -ESRCH, refusal_text(-ESRCH));
		return true;
	}
	if (w->held && !(t.held_by & GP_HELD_BY_USER)) {
		answer(h, w->token, -ECANCELED,
		       "the hold was cancelled: a user released the process meanwhile");
		return true;
	}
	/* A released task may stay held by the policy, its gang or a later hold. */
	if (w->held ? t.held : !t.held || t.held_by) {
		answer(h, w->token, 0, "");
		return true;
	}
	if (!is_hopeless(h, now_ns, w, &t))
		return false;
	if (w->held)
		gp_engine_user_release(
			h->engine,
			w->task); /* so that the failed hold does not take effect later */
	if (!gp_process_lives(t.pid, t.start_time))
		answer(h, w->token, -ESRCH, refusal_text(-ESRCH));
	else
		answer_failure(h, w->token, &t,
		               now_ns - w->since_ns < HOLD_LIMIT_NS ? -EIO : -ETIMEDOUT);
	return true;
}

void gp_device_thread_answer_waiting(struct gp_device_thread *h, uint64_t now_ns)
{
	unsigned left = 0;

	for (unsigned i = 0; i < h->nwaiting; i++)
		if (!is_over(h, now_ns, &h->waiting[i]))
			h->waiting[left++] = h->waiting[i];
		else
			h->publish = true;
	h->nwaiting = left;
}

/* false: no room for the command or its answer. */
static bool hand_over(struct gp_device_thread *h, const struct gp_command *command)
{
	if (command->token && h->unanswered == GP_COMMANDS_MAX)
		return false;
	if (!gp_ring_put(&h->commands, command))
		return false;
	h->unanswered += command->token != 0;
	eventfd_write(h->command_fd, 1);
	return true;
}

void gp_device_thread_push(struct gp_device_thread *h)
{
	const struct gp_command *command;

	while ((command = gp_backlog_first(&h->backlog)) && hand_over(h, command))
		gp_backlog_drop_first(&h->backlog);
}

/* The backlog of commands with an answer is bounded, because clients send them. */
int gp_device_thread_command(struct gp_device_thread *h, const struct gp_command *command)
{
	bool passing = command->kind == GP_COMMAND_MARK || command->kind == GP_COMMAND_HINT;

	gp_device_thread_push(h);
	if ((!h->backlog.n || passing) && hand_over(h, command))
		return 0;
	if (passing || (command->token && h->backlog.n >= BACKLOG_MAX))
		return -EAGAIN;
	return gp_backlog_add(&h->backlog, command);
}

bool gp_device_thread_next_answer(struct gp_device_thread *h, struct gp_answer *answer)
{
	if (!gp_ring_take(&h->answers, answer))
		return false;
	h->unanswered--;
	gp_device_thread_push(h);
	return true;
}
