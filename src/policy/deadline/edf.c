/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edf: the task whose request is due first has the device; all other tasks are held. A deadline is
 * promised only if it can be kept (demand.c). A task with a refused deadline is treated like a task
 * without a deadline.
 *
 * Good for requests with a known GPU time and a time limit: control loops, frames, speech. The
 * order of two requests never changes while both wait, so there are as few switches as possible.
 *
 * Bad without budgets: a deadline cannot be promised if the GPU time of a request is unknown. Bad
 * if a hold takes as long as a request, since each job pays for one hold. Bad for small requests on
 * a device that could run several at once, since it is not known how much of the device a request
 * fills.
 */
#include "policy/deadline/deadline.h"

static const struct gp_param edf_params[] = {GP_DEADLINE_PARAMS};

static uint32_t edf_pick(const struct gp_view *view, uint32_t current, struct gp_plan *plan)
{
	(void)plan; /* the order does not change with time */
	return gp_earliest_due(view, current);
}

static int edf_decide(const struct gp_view *view, struct gp_plan *plan)
{
	static const struct gp_deadline_rules rules = {.pick = edf_pick};

	return gp_deadline_decide(view, &rules, plan);
}

const struct gp_policy_ops gp_policy_edf = {
	.name = "edf",
	.summary = "earliest deadline first, with an admission test",
	.param = edf_params,
	.nparam = sizeof edf_params / sizeof *edf_params,
	GP_DEADLINE_OPS,
	.decide = edf_decide,
};
