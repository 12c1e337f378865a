/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Weighted turns where the hardware takes them: slices in proportion to the weights.
 *
 * That is nearly all it takes for tasks that always have work. But one that runs out of it before
 * its slice ends gives the rest away: for a moment after each kernel, or because few are queued. So
 * where run times are measured, those that get more for their weight than another have their slices
 * shortened, step by step. The device never idles for it, and nobody has a claim to what it missed.
 */
#include "policy/weighted_turns.h"

#define SLICE_MIN_NS  GP_MS          /* under that, switching eats the GPU (H200: 18 % at 1 ms) */
#define WINDOW_NS     (2000 * GP_MS) /* for judging who gets how much ... */
#define WINDOW_ROUNDS 8              /* ... and each must have had several slices in it */
#define WHOLE         1000u
#define LESS_MAX      750u /* permille */
#define LET_PASS      100u /* more by one of so many is chance */

struct sum {
	uint64_t weight;
	uint32_t lightest;
	uint64_t round_ns; /* all slices together */
};

static struct sum add_up(const struct gp_view *view, const struct gp_policy_state *state,
                         const struct gp_turn_rules *rules)
{
	struct sum s = {.lightest = GP_TURN_WEIGHT_MAX};

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *u = gp_policy_task(state, i);

		if (!u->entity.members || u->entity.user_held)
			continue;
		s.weight += u->weight;
		if (u->weight < s.lightest)
			s.lightest = u->weight;
	}
	s.round_ns = rules->slice_ns * s.weight / s.lightest;
	if (s.round_ns > gp_turn_round(view, rules))
		s.round_ns = gp_turn_round(view, rules);
	return s;
}

/* Its members share a unit's slice. */
static uint32_t slice_of(const struct gp_view *view, const struct sum *s,
                         const struct gp_turn_entity *u)
{
	uint64_t slice_ns = s->round_ns * u->weight / s->weight;

	slice_ns = slice_ns * (WHOLE - u->less) / WHOLE / (u->busy ? u->busy : 1);
	if (slice_ns < SLICE_MIN_NS)
		slice_ns = SLICE_MIN_NS;
	if (slice_ns < view->slice_min_us * 1000ull)
		return view->slice_min_us;
	return slice_ns > view->slice_max_us * 1000ull ? view->slice_max_us
	                                               : (uint32_t)(slice_ns / 1000);
}

/* One that was not seen to work at every look wants less than its part, or was not there; unless it
 * was held, when nobody could see it. */
static void note_window(const struct gp_view *view, const struct gp_policy_state *state)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *u = gp_policy_task(state, i);

		u->ahead_ns = 0;
		u->window_run_ns += u->ran_ns;
		u->window_held |= !u->released;
		u->window_whole &= u->entity.active || (u->window_held && !u->entity.idle);
		u->window_whole &= u->told && !u->joined;
	}
}

/* What the one got that got least for its weight; UINT64_MAX = there are no two to compare. */
static uint64_t least_of_window(const struct gp_view *view, const struct gp_policy_state *state)
{
	uint64_t least_ns = UINT64_MAX;
	uint32_t entities = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *u = gp_policy_task(state, i);
		uint64_t got_ns = gp_turn_normal(u->window_run_ns, u->weight);

		entities += u->window_whole;
		if (u->window_whole && got_ns < least_ns)
			least_ns = got_ns;
	}
	return entities > 1 ? least_ns : UINT64_MAX;
}

/* Half of the way to what would have been right, had all gone on as before. */
static void judge(struct gp_turn_entity *u, uint64_t least_ns)
{
	uint64_t got_ns = gp_turn_normal(u->window_run_ns, u->weight);

	if (!u->window_whole || least_ns == UINT64_MAX)
		u->less = 0;
	else if (got_ns > least_ns + least_ns / LET_PASS)
		u->less = WHOLE -
		          (uint32_t)(2ull * (WHOLE - u->less) * least_ns / (got_ns + least_ns));
	if (u->less > LESS_MAX)
		u->less = LESS_MAX;
}

/* Slices matter in proportion to each other only: somebody has all of his. */
static void give_back(const struct gp_view *view, const struct gp_policy_state *state)
{
	uint32_t least = WHOLE;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_turn_entity *u = gp_policy_task(state, i);

		if (u->window_whole && u->less < least)
			least = u->less;
	}
	for (uint32_t i = 0; least < WHOLE && i < view->n; i++) {
		struct gp_turn_entity *u = gp_policy_task(state, i);

		if (u->window_whole)
			u->less = WHOLE - (WHOLE - u->less) * WHOLE / (WHOLE - least);
	}
}

static void keep_window(const struct gp_view *view, const struct gp_policy_state *state,
                        struct gp_turns *turns, uint64_t round_ns)
{
	uint64_t length_ns = WINDOW_ROUNDS * round_ns;
	uint64_t least_ns;

	if (length_ns < WINDOW_NS)
		length_ns = WINDOW_NS;
	note_window(view, state);
	if (turns->window_ns && view->now_ns - turns->window_ns < length_ns)
		return;
	least_ns = turns->window_ns ? least_of_window(view, state) : UINT64_MAX;
	turns->window_ns = view->now_ns;
	for (uint32_t i = 0; i < view->n; i++)
		judge(gp_policy_task(state, i), least_ns);
	give_back(view, state);
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *u = gp_policy_task(state, i);

		u->window_run_ns = 0;
		u->window_held = !u->released;
		u->window_whole = u->entity.active || (u->window_held && !u->entity.idle);
	}
}

void gp_turns_by_slices(const struct gp_view *view, const struct gp_policy_state *state,
                        struct gp_turns *turns, const struct gp_turn_rules *rules,
                        struct gp_plan *plan)
{
	struct sum s = add_up(view, state, rules);

	turns->current = 0;
	turns->nobody.entity.rotating = false;
	turns->round_ns = s.round_ns;
	keep_window(view, state, turns, s.round_ns);
	for (uint32_t i = 0; i < view->n; i++) {
		if (view->task[i].class == GP_UNMANAGED)
			continue;
		plan->task[i].want = GP_RUN;
		if ((view->caps & GP_CAP_SLICE) && s.weight)
			plan->task[i].slice_us =
				slice_of(view, &s, gp_turn_entity_of(view, state, i));
	}
}
