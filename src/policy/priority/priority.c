/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * priority: strict classes and priorities, with aging.
 *
 * If slices can be set, the hardware arbitrates and no software is on the critical path. A
 * best-effort task with a tiny slice leaves the GPU as soon as a latency-critical task has work.
 * Two runnable tasks with tiny slices would starve each other. So only one task has a tiny slice,
 * and only if no other task below latency-critical may be runnable. The other busy best-effort
 * tasks are held and take long turns. Without slices, a task is held while a task of higher rank is
 * seen active.
 *
 * Good for inference beside training. Bad if latency-critical work never pauses: best-effort tasks
 * then run only in aging windows, a few percent of the time at most. Bad also if it pauses all the
 * time for less than a switch takes: each gap gives the GPU away, and a switch is needed to get it
 * back.
 */
#include "policy/priority/priority.h"

static const struct gp_param priority_params[] = {GP_PRIORITY_PARAM_TABLE};

static int priority_decide(const struct gp_view *view, const struct gp_policy_state *state,
			   struct gp_plan *plan)
{
	uint32_t user_held = gp_entities_gather(view, state);

	if (view->caps & GP_CAP_SLICE)
		gp_priority_by_slices(view, state, user_held, count_lc(view), plan);
	else
		gp_priority_by_activity(view, state, user_held, plan);
	return 0;
}

const struct gp_policy_ops gp_policy_priority = {
	.name = "priority",
	.summary = "strict classes and priorities, with aging",
	.param = priority_params,
	.nparam = sizeof priority_params / sizeof *priority_params,
	.device_state = sizeof(struct gp_priority_device),
	.task_state = sizeof(struct gp_priority_task),
	.uses = GP_USES_CLASS | GP_USES_PRIORITY,
	.watches = true,
	.decide = priority_decide,
};
