/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Weighted turns that the hardware takes: slices in proportion to the weights.
 *
 * If all tasks always have work, slices alone are nearly sufficient. A task that runs out of work
 * before its slice ends gives the rest of the slice away. That happens after each kernel of a task
 * that pauses, or if few kernels are queued. So, if run times are measured, the slices of entities
 * that get more for their weight than other entities are shortened step by step. The device never
 * idles because of this, and no entity can claim time that it missed.
 */
#include "policy/weighted_turns.h"

#define SLICE_MIN_NS  GP_MS          /* shorter slices cost too much (H200: 18 % at 1 ms) */
#define WINDOW_NS     (2000 * GP_MS) /* shortest window in which run times are compared */
#define WINDOW_ROUNDS 8              /* shortest window, in rounds of slices */
#define WHOLE         1000u
#define CUT_MAX       750u /* permille */
#define TOLERANCE     100u /* a surplus below 1/100 is taken for chance */

struct sum {
	uint64_t weight;
	uint32_t lightest;
	uint64_t round_ns; /* the sum of all slices */
};

static struct sum add_up(const struct gp_view *view, const struct gp_turn_rules *rules)
{
	struct sum s = {.lightest = GP_TURN_WEIGHT_MAX};

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *e = gp_policy_task(view, i);

		if (!e->entity.members || e->entity.user_held)
			continue;
		s.weight += e->weight;
		if (e->weight < s.lightest)
			s.lightest = e->weight;
	}
	s.round_ns = rules->slice_ns * s.weight / s.lightest;
	s.round_ns = gp_least(s.round_ns, gp_turn_round(view, rules));
	return s;
}

/* The members of an entity share its slice. */
static uint32_t slice_of(const struct gp_view *view, const struct sum *s,
			 const struct gp_turn_entity *e)
{
	uint64_t slice_ns = s->round_ns * e->weight / s->weight;

	slice_ns = slice_ns * (WHOLE - e->cut_permille) / WHOLE / (e->busy ? e->busy : 1);
	slice_ns = gp_most(slice_ns, SLICE_MIN_NS);
	return gp_slice_near(view, slice_ns / 1000);
}

/* An entity that was not seen active at every tick wants less than its part, or was absent. Its
 * window does not count. Ticks at which it was held do not matter, because the activity of a held
 * entity cannot be seen. */
static void note_window(const struct gp_view *view)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *e = gp_policy_task(view, i);

		e->ahead_ns = 0;
		e->window_run_ns += e->ran_ns;
		e->window_held |= !e->released;
		e->window_whole &= e->entity.active || (e->window_held && !e->entity.idle);
		e->window_whole &= e->runs_known && !e->joined;
	}
}

/* The least run time, normalised by weight, in the window. UINT64_MAX = fewer than two entities can
 * be compared. */
static uint64_t least_of_window(const struct gp_view *view)
{
	uint64_t least_ns = UINT64_MAX;
	uint32_t entities = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *e = gp_policy_task(view, i);
		uint64_t got_ns = gp_turn_normal(e->window_run_ns, e->weight);

		entities += e->window_whole;
		if (e->window_whole && got_ns < least_ns)
			least_ns = got_ns;
	}
	return entities > 1 ? least_ns : UINT64_MAX;
}

/* Moves the slice half of the way to the value that would have given equal run times. */
static void judge(struct gp_turn_entity *e, uint64_t least_ns)
{
	uint64_t got_ns = gp_turn_normal(e->window_run_ns, e->weight);

	if (!e->window_whole || least_ns == UINT64_MAX)
		e->cut_permille = 0;
	else if (got_ns > least_ns + least_ns / TOLERANCE)
		e->cut_permille = WHOLE - (uint32_t)(2ull * (WHOLE - e->cut_permille) * least_ns /
						     (got_ns + least_ns));
	if (e->cut_permille > CUT_MAX)
		e->cut_permille = CUT_MAX;
}

/*
 * Only the proportion of slices matters, so the entity with the smallest cut gets its full slice.
 */
static void give_back(const struct gp_view *view)
{
	uint32_t least = WHOLE;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *e = gp_policy_task(view, i);

		if (e->window_whole && e->cut_permille < least)
			least = e->cut_permille;
	}
	for (uint32_t i = 0; least < WHOLE && i < view->n; i++) {
		struct gp_turn_entity *e = gp_policy_task(view, i);

		if (e->window_whole)
			e->cut_permille =
				WHOLE - (WHOLE - e->cut_permille) * WHOLE / (WHOLE - least);
	}
}

static void keep_window(const struct gp_view *view, struct gp_turns *turns, uint64_t round_ns)
{
	uint64_t length_ns = WINDOW_ROUNDS * round_ns;
	uint64_t least_ns;

	length_ns = gp_most(length_ns, WINDOW_NS);
	note_window(view);
	if (turns->window_ns && view->now_ns - turns->window_ns < length_ns)
		return;
	least_ns = turns->window_ns ? least_of_window(view) : UINT64_MAX;
	turns->window_ns = view->now_ns;
	for (uint32_t i = 0; i < view->n; i++)
		judge(gp_policy_task(view, i), least_ns);
	give_back(view);
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *e = gp_policy_task(view, i);

		e->window_run_ns = 0;
		e->window_held = !e->released;
		e->window_whole = e->entity.active || (e->window_held && !e->entity.idle);
	}
}

void gp_turns_by_slices(const struct gp_view *view, struct gp_turns *turns,
			const struct gp_turn_rules *rules, struct gp_plan *plan)
{
	struct sum s = add_up(view, rules);

	turns->current = 0;
	turns->idle_turn.entity.rotating = false;
	turns->round_ns = s.round_ns;
	keep_window(view, turns, s.round_ns);
	for (uint32_t i = 0; i < view->n; i++) {
		if (view->task[i].class == GP_UNMANAGED)
			continue;
		plan->task[i].want = GP_RUN;
		if ((view->caps & GP_CAP_SLICE) && s.weight)
			plan->task[i].slice_us = slice_of(view, &s, gp_turn_entity_of(view, i));
	}
}
