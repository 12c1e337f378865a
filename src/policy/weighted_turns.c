/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Weighted turns: which entities take part, how much device time each got, and turns by hold and
 * release. */
#include "policy/weighted_turns.h"

#define TURN_MIN_NS  (10 * GP_MS) /* a turn costs about 1 ms on NVIDIA */
#define LINGER_NS    GP_MS        /* a shorter pause does not end a turn */
#define IDLE_TURN_ID UINT64_MAX   /* stands for turns.idle_turn in place of a task id */

/* Accounting: how much device time each entity got. */

static void reset(struct gp_turn_entity *e)
{
	e->busy = 0;
	e->released = true;
	e->runs_known = true;
	e->joined = false;
	e->ran_ns = 0;
	if (!e->weight)
		e->weight = 1;
}

static void note_member(const struct gp_view *view, uint32_t i)
{
	const struct gp_task_view *t = &view->task[i];
	struct gp_turn_entity *own = gp_policy_task(view, i), *e = gp_turn_entity_of(view, i);
	bool held = (t->known & GP_KNOWN_HELD) ? t->held : (t->held_by & GP_HELD_BY_POLICY) != 0;

	e->released &= !held;
	e->busy += !gp_seen_idle(t);
	if (!(t->known & GP_KNOWN_RUN)) {
		e->runs_known &=
			own->run_known; /* one missing value is harmless: run time only grows */
		return;
	}
	if (own->run_known && t->run_ns > own->run_ns)
		e->ran_ns += t->run_ns - own->run_ns;
	own->run_ns = t->run_ns;
	own->run_known = true;
}

static void charge(struct gp_turn_entity *e, uint64_t got_ns)
{
	e->ahead_ns += gp_turn_normal(got_ns, e->weight);
}

/*
 * During a turn the device belongs to one entity, whether the entity keeps it busy or not. So the
 * length of the turn is charged, and wasting a turn brings no advantage.
 */
static void charge_all(const struct gp_view *view, struct gp_turns *turns)
{
	uint64_t passed_ns = turns->decided_ns ? view->now_ns - turns->decided_ns : 0;
	uint32_t released = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *e = gp_policy_task(view, i);

		released += e->entity.rotating && e->released;
	}
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *e = gp_policy_task(view, i);

		if (e->entity.rotating && e->released)
			charge(e, passed_ns / released);
	}
	if (turns->current == IDLE_TURN_ID && !released)
		charge(&turns->idle_turn, passed_ns);
}

/*
 * Subtracts the smallest `ahead_ns` from all. An entity that does not take part is lowered, too,
 * but not below 0, because idle time cannot be saved up.
 */
static void level(const struct gp_view *view, struct gp_turns *turns)
{
	uint64_t passed_ns = view->now_ns - turns->decided_ns, least_ns = UINT64_MAX;

	if (turns->idle_turn.entity.rotating)
		least_ns = turns->idle_turn.ahead_ns;
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *e = gp_policy_task(view, i);

		if (e->entity.rotating && e->ahead_ns < least_ns)
			least_ns = e->ahead_ns;
	}
	if (least_ns == UINT64_MAX)
		least_ns =
			passed_ns; /* no entity takes part: old surpluses are forgotten over time */
	turns->idle_turn.ahead_ns = gp_less(turns->idle_turn.ahead_ns, least_ns);
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *e = gp_policy_task(view, i);

		e->ahead_ns = gp_less(e->ahead_ns, least_ns);
	}
}

/*
 * The current entity stays during a short pause, if pauses are seen at once. With slices, an entity
 * that was not seen active for less than a round may only have had no slice in that time.
 */
static bool lingers(const struct gp_view *view, const struct gp_turns *turns,
		    const struct gp_turn_entity *e, bool current, struct gp_plan *plan)
{
	uint64_t until_ns = e->idle_since_ns + LINGER_NS;

	if (turns->window_ns)
		return view->now_ns < e->idle_since_ns + turns->round_ns + view->sample_period_ns;
	if (!current || !gp_is_prompt(view) || view->now_ns >= until_ns)
		return false;
	gp_plan_wake_at(plan, until_ns);
	return true;
}

/* If the activity of an entity is unknown at this tick, it stays in the rotation or out of it. */
static void join_or_leave(const struct gp_view *view, const struct gp_turns *turns,
			  struct gp_turn_entity *e, bool current, struct gp_plan *plan)
{
	bool was = e->entity.rotating;

	if (!e->entity.idle || !e->entity.members)
		e->idle_since_ns = 0;
	else if (!e->idle_since_ns)
		e->idle_since_ns = view->now_ns;
	if (!e->entity.members || e->entity.user_held)
		e->entity.rotating = false;
	else if (e->entity.idle)
		e->entity.rotating = was && lingers(view, turns, e, current, plan);
	else if (e->entity.active || !(view->caps & GP_CAP_ACTIVITY))
		e->entity.rotating = true;
	e->joined = e->entity.rotating && !was;
	if (!e->entity.rotating || !was)
		e->entity.queued_ns = view->now_ns;
}

uint32_t gp_turns_gather(const struct gp_view *view, struct gp_turns *turns, struct gp_plan *plan)
{
	uint32_t user_held = gp_entities_gather(view);

	for (uint32_t i = 0; i < view->n; i++)
		reset(gp_policy_task(view, i));
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			note_member(view, i);
	charge_all(view, turns);
	level(view, turns);
	for (uint32_t i = 0; i < view->n; i++)
		join_or_leave(view, turns, gp_policy_task(view, i),
			      view->task[i].id == turns->current, plan);
	turns->decided_ns = view->now_ns;
	return user_held;
}

/* Turns by hold and release. */

struct line {
	uint32_t entities, tasks;
	uint32_t lightest;
	uint64_t weight; /* of all entities together */
	struct gp_turn_entity *current, *next, *overdue, *returning;
	uint64_t next_id, overdue_id;
};

static bool goes_before(const struct gp_turn_entity *a, const struct gp_turn_entity *b)
{
	if (!b || a->ahead_ns != b->ahead_ns)
		return !b || a->ahead_ns < b->ahead_ns;
	return a->entity.queued_ns < b->entity.queued_ns;
}

static void add_to_line(const struct gp_view *view, struct line *l, struct gp_turn_entity *e,
			uint64_t id, uint64_t current)
{
	l->entities++;
	l->tasks += e->entity.members;
	l->weight += e->weight;
	if (e->weight < l->lightest)
		l->lightest = e->weight;
	if (goes_before(e, l->next)) {
		l->next = e;
		l->next_id = id;
	}
	if (id == current)
		l->current = e;
	else if (id != IDLE_TURN_ID &&
		 view->now_ns - e->entity.queued_ns >= view->starve_limit_ns / 2 &&
		 (!l->overdue || e->entity.queued_ns < l->overdue->entity.queued_ns)) {
		l->overdue = e;
		l->overdue_id = id;
	}
}

static struct line line_up(const struct gp_view *view, struct gp_turns *turns,
			   const struct gp_turn_rules *rules)
{
	struct line l = {.lightest = GP_TURN_WEIGHT_MAX};

	if (!turns->idle_turn.entity.rotating)
		turns->idle_turn.entity.queued_ns = view->now_ns;
	turns->idle_turn.entity.rotating = rules->idle_weight != 0;
	turns->idle_turn.weight = rules->idle_weight ? rules->idle_weight : 1;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *e = gp_policy_task(view, i);

		if (e->entity.rotating)
			add_to_line(view, &l, e, view->task[i].id, turns->current);
	}
	if (rules->idle_weight && l.entities)
		add_to_line(view, &l, &turns->idle_turn, IDLE_TURN_ID, turns->current);
	return l;
}

/* Finds an entity that was idle, joined again and is not ahead of the current entity. It is served
 * before all other entities, because it often wants little. */
static void find_returning(const struct gp_view *view, struct gp_turns *turns, struct line *l)
{
	for (uint32_t i = 0; i < view->n && l->current; i++) {
		struct gp_turn_entity *e = gp_policy_task(view, i);
		uint64_t id = view->task[i].id;

		if (!e->entity.rotating || e == l->current || e->ahead_ns > l->current->ahead_ns ||
		    !(id == turns->returning || (e->joined && !turns->returning)))
			continue;
		l->returning = e;
		turns->returning = id;
	}
	if (!l->returning)
		turns->returning = 0;
}

static uint64_t turn_length(const struct gp_view *view, const struct line *l,
			    const struct gp_turn_rules *rules, uint32_t weight)
{
	uint64_t round_ns = gp_turn_round(view, rules);
	uint64_t length_ns = rules->turn_ns * weight / l->lightest;

	length_ns = gp_least(length_ns, round_ns * weight / l->weight);
	return length_ns > TURN_MIN_NS ? length_ns : TURN_MIN_NS;
}

/*
 * A turn is shortened for a returning entity, but not below TURN_MIN_NS. If activity is sampled,
 * the turn of an entity that was not seen active lasts until there was a sample. Otherwise an idle
 * entity might never be noticed, and would waste a turn in every round.
 */
static bool turn_is_over(const struct gp_view *view, struct gp_turns *turns, const struct line *l)
{
	uint64_t sampled_ns = view->sample_period_ns + view->sample_period_ns / 2;

	if (l->returning && turns->ends_ns > turns->began_ns + TURN_MIN_NS)
		turns->ends_ns = turns->began_ns + TURN_MIN_NS;
	if (view->now_ns < turns->ends_ns)
		return false;
	if (!(view->caps & GP_CAP_ACTIVITY) || l->current->entity.active ||
	    l->current == &turns->idle_turn || view->now_ns >= turns->began_ns + sampled_ns ||
	    sampled_ns > view->starve_limit_ns / 5 / l->entities)
		return true;
	turns->ends_ns = turns->began_ns + sampled_ns;
	return false;
}

static void give_turn(const struct gp_view *view, struct gp_turns *turns, uint64_t id,
		      uint64_t length_ns)
{
	if (id != turns->current)
		turns->began_ns = view->now_ns;
	turns->current = id;
	turns->ends_ns = view->now_ns + length_ns;
	turns->returning = 0;
}

/* The current entity keeps the turn if it still has the least surplus. */
static void next_turn(const struct gp_view *view, struct gp_turns *turns, struct line *l,
		      const struct gp_turn_rules *rules)
{
	if (l->current)
		l->current->entity.queued_ns = view->now_ns;
	if (l->overdue)
		give_turn(view, turns, l->overdue_id, TURN_MIN_NS);
	else if (l->returning)
		give_turn(view, turns, turns->returning,
			  turn_length(view, l, rules, l->returning->weight));
	else
		give_turn(view, turns, l->next_id, turn_length(view, l, rules, l->next->weight));
}

/* The slice of each member of a gang: its members alternate within the turn of the gang, and short
 * slices would cost many switches. */
static uint32_t slice_in_gang(const struct gp_view *view, const struct gp_turn_rules *rules)
{
	return view->caps & GP_CAP_SLICE ? gp_slice_near(view, rules->slice_ns / 1000) : 0;
}

static void plan_turn(const struct gp_view *view, uint64_t current,
		      const struct gp_turn_rules *rules, struct gp_plan *plan)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *e = gp_turn_entity_of(view, i);
		bool waits = e->entity.rotating && view->task[view->task[i].gang].id != current;

		if (view->task[i].class == GP_UNMANAGED)
			continue;
		plan->task[i].want = waits ? GP_HOLD : GP_RUN;
		if (e->entity.members > 1)
			plan->task[i].slice_us = slice_in_gang(view, rules);
	}
}

bool gp_turns_by_holds(const struct gp_view *view, struct gp_turns *turns,
		       const struct gp_turn_rules *rules, uint32_t user_held, struct gp_plan *plan)
{
	uint32_t room = gp_room_for_holds(view, user_held);
	struct line l = line_up(view, turns, rules);

	if (!(view->caps & GP_CAP_HOLD) || l.tasks > room + !rules->idle_weight ||
	    l.entities * TURN_MIN_NS > view->starve_limit_ns / 4) {
		turns->current = 0;
		return false;
	}
	turns->window_ns = 0;
	find_returning(view, turns, &l);
	if (!l.entities)
		turns->current = 0;
	else if (!l.current || turn_is_over(view, turns, &l))
		next_turn(view, turns, &l, rules);
	plan_turn(view, turns->current, rules, plan);
	/* The turn of a single entity has no end. */
	if (l.entities > 1)
		gp_plan_wake_at(plan, turns->ends_ns);
	return true;
}
