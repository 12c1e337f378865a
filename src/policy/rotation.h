/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Code that several policies share: entities (a task, or a gang taken as one), and a rotation in
 * which one entity at a time is released and the others are held. Freestanding.
 */
#ifndef GP_POLICY_ROTATION_H
#define GP_POLICY_ROTATION_H

#include "policy/policy.h"

#define GP_MS 1000000ull /* in nanoseconds */

/*
 * A gang, or a task without one. It is stored at the start of the task blob of the gang's first
 * task; it is unused in the blobs of the other members. The upper part is filled in anew at each
 * decision.
 */
struct gp_entity {
	uint32_t members; /* 0 = this blob holds no entity: not the first of a gang, or unmanaged */
	uint8_t class;    /* the highest of the members; `priority`: the highest in this class */
	uint8_t priority;
	bool active; /* one member is seen active */
	bool idle;   /* all members are seen idle; neither `active` nor `idle`: unknown */
	bool user_held;
	bool policy_held;
	bool barred;        /* must not run now; set by the policy after gp_entities_gather */
	bool waited_known;  /* waited_ns is known for all members that are not idle */
	uint64_t waited_ns; /* the longest of the members */

	/* Kept from one decision to the next. */
	bool rotating;          /* takes part in the rotation */
	uint64_t queued_ns;     /* when it began to wait for a turn */
	uint64_t idle_since_ns; /* when it was first seen idle; 0 = it is not idle */
	uint8_t pauses;         /* one bit per pause, the latest lowest; 1 = it was short */
};

/* How many more tasks the policy may hold. */
static inline uint32_t gp_room_for_holds(const struct gp_view *view, uint32_t user_held)
{
	return (uint32_t)gp_less(view->max_held, user_held);
}

/* Fills in the entities of a view. Returns how many tasks are held by users. */
uint32_t gp_entities_gather(const struct gp_view *view);

static inline struct gp_entity *gp_entity_of(const struct gp_view *view, uint32_t task)
{
	return gp_policy_task(view, view->task[task].gang);
}

struct gp_rotation {
	uint64_t current; /* id of the first task of the current entity; 0 = none */
	uint64_t began_ns;
	uint64_t ends_ns;
	bool aged;         /* the turn was given because of waiting time, not of priority */
	uint32_t entities; /* entities that take part */
	uint32_t tasks;    /* tasks of these entities */
	uint64_t round_ns; /* time until each entity has had its turn */
};

struct gp_rotation_rules {
	bool classes_apply; /* only best-effort entities take part, ordered by priority */
	bool unknown_joins; /* entities of unknown activity take part until they are seen idle */
	uint32_t room;      /* how many tasks may be held */
	uint64_t quantum_ns;
	uint64_t age_after_ns; /* with classes_apply: wait before an entity of lower priority gets a
				  turn */
	uint64_t age_run_ns;   /* length of that turn */
};

/*
 * Lets entities join the rotation (seen active; or of unknown activity, if the rules or the device
 * require it) and leave it (seen idle; the current entity only after a short pause). Moves the turn
 * on when it is over. Asks the plan for a tick at the time when a pause ends the turn.
 *
 * Returns false if a rotation is impossible or useless: there are fewer than two entities, too few
 * tasks may be held, or there are so many entities that one would starve before its turn.
 */
bool gp_rotate(const struct gp_view *view, struct gp_rotation *rotation,
	       const struct gp_rotation_rules *rules, struct gp_plan *plan);

/* Gives the turn to the entity that begins at index `to`. */
void gp_rotation_give(const struct gp_view *view, struct gp_rotation *rotation, uint32_t to,
		      uint64_t length_ns, bool aged);

/* Gives the turn to the entity that begins at index `to`, because it has waited. The current entity
 * goes to the end of the queue; otherwise it would have every second turn. */
void gp_rotation_take(const struct gp_view *view, struct gp_rotation *rotation, uint32_t to,
		      uint64_t length_ns);

#endif
