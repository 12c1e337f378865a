/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of `mlfq` share: which level a task is at, and what is done about it. */
#ifndef GP_POLICY_MLFQ_H
#define GP_POLICY_MLFQ_H

#include "policy/registry.h"
#include "policy/turns.h"

/* Parameters, in the order of the table. */
enum { SHORT, QUANTUM, SLICE, YIELD, BOOST };

enum mlfq_level { TOP, MIDDLE, BOTTOM };

#define LET_IN_NS (10 * GP_MS)

struct mlfq_device {
	struct gp_rotation rotation;
	uint64_t barred_ns;       /* since when those below wait for the top; 0 = they do not */
	uint64_t let_in_until_ns; /* one of them is let in */
	uint64_t decided_ns;      /* the last decision */
};

/* Of a unit, in the blob of its first task, but for the last two. */
struct mlfq_task {
	struct gp_unit unit;
	uint8_t level;            /* enum mlfq_level */
	bool works;               /* in a stretch of work; a pause of a moment is not its end */
	bool loose;               /* none of its members is held */
	bool told;                /* the run times of all are known */
	uint64_t got_ns;          /* since the last decision */
	uint64_t stretch_ns;      /* of work, up to now */
	uint64_t idle_since_ns;   /* 0 = is not seen idle */
	uint64_t window_run_ns;   /* since it was judged ... */
	uint64_t window_loose_ns; /* ... of the time in which it could run */
	uint64_t ran_ns;          /* when it was last not held */

	uint64_t run_ns; /* of this task, at the last decision */
	bool run_known;
};

/* `short_ns`: the longest stretch of work at the top. */
void gp_mlfq_set_levels(const struct gp_view *view, const struct gp_policy_state *state,
                        uint64_t short_ns, struct gp_plan *plan);

#endif
