/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `mlfq` share: which level a task is at, whether those below take turns, and
 * what is done about it. */
#ifndef GP_POLICY_MLFQ_MLFQ_H
#define GP_POLICY_MLFQ_MLFQ_H

#include "policy/registry.h"
#include "policy/weighted_turns.h"

/* Parameters, in the order of the table. */
enum { GP_MLFQ_SHORT, GP_MLFQ_QUANTUM, GP_MLFQ_SLICE, GP_MLFQ_YIELD, GP_MLFQ_BOOST };

enum gp_mlfq_level { GP_MLFQ_TOP, GP_MLFQ_MIDDLE, GP_MLFQ_BOTTOM };

#define GP_MLFQ_AGING_NS (10 * GP_MS)

struct gp_mlfq_device {
	struct gp_rotation rotation;
	uint64_t barred_ns;       /* since when those below wait for the top; 0 = they do not */
	uint64_t let_in_until_ns; /* one of them is let in */
	uint64_t decided_ns;      /* the last decision */

	/* Where activity is known late. */
	bool turns;             /* those below are held and take turns */
	uint64_t turns_ns;      /* for so long ... */
	uint64_t turns_run_ns;  /* ... and they ran so much, since that was looked at */
	uint32_t turns_part;    /* of the device, in thousandths, lately; 0 = not known */
	uint64_t news_ns;       /* when a run time last grew */
	uint64_t window_ns;     /* up to then, since it was last looked at ... */
	uint64_t window_run_ns; /* ... what all have run */
	uint32_t released_busy; /* in thousandths, when they last had no turns */
	uint64_t given_up_ns;   /* when turns were ... */
	uint64_t wait_ns;       /* ... and how long they are not tried again; 0 = they pay */
};

/* Of a unit, in the blob of its first task, but for the last two. */
struct gp_mlfq_task {
	struct gp_entity entity;
	uint8_t level;               /* enum gp_mlfq_level */
	bool works;                  /* in a stretch of work; a pause of a moment is not its end */
	bool released;               /* none of its members is held */
	bool told;                   /* the run times of all are known */
	uint64_t got_ns;             /* since the last decision */
	uint64_t stretch_ns;         /* of work, up to now */
	uint64_t idle_since_ns;      /* 0 = is not seen idle */
	uint64_t window_run_ns;      /* since its part was taken ... */
	uint64_t window_released_ns; /* ... of the time in which it could run */
	uint32_t part;               /* of the device, in thousandths */
	bool judged;                 /* ... is new: it is to be */
	bool trusted;                /* ... was less than much */
	uint64_t ran_ns;             /* when it was last not held */

	uint64_t run_ns; /* of this task, at the last decision */
	bool run_known;
};

struct gp_mlfq_counts {
	uint32_t top;        /* units at the top ... */
	uint32_t sunk;       /* ... and below ... */
	uint32_t below;      /* ... that are not idle */
	uint32_t tasks;      /* of those */
	bool top_works;      /* one at the top does, or has just paused */
	uint32_t below_only; /* index of the only unit below */
};

/* So long must be looked at run times, which are old when they are known. */
static inline uint64_t gp_mlfq_window(const struct gp_view *view)
{
	uint64_t window_ns = 4 * view->sample_period_ns;

	return window_ns < 400 * GP_MS ? 400 * GP_MS : window_ns;
}

/* Where activity is known late: whether those below are to take turns, in device->turns. */
void gp_mlfq_weigh_turns(const struct gp_view *view, const struct gp_policy_state *state,
                         const struct gp_mlfq_counts *c);

/* `short_ns`: the longest stretch of work at the top. */
void gp_mlfq_set_levels(const struct gp_view *view, const struct gp_policy_state *state,
                        uint64_t short_ns, struct gp_plan *plan);

#endif
