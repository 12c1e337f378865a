/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tasks are held under `edf` and `lax`: all but the chosen entity. A released task with work
 * gets on the device at any time, until a hold is in force. So once an entity waits, idle entities
 * are held, too, until no job is left; one call to the driver holds them all. A request without
 * competition costs no call.
 *
 * The background is always held in this way. Entities with a promise are, if the hardware takes
 * turns. On devices on which every call stops the device, one more call to release them would cost
 * more than it saves (demand.c).
 */
#include "policy/deadline/deadline.h"

/* Whether the chosen entity is not released yet. Then no other call should delay its release. */
static bool release_pending(const struct gp_view *view, const struct gp_deadline_device *d)
{
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].id == d->chosen)
			return view->task[i].known & GP_KNOWN_HELD && view->task[i].held;
	return false;
}

/* Records whether an entity waits, or has waited since there were last no jobs. */
static void note_crowd(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct gp_deadline_device *d = state->device;

	d->crowded = d->crowded && d->jobs;
	for (uint32_t i = 0; i < view->n && d->jobs; i++)
		d->crowded |= gp_deadline_entity(state, i)->busy && view->task[i].id != d->chosen;
}

static bool is_kept_out(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i,
			bool pending)
{
	const struct gp_deadline_device *d = state->device;
	const struct gp_deadline_entity *e = gp_deadline_entity(state, i);

	return d->crowded && e->entity.members && !e->entity.user_held &&
	       (e->entity.policy_held || !pending) &&
	       (e->promised ? view->slice_default_us : !d->background_chosen);
}

static bool runs_on(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i)
{
	const struct gp_deadline_device *d = state->device;
	bool had_it = d->background_before && gp_is_background(view, state, i) &&
		      !gp_deadline_entity(state, i)->entity.policy_held;

	return gp_runs_on(view, d->request_marks) && (had_it || view->task[i].id == d->before);
}

static bool must_wait(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i,
		      bool pending, bool rotates)
{
	const struct gp_deadline_device *d = state->device;
	const struct gp_deadline_entity *e = gp_deadline_entity(state, i);

	if (view->task[i].id == d->chosen)
		return false;
	if (!e->busy)
		return is_kept_out(view, state, i, pending);
	if (pending && runs_on(view, state, i))
		return false;
	if (d->background_chosen && gp_is_background(view, state, i))
		return rotates && e->entity.rotating && view->task[i].id != d->rotation.current;
	return d->chosen || d->background_chosen;
}

/* If not all can be held: entities that are held already come first, and the background before
 * jobs. So a tick makes no unnecessary change. Idle entities are not held in this case. */
static void hold_in_rounds(const struct gp_view *view, const struct gp_policy_state *state,
			   bool rotates, uint32_t room, struct gp_plan *plan)
{
	for (unsigned k = 0; k < 4 * view->n; k++) {
		uint32_t i = k % view->n;
		const struct gp_deadline_entity *e = gp_deadline_entity(state, i);
		unsigned round = (e->entity.policy_held ? 0u : 2u) +
				 (gp_is_background(view, state, i) ? 0u : 1u);

		if (k / view->n != round || !must_wait(view, state, i, false, rotates))
			continue;
		plan->task[i].want = !e->busy || e->entity.members > room ? GP_RUN : GP_HOLD;
		if (plan->task[i].want == GP_HOLD)
			room -= e->entity.members;
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
	bool pending = release_pending(view, d);

	note_crowd(view, state);
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_deadline_entity *e = gp_deadline_entity(state, t->gang);
		bool waits;

		if (t->class == GP_UNMANAGED)
			continue;
		waits = must_wait(view, state, t->gang, pending, rotates);
		held += waits;
		plan->task[i].want = waits ? GP_HOLD : GP_RUN;
		plan->task[i].refused = t->deadline_ns && !e->promised;
		plan->task[i].overran = t->deadline_ns && e->promised && e->overran;
	}
	if (held > room)
		hold_in_rounds(view, state, rotates, room, plan);
}
