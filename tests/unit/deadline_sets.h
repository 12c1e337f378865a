/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of tasks with deadlines, and ways in which their requests can come: as bad as can be thought
 * of. To find out where the line between what is promised and what is not lies: include after
 * deadline_world.h.
 */
#ifndef TESTS_UNIT_DEADLINE_SETS_H
#define TESTS_UNIT_DEADLINE_SETS_H

#include "deadline_world.h"
#include "policy/deadline/deadline.h"

#define SET_TASKS 40

struct set {
	struct gp_sim_device device;
	bool request_marks; /* requests of several kernels with gaps, on a blind device */
	unsigned n;
	uint64_t deadline_ns[SET_TASKS]; /* and period */
	uint64_t budget_ns[SET_TASKS];
};

/* Devices: what is 1 % of the shortest deadline. */

enum costs {
	SWITCH_ALONE,  /* the switch; hold and release cost nothing */
	WITH_QUARTERS, /* the switch; hold and release are a quarter of it each */
	WHOLE_CHANGE,  /* a change of hands, divided as on an H200 */
	COSTS,
};

void set_costs(struct gp_sim_device *d, enum costs costs, uint64_t shortest_ns);

/* Of any kind: hold, release or switch may be most, and slices shorter than each of them. */
void draw_any_costs(struct gp_sim_device *d, struct gp_rng *rng);

/* Sets. */

enum family {
	EQUAL,   /* deadlines and budgets */
	ONE_BIG, /* equal deadlines; all but one ask for next to nothing */
	NESTED,  /* just so far apart that each can preempt the next */
	ANY,     /* deadlines over up to 3 decades, any budgets */
	FAMILIES,
};

/* Deadlines from the shortest on; what they ask for is `permille` in all, divided at random points,
 * or as the family says. */
void draw_set(struct set *s, struct gp_rng *rng, enum family family, unsigned n,
              uint64_t shortest_ns, uint64_t permille);

/* How requests come. */

enum phasing {
	INVERSE, /* the one with the longest deadline first: each preempts the one before */
	INVERSE_SPORADIC, /* ... and later at odd times */
	AT_ONCE,
	CLOSE,  /* at random, within a few changes of hands */
	APART,  /* anywhere */
	AT_ODD, /* at once, and later at odd times */
	PHASINGS,
};

/* Whether all are accepted: known as soon as each has said something. */
bool is_accepted(const struct set *s, const char *policy);

/* Runs a set in one of the bad ways. Returns whether somebody was late. */
bool is_late(const struct set *s, const struct gp_policy_choice *given, unsigned attempt);

/* Edf without an admission test. */

/* Looks for a way in which somebody is late if all are accepted. */
bool has_witness(const struct set *s, unsigned attempts);

#endif
