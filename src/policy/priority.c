/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * priority: strict classes and priorities, with aging.
 *
 * Where slices can be set, the hardware arbitrates and no software is on the critical path: a
 * best-effort task with a tiny slice is put off the GPU as soon as a latency-critical one has work.
 * Two runnable tasks with tiny slices would starve each other, so only one may have it, and only
 * when no other task that is not latency-critical may be runnable; the other busy best-effort tasks
 * are held and take long turns. Elsewhere, tasks are held while one of higher rank is seen active.
 *
 * Good for inference beside training. Bad where latency-critical work never pauses: best-effort
 * tasks then live on what aging gives them, a few percent at most; and where it pauses all the time
 * for moments shorter than a switch: each gap gives the GPU away, and the way back costs a switch.
 */
#include "policy/priority.h"

/* clang-format off */
static const struct gp_param priority_params[] = {
	/*                     name, unit, meaning, default, least, most */
	[QUANTUM]         = {"quantum", "ms", "turn among busy best-effort tasks", 200, 10, 10000},
	[AGE_AFTER]       = {"age_after", "ms", "got nothing for so long: let in", 100, 10, 10000},
	[AGE_RUN]         = {"age_run", "ms", "... for so long", 10, 1, 1000},
	[AGE_BLIND]       = {"age_blind", "ms", "... so often where none can tell", 1000, 100, 10000},
	[AGE_SLICE]       = {"age_slice", "us", "slice of all while one is let in", 2000, 1000, 100000},
	[TINY_SLICE]      = {"tiny_slice", "us", "slice of the one running be task", 1, 1, GP_TINY_SLICE_US},
	[LC_SLICE]        = {"lc_slice", "us", "slice of a single lc task", 1000000, 1000, 10000000},
	[LC_SHARED_SLICE] = {"lc_shared_slice", "us", "slice of each of several", 2000, 1000, 1000000},
};
/* clang-format on */

static int priority_decide(const struct gp_view *view, const struct gp_policy_state *state,
                           struct gp_plan *plan)
{
	uint32_t user_held = gp_units_gather(view, state);
	uint32_t lc = 0;

	for (uint32_t i = 0; i < view->n; i++)
		lc += view->task[i].class == GP_LATENCY_CRITICAL &&
		      !(view->task[i].held_by & GP_HELD_BY_USER);
	if (view->caps & GP_CAP_SLICE)
		gp_priority_by_slices(view, state, user_held, lc, plan);
	else
		gp_priority_by_activity(view, state, user_held, plan);
	return 0;
}

const struct gp_policy_ops gp_policy_priority = {
	.name = "priority",
	.summary = "strict classes and priorities, with aging",
	.param = priority_params,
	.nparam = sizeof priority_params / sizeof *priority_params,
	.device_state = sizeof(struct priority_device),
	.task_state = sizeof(struct priority_task),
	.watches = true,
	.decide = priority_decide,
};
