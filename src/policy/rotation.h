/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What several policies have in common: gangs taken as one unit, and a rotation in which one
 * unit at a time has the device while the others are held. Freestanding.
 */
#ifndef GP_POLICY_ROTATION_H
#define GP_POLICY_ROTATION_H

#include "policy/policy.h"

#define GP_MS 1000000ull /* nanoseconds */

/*
 * A gang, or a task without one. Stands at the start of the task blob of the gang's first task;
 * those of the other members are unused. The upper part is gathered anew at each decision.
 */
struct gp_entity {
	uint32_t members; /* 0: not the first of a gang, or unmanaged: not a unit */
	uint8_t class;    /* the highest of its members, and the highest priority in it */
	uint8_t priority;
	bool active; /* one is seen active */
	bool idle;   /* all are seen idle. Neither: not known */
	bool user_held;
	bool policy_held;
	bool barred;       /* must not run now, says the policy itself, behind gp_entities_gather */
	bool waited_known; /* of all members that are not idle */
	uint64_t waited_ns; /* the longest */

	/* Kept from one decision to the next. */
	bool rotating;          /* takes part in the rotation */
	uint64_t queued_ns;     /* since when it waits for a turn */
	uint64_t idle_since_ns; /* seen idle since then; 0 = is not */
	uint8_t pauses;         /* its last ones, a bit each, the last one lowest: it was short */
};

/* Fills in the units of a view. Returns how many tasks users hold. */
uint32_t gp_entities_gather(const struct gp_view *view, const struct gp_policy_state *state);

static inline struct gp_entity *gp_entity_of(const struct gp_view *view,
                                             const struct gp_policy_state *state, uint32_t task)
{
	return gp_policy_task(state, view->task[task].gang);
}

struct gp_rotation {
	uint64_t current; /* id of the unit's first task whose turn it is; 0 = nobody's */
	uint64_t began_ns;
	uint64_t ends_ns;
	bool aged;         /* that turn was given for having waited, not for priority */
	uint32_t entities; /* how many take part */
	uint32_t tasks;    /* ... with how many tasks */
	uint64_t round_ns; /* how long it takes until all have had their turn */
};

struct gp_rotation_rules {
	bool classes_apply; /* only best-effort units rotate, by priority */
	bool unknown_joins; /* what nothing is known of takes part until it is seen idle */
	uint32_t room;      /* how many tasks may be held for it */
	uint64_t quantum_ns;
	uint64_t age_after_ns; /* with classes: a lower priority that waited so long ... */
	uint64_t age_run_ns;   /* ... gets a turn of this length */
};

/*
 * Lets units join (seen active; or not known, where the rules say so or the device never tells) and
 * leave (seen idle; the one that has the turn, for more than a moment), and moves the turn on when
 * it is over. Asks the plan for the look at which a pause ends a turn. Returns false when there is
 * nothing to rotate: fewer than two units, no room to hold the others, or so many that one would
 * starve before its turn.
 */
bool gp_rotate(const struct gp_view *view, const struct gp_policy_state *state,
               struct gp_rotation *rotation, const struct gp_rotation_rules *rules,
               struct gp_plan *plan);

/* Gives the turn to the unit whose first task is `to`, whoever has it now. */
void gp_rotation_give(const struct gp_view *view, struct gp_rotation *rotation, uint32_t to,
                      uint64_t length_ns, bool aged);

/* Gives the turn, for having waited, to the unit whose first task is `to`. Whoever has it now goes
 * to the end of the line: else it would be the first in it, and have every turn in between. */
void gp_rotation_take(const struct gp_view *view, const struct gp_policy_state *state,
                      struct gp_rotation *rotation, uint32_t to, uint64_t length_ns);

#endif
