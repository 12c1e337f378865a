/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Weighted turns, for `fair` and `share`: each unit gets device time in proportion to its weight,
 * either by turns (one unit at a time runs, the others are held) or by slices of the hardware.
 * The unit that is behind goes next. Freestanding.
 *
 * The way of a decision:  gp_turns_gather, set the weights, then one of gp_turns_by_*.
 */
#ifndef GP_POLICY_WEIGHTED_TURNS_H
#define GP_POLICY_WEIGHTED_TURNS_H

#include "policy/rotation.h"

#define GP_TURN_WEIGHT_MAX 100000u

/* Stands at the start of the task blob, as struct gp_entity does, and is used in the same way. */
struct gp_turn_entity {
	struct gp_entity entity; /* `rotating`: takes part, because it wants the device */

	/* Gathered anew at each decision. */
	uint32_t busy;   /* members that are not seen idle */
	bool released;   /* none of them is held */
	bool told;       /* the run times of all of them are known */
	bool joined;     /* it takes part since this decision */
	uint64_t ran_ns; /* since the last decision, as measured */

	/* Kept. */
	uint32_t weight;        /* 1 to GP_TURN_WEIGHT_MAX; the policy sets it each time */
	uint64_t idle_since_ns; /* seen idle since then; 0 = is not */
	uint64_t ahead_ns;      /* how much more it got than whoever got least, each had it
	                         * a weight of GP_TURN_WEIGHT_MAX */
	uint64_t run_ns;        /* of this task, at the last decision */
	bool run_known;

	/* With slices. */
	uint64_t window_run_ns; /* in this window ... */
	bool window_whole;      /* ... during which it always worked, and that was measured */
	bool window_held;       /* ... or could not be seen to, because it was held */
	uint32_t less;          /* its slice is shortened by so many permille */
};

/* Stands in the device blob. */
struct gp_turns {
	uint64_t current; /* id of the unit's first task whose turn it is; 0 = nobody's */
	uint64_t began_ns;
	uint64_t ends_ns;
	uint64_t guest;               /* id of one that came back and is next; 0 = none */
	uint64_t decided_ns;          /* the last decision */
	uint64_t round_ns;            /* with slices: all of them together */
	uint64_t window_ns;           /* with slices: when this window began; 0 = none */
	struct gp_turn_entity nobody; /* takes its turns where the device is to stay idle */
};

struct gp_turn_rules {
	uint64_t slice_ns; /* of the unit with the least weight; the others in proportion ... */
	uint64_t turn_ns;  /* the same where units are held */
	uint64_t round_ns; /* ... unless all of them together take longer */
	uint32_t nobody;   /* the weight of leaving the device idle */
};

/* The parameters that the policies have in common, and that stand first in their tables. */
enum { GP_TURN_SLICE, GP_TURN_TURN, GP_TURN_ROUND };

/* clang-format off */
#define GP_TURN_PARAMS                                                                            \
	[GP_TURN_SLICE] = {"slice", "us", "slice of the least weight", 10000, 1000, 1000000},     \
	[GP_TURN_TURN] = {"turn", "ms", "... its turn, where others are held", 50, 10, 10000},    \
	[GP_TURN_ROUND] = {"round", "ms", "all of them together, at most", 500, 20, 10000}
/* clang-format on */

static inline struct gp_turn_rules gp_turn_rules(const struct gp_policy_state *state)
{
	return (struct gp_turn_rules){
		.slice_ns = (uint64_t)state->param[GP_TURN_SLICE] * 1000,
		.turn_ns = (uint64_t)state->param[GP_TURN_TURN] * GP_MS,
		.round_ns = (uint64_t)state->param[GP_TURN_ROUND] * GP_MS,
	};
}

/*
 * Gathers the units, charges them for what they got since the last decision, and lets them join
 * (seen active, or never to be known) and leave (seen idle). Returns how many tasks users hold.
 */
uint32_t gp_turns_gather(const struct gp_view *view, const struct gp_policy_state *state,
                         struct gp_turns *turns, struct gp_plan *plan);

/*
 * One unit at a time runs. False, and the plan is not filled in, where that is impossible: there is
 * no room to hold the others, or they are so many that one would starve before its turn.
 */
bool gp_turns_by_holds(const struct gp_view *view, const struct gp_policy_state *state,
                       struct gp_turns *turns, const struct gp_turn_rules *rules,
                       uint32_t user_held, struct gp_plan *plan);

/* The hardware takes turns, with slices in proportion; without slices, everybody just runs. */
void gp_turns_by_slices(const struct gp_view *view, const struct gp_policy_state *state,
                        struct gp_turns *turns, const struct gp_turn_rules *rules,
                        struct gp_plan *plan);

/*
 * The longest round. One that has waited for half the starvation limit is next, after the turn that
 * is under way and a short one of each that has waited longer: that must end well inside the limit.
 */
static inline uint64_t gp_turn_round(const struct gp_view *view, const struct gp_turn_rules *rules)
{
	uint64_t longest_ns = view->starve_limit_ns / 8;

	return rules->round_ns < longest_ns ? rules->round_ns : longest_ns;
}

/* Device time as if the weight were GP_TURN_WEIGHT_MAX, so that it can be compared. */
static inline uint64_t gp_turn_normal(uint64_t ns, uint32_t weight)
{
	return ns * GP_TURN_WEIGHT_MAX / weight;
}

/* Activity is known as it is, or nearly, not as a sample of the past. */
static inline bool gp_is_prompt(const struct gp_view *view)
{
	return gp_tells_in_time(view->caps, view->sample_period_ns);
}

static inline struct gp_turn_entity *gp_turn_entity_of(const struct gp_view *view,
                                                       const struct gp_policy_state *state,
                                                       uint32_t task)
{
	return gp_policy_task(state, view->task[task].gang);
}

#endif
