/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share: each task has the part of the device it was guaranteed whenever it wants it; time that is
 * nobody's, or that its owner does not want, goes to all by weight; a ceiling limits what a task
 * can get of that. Guarantees of more than the whole are refused to those who came last.
 *
 * The turns are those of `fair`, with weights that are worked out from all that at each look. Where
 * slices would do, holds are used all the same for two things. A ceiling that leaves time over is
 * kept by letting nobody have a turn. And one that pauses for a moment after each kernel gives the
 * rest of its slice away each time: if by its run times it lacks what it was guaranteed, all others
 * are held until it has it.
 *
 * A part of the device is a part of its time: who has a turn has all of the device, whether it
 * fills it or not.
 *
 * Good where somebody pays for a part of a GPU. Bad for latency: a part of the time is not a time;
 * and for kernels that fill only some of an AMD GPU: they could run side by side.
 */
#include "policy/share/share.h"

#define ROUNDS 16

static const struct gp_param share_params[] = {GP_TURN_PARAMS};

static struct gp_share_task *entity_of(const struct gp_view *view,
                                       const struct gp_policy_state *state, uint32_t task)
{
	return gp_policy_task(state, view->task[task].gang);
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

static void gather_claims(const struct gp_view *view, const struct gp_policy_state *state)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(state, i);

		s->weight = 1;
		s->guarantee_permille = s->ceiling_permille = 0;
	}
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_share_task *own = gp_policy_task(state, i);

		if (view->task[i].class == GP_UNMANAGED)
			continue;
		entity_of(view, state, i)->admitted |= own->admitted;
		add_member(entity_of(view, state, i), &view->task[i]);
	}
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(state, i);

		s->admitted &= s->guarantee_permille != 0;
		if (s->guarantee_permille > s->ceiling_permille)
			s->guarantee_permille = s->ceiling_permille;
	}
}

/* Those that have a promise keep it as long as it can be kept, in the order of their arrival. */
static uint32_t admit(const struct gp_view *view, const struct gp_policy_state *state,
                      bool admitted_before, uint32_t left_permille)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(state, i);

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

static void say_who_is_refused(const struct gp_view *view, const struct gp_policy_state *state,
                               struct gp_plan *plan)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *own = gp_policy_task(state, i);

		own->admitted =
			view->task[i].class != GP_UNMANAGED && entity_of(view, state, i)->admitted;
		plan->task[i].refused = view->task[i].class != GP_UNMANAGED &&
		                        view->task[i].share_permille && !own->admitted;
	}
}

/* Whether a unit has a part in this: those that want the device, or all there are. */
static bool counts(const struct gp_share_task *s, bool all)
{
	return s->turn.entity.members && !s->turn.entity.user_held &&
	       (all || s->turn.entity.rotating);
}

struct pool {
	uint64_t weight; /* of those who share what is over */
	uint64_t over;   /* in units of a turn's weight */
};

static struct pool pool_of(const struct gp_view *view, const struct gp_policy_state *state,
                           bool all)
{
	struct pool p = {.over = GP_TURN_WEIGHT_MAX};

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_share_task *s = gp_policy_task(state, i);
		uint64_t own =
			PER_PERMILLE * (s->capped ? s->ceiling_permille : s->guarantee_permille);

		if (!counts(s, all))
			continue;
		p.over -= own < p.over ? own : p.over;
		p.weight += s->capped ? 0 : s->weight;
	}
	return p;
}

/* Gives each its part. Returns whether one more has reached its ceiling, and is taken out. */
static bool spread(const struct gp_view *view, const struct gp_policy_state *state, bool all,
                   const struct pool *p)
{
	bool more = false;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(state, i);
		uint64_t part = s->guarantee_permille * PER_PERMILLE;

		if (!counts(s, all))
			continue;
		if (!s->capped)
			part += p->over * s->weight / p->weight;
		if (!s->capped && part > s->ceiling_permille * PER_PERMILLE)
			more = s->capped = true;
		if (s->capped)
			part = s->ceiling_permille * PER_PERMILLE;
		s->turn.weight = part ? (uint32_t)part : 1; /* nobody starves */
	}
	return more;
}

/*
 * Returns what is left although everybody, if there is anybody, has all that its ceiling allows. A
 * few rounds settle it but for odd cases, which then lack some of their part: this is done at each
 * look, and must stay linear.
 */
static uint32_t work_out(const struct gp_view *view, const struct gp_policy_state *state, bool all)
{
	struct pool p = {0};
	bool more = true;

	for (uint32_t i = 0; i < view->n; i++)
		((struct gp_share_task *)gp_policy_task(state, i))->capped = false;
	for (int round = 0; more && round < ROUNDS; round++) {
		p = pool_of(view, state, all);
		more = spread(view, state, all, &p);
	}
	return p.weight || p.over == GP_TURN_WEIGHT_MAX ? 0 : (uint32_t)p.over;
}

static int share_decide(const struct gp_view *view, const struct gp_policy_state *state,
                        struct gp_plan *plan)
{
	struct gp_share_device *d = state->device;
	struct gp_turns *turns = &d->turns;
	uint32_t user_held = gp_turns_gather(view, state, turns, plan);
	uint32_t room = user_held < view->max_held ? view->max_held - user_held : 0;
	bool blind = (view->caps & GP_CAP_SLICE) && !gp_is_prompt(view);
	struct gp_turn_rules rules = gp_turn_rules(state);

	gather_claims(view, state);
	admit(view, state, false, admit(view, state, true, WHOLE_PERMILLE));
	say_who_is_refused(view, state, plan);
	work_out(view, state, true); /* for those that want nothing now: so that they have it */
	rules.nobody = work_out(view, state, false);
	if (blind && !rules.nobody) {
		gp_turns_by_slices(view, state, turns, &rules, plan);
		gp_share_make_up(view, state, room, plan);
	} else {
		gp_share_forget(view, state);
		if (!gp_turns_by_holds(view, state, turns, &rules, user_held, plan))
			gp_turns_by_slices(view, state, turns, &rules, plan);
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
	.watches = true,
	.decide = share_decide,
};
