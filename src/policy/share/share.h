/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the two halves of `share`: the part of the device that each entity is to
 * have, and turns for entities that do not get it by slices. */
#ifndef GP_POLICY_SHARE_SHARE_H
#define GP_POLICY_SHARE_SHARE_H

#include "policy/registry.h"
#include "policy/weighted_turns.h"

#define WHOLE_PERMILLE 1000u
#define PER_PERMILLE   ((uint64_t)GP_TURN_WEIGHT_MAX / WHOLE_PERMILLE) /* to turn weights */

struct gp_share_task {
	struct gp_turn_entity turn;

	/* Of the entity; filled in anew at each decision. */
	uint32_t weight;             /* of its heaviest member */
	uint32_t guarantee_permille; /* the largest of its members; 0 = none, or refused */
	uint32_t ceiling_permille;   /* the largest of its members; WHOLE_PERMILLE = none */
	bool capped;                 /* its part is limited by its ceiling */

	/* Kept by each member. A promise is not taken back in favour of a new process, nor when the
	 * first task of a gang leaves. */
	bool admitted;

	/* Kept for the entity: whether slices give it what it was guaranteed. */
	int64_t behind_ns;  /* run time that it lacks; negative: surplus */
	uint64_t worked_ns; /* when it last ran, or could not be expected to run */
	uint64_t since_ns; /* when its last turn ended, or it last lacked no time; begin of the sums
			      below */
	uint64_t got_ns;   /* its run time since then */
	uint64_t sliced_got_ns;  /* the part of got_ns while all had slices */
	uint64_t sliced_ns;      /* how long all had slices since then */
	uint64_t marked_ns;      /* its run time in its turn since turn_mark_ns */
	bool helped;             /* its last turn raised its run time, and may have been too long */
	uint32_t wants_permille; /* measured demand: no more is due until retry_ns */
	uint64_t retry_ns;       /* 0 = the guarantee is due */
	uint32_t useless_turns;  /* consecutive turns that did not raise its run time */
};

struct gp_share_device {
	struct gp_turns turns;

	uint64_t tick_ns;       /* time of the last accounting; 0 = none */
	bool fresh;             /* at least one run time grew since then */
	uint64_t turn_of;       /* id of the first task of the entity that has a turn; 0 = none */
	uint64_t turn_ends_ns;  /* the turn ends with the first new run time after this */
	uint64_t turn_mark_ns;  /* the use of the turn is measured from here on */
	uint32_t used_permille; /* least use of the turn */
	uint64_t rest_ns;       /* no new turn before this time */
};

/* To be called after gp_turns_by_slices. Holds all other entities while one makes up for the time
 * that it lacks. `room` is the number of tasks that can be held. */
void gp_share_make_up(const struct gp_view *view, uint32_t room, struct gp_plan *plan);

/* Clears the accounts; they are not needed while all entities take turns. */
void gp_share_forget(const struct gp_view *view);

#endif
