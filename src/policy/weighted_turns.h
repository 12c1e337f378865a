/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Weighted turns, for `fair` and `share`: each entity gets device time in proportion to its weight.
 * There are two ways: turns (one entity at a time runs, the others are held), and hardware slices.
 * The entity with the least surplus runs next. Freestanding.
 *
 * A decision calls gp_turns_gather, sets the weights, then calls gp_turns_by_holds or
 * gp_turns_by_slices.
 */
#ifndef GP_POLICY_WEIGHTED_TURNS_H
#define GP_POLICY_WEIGHTED_TURNS_H

#include "policy/rotation.h"

#define GP_TURN_WEIGHT_MAX 100000u

/* Stored at the start of the task blob and used in the same way as struct gp_entity. */
struct gp_turn_entity {
	struct gp_entity entity; /* `rotating`: takes part, because it wants the device */

	/* Filled in anew at each decision. */
	uint32_t busy;   /* members that are not seen idle */
	bool released;   /* no member is held */
	bool runs_known; /* the run times of all members are known */
	bool joined;     /* it takes part since this decision */
	uint64_t ran_ns; /* measured run time since the last decision */

	/* Kept from one decision to the next. */
	uint32_t weight;        /* 1 to GP_TURN_WEIGHT_MAX; set by the policy at each decision */
	uint64_t idle_since_ns; /* when it was first seen idle; 0 = it is not idle */
	uint64_t ahead_ns; /* surplus over the entity that got least, as if each had a weight of
			      GP_TURN_WEIGHT_MAX */
	uint64_t run_ns;   /* run time of this task at the last decision */
	bool run_known;

	/* For turns by slices. */
	uint64_t window_run_ns; /* run time in this window */
	bool window_whole;      /* it was active and measured during the whole window */
	bool window_held;       /* it was held, so its activity could not be seen */
	uint32_t cut_permille;  /* its slice is shortened by this many permille */
};

/* Stored in the device blob. */
struct gp_turns {
	uint64_t current; /* id of the first task of the current entity; 0 = none */
	uint64_t began_ns;
	uint64_t ends_ns;
	uint64_t returning;  /* id of an entity that was idle and is served next; 0 = none */
	uint64_t decided_ns; /* time of the last decision */
	uint64_t round_ns;   /* with slices: the sum of all slices */
	uint64_t window_ns;  /* with slices: when the window began; 0 = none */
	struct gp_turn_entity idle_turn; /* a pseudo entity: in its turns the device stays idle */
};

struct gp_turn_rules {
	uint64_t slice_ns;    /* slice of the lightest entity; other slices are in proportion */
	uint64_t turn_ns;     /* turn of the lightest entity, if the others are held */
	uint64_t round_ns;    /* longest sum of all slices or turns; they are shortened to fit */
	uint32_t idle_weight; /* weight of the pseudo entity idle_turn; 0 = none */
};

/* The parameters that the policies have in common. They are first in their tables. */
enum { GP_TURN_SLICE, GP_TURN_TURN, GP_TURN_ROUND };

/* clang-format off */
#define GP_TURN_PARAMS \
	[GP_TURN_SLICE] = {"slice", "us", "slice of the lightest entity", 10000, 1000, 1000000}, \
	[GP_TURN_TURN] = {"turn", "ms", "turn of the lightest entity", 50, 10, 10000}, \
	[GP_TURN_ROUND] = {"round", "ms", "longest sum of all slices or turns", 500, 20, 10000}
/* clang-format on */

static inline struct gp_turn_rules gp_turn_rules(const struct gp_view *view)
{
	return (struct gp_turn_rules){
		.slice_ns = gp_param(view, GP_TURN_SLICE) * 1000,
		.turn_ns = gp_param(view, GP_TURN_TURN) * GP_MS,
		.round_ns = gp_param(view, GP_TURN_ROUND) * GP_MS,
	};
}

/*
 * Gathers the entities and charges them for the time since the last decision. Lets them join (seen
 * active, or the device shows no activity) and leave (seen idle). Returns how many tasks are held
 * by users.
 */
uint32_t gp_turns_gather(const struct gp_view *view, struct gp_turns *turns, struct gp_plan *plan);

/*
 * One entity at a time runs. Returns false and leaves the plan alone if that is impossible: too few
 * tasks may be held, or so many entities take part that one would starve before its turn.
 */
bool gp_turns_by_holds(const struct gp_view *view, struct gp_turns *turns,
		       const struct gp_turn_rules *rules, uint32_t user_held, struct gp_plan *plan);

/* The hardware takes turns, with slices in proportion to weights. On a device without slices all
 * tasks just run. */
void gp_turns_by_slices(const struct gp_view *view, struct gp_turns *turns,
			const struct gp_turn_rules *rules, struct gp_plan *plan);

/*
 * The longest round. An entity that has waited for half the starvation limit runs next. It still
 * waits for the rest of the current turn, and for a short turn of each entity that has waited
 * longer. All these turns must end well inside the limit.
 */
static inline uint64_t gp_turn_round(const struct gp_view *view, const struct gp_turn_rules *rules)
{
	uint64_t longest_ns = view->starve_limit_ns / 8;

	return rules->round_ns < longest_ns ? rules->round_ns : longest_ns;
}

/*
 * Device time, scaled as if the weight were GP_TURN_WEIGHT_MAX, so that entities can be compared.
 */
static inline uint64_t gp_turn_normal(uint64_t ns, uint32_t weight)
{
	return ns * GP_TURN_WEIGHT_MAX / weight;
}

/* Activity is known (nearly) as it changes, not as a sample of the past. */
static inline bool gp_is_prompt(const struct gp_view *view)
{
	return gp_tells_in_time(view->caps, view->sample_period_ns);
}

static inline struct gp_turn_entity *gp_turn_entity_of(const struct gp_view *view, uint32_t task)
{
	return gp_policy_task(view, view->task[task].gang);
}

#endif
