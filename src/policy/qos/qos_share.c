/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ceilings and guaranteed shares. Each task has an account: it is credited with its part of the
 * elapsed time and charged with its run time. Sampled run times come late. So a released task
 * counts as running until its run time is updated; the update corrects the account.
 */
#include "policy/qos/qos.h"

#define BURST_NS  (200 * (int64_t)GP_MS)  /* an account holds at most the task's part of this */
#define TURN_NS   (50 * GP_MS)            /* a turn is not ended earlier by a turn for a share */
#define UNUSED_NS (1000 * (int64_t)GP_MS) /* surplus that is noted after an unused turn */
#define OWED_NS   (20 * (int64_t)GP_MS)   /* smallest deficit for which a turn is given */

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

static int64_t part_of(uint64_t ns, uint32_t permille)
{
	return (int64_t)(ns * permille / 1000);
}

/* The length of a turn for a share. It is limited, because the other entities wait during this turn
 * and must have their own turns. */
static uint64_t turn_for_share(const struct gp_view *view)
{
	uint64_t turn_ns = param_ns(view, GP_PRIORITY_QUANTUM), most_ns = view->starve_limit_ns / 8;

	return turn_ns < most_ns ? turn_ns : most_ns;
}

/* Records whether a task used the turn that it was given for its share. A task that did not use it
 * wants less than its share, and does not get another turn soon. */
static void judge_turn(const struct gp_view *view, struct gp_qos_task *q)
{
	uint64_t turn_ns = turn_for_share(view);

	if (!q->given_ns || view->now_ns < q->given_ns + turn_ns + 2 * view->sample_period_ns)
		return;
	q->given_ns = 0;
	q->unused_turn = q->run_ns - q->given_run_ns < turn_ns / 4;
	if (q->unused_turn)
		q->behind_ns = -UNUSED_NS;
}

static void keep_account(const struct gp_view *view, const struct gp_task_view *t,
			 struct gp_qos_task *q)
{
	uint64_t passed_ns = q->counted_ns ? view->now_ns - q->counted_ns : 0;
	bool held = t->held_by || ((t->known & GP_KNOWN_HELD) && t->held);
	bool known = t->known & GP_KNOWN_RUN;
	int64_t ran_ns = (int64_t)(known ? q->ran_ns : held ? 0 : passed_ns);
	int64_t burst_ns = part_of((uint64_t)BURST_NS, t->ceiling_permille);

	if (!q->counted_ns)
		q->room_ns = burst_ns;
	q->counted_ns = view->now_ns;
	if (!known || ran_ns)
		q->unseen_ns = 0;
	else if (!held)
		q->unseen_ns += passed_ns;
	else /* its run time would have been reported by now */
		q->unseen_ns = gp_less(q->unseen_ns, passed_ns);
	/* The debt is limited: a task must not starve because of its ceiling. */
	q->room_ns = clamp(q->room_ns + part_of(passed_ns, t->ceiling_permille) - ran_ns,
			   -part_of(view->starve_limit_ns / 8, t->ceiling_permille), burst_ns);
	q->behind_ns = clamp(q->behind_ns + part_of(passed_ns, t->share_permille) - ran_ns,
			     q->unused_turn ? -UNUSED_NS : -BURST_NS, BURST_NS);
	if (!t->share_permille || gp_seen_idle(t) || (t->held_by & GP_HELD_BY_USER))
		q->behind_ns = 0; /* the task wants no device time, or none is due to it */
}

/* Whether a task has used the time of its ceiling. It is released again when it has enough room for
 * a while. */
static bool is_over(const struct gp_view *view, const struct gp_task_view *t, struct gp_qos_task *q,
		    struct gp_plan *plan)
{
	int64_t left_ns = q->room_ns - (int64_t)q->unseen_ns;
	int64_t enough_ns = part_of((uint64_t)BURST_NS, t->ceiling_permille) / 2;
	int64_t next_ns;

	if (!t->ceiling_permille || t->ceiling_permille >= 1000)
		return false;
	q->over = q->over ? left_ns < enough_ns : left_ns <= 0;
	next_ns = q->over ? (enough_ns - left_ns) * 1000 / t->ceiling_permille : left_ns;
	gp_plan_wake_at(plan, view->now_ns + (uint64_t)clamp(next_ns, (int64_t)GP_MS, BURST_NS));
	return q->over;
}

uint32_t gp_qos_bar(const struct gp_view *view, uint32_t user_held, struct gp_plan *plan)
{
	bool refused = asks_too_much(view);
	uint32_t barred = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		struct gp_entity *e = gp_entity_of(view, i);
		struct gp_qos_task *q = gp_policy_task(view, i);

		keep_account(view, t, q);
		if (refused)
			q->behind_ns = 0;
		judge_turn(view, q);
		if (t->class == GP_UNMANAGED || !is_over(view, t, q, plan) || e->barred ||
		    e->user_held || !(view->caps & GP_CAP_HOLD) ||
		    e->members > gp_room_for_holds(view, user_held + barred))
			continue;
		e->barred = true;
		barred += e->members;
	}
	return barred;
}

void gp_qos_favor(const struct gp_view *view)
{
	struct gp_qos_device *d = view->state->device;
	struct gp_rotation *r = &d->priority.rotation;
	struct gp_entity *current = NULL;
	struct gp_qos_task *furthest_behind = NULL;
	uint32_t index = 0;
	int64_t owed_ns = OWED_NS;

	if (!r->current || view->now_ns < r->began_ns + TURN_NS)
		return;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_qos_task *q = gp_policy_task(view, i);
		struct gp_entity *e = &q->priority.entity;

		if (!e->rotating || e->barred)
			continue;
		if (view->task[i].id == r->current)
			current = e;
		else if (view->now_ns - e->queued_ns >= view->starve_limit_ns / 8)
			return; /* this entity has waited too long and must be next */
		if (q->behind_ns <= owed_ns || (q->unused_turn && q->given_ns))
			continue;
		owed_ns = q->behind_ns;
		furthest_behind = q;
		index = i;
	}
	if (!furthest_behind)
		return;
	if (!furthest_behind->given_ns) {
		furthest_behind->given_ns = view->now_ns;
		furthest_behind->given_run_ns = furthest_behind->run_ns;
	}
	if (current)
		current->queued_ns = view->now_ns; /* it has had a turn, even if a short one */
	gp_rotation_give(view, r, index, turn_for_share(view), true);
}
