/* SPDX-License-Identifier: Apache-2.0 */
/*
 * none: everything runs with the hardware's own slices. The baseline, and what is in force after a
 * policy was ejected: it releases whatever was held. Good where tasks share well by themselves; bad
 * where somebody waits for an answer.
 */
#include "policy/registry.h"

static int none_decide(const struct gp_view *view, const struct gp_policy_state *state,
                       struct gp_plan *plan)
{
	(void)state;
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			plan->task[i].want = GP_RUN;
	return 0;
}

const struct gp_policy_ops gp_policy_none = {
	.name = "none",
	.summary = "everything runs, hardware slices: the baseline",
	.decide = none_decide,
};
