/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs, the background, the holds and the plan of `edf` and `lax`; see deadline.h. */
#include "policy/deadline/deadline.h"

#define RHYTHM_JOBS 16 /* number of jobs over which an entity's period is averaged */

/* Jobs. */

/*
 * Requests may come closer together than a deadline. The period is then the average over 16
 * requests, because the distance after a late request is short. A margin of 1/8 of the jitter is
 * subtracted: twice the error that jitter can cause. If requests are again as far apart as the
 * deadline, the deadline becomes the period again. So one burst does not cause a lasting refusal.
 */
static void note_rhythm(const struct gp_view *view, struct gp_deadline_entity *e, uint64_t begin_ns)
{
	struct gp_deadline_device *d = view->state->device;
	uint64_t blur_ns = e->asked.jitter_ns / (RHYTHM_JOBS / 2);
	uint64_t mean_ns;

	if (e->jobs++ % RHYTHM_JOBS)
		return;
	mean_ns = (begin_ns - e->jobs_from_ns) / RHYTHM_JOBS;
	e->jobs_from_ns = begin_ns;
	if (e->jobs == 1)
		return;
	if (mean_ns >= e->asked.deadline_ns && e->period_ns < e->asked.deadline_ns) {
		e->period_ns = e->asked.deadline_ns;
		d->ask_again = true;
	}
	if (mean_ns + blur_ns >= e->period_ns || mean_ns <= blur_ns)
		return;
	e->period_ns = mean_ns - blur_ns;
	e->nominal_ns = 0;
	e->had_promise |= e->promised; /* admission is repeated with the real period */
	e->promised = false;
	d->ask_again = true;
}

static void begin_job(const struct gp_view *view, struct gp_deadline_entity *e)
{
	struct gp_deadline_device *d = view->state->device;
	uint64_t jitter_ns = e->asked.jitter_ns, begin_ns = view->now_ns;

	/* A job that began before the first tick, or at an unknown time, counts as begun now. */
	if (e->since_ns < begin_ns && d->last_ns)
		begin_ns = gp_most(e->since_ns, d->last_ns);
	note_rhythm(view, e, begin_ns);
	e->nominal_ns =
		e->nominal_ns ? gp_most(gp_less(begin_ns, jitter_ns), e->nominal_ns + e->period_ns)
			      : gp_less(begin_ns, jitter_ns);
	e->job = (struct gp_job){
		.waits = true,
		.due_ns = gp_most(e->nominal_ns, begin_ns) + e->asked.within_ns - jitter_ns,
		.within_ns = e->asked.deadline_ns,
	};
	e->overran = false;
	e->run_from_ns = e->run_ns;
	e->used_ns = 0;
	e->cuts_before = d->cuts++; /* the job may run for a moment before it is held */
}

/* A job that was interrupted still gets its budget: each interruption adds the cost of resuming. If
 * run time is not measured, the time of a driver call that was under way is added, too. */
static uint64_t allowed_ns(const struct gp_view *view, const struct gp_deadline_entity *e)
{
	const struct gp_deadline_device *d = view->state->device;
	uint64_t cuts = d->cuts - e->cuts_before;

	if (e->run_known)
		return e->asked.need_ns + cuts * gp_refill_ns(view);
	return e->asked.need_ns + cuts * e->asked.change_ns +
	       gp_most(view->hold_cost_ns, view->release_cost_ns);
}

/* If run time is not measured, the time since the entity was chosen counts as run time. */
static void note_use(const struct gp_view *view, struct gp_deadline_entity *e, bool chosen)
{
	const struct gp_deadline_device *d = view->state->device;

	if (e->run_known)
		e->used_ns = gp_less(e->run_ns, e->run_from_ns);
	else if (chosen)
		e->used_ns += view->now_ns - d->last_ns;
	e->job.left_ns = gp_less(e->asked.need_ns, e->used_ns);
	if (e->used_ns > allowed_ns(view, e))
		e->overran = true;
}

/* Begins, continues or ends the job of an entity. If its activity is unknown, nothing changes. */
static void note_job(const struct gp_view *view, uint32_t i)
{
	const struct gp_deadline_device *d = view->state->device;
	struct gp_deadline_entity *e = gp_deadline_entity(view, i);
	bool chosen = d->chosen == view->task[i].id;

	if (!e->has_asked)
		return;
	if (!e->busy || !e->asked.seen) {
		e->job.waits = false;
		e->overran = false;
		return;
	}
	if (e->entity.active &&
	    (!e->job.waits || (e->since_ns != UINT64_MAX && e->since_ns > e->seen_ns)))
		begin_job(view, e);
	else if (e->job.waits)
		note_use(view, e, chosen);
	if (e->job.waits)
		e->job.left_ns = gp_less(e->asked.need_ns, e->used_ns);
	if (e->entity.active)
		e->seen_ns = view->now_ns;
}

/*
 * An entity that was not seen active gets no turn. It may run beside the entity that has the turn,
 * and its activity will be seen. If activity is never visible, all entities take turns, except
 * entities with a deadline that have not sent a request mark: a service is idle most of the time.
 */
static bool takes_turns(const struct gp_view *view, uint32_t i)
{
	const struct gp_deadline_entity *e = gp_deadline_entity(view, i);

	return gp_is_background(view, i) &&
	       (e->entity.active || e->entity.rotating || !e->has_asked);
}

/* Counts jobs and background entities. Marks entities that must not take turns as idle for the
 * rotation. */
static void survey(const struct gp_view *view)
{
	struct gp_deadline_device *d = view->state->device;

	d->jobs = d->unannounced = d->request_marks = false;
	d->background = 0;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_deadline_entity *e = gp_deadline_entity(view, i);
		bool background = gp_is_background(view, i);

		d->jobs |= e->busy && !background;
		d->request_marks |= e->promised && e->marked;
		d->unannounced |= e->promised && !e->marked && !(view->caps & GP_CAP_EVENTS);
		d->background += background && !e->entity.idle;
		e->entity.idle |= !takes_turns(view, i);
	}
}

/* The background. */

struct reserve {
	uint64_t every_ns; /* period of the reserve */
	uint64_t run_ns;   /* device time of the background in it */
};

/* One background entity gets its turn per period. The period is so short that all of them get one
 * in half of the starvation limit. */
static struct reserve size_reserve(const struct gp_view *view)
{
	const struct gp_deadline_device *d = view->state->device;
	uint64_t permille = gp_param(view, GP_DEADLINE_RESERVE),
		 change_ns = gp_change_cost_ns(view);
	uint64_t every_ns = gp_param(view, GP_DEADLINE_RESERVE_EVERY) * GP_MS;

	if (d->background && every_ns > view->starve_limit_ns / 2 / d->background)
		every_ns = view->starve_limit_ns / 2 / d->background;
	every_ns = gp_most(every_ns, gp_reserve_apart_ns(view));
	return (struct reserve){every_ns, every_ns * permille / 1000 - 2 * change_ns};
}

/*
 * The reserve is one job in each period. Time that the background gets while no job waits counts
 * towards it. If that was enough, the next job of the reserve begins one period from now.
 */
static void note_background(const struct gp_view *view, struct reserve *r)
{
	struct gp_deadline_device *d = view->state->device;
	uint64_t had_ns = d->background_chosen ? view->now_ns - d->last_ns : 0;
	uint64_t pending_ns = had_ns < d->pending_ns ? had_ns : d->pending_ns;

	d->pending_ns -= pending_ns;
	d->got_ns += had_ns - pending_ns;
	d->turn_got_ns += had_ns - pending_ns;
	*r = size_reserve(view);
	if (!d->background) {
		d->from_ns = view->now_ns;
		d->got_ns = 0;
	} else if (d->got_ns >= r->run_ns) {
		d->from_ns = view->now_ns < d->from_ns
				     ? view->now_ns + r->every_ns
				     : gp_most(d->from_ns + r->every_ns, view->now_ns);
		d->got_ns = 0;
	}
	d->reserve =
		(struct gp_job){.waits = d->jobs && d->background && view->now_ns >= d->from_ns,
				.due_ns = d->from_ns + r->every_ns,
				.left_ns = r->run_ns - d->got_ns,
				.within_ns = r->every_ns};
}

/* A turn lasts until its entity has had some device time. Returns whether the background takes
 * turns. */
static bool rotate_background(const struct gp_view *view, uint32_t user_held,
			      const struct reserve *r, struct gp_plan *plan)
{
	struct gp_deadline_device *d = view->state->device;
	struct gp_rotation_rules rules = {
		.room = gp_room_for_holds(view, user_held),
		.quantum_ns = gp_param(view, GP_DEADLINE_QUANTUM) * GP_MS,
	};
	uint64_t had_turn = d->rotation.current;
	bool rotates;

	if (d->turn_got_ns < r->run_ns && d->rotation.ends_ns <= view->now_ns)
		d->rotation.ends_ns = view->now_ns + 1;
	rotates = gp_rotate(view, &d->rotation, &rules, plan);
	if (d->rotation.current != had_turn)
		d->turn_got_ns = 0;
	return rotates;
}

/*
 * The holds: all entities but the chosen one are held. A released task that becomes active gets on
 * the device and stays until a hold is in force. So once an entity waits, idle entities are held,
 * too, until no job is left. One call to the driver holds them all. A request without competition
 * costs no call.
 *
 * Idle background entities are always held in this way. Idle entities with a promise are held only
 * if the hardware shares by slices. On other devices every call stops the device, and one more call
 * to release them would cost more than it saves (demand.c).
 */

/* Whether the chosen entity is not released yet. Then no other call should delay its release. */
static bool release_pending(const struct gp_view *view, const struct gp_deadline_device *d)
{
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].id == d->chosen)
			return view->task[i].known & GP_KNOWN_HELD && view->task[i].held;
	return false;
}

/* Records whether an entity has waited since the last tick without jobs. */
static void note_crowd(const struct gp_view *view)
{
	struct gp_deadline_device *d = view->state->device;

	d->crowded = d->crowded && d->jobs;
	for (uint32_t i = 0; i < view->n && d->jobs; i++)
		d->crowded |= gp_deadline_entity(view, i)->busy && view->task[i].id != d->chosen;
}

static bool is_kept_out(const struct gp_view *view, uint32_t i, bool pending)
{
	const struct gp_deadline_device *d = view->state->device;
	const struct gp_deadline_entity *e = gp_deadline_entity(view, i);

	return d->crowded && e->entity.members && !e->entity.user_held &&
	       (e->entity.policy_held || !pending) &&
	       (e->promised ? view->slice_default_us : !d->background_chosen);
}

static bool runs_on(const struct gp_view *view, uint32_t i)
{
	const struct gp_deadline_device *d = view->state->device;
	bool had_it = d->background_before && gp_is_background(view, i) &&
		      !gp_deadline_entity(view, i)->entity.policy_held;

	return gp_runs_on(view, d->request_marks) && (had_it || view->task[i].id == d->before);
}

static bool must_wait(const struct gp_view *view, uint32_t i, bool pending, bool rotates)
{
	const struct gp_deadline_device *d = view->state->device;
	const struct gp_deadline_entity *e = gp_deadline_entity(view, i);

	if (view->task[i].id == d->chosen)
		return false;
	if (!e->busy)
		return is_kept_out(view, i, pending);
	if (pending && runs_on(view, i))
		return false;
	if (d->background_chosen && gp_is_background(view, i))
		return rotates && e->entity.rotating && view->task[i].id != d->rotation.current;
	return d->chosen || d->background_chosen;
}

/* Used if the device cannot hold all entities that must wait. Entities that are held already come
 * first, so that a tick makes no unnecessary change. Among equals the background comes before jobs.
 * Idle entities are not held. */
static void hold_in_rounds(const struct gp_view *view, bool rotates, uint32_t room,
			   struct gp_plan *plan)
{
	for (unsigned k = 0; k < 4 * view->n; k++) {
		uint32_t i = k % view->n;
		const struct gp_deadline_entity *e = gp_deadline_entity(view, i);
		unsigned round =
			(e->entity.policy_held ? 0u : 2u) + (gp_is_background(view, i) ? 0u : 1u);

		if (k / view->n != round || !must_wait(view, i, false, rotates))
			continue;
		plan->task[i].want = !e->busy || e->entity.members > room ? GP_RUN : GP_HOLD;
		if (plan->task[i].want == GP_HOLD)
			room -= e->entity.members;
	}
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			plan->task[i].want = plan->task[view->task[i].gang].want;
}

/* Fills in which tasks are held. `rotates`: the background takes turns. */
static void plan_holds(const struct gp_view *view, uint32_t user_held, bool rotates,
		       struct gp_plan *plan)
{
	struct gp_deadline_device *d = view->state->device;
	uint32_t room = gp_room_for_holds(view, user_held), held = 0;
	bool pending = release_pending(view, d);

	note_crowd(view);
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_deadline_entity *e = gp_deadline_entity(view, t->gang);
		bool waits;

		if (t->class == GP_UNMANAGED)
			continue;
		waits = must_wait(view, t->gang, pending, rotates);
		held += waits;
		plan->task[i].want = waits ? GP_HOLD : GP_RUN;
		plan->task[i].refused = t->deadline_ns && !e->promised;
		plan->task[i].overran = t->deadline_ns && e->promised && e->overran;
	}
	if (held > room)
		hold_in_rounds(view, rotates, room, plan);
}

/* The plan. */

uint32_t gp_earliest_due(const struct gp_view *view, uint32_t current)
{
	uint32_t best = current;

	for (uint32_t i = 0; i <= view->n; i++) {
		const struct gp_job *job = gp_job_of(view, i);

		if (job && (best == UINT32_MAX || job->due_ns < gp_job_of(view, best)->due_ns))
			best = i;
	}
	return best;
}

static uint32_t find_current(const struct gp_view *view)
{
	const struct gp_deadline_device *d = view->state->device;

	if (d->background_chosen)
		return gp_job_of(view, view->n) ? view->n : UINT32_MAX;
	for (uint32_t i = 0; i < view->n && d->chosen; i++)
		if (view->task[i].id == d->chosen)
			return gp_job_of(view, i) ? i : UINT32_MAX;
	return UINT32_MAX;
}

/* Hands the device over. If the background had it, the background runs on until it is held, and
 * this time counts against its reserve. */
static void move(const struct gp_view *view, struct gp_deadline_device *d, uint64_t id,
		 bool background)
{
	if (d->background_chosen)
		d->got_ns += view->hold_cost_ns + view->release_cost_ns;
	if (background) /* jobs that interrupt it pay the rest of the handover */
		d->pending_ns = view->release_cost_ns + gp_full_switch_ns(view) +
				(d->jobs && d->chosen ? view->hold_cost_ns : 0);
	d->cuts++;
	d->before = d->chosen;
	d->background_before = d->background_chosen;
	d->chosen = id;
	d->background_chosen = background;
}

static void choose(const struct gp_view *view, const struct gp_deadline_rules *rules,
		   struct gp_plan *plan)
{
	struct gp_deadline_device *d = view->state->device;
	uint32_t chosen = d->jobs ? rules->pick(view, find_current(view), plan) : view->n;
	bool background = chosen == view->n && d->background;
	uint64_t id = chosen < view->n ? view->task[chosen].id : 0;

	if (id != d->chosen || background != d->background_chosen)
		move(view, d, id, background);
	if (chosen < view->n) {
		const struct gp_deadline_entity *e = gp_deadline_entity(view, chosen);

		tick_in(view, plan, gp_less(allowed_ns(view, e), e->used_ns) + 1);
	} else if (background && d->jobs) {
		tick_in(view, plan, d->pending_ns + d->reserve.left_ns);
	}
	if (d->jobs && d->background && d->from_ns > view->now_ns)
		tick_in(view, plan, d->from_ns - view->now_ns);
}

int gp_deadline_decide(const struct gp_view *view, const struct gp_deadline_rules *rules,
		       struct gp_plan *plan)
{
	struct gp_deadline_device *d = view->state->device;
	uint32_t user_held = gp_entities_gather(view);
	struct reserve reserve;
	bool rotates;

	gp_admission_gather(view);
	for (uint32_t i = 0; i < view->n; i++)
		note_job(view, i);
	gp_admission_decide(view, rules);
	survey(view);
	note_background(view, &reserve);
	rotates = rotate_background(view, user_held, &reserve, plan);
	choose(view, rules, plan);
	plan_holds(view, user_held, rotates, plan);
	if (d->unannounced)
		tick_in(view, plan, gp_late_ns(view));
	if (rotates && d->background_chosen)
		gp_plan_wake_at(plan, gp_most(d->rotation.ends_ns,
					      view->now_ns + d->pending_ns +
						      gp_less(reserve.run_ns, d->turn_got_ns)));
	d->last_ns = view->now_ns;
	return 0;
}

void gp_deadline_task_out(const struct gp_policy_state *state, const struct gp_task_view *task,
			  void *task_state)
{
	struct gp_deadline_device *d = state->device;

	(void)task;
	(void)task_state;
	d->ask_again = true;
}
