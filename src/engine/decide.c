/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the policy and supervises it. A policy that breaks a rule is ejected. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "engine/engine_state.h"

const char *gp_eject_reason_name(enum gp_eject_reason reason)
{
	switch (reason) {
	case GP_EJECT_NONE: return "none";
	case GP_EJECT_FAILED: return "failed";
	case GP_EJECT_SLOW: return "slow";
	case GP_EJECT_BOUND: return "bound";
	case GP_EJECT_STARVED: return "starved";
	}
	return "unknown";
}

static void keep_record(struct gp_engine *e, enum gp_eject_reason reason, uint64_t task)
{
	struct gp_ejection *x = &e->ejection;

	x->reason = reason;
	x->policy = e->policy.ops;
	x->now_ns = e->view.now_ns;
	x->task = task;
	x->view = e->view;
	x->view.task = x->task_view;
	x->view.state = NULL; /* the policy's memory is freed */
	x->ntasks = e->n < GP_EJECT_VIEW_MAX ? e->n : GP_EJECT_VIEW_MAX;
	if (!x->ntasks)
		return;
	memcpy(x->task_view, e->view_task, x->ntasks * sizeof *x->task_view);
	memcpy(x->task_plan, e->plan_task, x->ntasks * sizeof *x->task_plan);
}

/* `none` holds no task and has no state, so loading it cannot fail. The next gp_engine_act releases
 * all tasks and restores the hardware's slices. */
__attribute__((format(printf, 4, 5))) static void eject(struct gp_engine *e,
							enum gp_eject_reason reason, uint64_t task,
							const char *format, ...)
{
	struct gp_policy_choice none = {.ops = &gp_policy_none};
	char why[160];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	keep_record(e, reason, task);
	snprintf(e->ejection.text, sizeof e->ejection.text, "policy %s %s", e->policy.ops->name,
		 why);
	e->stats.ejections++;
	gp_log(GP_LOG_WARN, "policy.ejected", "reason=%s task=%llu text=\"%s\"",
	       gp_eject_reason_name(reason), (unsigned long long)task, e->ejection.text);
	gp_engine_load_policy(e, &none);
	gp_engine_emit(e, e->view.now_ns, GP_EVENT_EJECTED, task, 0, 0);
}

const struct gp_ejection *gp_engine_ejection(const struct gp_engine *e)
{
	return e->ejection.reason == GP_EJECT_NONE ? NULL : &e->ejection;
}

/* The rules that every plan must keep. The time to check them is linear in the number of tasks. */

/* Ejects the policy that broke a rule. */
#define broken(e, task, ...) (eject(e, GP_EJECT_BOUND, task, __VA_ARGS__), false)

static bool check_slice(struct gp_engine *e, const struct gp_task_view *t, uint32_t slice_us)
{
	const struct gp_view *view = &e->view;

	if (!slice_us)
		return true;
	if (!(view->caps & GP_CAP_SLICE))
		return broken(e, t->id, "sets a slice on a device without settable slices");
	if (slice_us < view->slice_min_us || slice_us > view->slice_max_us)
		return broken(e, t->id, "sets a slice of %u us, outside %u to %u", slice_us,
			      view->slice_min_us, view->slice_max_us);
	return true;
}

static bool check_task(struct gp_engine *e, uint32_t i)
{
	const struct gp_task_view *t = &e->view_task[i];
	const struct gp_task_plan *p = &e->plan_task[i];

	if (p->want > GP_HOLD)
		return broken(e, t->id, "wants %u, which is neither run, hold nor leave", p->want);
	if (t->class == GP_UNMANAGED && (p->want != GP_LEAVE || p->slice_us))
		return broken(e, t->id, "changes an unmanaged task");
	if (p->want == GP_HOLD && !(e->view.caps & GP_CAP_HOLD))
		return broken(e, t->id, "holds a task on a device that cannot hold");
	if (p->want != e->plan_task[t->gang].want)
		return broken(e, t->id, "treats the tasks of one gang differently");
	return check_slice(e, t, p->slice_us);
}

static bool check_plan(struct gp_engine *e)
{
	const struct gp_view *view = &e->view;
	uint32_t held = 0, by_user = 0, tiny = 0;

	if (e->plan.next_ns <= view->now_ns)
		return broken(e, 0, "asks for its next tick in the past");
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_task_plan *p = &e->plan_task[i];
		bool user = t->held_by & GP_HELD_BY_USER;

		if (!check_task(e, i))
			return false;
		by_user += user;
		held += !user && p->want == GP_HOLD;
		tiny += !user && p->want == GP_RUN && t->class == GP_BEST_EFFORT &&
			p->slice_us >= 1 && p->slice_us <= GP_TINY_SLICE_US;
		if (tiny > 1)
			return broken(e, t->id, "lets two best-effort tasks run with a tiny slice");
	}
	if (held && held + by_user > view->max_held)
		return broken(e, 0,
			      "holds %u tasks beside %u held by users; the device can hold %u",
			      held, by_user, view->max_held);
	return true;
}

static void eject_if_starving(struct gp_engine *e)
{
	if (e->starved_ns <= e->config.starve_limit_ns)
		return;
	for (unsigned i = 0; i < e->n; i++) {
		const struct gp_task *t = &e->task[i];

		if (t->starved_ns <= e->config.starve_limit_ns)
			continue;
		eject(e, GP_EJECT_STARVED, t->id,
		      "starved task %llu for %llu ms; the limit is %llu ms",
		      (unsigned long long)t->id, (unsigned long long)(t->starved_ns / GP_NS_PER_MS),
		      (unsigned long long)(e->config.starve_limit_ns / GP_NS_PER_MS));
		return;
	}
}

static int call_policy(struct gp_engine *e, uint64_t *took_ns)
{
	const struct gp_clock *clock = e->config.decide_clock;
	uint64_t begin_ns = clock ? gp_now_ns(clock) : 0;
	int r;

	if (e->n)
		memset(e->plan_task, 0, e->n * sizeof *e->plan_task);
	e->plan = (struct gp_plan){.next_ns = GP_NEVER, .task = e->plan_task};
	r = e->policy.ops->decide(&e->view, &e->plan);
	*took_ns = clock ? gp_now_ns(clock) - begin_ns : 0;
	if (clock)
		gp_hist_add(&e->stats.decide_ns, *took_ns);
	e->stats.decisions++;
	return r;
}

/* Ejects the policy if it breaks a rule. The policy `none` is the fallback and is not supervised.
 */
static void call_supervised(struct gp_engine *e)
{
	uint64_t took_ns;
	int r;

	eject_if_starving(e);
	if (e->policy.ops == &gp_policy_none)
		return;
	r = call_policy(e, &took_ns);
	if (r)
		eject(e, GP_EJECT_FAILED, 0, "failed: %s", gp_error_name(r));
	else if (took_ns > e->config.decide_limit_ns)
		eject(e, GP_EJECT_SLOW, 0, "took %llu us to decide; the limit is %llu us",
		      (unsigned long long)(took_ns / GP_NS_PER_US),
		      (unsigned long long)(e->config.decide_limit_ns / GP_NS_PER_US));
	else
		check_plan(e);
}

/* Whether the plan refuses a task or reports an overrun. Most plans do neither; then note_promises
 * need not access the tasks. */
static bool has_promises(const struct gp_engine *e)
{
	bool has = false;

	for (unsigned i = 0; i < e->n; i++)
		has |= e->plan_task[i].refused | e->plan_task[i].overran;
	return has;
}

/* Emits an event when a guarantee is given or withdrawn. */
static void note_promises(struct gp_engine *e, uint64_t now_ns)
{
	bool has = has_promises(e), had = e->promises;

	e->promises = has;
	for (unsigned i = 0; (has || had) && i < e->n; i++) {
		struct gp_task *t = &e->task[i];
		bool refused = e->plan_task[i].refused;

		e->counters[i].overruns += e->plan_task[i].overran && !t->overran;
		t->overran = e->plan_task[i].overran;
		if (refused == t->refused)
			continue;
		t->refused = refused;
		gp_engine_emit(e, now_ns, refused ? GP_EVENT_REFUSED : GP_EVENT_ADMITTED, t->id, 0,
			       0);
	}
}

void gp_engine_decide(struct gp_engine *e, uint64_t now_ns)
{
	uint64_t took_ns;

	if (e->policy.ops != &gp_policy_none)
		call_supervised(e);
	if (e->policy.ops == &gp_policy_none)
		call_policy(e, &took_ns);
	note_promises(e, now_ns);
}
