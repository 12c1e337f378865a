/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * rr: equal turns for all managed tasks, whatever their class.
 *
 * If slices can be set, every task gets the same long slice and the hardware takes the turns.
 * Software has no part in a switch, and an idle task gives its turn up at once. Without slices, one
 * entity at a time runs and the others are held.
 *
 * Good for several jobs of equal importance: with turns of 10 ms, switching costs little. Bad for
 * latency: a request waits for the turns of all other tasks.
 */
#include "policy/rotation.h"

#define SLICE_MIN_US 1000u /* with shorter slices, switching costs too much */

enum { QUANTUM };

static const struct gp_param rr_params[] = {
	[QUANTUM] = {"quantum", "us", "length of a turn", 10000, 1000, 10000000},
};

struct rr_device {
	struct gp_rotation rotation;
};

/* A round must end well inside the starvation limit. With turns, gp_rotate ensures that. */
static uint32_t slice_for(const struct gp_view *view, uint64_t quantum_us)
{
	uint64_t longest_us = view->starve_limit_ns / 1000 / 2 / (view->n + 1);

	if (quantum_us > longest_us)
		quantum_us = gp_most(longest_us, SLICE_MIN_US);
	return gp_slice_near(view, quantum_us);
}

static void share_by_slices(const struct gp_view *view, uint32_t slice_us, struct gp_plan *plan)
{
	for (uint32_t i = 0; i < view->n; i++) {
		if (view->task[i].class == GP_UNMANAGED)
			continue;
		plan->task[i].want = GP_RUN;
		plan->task[i].slice_us = slice_us;
	}
}

static void share_by_turns(const struct gp_view *view, uint64_t quantum_ns, struct gp_plan *plan)
{
	struct rr_device *d = view->state->device;
	uint32_t user_held = gp_entities_gather(view);
	struct gp_rotation_rules rules = {
		.room = gp_room_for_holds(view, user_held),
		.quantum_ns = quantum_ns,
	};
	bool rotates = gp_rotate(view, &d->rotation, &rules, plan);

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_entity *e = gp_entity_of(view, i);
		bool current = view->task[view->task[i].gang].id == d->rotation.current;

		if (view->task[i].class == GP_UNMANAGED)
			continue;
		plan->task[i].want = rotates && e->rotating && !current ? GP_HOLD : GP_RUN;
	}
	if (rotates)
		gp_plan_wake_at(plan, d->rotation.ends_ns);
}

static int rr_decide(const struct gp_view *view, struct gp_plan *plan)
{
	uint64_t quantum_us = gp_param(view, QUANTUM);

	if (view->caps & GP_CAP_SLICE)
		share_by_slices(view, slice_for(view, quantum_us), plan);
	else
		share_by_turns(view, quantum_us * 1000, plan);
	return 0;
}

const struct gp_policy_ops gp_policy_rr = {
	.name = "rr",
	.summary = "equal turns for all managed tasks",
	.param = rr_params,
	.nparam = sizeof rr_params / sizeof *rr_params,
	.device_state = sizeof(struct rr_device),
	.task_state = sizeof(struct gp_entity),
	.watches = true,
	.watch_free = GP_CAP_SLICE,
	.decide = rr_decide,
};
