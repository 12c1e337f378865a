/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * priority: strict classes and priorities, with aging.
 *
 * If slices can be set, the hardware arbitrates and no software is on the critical path. A
 * best-effort task with a tiny slice leaves the GPU as soon as a latency-critical task has work.
 * Two runnable tasks with tiny slices would starve each other. So only one task has a tiny slice,
 * and only if no other task below latency-critical may be runnable. The other busy best-effort
 * tasks are held and take long turns. Without slices, a task is held while a task of higher rank is
 * seen active.
 *
 * Good for inference beside training. Bad if latency-critical work never pauses: best-effort tasks
 * then run only in aging windows, a few percent of the time at most. Bad also if latency-critical
 * work has many pauses shorter than a switch: each pause gives the GPU away, and a switch is needed
 * to get it back.
 */
#include "policy/priority/priority.h"

/*
 * Without slices: an entity is held while an entity of higher rank is seen active. When it has
 * waited long enough, it gets an aging window.
 */

static uint32_t rank(const struct gp_entity *e)
{
	return e->class * (GP_PRIORITY_MAX + 1) + e->priority;
}

/* The entity has an aging window, but as far as is known the hardware has not reached it yet. */
static bool has_not_run(const struct gp_view *view, const struct gp_priority_task *p)
{
	uint64_t since_ns = view->now_ns - p->aging_ns;

	return p->aging_ns && since_ns < aging_ns(view, view->n, 0) && p->entity.waited_known &&
	       p->entity.waited_ns >= since_ns;
}

/* Whether an entity of lower rank has an aging window now. Opens one if it waited long enough. */
static bool in_aging_window(const struct gp_view *view, struct gp_priority_task *p,
			    struct gp_plan *plan)
{
	uint64_t due_ns;

	/* A task that was released in a gap has not run if other tasks filled the gap. */
	if (p->entity.waited_known && p->entity.waited_ns <= view->now_ns)
		p->ran_ns = view->now_ns - p->entity.waited_ns;
	else if (!p->entity.policy_held)
		p->ran_ns = view->now_ns; /* it was released until now */
	due_ns = p->ran_ns + param_ns(view, GP_PRIORITY_AGE_AFTER);
	if (view->now_ns >= p->run_until_ns && view->now_ns >= due_ns) {
		p->aging_ns = view->now_ns;
		p->run_until_ns = view->now_ns + param_ns(view, GP_PRIORITY_AGE_RUN);
	} else if (view->now_ns >= p->run_until_ns && has_not_run(view, p)) {
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

static bool must_wait(const struct gp_entity *e, uint32_t top)
{
	return e->members && !e->user_held && !e->barred && !e->idle && rank(e) < top;
}

/*
 * Holds the entities of one rank while `room` lasts. Entities that are held already come first, so
 * that a device that can hold few does not change its choice at every tick. Returns true if all are
 * held.
 */
static bool hold_rank(const struct gp_view *view, uint32_t of_rank, uint32_t *room,
		      bool held_already, struct gp_plan *plan)
{
	bool all = true;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_priority_task *p = gp_policy_task(view, i);
		struct gp_entity *e = &p->entity;

		if (!must_wait(e, of_rank + 1) || rank(e) != of_rank ||
		    e->policy_held != held_already)
			continue;
		if (e->members > *room || in_aging_window(view, p, plan)) {
			all = false;
			continue;
		}
		*room -= e->members;
		plan->task[i].want = GP_HOLD;
	}
	return all;
}

/* Holds the lowest ranks first. Holds latency-critical entities only if all best-effort ones are
 * held. */
static void hold_lowest(const struct gp_view *view, uint32_t top, uint32_t room,
			struct gp_plan *plan)
{
	const uint32_t lc = GP_LATENCY_CRITICAL * (GP_PRIORITY_MAX + 1);
	bool all = true;

	for (uint32_t r = 0; r < top && (all || r < lc); r++) {
		all &= hold_rank(view, r, &room, true, plan);
		all &= hold_rank(view, r, &room, false, plan);
	}
}

/* Holds all entities of a class with a rank below `top`, except in an aging window. Returns true if
 * all are held. */
static bool hold_class(const struct gp_view *view, uint32_t top, uint8_t class,
		       struct gp_plan *plan)
{
	bool all = true;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_priority_task *p = gp_policy_task(view, i);

		if (p->entity.class != class || !must_wait(&p->entity, top))
			continue;
		if (in_aging_window(view, p, plan))
			all = false;
		else
			plan->task[i].want = GP_HOLD;
	}
	return all;
}

static void hold_below(const struct gp_view *view, uint32_t top, uint32_t room,
		       struct gp_plan *plan)
{
	uint32_t needed = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_priority_task *p = gp_policy_task(view, i);

		if (must_wait(&p->entity, top))
			needed += p->entity.members;
		else
			p->ran_ns = view->now_ns; /* it does not wait: it runs, is idle, or is no
						     entity */
	}
	if (needed > room)
		hold_lowest(view, top, room, plan);
	else if (hold_class(view, top, GP_BEST_EFFORT, plan))
		hold_class(view, top, GP_LATENCY_CRITICAL, plan);
}

void gp_priority_by_activity(const struct gp_view *view, uint32_t user_held, struct gp_plan *plan)
{
	uint32_t top = 0;
	uint32_t room = gp_room_for_holds(view, user_held);

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_entity *e = gp_policy_task(view, i);

		if (e->members && e->active && !e->user_held && !e->barred && rank(e) > top)
			top = rank(e);
		plan->task[i].want = view->task[i].class == GP_UNMANAGED ? GP_LEAVE
				     : e->barred                         ? GP_HOLD
									 : GP_RUN;
	}
	if (!(view->caps & GP_CAP_HOLD))
		return;
	hold_below(view, top, room, plan);
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			plan->task[i].want = plan->task[view->task[i].gang].want;
}

static const struct gp_param priority_params[] = {GP_PRIORITY_PARAM_TABLE};

static int priority_decide(const struct gp_view *view, struct gp_plan *plan)
{
	uint32_t user_held = gp_entities_gather(view);

	if (view->caps & GP_CAP_SLICE)
		gp_priority_by_slices(view, user_held, count_lc(view), plan);
	else
		gp_priority_by_activity(view, user_held, plan);
	return 0;
}

const struct gp_policy_ops gp_policy_priority = {
	.name = "priority",
	.summary = "strict classes and priorities, with aging",
	.param = priority_params,
	.nparam = sizeof priority_params / sizeof *priority_params,
	.device_state = sizeof(struct gp_priority_device),
	.task_state = sizeof(struct gp_priority_task),
	.uses = GP_USES_CLASS | GP_USES_PRIORITY,
	.watches = true,
	.decide = priority_decide,
};
