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
	.watches = true,
	.decide = priority_decide,
};
