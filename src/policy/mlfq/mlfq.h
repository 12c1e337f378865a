/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the parts of `mlfq`: the plan, and the level of each entity. */
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
	uint64_t barred_ns;      /* since when entities below wait for the top; 0 = they do not */
	uint64_t aging_until_ns; /* end of the aging window of one of them */
	uint64_t decided_ns;     /* time of the last decision */

	/* Used if activity is known late. "Part" means the part of the device, in thousandths. */
	bool turns;             /* entities below the top are held and take turns */
	uint64_t turns_ns;      /* time with turns since the last evaluation */
	uint64_t turns_run_ns;  /* their run time in turns_ns */
	uint32_t turns_part;    /* their recent part; 0 = not known */
	uint64_t run_grew_ns;   /* when a run time last grew */
	uint64_t window_ns;     /* length of the current measurement, up to run_grew_ns */
	uint64_t window_run_ns; /* run time of all entities in it */
	uint32_t released_busy; /* how busy the device was without turns, in thousandths */
	uint64_t given_up_ns;   /* when turns were given up */
	uint64_t wait_ns;       /* how long after that turns are not tried; 0 = turns are useful */
};

/* Stored in the blob of the entity's first task; run_ns and run_known are used in every blob. */
struct gp_mlfq_task {
	struct gp_entity entity;
	uint8_t level;               /* enum gp_mlfq_level */
	bool works;                  /* in a stretch of work; a short pause does not end it */
	bool released;               /* none of its members is held */
	bool runs_known;             /* the run times of all members are known */
	uint64_t got_ns;             /* run time since the last decision */
	uint64_t stretch_ns;         /* length of the current stretch of work */
	uint64_t idle_since_ns;      /* when it was first seen idle; 0 = it is not idle */
	uint64_t window_run_ns;      /* run time since its part was last computed */
	uint64_t window_released_ns; /* time for which it was released since then */
	uint32_t part;               /* its part of the device, in thousandths */
	bool judged;                 /* `part` is new, and its level must be checked */
	bool trusted;                /* `part` was small at the last check */
	uint64_t ran_ns;             /* when it last ran or was released */

	uint64_t run_ns; /* run time of this task at the last decision */
	bool run_known;
};

struct gp_mlfq_counts {
	uint32_t top;        /* entities at the top */
	uint32_t sunk;       /* entities below the top */
	uint32_t below;      /* entities below the top that are not idle */
	uint32_t tasks;      /* tasks of the entities in `below` */
	bool top_works;      /* an entity at the top works, or has just paused */
	uint32_t below_only; /* index of the last entity of `below`; the only one if below == 1 */
};

/* The shortest time over which run times are measured, because a reported run time is old. */
static inline uint64_t gp_mlfq_window(const struct gp_view *view)
{
	uint64_t window_ns = 4 * view->sample_period_ns;

	return window_ns < 400 * GP_MS ? 400 * GP_MS : window_ns;
}

/* `short_ns` is the longest stretch of work at the top level. */
void gp_mlfq_set_levels(const struct gp_view *view, uint64_t short_ns, struct gp_plan *plan);

#endif
