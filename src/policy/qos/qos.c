/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qos: each task can have a guaranteed share, a ceiling and, if it is latency-critical, a target:
 * the time in which 99 of 100 requests are to be answered. Targets are kept with the least loss of
 * best-effort work; a task for which nothing was said is treated as `priority` treats it.
 *
 * With slices there are two ways, and the better one by measured run times is taken: a tiny slice
 * for best-effort work, as `priority`, where requests are rare; and windows, in which requests
 * gather and then share two switches, where they are frequent (qos_plan.c says when and why).
 * Without slices, a preemption waits as long as the target allows, where that spares some. A target
 * that the load forbids is refused.
 *
 * Good for a service that is so busy that `priority` leaves best-effort work little, or itself
 * behind; much better when its programs say where a request begins and ends (brackets). Bad beside
 * unmanaged tasks, which run in every gap of the service: then it is `priority`. A target much
 * longer than need be is used up: answers come as late as was allowed.
 */
#include "policy/qos/qos.h"

#define STARVING_NS (1000 * GP_MS)

/* clang-format off */
static const struct gp_param qos_params[] = {
	GP_PRIORITY_PARAM_TABLE,
	[GP_QOS_GAP]    = {"gap", "us", "host time between two requests", 30, 0, 10000},
	[GP_QOS_KEEP]   = {"keep", "ms", "a choice stands for so long", 2000, 100, 60000},
	[GP_QOS_FLOOR]  = {"floor", "permille", "least for be work in windows", 50, 10, 900},
	[GP_QOS_WINDOW] = {"window", "ms", "longest time for be work in one go", 10, 1, 1000},
};
/* clang-format on */

static void count_lc_task(const struct gp_view *view, const struct gp_task_view *t,
                          struct gp_qos_crew *c)
{
	c->lc++;
	c->untargeted += !t->deadline_ns && !gp_seen_idle(t);
	c->seen_at_once &= is_seen_at_once(view, t);
	c->marked &= (t->known & GP_KNOWN_REQUEST) != 0;
	if (t->deadline_ns && (!c->target_ns || t->deadline_ns < c->target_ns))
		c->target_ns = t->deadline_ns;
	if (t->budget_ns > c->budget_ns)
		c->budget_ns = t->budget_ns;
	if (!gp_seen_active(t))
		return;
	c->wants = true;
	if ((t->known & GP_KNOWN_ACTIVE_SINCE) && t->active_since_ns < c->since_ns)
		c->since_ns = t->active_since_ns;
}

/* After the plan of `priority`: what that holds is not ours. */
static struct gp_qos_crew gather_crew(const struct gp_view *view,
                                      const struct gp_policy_state *state,
                                      const struct gp_plan *plan)
{
	struct gp_qos_crew c = {.seen_at_once = true, .marked = true, .since_ns = UINT64_MAX};

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_entity *u = gp_entity_of(view, state, i);
		struct gp_qos_task *q = gp_policy_task(state, i);
		bool managed = t->class != GP_UNMANAGED;
		bool held = managed && (u->user_held || plan->task[i].want == GP_HOLD);

		q->windowed = managed && !held && u->class == GP_BEST_EFFORT && !u->idle;
		c.held += held;
		c.strangers |= !managed && !gp_seen_idle(t);
		if (!held && t->class == GP_LATENCY_CRITICAL)
			count_lc_task(view, t, &c);
		c.be += q->windowed;
		c.share_ppm += q->windowed ? (uint64_t)t->share_permille * 1000 : 0;
	}
	if (asks_too_much(view))
		c.share_ppm = 0;
	return c;
}

/* Whether this device and these tasks allow windows at all, and something asks for them. */
static bool can_have_windows(const struct gp_view *view, const struct gp_qos_crew *crew)
{
	bool asked = crew->share_ppm || (crew->target_ns && !crew->untargeted);

	return asked && (view->caps & GP_CAP_HOLD) && crew->lc && crew->be && !crew->strangers &&
	       crew->held + crew->be <= view->max_held;
}

/* Aging is for those who get nothing. In windows everybody gets something, and is only let in
 * beside requests when that does not come true. */
static bool any_starving(const struct gp_view *view, const struct gp_policy_state *state)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_qos_task *q = gp_policy_task(state, i);

		if (q->windowed && (t->known & GP_KNOWN_WAITED) && t->waited_ns >= STARVING_NS)
			return true;
	}
	return false;
}

static bool refuses_shares(const struct gp_view *view, const struct gp_qos_crew *crew)
{
	return asks_too_much(view) || crew->strangers || !(view->caps & GP_CAP_HOLD);
}

static void refuse(const struct gp_view *view, const struct gp_policy_state *state,
                   const struct gp_qos_crew *crew, struct gp_plan *plan)
{
	const struct gp_qos_device *d = state->device;
	bool shares = refuses_shares(view, crew);

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		bool late = t->deadline_ns < t->budget_ns + view->switch_cost_ns ||
		            (d->refuses && t->deadline_ns == crew->target_ns);

		if (t->class == GP_LATENCY_CRITICAL)
			plan->task[i].refused = t->deadline_ns && late;
		else if (t->class == GP_BEST_EFFORT)
			plan->task[i].refused = t->share_permille && shares;
	}
}

static void decide_with_slices(const struct gp_view *view, const struct gp_policy_state *state,
                               uint32_t held, bool over, struct gp_plan *plan)
{
	struct gp_qos_device *d = state->device;
	uint64_t often_ns = view->sample_period_ns / 16;
	struct gp_qos_crew crew;

	gp_qos_favour(view, state);
	gp_priority_by_slices(view, state, held, count_lc(view), plan);
	crew = gather_crew(view, state, plan);
	d->seen_at_once = crew.seen_at_once;
	if (!can_have_windows(view, &crew)) {
		d->windows = false;
		d->refuses = false;
		d->book.from_ns = 0;
	} else {
		if (over) {
			gp_qos_choose(view, state, &crew);
			gp_qos_open_book(view, d);
		}
		if (d->windows && !(d->priority.age_until_ns && any_starving(view, state)))
			gp_qos_apply_windows(view, state, &crew, plan);
		/* A sample is to be seen soon after it was taken: it ends the period. */
		gp_plan_wake_at(plan, view->now_ns + (often_ns > GP_MS ? often_ns : GP_MS));
	}
	refuse(view, state, &crew, plan);
}

static int qos_decide(const struct gp_view *view, const struct gp_policy_state *state,
                      struct gp_plan *plan)
{
	bool over = gp_qos_keep_book(view, state);
	uint32_t held = gp_entities_gather(view, state);

	held += gp_qos_bar(view, state, held, plan);
	if (view->caps & GP_CAP_SLICE) {
		decide_with_slices(view, state, held, over, plan);
	} else {
		struct gp_qos_crew crew;

		gp_qos_wait(view, state, plan);
		gp_priority_by_activity(view, state, held, plan);
		crew = gather_crew(view, state, plan);
		refuse(view, state, &crew, plan);
	}
	return 0;
}

/* Only what it runs from now on counts. */
static void qos_task_in(const struct gp_policy_state *state, const struct gp_task_view *task,
                        void *task_state)
{
	struct gp_qos_task *q = task_state;

	(void)state;
	q->run_ns = task->known & GP_KNOWN_RUN ? task->run_ns : 0;
}

const struct gp_policy_ops gp_policy_qos = {
	.name = "qos",
	.summary = "shares, ceilings and latency targets, with the least loss of be work",
	.param = qos_params,
	.nparam = sizeof qos_params / sizeof *qos_params,
	.device_state = sizeof(struct gp_qos_device),
	.task_state = sizeof(struct gp_qos_task),
	.watches = true,
	.task_in = qos_task_in,
	.decide = qos_decide,
};
