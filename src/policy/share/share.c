/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share: each task gets its guaranteed part of the device whenever it wants it. Time that is not
 * guaranteed, or that the guaranteed task does not want, goes to all tasks by weight. A ceiling
 * limits how much of that a task can get. Guarantees of more than 100 % in total are refused to the
 * tasks that came last.
 *
 * The turns are those of `fair`; the weights are computed from shares, ceilings and weights at each
 * tick. Holds are used for two purposes even if slices can be set. First, a ceiling can leave time
 * that no task may use; the device then stays idle for a turn. Second, a task that pauses briefly
 * after each kernel gives the rest of its slice away each time. If its run times are below its
 * guarantee, all others are held until it has caught up.
 *
 * A part of the device means a part of its time. A task has the whole device in its turn, whether
 * it fills it or not.
 *
 * Good if a fixed part of a GPU was assigned or paid for. Bad for latency: a part of the time says
 * nothing about response times. Bad also for kernels that fill only a part of an AMD GPU: they
 * could run side by side.
 */
#include "policy/share/share.h"

#define ROUNDS 16

static const struct gp_param share_params[] = {GP_TURN_PARAMS};

static struct gp_share_task *entity_of(const struct gp_view *view, uint32_t task)
{
	return gp_policy_task(view, view->task[task].gang);
}

static void add_member(struct gp_share_task *s, const struct gp_task_view *t)
{
	uint32_t ceiling = t->ceiling_permille && t->ceiling_permille < WHOLE_PERMILLE
				   ? t->ceiling_permille
				   : WHOLE_PERMILLE;

	if (t->weight > s->weight)
		s->weight = t->weight;
	if (t->share_permille > s->guarantee_permille)
		s->guarantee_permille = t->share_permille;
	if (ceiling > s->ceiling_permille)
		s->ceiling_permille = ceiling;
}

static void gather_claims(const struct gp_view *view)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(view, i);

		s->weight = 1;
		s->guarantee_permille = s->ceiling_permille = 0;
	}
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_share_task *own = gp_policy_task(view, i);

		if (view->task[i].class == GP_UNMANAGED)
			continue;
		entity_of(view, i)->admitted |= own->admitted;
		add_member(entity_of(view, i), &view->task[i]);
	}
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(view, i);

		s->admitted &= s->guarantee_permille != 0;
		if (s->guarantee_permille > s->ceiling_permille)
			s->guarantee_permille = s->ceiling_permille;
	}
}

/* Admits guarantees in the order of the entities' arrival. Called first for the entities that were
 * admitted before. So they keep their promise while it can be kept. */
static uint32_t admit(const struct gp_view *view, bool admitted_before, uint32_t left_permille)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(view, i);

		if (!s->guarantee_permille || s->admitted != admitted_before)
			continue;
		s->admitted = s->guarantee_permille <= left_permille;
		if (s->admitted)
			left_permille -= s->guarantee_permille;
		else
			s->guarantee_permille = 0;
	}
	return left_permille;
}

static void mark_refused(const struct gp_view *view, struct gp_plan *plan)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *own = gp_policy_task(view, i);

		own->admitted = view->task[i].class != GP_UNMANAGED && entity_of(view, i)->admitted;
		plan->task[i].refused = view->task[i].class != GP_UNMANAGED &&
					view->task[i].share_permille && !own->admitted;
	}
}

/* Whether an entity is included: with `all` every entity, else those that want the device. */
static bool counts(const struct gp_share_task *s, bool all)
{
	return s->turn.entity.members && !s->turn.entity.user_held &&
	       (all || s->turn.entity.rotating);
}

struct pool {
	uint64_t weight; /* of the entities that are below their ceiling */
	uint64_t over;   /* time that is not guaranteed, in the scale of turn weights */
};

static struct pool pool_of(const struct gp_view *view, bool all)
{
	struct pool p = {.over = GP_TURN_WEIGHT_MAX};

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_share_task *s = gp_policy_task(view, i);
		uint64_t own =
			PER_PERMILLE * (s->capped ? s->ceiling_permille : s->guarantee_permille);

		if (!counts(s, all))
			continue;
		p.over = gp_less(p.over, own);
		p.weight += s->capped ? 0 : s->weight;
	}
	return p;
}

/* Assigns each entity its part. Returns true if at least one more reached its ceiling; the caller
 * then repeats the computation. */
static bool spread(const struct gp_view *view, bool all, const struct pool *p)
{
	bool more = false;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(view, i);
		uint64_t part = s->guarantee_permille * PER_PERMILLE;

		if (!counts(s, all))
			continue;
		if (!s->capped)
			part += p->over * s->weight / p->weight;
		if (!s->capped && part > s->ceiling_permille * PER_PERMILLE)
			more = s->capped = true;
		if (s->capped)
			part = s->ceiling_permille * PER_PERMILLE;
		s->turn.weight = part ? (uint32_t)part : 1; /* never 0: no entity may starve */
	}
	return more;
}

/*
 * Returns the time that is left if every entity has reached its ceiling; 0 without entities. A few
 * rounds are enough except in rare cases, in which an entity gets less than its part. The number of
 * rounds is limited because this runs at each tick and must stay linear.
 */
static uint32_t compute_parts(const struct gp_view *view, bool all)
{
	struct pool p = {0};
	bool more = true;

	for (uint32_t i = 0; i < view->n; i++)
		((struct gp_share_task *)gp_policy_task(view, i))->capped = false;
	for (int round = 0; more && round < ROUNDS; round++) {
		p = pool_of(view, all);
		more = spread(view, all, &p);
	}
	return p.weight || p.over == GP_TURN_WEIGHT_MAX ? 0 : (uint32_t)p.over;
}

static int share_decide(const struct gp_view *view, struct gp_plan *plan)
{
	struct gp_share_device *d = view->state->device;
	struct gp_turns *turns = &d->turns;
	uint32_t user_held = gp_turns_gather(view, turns, plan);
	uint32_t room = gp_room_for_holds(view, user_held);
	bool blind = (view->caps & GP_CAP_SLICE) && !gp_is_prompt(view);
	struct gp_turn_rules rules = gp_turn_rules(view);

	gather_claims(view);
	admit(view, false, admit(view, true, WHOLE_PERMILLE));
	mark_refused(view, plan);
	compute_parts(view, true); /* entities that want no time now need a weight, too */
	rules.idle_weight = compute_parts(view, false);
	if (blind && !rules.idle_weight) {
		gp_turns_by_slices(view, turns, &rules, plan);
		gp_share_make_up(view, room, plan);
	} else {
		gp_share_forget(view);
		if (!gp_turns_by_holds(view, turns, &rules, user_held, plan))
			gp_turns_by_slices(view, turns, &rules, plan);
	}
	return 0;
}

const struct gp_policy_ops gp_policy_share = {
	.name = "share",
	.summary = "guaranteed percentages; spare time by weight",
	.param = share_params,
	.nparam = sizeof share_params / sizeof *share_params,
	.device_state = sizeof(struct gp_share_device),
	.task_state = sizeof(struct gp_share_task),
	.uses = GP_USES_WEIGHT | GP_USES_SHARE | GP_USES_CEILING,
	.watches = true,
	.decide = share_decide,
};
