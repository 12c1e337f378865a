/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * priority where slices cannot be set: a unit is held while one of higher rank is seen active, and
 * let in for a moment when it has waited long enough (aging).
 */
#include "policy/priority/priority.h"

static uint32_t rank(const struct gp_entity *u)
{
	return u->class * (GP_PRIORITY_MAX + 1) + u->priority;
}

/* Let in, and as far as can be seen the hardware has not come round to it yet. */
static bool has_not_run(const struct gp_view *view, const struct gp_policy_state *state,
                        const struct gp_priority_task *p)
{
	uint64_t since_ns = view->now_ns - p->aging_ns;

	return p->aging_ns && since_ns < aging_ns(view, state, view->n, 0) &&
	       p->entity.waited_known && p->entity.waited_ns >= since_ns;
}

/* Whether a unit of lower rank is let in now, because it waited long enough. */
static bool is_let_in(const struct gp_view *view, const struct gp_policy_state *state,
                      struct gp_priority_task *p, struct gp_plan *plan)
{
	uint64_t due_ns;

	/* To be released for a gap that others fill is not to run. */
	if (p->entity.waited_known && p->entity.waited_ns <= view->now_ns)
		p->ran_ns = view->now_ns - p->entity.waited_ns;
	else if (!p->entity.policy_held)
		p->ran_ns = view->now_ns; /* until now */
	due_ns = p->ran_ns + param_ns(state, GP_PRIORITY_AGE_AFTER);
	if (view->now_ns >= p->run_until_ns && view->now_ns >= due_ns) {
		p->aging_ns = view->now_ns;
		p->run_until_ns = view->now_ns + param_ns(state, GP_PRIORITY_AGE_RUN);
	} else if (view->now_ns >= p->run_until_ns && has_not_run(view, state, p)) {
		p->run_until_ns = view->now_ns + GP_MS;
	}
	if (view->now_ns < p->run_until_ns) {
		gp_plan_wake_at(plan, p->run_until_ns);
		return true;
	}
	p->aging_ns = 0;
	gp_plan_wake_at(plan, due_ns);
	return false;
}

static bool must_wait(const struct gp_entity *u, uint32_t top)
{
	return u->members && !u->user_held && !u->barred && !u->idle && rank(u) < top;
}

/* Holds the units of a rank as far as there is room. Those held already come first, so that a
 * device that can hold few does not change its mind at every look. True when all are held. */
static bool hold_rank(const struct gp_view *view, const struct gp_policy_state *state,
                      uint32_t of_rank, uint32_t *room, bool held_already, struct gp_plan *plan)
{
	bool all = true;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_priority_task *p = gp_policy_task(state, i);
		struct gp_entity *u = &p->entity;

		if (!must_wait(u, of_rank + 1) || rank(u) != of_rank ||
		    u->policy_held != held_already)
			continue;
		if (u->members > *room || is_let_in(view, state, p, plan)) {
			all = false;
			continue;
		}
		*room -= u->members;
		plan->task[i].want = GP_HOLD;
	}
	return all;
}

/* The lowest ranks first, and nobody of a higher class while one of a lower is let in. */
static void hold_lowest(const struct gp_view *view, const struct gp_policy_state *state,
                        uint32_t top, uint32_t room, struct gp_plan *plan)
{
	const uint32_t lc = GP_LATENCY_CRITICAL * (GP_PRIORITY_MAX + 1);
	bool all = true;

	for (uint32_t r = 0; r < top && (all || r < lc); r++) {
		all &= hold_rank(view, state, r, &room, true, plan);
		all &= hold_rank(view, state, r, &room, false, plan);
	}
}

/* Holds all units of a class below `top` that are not let in. True when none is. */
static bool hold_class(const struct gp_view *view, const struct gp_policy_state *state,
                       uint32_t top, uint8_t class, struct gp_plan *plan)
{
	bool all = true;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_priority_task *p = gp_policy_task(state, i);

		if (p->entity.class != class || !must_wait(&p->entity, top))
			continue;
		if (is_let_in(view, state, p, plan))
			all = false;
		else
			plan->task[i].want = GP_HOLD;
	}
	return all;
}

static void hold_below(const struct gp_view *view, const struct gp_policy_state *state,
                       uint32_t top, uint32_t room, struct gp_plan *plan)
{
	uint32_t needed = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_priority_task *p = gp_policy_task(state, i);

		if (must_wait(&p->entity, top))
			needed += p->entity.members;
		else
			p->ran_ns =
				view->now_ns; /* does not wait: it runs, is idle, or is no unit */
	}
	if (needed > room)
		hold_lowest(view, state, top, room, plan);
	else if (hold_class(view, state, top, GP_BEST_EFFORT, plan))
		hold_class(view, state, top, GP_LATENCY_CRITICAL, plan);
}

void gp_priority_by_activity(const struct gp_view *view, const struct gp_policy_state *state,
                             uint32_t user_held, struct gp_plan *plan)
{
	uint32_t top = 0;
	uint32_t room = room_for_holds(view, user_held);

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_entity *u = gp_policy_task(state, i);

		if (u->members && u->active && !u->user_held && !u->barred && rank(u) > top)
			top = rank(u);
		plan->task[i].want = view->task[i].class == GP_UNMANAGED ? GP_LEAVE
		                     : u->barred                         ? GP_HOLD
		                                                         : GP_RUN;
	}
	if (!(view->caps & GP_CAP_HOLD))
		return;
	hold_below(view, state, top, room, plan);
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			plan->task[i].want = plan->task[view->task[i].gang].want;
}
