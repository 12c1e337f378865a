/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of `share` have in common: what each unit is to have, and turns for those
 * that do not get it by slices. */
#ifndef GP_POLICY_SHARE_SHARE_H
#define GP_POLICY_SHARE_SHARE_H

#include "policy/registry.h"
#include "policy/weighted_turns.h"

#define WHOLE_PERMILLE 1000u
#define PER_PERMILLE   ((uint64_t)GP_TURN_WEIGHT_MAX / WHOLE_PERMILLE) /* weights are finer */

struct gp_share_task {
	struct gp_turn_entity turn;

	/* Of the unit, gathered anew at each decision. */
	uint32_t weight;             /* of its heaviest member */
	uint32_t guarantee_permille; /* the largest; 0 = none, or refused */
	uint32_t ceiling_permille;   /* the largest; WHOLE_PERMILLE = none */
	bool capped;                 /* gets its ceiling */

	/* Kept, by each member: what was promised is not taken back for a newcomer's sake, nor when
	 * the first of a gang leaves. */
	bool admitted;

	/* Kept, of the unit: whether slices give it what it was guaranteed. */
	int64_t behind_ns;       /* it had so much less than was due; below 0: more */
	uint64_t worked_ns;      /* it last ran, or could not be expected to */
	uint64_t since_ns;       /* its last turn ended, or it lacked nothing; since then ... */
	uint64_t got_ns;         /* ... it ran this, */
	uint64_t sliced_got_ns;  /* of it while all had slices ... */
	uint64_t sliced_ns;      /* ... which they had for so long */
	uint64_t marked_ns;      /* what it ran since the mark in its turn */
	bool helped;             /* its last turn was of use, and may have been too long */
	uint32_t wants_permille; /* no more than this is due ... */
	uint64_t retry_ns;       /* ... until then; 0 = what was guaranteed is due */
	uint32_t spurned;        /* turns that were of no use, in a row */
};

struct gp_share_device {
	struct gp_turns turns;

	uint64_t tick_ns;       /* at accounts, last; 0 = there are none */
	bool news;              /* run times are newer than they were then */
	uint64_t turn_of;       /* id of the first task of the unit that has one; 0 = nobody */
	uint64_t turn_ends_ns;  /* with the next news */
	uint64_t turn_mark_ns;  /* what the unit runs is judged from here on ... */
	uint32_t used_permille; /* ... and is to be this part of the time at least */
	uint64_t rest_ns;       /* until then nobody has the next turn */
};

/* Behind gp_turns_by_slices: holds all others while one makes up for what it lacks. `room`: so many
 * tasks can be held. */
void gp_share_make_up(const struct gp_view *view, const struct gp_policy_state *state,
                      uint32_t room, struct gp_plan *plan);

/* What a unit lacked is of no account, because all have turns. */
void gp_share_forget(const struct gp_view *view, const struct gp_policy_state *state);

#endif
