/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Weighted turns: who takes part, what each got, and turns by hold and release. */
#include "policy/weighted_turns.h"

#define TURN_MIN_NS (10 * GP_MS) /* a turn costs about 1 ms on NVIDIA: shorter ones waste */
#define LINGER_NS   GP_MS        /* a pause this short is not the end of a turn */
#define NOBODY      UINT64_MAX   /* the id of turns.nobody */

/* ---- what each got ---- */

static void reset(struct gp_turn_entity *u)
{
	u->busy = 0;
	u->released = true;
	u->told = true;
	u->joined = false;
	u->ran_ns = 0;
	if (!u->weight)
		u->weight = 1;
}

static void note_member(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i)
{
	const struct gp_task_view *t = &view->task[i];
	struct gp_turn_entity *own = gp_policy_task(state, i),
			      *u = gp_turn_entity_of(view, state, i);
	bool held = (t->known & GP_KNOWN_HELD) ? t->held : (t->held_by & GP_HELD_BY_POLICY) != 0;

	u->released &= !held;
	u->busy += !gp_seen_idle(t);
	if (!(t->known & GP_KNOWN_RUN)) {
		u->told &= own->run_known; /* one look without it is no loss: it only grows */
		return;
	}
	if (own->run_known && t->run_ns > own->run_ns)
		u->ran_ns += t->run_ns - own->run_ns;
	own->run_ns = t->run_ns;
	own->run_known = true;
}

static void charge(struct gp_turn_entity *u, uint64_t got_ns)
{
	u->ahead_ns += gp_turn_normal(got_ns, u->weight);
}

/*
 * In turns the device is a unit's own, whether it keeps it busy or not, so what counts is how long
 * it had it: nobody gains by wasting.
 */
static void charge_all(const struct gp_view *view, const struct gp_policy_state *state,
                       struct gp_turns *turns)
{
	uint64_t passed_ns = turns->decided_ns ? view->now_ns - turns->decided_ns : 0;
	uint32_t released = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *u = gp_policy_task(state, i);

		released += u->entity.rotating && u->released;
	}
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *u = gp_policy_task(state, i);

		if (u->entity.rotating && u->released)
			charge(u, passed_ns / released);
	}
	if (turns->current == NOBODY && !released)
		charge(&turns->nobody, passed_ns);
}

/*
 * Counts anew from whoever got least. One that does not take part falls back with the others until
 * it is level with them, and no further: nobody saves up time by being idle.
 */
static void level(const struct gp_view *view, const struct gp_policy_state *state,
                  struct gp_turns *turns)
{
	uint64_t passed_ns = view->now_ns - turns->decided_ns, least_ns = UINT64_MAX;

	if (turns->nobody.entity.rotating)
		least_ns = turns->nobody.ahead_ns;
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *u = gp_policy_task(state, i);

		if (u->entity.rotating && u->ahead_ns < least_ns)
			least_ns = u->ahead_ns;
	}
	if (least_ns == UINT64_MAX)
		least_ns = passed_ns; /* the device is nobody's: debts are forgotten in time */
	turns->nobody.ahead_ns -=
		least_ns < turns->nobody.ahead_ns ? least_ns : turns->nobody.ahead_ns;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *u = gp_policy_task(state, i);

		u->ahead_ns -= least_ns < u->ahead_ns ? least_ns : u->ahead_ns;
	}
}

/* ---- who takes part ---- */

/*
 * The one whose turn it is may pause for a moment, where its pauses are seen at once. With slices,
 * one that was not seen to work for less than a round only had no slice meanwhile, perhaps.
 */
static bool lingers(const struct gp_view *view, const struct gp_turns *turns,
                    const struct gp_turn_entity *u, bool current, struct gp_plan *plan)
{
	uint64_t until_ns = u->idle_since_ns + LINGER_NS;

	if (turns->window_ns)
		return view->now_ns < u->idle_since_ns + turns->round_ns + view->sample_period_ns;
	if (!current || !gp_is_prompt(view) || view->now_ns >= until_ns)
		return false;
	gp_plan_wake_at(plan, until_ns);
	return true;
}

/* Of a unit that nothing is known of at this look, what was known last goes on. */
static void join_or_leave(const struct gp_view *view, const struct gp_turns *turns,
                          struct gp_turn_entity *u, bool current, struct gp_plan *plan)
{
	bool was = u->entity.rotating;

	if (!u->entity.idle || !u->entity.members)
		u->idle_since_ns = 0;
	else if (!u->idle_since_ns)
		u->idle_since_ns = view->now_ns;
	if (!u->entity.members || u->entity.user_held)
		u->entity.rotating = false;
	else if (u->entity.idle)
		u->entity.rotating = was && lingers(view, turns, u, current, plan);
	else if (u->entity.active || !(view->caps & GP_CAP_ACTIVITY))
		u->entity.rotating = true;
	u->joined = u->entity.rotating && !was;
	if (!u->entity.rotating || !was)
		u->entity.queued_ns = view->now_ns;
}

uint32_t gp_turns_gather(const struct gp_view *view, const struct gp_policy_state *state,
                         struct gp_turns *turns, struct gp_plan *plan)
{
	uint32_t user_held = gp_entities_gather(view, state);

	for (uint32_t i = 0; i < view->n; i++)
		reset(gp_policy_task(state, i));
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			note_member(view, state, i);
	charge_all(view, state, turns);
	level(view, state, turns);
	for (uint32_t i = 0; i < view->n; i++)
		join_or_leave(view, turns, gp_policy_task(state, i),
		              view->task[i].id == turns->current, plan);
	turns->decided_ns = view->now_ns;
	return user_held;
}

/* ---- turns ---- */

struct line {
	uint32_t entities, tasks;
	uint32_t lightest;
	uint64_t weight; /* of all */
	struct gp_turn_entity *current, *next, *overdue, *guest;
	uint64_t next_id, overdue_id;
};

static bool goes_before(const struct gp_turn_entity *a, const struct gp_turn_entity *b)
{
	if (!b || a->ahead_ns != b->ahead_ns)
		return !b || a->ahead_ns < b->ahead_ns;
	return a->entity.queued_ns < b->entity.queued_ns;
}

static void add_to_line(const struct gp_view *view, struct line *l, struct gp_turn_entity *u,
                        uint64_t id, uint64_t current)
{
	l->entities++;
	l->tasks += u->entity.members;
	l->weight += u->weight;
	if (u->weight < l->lightest)
		l->lightest = u->weight;
	if (goes_before(u, l->next)) {
		l->next = u;
		l->next_id = id;
	}
	if (id == current)
		l->current = u;
	else if (id != NOBODY && view->now_ns - u->entity.queued_ns >= view->starve_limit_ns / 2 &&
	         (!l->overdue || u->entity.queued_ns < l->overdue->entity.queued_ns)) {
		l->overdue = u;
		l->overdue_id = id;
	}
}

static struct line line_up(const struct gp_view *view, const struct gp_policy_state *state,
                           struct gp_turns *turns, const struct gp_turn_rules *rules)
{
	struct line l = {.lightest = GP_TURN_WEIGHT_MAX};

	if (!turns->nobody.entity.rotating)
		turns->nobody.entity.queued_ns = view->now_ns;
	turns->nobody.entity.rotating = rules->nobody != 0;
	turns->nobody.weight = rules->nobody ? rules->nobody : 1;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *u = gp_policy_task(state, i);

		if (u->entity.rotating)
			add_to_line(view, &l, u, view->task[i].id, turns->current);
	}
	if (rules->nobody && l.entities)
		add_to_line(view, &l, &turns->nobody, NOBODY, turns->current);
	return l;
}

/* One that came back and is not ahead of the one whose turn it is need not wait for the others: it
 * often wants little. */
static void find_guest(const struct gp_view *view, const struct gp_policy_state *state,
                       struct gp_turns *turns, struct line *l)
{
	for (uint32_t i = 0; i < view->n && l->current; i++) {
		struct gp_turn_entity *u = gp_policy_task(state, i);
		uint64_t id = view->task[i].id;

		if (!u->entity.rotating || u == l->current || u->ahead_ns > l->current->ahead_ns ||
		    !(id == turns->guest || (u->joined && !turns->guest)))
			continue;
		l->guest = u;
		turns->guest = id;
	}
	if (!l->guest)
		turns->guest = 0;
}

static uint64_t turn_length(const struct gp_view *view, const struct line *l,
                            const struct gp_turn_rules *rules, uint32_t weight)
{
	uint64_t round_ns = gp_turn_round(view, rules);
	uint64_t length_ns = rules->turn_ns * weight / l->lightest;

	if (length_ns > round_ns * weight / l->weight)
		length_ns = round_ns * weight / l->weight;
	return length_ns > TURN_MIN_NS ? length_ns : TURN_MIN_NS;
}

/*
 * A turn is cut short for a guest, but not so short that it was not worth it.
 * Where activity is sampled, a turn in which nothing could be seen of its unit goes on until there
 * was a sample: otherwise an idle one might never be found out, and waste a turn in every round.
 */
static bool turn_is_over(const struct gp_view *view, struct gp_turns *turns, const struct line *l)
{
	uint64_t sampled_ns = view->sample_period_ns + view->sample_period_ns / 2;

	if (l->guest && turns->ends_ns > turns->began_ns + TURN_MIN_NS)
		turns->ends_ns = turns->began_ns + TURN_MIN_NS;
	if (view->now_ns < turns->ends_ns)
		return false;
	if (!(view->caps & GP_CAP_ACTIVITY) || l->current->entity.active ||
	    l->current == &turns->nobody || view->now_ns >= turns->began_ns + sampled_ns ||
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
	turns->guest = 0;
}

/* The one that had the turn goes on if it is still behind everybody else. */
static void next_turn(const struct gp_view *view, struct gp_turns *turns, struct line *l,
                      const struct gp_turn_rules *rules)
{
	if (l->current)
		l->current->entity.queued_ns = view->now_ns;
	if (l->overdue)
		give_turn(view, turns, l->overdue_id, TURN_MIN_NS);
	else if (l->guest)
		give_turn(view, turns, turns->guest, turn_length(view, l, rules, l->guest->weight));
	else
		give_turn(view, turns, l->next_id, turn_length(view, l, rules, l->next->weight));
}

/* The members of a gang share its turn by themselves: not with the short slices they come with. */
static uint32_t slice_in_gang(const struct gp_view *view, const struct gp_turn_rules *rules)
{
	uint64_t slice_us = rules->slice_ns / 1000;

	if (!(view->caps & GP_CAP_SLICE))
		return 0;
	return slice_us < view->slice_min_us   ? view->slice_min_us
	       : slice_us > view->slice_max_us ? view->slice_max_us
	                                       : (uint32_t)slice_us;
}

static void plan_turn(const struct gp_view *view, const struct gp_policy_state *state,
                      uint64_t current, const struct gp_turn_rules *rules, struct gp_plan *plan)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *u = gp_turn_entity_of(view, state, i);
		bool waits = u->entity.rotating && view->task[view->task[i].gang].id != current;

		if (view->task[i].class == GP_UNMANAGED)
			continue;
		plan->task[i].want = waits ? GP_HOLD : GP_RUN;
		if (u->entity.members > 1)
			plan->task[i].slice_us = slice_in_gang(view, rules);
	}
}

bool gp_turns_by_holds(const struct gp_view *view, const struct gp_policy_state *state,
                       struct gp_turns *turns, const struct gp_turn_rules *rules,
                       uint32_t user_held, struct gp_plan *plan)
{
	uint32_t room = user_held < view->max_held ? view->max_held - user_held : 0;
	struct line l = line_up(view, state, turns, rules);

	if (!(view->caps & GP_CAP_HOLD) || l.tasks > room + !rules->nobody ||
	    l.entities * TURN_MIN_NS > view->starve_limit_ns / 4) {
		turns->current = 0;
		return false;
	}
	turns->window_ns = 0;
	find_guest(view, state, turns, &l);
	if (!l.entities)
		turns->current = 0;
	else if (!l.current || turn_is_over(view, turns, &l))
		next_turn(view, turns, &l, rules);
	plan_turn(view, state, turns->current, rules, plan);
	/* Alone, its turn has no end. */
	if (l.entities > 1)
		gp_plan_wake_at(plan, turns->ends_ns);
	return true;
}
