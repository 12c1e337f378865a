/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Declarations shared by the two halves of `priority`: with slices, and without. Freestanding.
 *
 * A policy that builds on `priority` (`qos` does) begins its parameters with
 * GP_PRIORITY_PARAM_TABLE and its blobs with the structs below. It may change a plan that these
 * functions made.
 */
#ifndef GP_POLICY_PRIORITY_PRIORITY_H
#define GP_POLICY_PRIORITY_PRIORITY_H

#include "policy/rotation.h"

/* Parameters, in the order of the table. */
enum {
	GP_PRIORITY_QUANTUM,
	GP_PRIORITY_AGE_AFTER,
	GP_PRIORITY_AGE_RUN,
	GP_PRIORITY_AGE_BLIND,
	GP_PRIORITY_AGE_SLICE,
	GP_PRIORITY_TINY_SLICE,
	GP_PRIORITY_LC_SLICE,
	GP_PRIORITY_LC_SHARED_SLICE,
	GP_PRIORITY_PARAMS, /* the number of parameters */
};

/* clang-format off */
#define GP_PRIORITY_PARAM_TABLE \
	/* name, unit, meaning, default, minimum, maximum */ \
	[GP_PRIORITY_QUANTUM] = \
		{"quantum", "ms", "turn among busy best-effort tasks", 200, 10, 10000}, \
	[GP_PRIORITY_AGE_AFTER] = \
		{"age_after", "ms", "waiting time before an aging window", 100, 10, 2000}, \
	[GP_PRIORITY_AGE_RUN] = \
		{"age_run", "ms", "length of an aging window", 10, 1, 1000}, \
	[GP_PRIORITY_AGE_BLIND] = \
		{"age_blind", "ms", "age_after if progress is unknown", 1000, 100, 2000}, \
	[GP_PRIORITY_AGE_SLICE] = \
		{"age_slice", "us", "slice of all in an aging window", 2000, 1000, 100000}, \
	[GP_PRIORITY_TINY_SLICE] = \
		{"tiny_slice", "us", "slice of the one released be task", 1, 1, GP_TINY_SLICE_US}, \
	[GP_PRIORITY_LC_SLICE] = \
		{"lc_slice", "us", "slice of a single lc task", 1000000, 1000, 10000000}, \
	[GP_PRIORITY_LC_SHARED_SLICE] = \
		{"lc_shared_slice", "us", "slice of each of several lc tasks", 2000, 1000, 1000000}
/* clang-format on */

struct gp_priority_device {
	struct gp_rotation rotation;
	uint64_t got_ns;         /* when best-effort work last had the device, or had no work */
	uint64_t age_ns;         /* length of an aging window */
	uint64_t age_from_ns;    /* begin of the current aging window */
	uint64_t age_until_ns;   /* its end; 0 = there is no aging window now */
	uint64_t aged_ns;        /* when the last aging window ended */
	uint64_t share_until_ns; /* no turns until then: they brought too little progress */
};

struct gp_priority_task {
	struct gp_entity entity;
	uint64_t got_ns;        /* when this entity last had the device, or had no work */
	uint64_t progress_ns;   /* when it last made progress, or had no work */
	uint64_t aging_turn_ns; /* when it last had the turn in an aging window */
	bool run_seen;          /* the run time of this task has been known at least once */
	uint64_t run_ns;        /* its run time when it last grew */
	uint64_t run_at_ns;     /* time of the tick at which it last grew */
	uint64_t released_ns;   /* with slices: when this task was released; 0 = it is held */
	uint64_t aging_ns;      /* without slices: begin of this entity's aging window */
	uint64_t run_until_ns;  /* without slices: end of its aging window */
	uint64_t ran_ns;        /* without slices: when this entity last ran or was released */
};

static inline uint64_t param_ns(const struct gp_view *view, unsigned param)
{
	return gp_param(view, param) * GP_MS;
}

/* The length of an aging window with `sharers` tasks: at least one round of slices. */
static inline uint64_t aging_ns(const struct gp_view *view, uint32_t sharers, uint32_t slice_us)
{
	uint64_t run_ns = param_ns(view, GP_PRIORITY_AGE_RUN), round_ns;

	if (slice_us < view->slice_default_us)
		slice_us = view->slice_default_us;
	round_ns = sharers * ((uint64_t)slice_us * 1000 + view->switch_cost_ns);
	return run_ns > round_ns ? run_ns : round_ns;
}

/* The number of latency-critical tasks that no user holds. */
static inline uint32_t count_lc(const struct gp_view *view)
{
	uint32_t lc = 0;

	for (uint32_t i = 0; i < view->n; i++)
		lc += view->task[i].class == GP_LATENCY_CRITICAL &&
		      !(view->task[i].held_by & GP_HELD_BY_USER);
	return lc;
}

/* Both fill in the plan; the caller has called gp_entities_gather before. `lc` is the result of
 * count_lc. */
void gp_priority_by_slices(const struct gp_view *view, uint32_t user_held, uint32_t lc,
			   struct gp_plan *plan);
void gp_priority_by_activity(const struct gp_view *view, uint32_t user_held, struct gp_plan *plan);

#endif
