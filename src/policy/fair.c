/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * fair: device time in proportion to weights, whatever the class. Whoever has got least for its
 * weight goes next; one that was idle comes back level with the others, without a claim to what it
 * missed.
 *
 * Where it is known at once who works, one unit at a time runs and the others are held: long turns,
 * and no time is lost on one that pauses. Where slices can be set and that is not known, the
 * hardware takes the turns, with slices in proportion, corrected by what each has run as far as
 * that is measured.
 *
 * Good for jobs of unequal standing, and for users who each get their part. Bad for latency: a
 * request waits for the turns of others; and, with slices, for a task that pauses for a moment
 * after each kernel: every pause gives its turn away.
 */
#include "policy/weighted_turns.h"

static const struct gp_param fair_params[] = {GP_TURN_PARAMS};

/* A gang is worth its heaviest member. */
static void set_weights(const struct gp_view *view, const struct gp_policy_state *state)
{
	for (uint32_t i = 0; i < view->n; i++)
		((struct gp_turn_entity *)gp_policy_task(state, i))->weight = 1;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *u = gp_turn_entity_of(view, state, i);

		if (view->task[i].class != GP_UNMANAGED && view->task[i].weight > u->weight)
			u->weight = view->task[i].weight;
	}
}

static int fair_decide(const struct gp_view *view, const struct gp_policy_state *state,
                       struct gp_plan *plan)
{
	struct gp_turns *turns = state->device;
	uint32_t user_held = gp_turns_gather(view, state, turns, plan);
	bool blind = (view->caps & GP_CAP_SLICE) && !gp_is_prompt(view);
	struct gp_turn_rules rules = gp_turn_rules(state);

	set_weights(view, state);
	if (blind || !gp_turns_by_holds(view, state, turns, &rules, user_held, plan))
		gp_turns_by_slices(view, state, turns, &rules, plan);
	return 0;
}

const struct gp_policy_ops gp_policy_fair = {
	.name = "fair",
	.summary = "device time in proportion to weights",
	.param = fair_params,
	.nparam = sizeof fair_params / sizeof *fair_params,
	.device_state = sizeof(struct gp_turns),
	.task_state = sizeof(struct gp_turn_entity),
	.watches = true,
	.decide = fair_decide,
};
