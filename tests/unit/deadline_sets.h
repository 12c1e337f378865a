/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of tasks with deadlines, and arrival patterns that are as bad as possible. They show where
 * the limit of the admission test lies. Include after deadline_world.h.
 */
#ifndef TESTS_UNIT_DEADLINE_SETS_H
#define TESTS_UNIT_DEADLINE_SETS_H

#include "support/test.h"

#include "deadline_world.h"

#include "policy/deadline/deadline.h"

#define SET_TASKS 40

struct set {
	struct gp_sim_device device;
	bool request_marks; /* requests of several kernels with gaps; no activity */
	unsigned n;
	uint64_t deadline_ns[SET_TASKS]; /* also the period */
	uint64_t budget_ns[SET_TASKS];
};

/* Devices: which cost is 1 % of the shortest deadline. */

enum costs {
	SWITCH_ALONE,  /* the switch; hold and release cost nothing */
	WITH_QUARTERS, /* the switch; hold and release are a quarter of it each */
	WHOLE_CHANGE,  /* a handover, divided as on an H200 */
	COSTS,
};

void set_costs(struct gp_sim_device *d, enum costs costs, uint64_t shortest_ns);

/* Any costs: hold, release or switch may be the largest, and slices shorter than each of them. */
void draw_any_costs(struct gp_sim_device *d, struct gp_rng *rng);

/* Sets. */

enum family {
	EQUAL,   /* equal deadlines and budgets */
	ONE_BIG, /* equal deadlines; all budgets but one are tiny */
	NESTED,  /* deadlines so far apart that each task can preempt the next */
	ANY,     /* deadlines over up to 3 decades, any budgets */
	FAMILIES,
};

/* Draws deadlines from the shortest on. The budgets are `permille` in total, divided at random
 * points, or as the family says. */
void draw_set(struct set *s, struct gp_rng *rng, enum family family, unsigned n,
	      uint64_t shortest_ns, uint64_t permille);

/* How requests come. */

enum phasing {
	INVERSE,          /* the longest deadline first: each preempts the one before */
	INVERSE_SPORADIC, /* the same, and later at irregular times */
	AT_ONCE,
	CLOSE,  /* at random, within a few handovers */
	APART,  /* at any time */
	AT_ODD, /* at the same time, and later at irregular times */
	PHASINGS,
};

/* Whether all are accepted: known as soon as each has sent a mark. */
bool is_accepted(const struct set *s, const char *policy);

/* Runs a set with one of the bad patterns. Returns whether a task was late. */
bool is_late(const struct set *s, const struct gp_policy_choice *given, unsigned attempt);

/* edf without an admission test. */

/* Searches for a pattern in which a task is late if all are accepted. */
bool has_witness(const struct set *s, unsigned attempts);

#endif
