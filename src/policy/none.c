/* SPDX-License-Identifier: Apache-2.0 */
/*
 * none: every task runs with the hardware's own slices. This is the baseline, and the policy in
 * force after an ejection: it releases every task that a policy held.
 *
 * Good if tasks share the device well without help. Bad if a task has to answer within a certain
 * time.
 */
#include "policy/registry.h"

static int none_decide(const struct gp_view *view, struct gp_plan *plan)
{
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			plan->task[i].want = GP_RUN;
	return 0;
}

const struct gp_policy_ops gp_policy_none = {
	.name = "none",
	.summary = "all tasks run with hardware slices: the baseline",
	.decide = none_decide,
};
