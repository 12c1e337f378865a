/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * fair: device time in proportion to weights, whatever the class. The entity that has had the least
 * time for its weight runs next. An entity that was idle starts again level with the others; it
 * cannot claim the time it missed.
 *
 * If activity is known at once, one entity at a time runs and the others are held. Turns are long,
 * and no time is lost on an entity that pauses. If activity is known late and slices can be set,
 * the hardware takes the turns. The slices are then in proportion to the weights, corrected by
 * measured run times.
 *
 * Good for jobs of unequal importance, and for users who each get their part. Bad for latency,
 * because a request waits for the turns of other entities. With slices also bad for a task that
 * pauses briefly after each kernel, because each pause gives the rest of its slice away.
 */
#include "policy/weighted_turns.h"

static const struct gp_param fair_params[] = {GP_TURN_PARAMS};

/* A gang has the weight of its heaviest member. */
static void set_weights(const struct gp_view *view)
{
	for (uint32_t i = 0; i < view->n; i++)
		((struct gp_turn_entity *)gp_policy_task(view, i))->weight = 1;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_turn_entity *e = gp_turn_entity_of(view, i);

		if (view->task[i].class != GP_UNMANAGED && view->task[i].weight > e->weight)
			e->weight = view->task[i].weight;
	}
}

static int fair_decide(const struct gp_view *view, struct gp_plan *plan)
{
	struct gp_turns *turns = view->state->device;
	uint32_t user_held = gp_turns_gather(view, turns, plan);
	bool blind = (view->caps & GP_CAP_SLICE) && !gp_is_prompt(view);
	struct gp_turn_rules rules = gp_turn_rules(view);

	set_weights(view);
	if (blind || !gp_turns_by_holds(view, turns, &rules, user_held, plan))
		gp_turns_by_slices(view, turns, &rules, plan);
	return 0;
}

const struct gp_policy_ops gp_policy_fair = {
	.name = "fair",
	.summary = "device time in proportion to weights",
	.param = fair_params,
	.nparam = sizeof fair_params / sizeof *fair_params,
	.device_state = sizeof(struct gp_turns),
	.task_state = sizeof(struct gp_turn_entity),
	.uses = GP_USES_WEIGHT,
	.watches = true,
	.decide = fair_decide,
};
