/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is held under `edf` and `lax`: all but who is chosen. What is free to run gets on the device
 * when it has work, whether it is its turn or not, until a hold is in force; so once somebody
 * waits, those who have nothing to do are held too, until no job is left: the call that holds the
 * one names the others as well. A request that nobody disputes costs no call.
 *
 * The background is always kept out like that. Jobs are where the hardware takes turns: where every
 * call stops the device, one more to release them would cost more than it spares (demand.c).
 */
#include "policy/deadline/deadline.h"

/* Whether the one that is chosen is not released yet: no other call is to be in the way of that. */
static bool is_on_its_way(const struct gp_view *view, const struct gp_deadline_device *d)
{
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].id == d->chosen)
			return view->task[i].known & GP_KNOWN_HELD && view->task[i].held;
	return false;
}

/* Somebody waits, or did since the last time without jobs. */
static void note_crowd(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct gp_deadline_device *d = state->device;

	d->crowded = d->crowded && d->jobs;
	for (uint32_t i = 0; i < view->n && d->jobs; i++)
		d->crowded |= gp_deadline_entity(state, i)->busy && view->task[i].id != d->chosen;
}

static bool is_kept_out(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i,
                        bool on_its_way)
{
	const struct gp_deadline_device *d = state->device;
	const struct gp_deadline_entity *u = gp_deadline_entity(state, i);

	return d->crowded && u->entity.members && !u->entity.user_held &&
	       (u->entity.policy_held || !on_its_way) &&
	       (u->promised ? view->slice_default_us : !d->background_chosen);
}

static bool works_on(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i)
{
	const struct gp_deadline_device *d = state->device;
	bool had_it = d->background_before && gp_is_background(view, state, i) &&
	              !gp_deadline_entity(state, i)->entity.policy_held;

	return gp_works_on(view, d->request_marks) && (had_it || view->task[i].id == d->before);
}

static bool must_wait(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i,
                      bool on_its_way, bool rotates)
{
	const struct gp_deadline_device *d = state->device;
	const struct gp_deadline_entity *u = gp_deadline_entity(state, i);

	if (view->task[i].id == d->chosen)
		return false;
	if (!u->busy)
		return is_kept_out(view, state, i, on_its_way);
	if (on_its_way && works_on(view, state, i))
		return false;
	if (d->background_chosen && gp_is_background(view, state, i))
		return rotates && u->entity.rotating && view->task[i].id != d->rotation.current;
	return d->chosen || d->background_chosen;
}

/* Who is held already comes first where there is not room for all, and the background before jobs:
 * then a look changes nothing without need. Who has nothing to do is not held then. */
static void hold_in_rounds(const struct gp_view *view, const struct gp_policy_state *state,
                           bool rotates, uint32_t room, struct gp_plan *plan)
{
	for (unsigned k = 0; k < 4 * view->n; k++) {
		uint32_t i = k % view->n;
		const struct gp_deadline_entity *u = gp_deadline_entity(state, i);
		unsigned round = (u->entity.policy_held ? 0u : 2u) +
		                 (gp_is_background(view, state, i) ? 0u : 1u);

		if (k / view->n != round || !must_wait(view, state, i, false, rotates))
			continue;
		plan->task[i].want = !u->busy || u->entity.members > room ? GP_RUN : GP_HOLD;
		if (plan->task[i].want == GP_HOLD)
			room -= u->entity.members;
	}
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			plan->task[i].want = plan->task[view->task[i].gang].want;
}

void gp_deadline_holds(const struct gp_view *view, const struct gp_policy_state *state,
                       uint32_t user_held, bool rotates, struct gp_plan *plan)
{
	struct gp_deadline_device *d = state->device;
	uint32_t room = user_held < view->max_held ? view->max_held - user_held : 0, held = 0;
	bool on_its_way = is_on_its_way(view, d);

	note_crowd(view, state);
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_deadline_entity *u = gp_deadline_entity(state, t->gang);
		bool waits;

		if (t->class == GP_UNMANAGED)
			continue;
		waits = must_wait(view, state, t->gang, on_its_way, rotates);
		held += waits;
		plan->task[i].want = waits ? GP_HOLD : GP_RUN;
		plan->task[i].refused = t->deadline_ns && !u->promised;
		plan->task[i].overran = t->deadline_ns && u->promised && u->overran;
	}
	if (held > room)
		hold_in_rounds(view, state, rotates, room, plan);
}
