/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the two halves of `priority` share: with slices, and without. Freestanding.
 *
 * A policy that builds on it (`qos`) begins its parameters with GP_PRIORITY_PARAMS, its blobs with
 * these structs, and may change a plan that these functions made.
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
	GP_PRIORITY_PARAMS, /* how many */
};

/* clang-format off */
#define GP_PRIORITY_PARAM_TABLE \
	/*                     name, unit, meaning, default, least, most */ \
	[GP_PRIORITY_QUANTUM]         = {"quantum", "ms", "turn among busy best-effort tasks", 200, 10, 10000}, \
	[GP_PRIORITY_AGE_AFTER]       = {"age_after", "ms", "got nothing for so long: let in", 100, 10, 2000},  \
	[GP_PRIORITY_AGE_RUN]         = {"age_run", "ms", "... for so long", 10, 1, 1000}, \
	[GP_PRIORITY_AGE_BLIND]       = {"age_blind", "ms", "... so often where none can tell", 1000, 100, 2000},  \
	[GP_PRIORITY_AGE_SLICE]       = {"age_slice", "us", "slice of all while one is let in", 2000, 1000, 100000}, \
	[GP_PRIORITY_TINY_SLICE]      = {"tiny_slice", "us", "slice of the one running be task", 1, 1, GP_TINY_SLICE_US}, \
	[GP_PRIORITY_LC_SLICE]        = {"lc_slice", "us", "slice of a single lc task", 1000000, 1000, 10000000}, \
	[GP_PRIORITY_LC_SHARED_SLICE] = {"lc_shared_slice", "us", "slice of each of several", 2000, 1000, 1000000}
/* clang-format on */

struct gp_priority_device {
	struct gp_rotation rotation;
	uint64_t got_ns;         /* when best-effort work last had the device, or wanted nothing */
	uint64_t age_ns;         /* how long somebody is let in */
	uint64_t age_from_ns;    /* somebody is let in ... */
	uint64_t age_until_ns;   /* ... until then; 0 = nobody */
	uint64_t aged_ns;        /* when that last ended */
	uint64_t share_until_ns; /* nobody takes turns until then: it did not feed them */
};

struct gp_priority_task {
	struct gp_entity entity;
	uint64_t got_ns;        /* when this unit last had the device, or wanted nothing */
	uint64_t progress_ns;   /* ... and had enough of it to get on */
	uint64_t aging_turn_ns; /* when this unit last had its turn while somebody was let in */
	bool told;              /* this task's run time was known at some time */
	uint64_t run_ns;        /* ... what it was when it last grew ... */
	uint64_t run_at_ns;     /* ... and when that was */
	uint64_t released_ns;   /* with slices: since when this task is not held; 0 = it is */
	uint64_t aging_ns;      /* without slices: this unit is let in since then ... */
	uint64_t run_until_ns;  /* ... until then */
	uint64_t ran_ns;        /* ... and was last not held then */
};

static inline uint64_t param_ns(const struct gp_policy_state *state, unsigned param)
{
	return (uint64_t)state->param[param] * GP_MS;
}

/* How long somebody is let in among `sharers`: at least once round, each with its slice. */
static inline uint64_t aging_ns(const struct gp_view *view, const struct gp_policy_state *state,
                                uint32_t sharers, uint32_t slice_us)
{
	uint64_t run_ns = param_ns(state, GP_PRIORITY_AGE_RUN), round_ns;

	if (slice_us < view->slice_default_us)
		slice_us = view->slice_default_us;
	round_ns = sharers * ((uint64_t)slice_us * 1000 + view->switch_cost_ns);
	return run_ns > round_ns ? run_ns : round_ns;
}

/* How many more tasks the policy may hold. */
static inline uint32_t room_for_holds(const struct gp_view *view, uint32_t user_held)
{
	return user_held < view->max_held ? view->max_held - user_held : 0;
}

/* How many latency-critical tasks there are that no user holds. */
static inline uint32_t count_lc(const struct gp_view *view)
{
	uint32_t lc = 0;

	for (uint32_t i = 0; i < view->n; i++)
		lc += view->task[i].class == GP_LATENCY_CRITICAL &&
		      !(view->task[i].held_by & GP_HELD_BY_USER);
	return lc;
}

/* Both fill in the plan, after gp_entities_gather. `lc` is what count_lc says. */
void gp_priority_by_slices(const struct gp_view *view, const struct gp_policy_state *state,
                           uint32_t user_held, uint32_t lc, struct gp_plan *plan);
void gp_priority_by_activity(const struct gp_view *view, const struct gp_policy_state *state,
                             uint32_t user_held, struct gp_plan *plan);

#endif
