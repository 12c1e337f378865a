/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs, the background and the plan of `edf` and `lax`: see deadline.h. */
#include "policy/deadline/deadline.h"

#define RHYTHM_JOBS 16 /* so many show how often a unit's requests come */

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* ---- jobs ---- */

/*
 * Requests may come closer together than a deadline. The average of some of them is taken, because
 * one that was late makes the distance to the next one short; half of what jitter does to it is
 * off. When they come as far apart as the deadline again, that is the period again: one burst is
 * no reason to be refused for ever.
 */
static void note_rhythm(const struct gp_policy_state *state, struct gp_deadline_entity *u,
                        uint64_t begin_ns)
{
	struct gp_deadline_device *d = state->device;
	uint64_t blur_ns = u->asked.jitter_ns / (RHYTHM_JOBS / 2);
	uint64_t mean_ns;

	if (u->jobs++ % RHYTHM_JOBS)
		return;
	mean_ns = (begin_ns - u->jobs_from_ns) / RHYTHM_JOBS;
	u->jobs_from_ns = begin_ns;
	if (u->jobs == 1)
		return;
	if (mean_ns >= u->asked.deadline_ns && u->period_ns < u->asked.deadline_ns) {
		u->period_ns = u->asked.deadline_ns;
		d->ask_again = true;
	}
	if (mean_ns + blur_ns >= u->period_ns || mean_ns <= blur_ns)
		return;
	u->period_ns = mean_ns - blur_ns;
	u->nominal_ns = 0;
	u->had_promise |= u->promised; /* it is asked anew, with what it really needs */
	u->promised = false;
	d->ask_again = true;
}

static void begin_job(const struct gp_view *view, const struct gp_policy_state *state,
                      struct gp_deadline_entity *u)
{
	struct gp_deadline_device *d = state->device;
	uint64_t jitter_ns = u->asked.jitter_ns, begin_ns = view->now_ns;

	/* What was there before the first look, or was lost from sight, begins now. */
	if (u->since_ns < begin_ns && d->last_ns)
		begin_ns = later(u->since_ns, d->last_ns);
	note_rhythm(state, u, begin_ns);
	u->nominal_ns = u->nominal_ns
	                        ? later(less(begin_ns, jitter_ns), u->nominal_ns + u->period_ns)
	                        : less(begin_ns, jitter_ns);
	u->job = (struct gp_job){
		.waits = true,
		.due_ns = later(u->nominal_ns, begin_ns) + u->asked.within_ns - jitter_ns,
		.within_ns = u->asked.deadline_ns,
	};
	u->overran = false;
	u->run_from_ns = u->run_ns;
	u->used_ns = 0;
	u->cuts_before = d->cuts++; /* it may get on the device before it is held */
}

/* A job that was cut short gets its budget all the same: each time costs it a moment to be back.
 * Where having been chosen counts, so does waiting for a call that was on its way before. */
static uint64_t allowed_ns(const struct gp_view *view, const struct gp_policy_state *state,
                           const struct gp_deadline_entity *u)
{
	const struct gp_deadline_device *d = state->device;
	uint64_t cuts = d->cuts - u->cuts_before;

	if (u->run_known)
		return u->asked.need_ns + cuts * gp_refill_ns(view);
	return u->asked.need_ns + cuts * u->asked.change_ns +
	       later(view->hold_cost_ns, view->release_cost_ns);
}

/* Where nobody measures run time, having been chosen counts as running. */
static void note_use(const struct gp_view *view, const struct gp_policy_state *state,
                     struct gp_deadline_entity *u, bool chosen)
{
	const struct gp_deadline_device *d = state->device;

	if (u->run_known)
		u->used_ns = less(u->run_ns, u->run_from_ns);
	else if (chosen)
		u->used_ns += view->now_ns - d->last_ns;
	u->job.left_ns = less(u->asked.need_ns, u->used_ns);
	if (u->used_ns > allowed_ns(view, state, u))
		u->overran = true;
}

/* Neither seen active nor idle: nobody knows, and what was stays. */
static void note_job(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i)
{
	const struct gp_deadline_device *d = state->device;
	struct gp_deadline_entity *u = gp_deadline_entity(state, i);
	bool chosen = d->chosen == view->task[i].id;

	if (!u->has_asked)
		return;
	if (!u->busy || !u->asked.seen) {
		u->job.waits = false;
		u->overran = false;
		return;
	}
	if (u->entity.active &&
	    (!u->job.waits || (u->since_ns != UINT64_MAX && u->since_ns > u->seen_ns)))
		begin_job(view, state, u);
	else if (u->job.waits)
		note_use(view, state, u, chosen);
	if (u->job.waits)
		u->job.left_ns = less(u->asked.need_ns, u->used_ns);
	if (u->entity.active)
		u->seen_ns = view->now_ns;
}

/*
 * Who was not seen to work gets no turn for it: it may run beside whoever has one, and is seen if
 * it does. Where nothing is ever seen all take turns, but not services that have not said a word:
 * most of the time a service does nothing.
 */
static bool takes_turns(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i)
{
	const struct gp_deadline_entity *u = gp_deadline_entity(state, i);

	return gp_is_background(view, state, i) &&
	       (u->entity.active || u->entity.rotating || !u->has_asked);
}

/* Who wants the device: jobs, and how many without. To the rotation, all but some of those are
 * idle. */
static void survey(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct gp_deadline_device *d = state->device;

	d->jobs = d->unannounced = d->request_marks = false;
	d->background = 0;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_deadline_entity *u = gp_deadline_entity(state, i);
		bool background = gp_is_background(view, state, i);

		d->jobs |= u->busy && !background;
		d->request_marks |= u->promised && u->told;
		d->unannounced |= u->promised && !u->told && !(view->caps & GP_CAP_EVENTS);
		d->background += background && !u->entity.idle;
		u->entity.idle |= !takes_turns(view, state, i);
	}
}

/* ---- the background ---- */

struct reserve {
	uint64_t every_ns; /* within this time ... */
	uint64_t run_ns;   /* ... the background has the device so long */
};

/* Each unit of the background must be reached well within the starvation limit, one at a time. */
static struct reserve size_reserve(const struct gp_view *view, const struct gp_policy_state *state)
{
	const struct gp_deadline_device *d = state->device;
	uint64_t permille = (uint64_t)state->param[GP_DEADLINE_RESERVE],
		 change_ns = gp_change_cost_ns(view);
	uint64_t every_ns = (uint64_t)state->param[GP_DEADLINE_RESERVE_EVERY] * GP_MS;

	if (d->background && every_ns > view->starve_limit_ns / 2 / d->background)
		every_ns = view->starve_limit_ns / 2 / d->background;
	every_ns = later(every_ns, gp_reserve_apart_ns(view, state));
	return (struct reserve){every_ns, every_ns * permille / 1000 - 2 * change_ns};
}

/*
 * The reserve is one job in each period. What the background gets while nobody else wants the
 * device counts: had it enough, its next job begins a period from now.
 */
static void note_background(const struct gp_view *view, const struct gp_policy_state *state,
                            struct reserve *r)
{
	struct gp_deadline_device *d = state->device;
	uint64_t had_ns = d->background_chosen ? view->now_ns - d->last_ns : 0;
	uint64_t on_way_ns = had_ns < d->on_way_ns ? had_ns : d->on_way_ns;

	d->on_way_ns -= on_way_ns;
	d->got_ns += had_ns - on_way_ns;
	d->turn_got_ns += had_ns - on_way_ns;
	*r = size_reserve(view, state);
	if (!d->background) {
		d->from_ns = view->now_ns;
		d->got_ns = 0;
	} else if (d->got_ns >= r->run_ns) {
		d->from_ns = view->now_ns < d->from_ns
		                     ? view->now_ns + r->every_ns
		                     : later(d->from_ns + r->every_ns, view->now_ns);
		d->got_ns = 0;
	}
	d->reserve =
		(struct gp_job){.waits = d->jobs && d->background && view->now_ns >= d->from_ns,
	                        .due_ns = d->from_ns + r->every_ns,
	                        .left_ns = r->run_ns - d->got_ns,
	                        .within_ns = r->every_ns};
}

/* A turn lasts until its unit had something of it. Returns whether they take turns. */
static bool rotate_background(const struct gp_view *view, const struct gp_policy_state *state,
                              uint32_t user_held, const struct reserve *r, struct gp_plan *plan)
{
	struct gp_deadline_device *d = state->device;
	struct gp_rotation_rules rules = {
		.room = user_held < view->max_held ? view->max_held - user_held : 0,
		.quantum_ns = (uint64_t)state->param[GP_DEADLINE_QUANTUM] * GP_MS,
	};
	uint64_t had_turn = d->rotation.current;
	bool rotates;

	if (d->turn_got_ns < r->run_ns && d->rotation.ends_ns <= view->now_ns)
		d->rotation.ends_ns = view->now_ns + 1;
	rotates = gp_rotate(view, state, &d->rotation, &rules, plan);
	if (d->rotation.current != had_turn)
		d->turn_got_ns = 0;
	return rotates;
}

/* ---- the plan ---- */

uint32_t gp_earliest_due(const struct gp_view *view, const struct gp_policy_state *state,
                         uint32_t current)
{
	uint32_t best = current;

	for (uint32_t i = 0; i <= view->n; i++) {
		const struct gp_job *job = gp_job_of(view, state, i);

		if (job &&
		    (best == UINT32_MAX || job->due_ns < gp_job_of(view, state, best)->due_ns))
			best = i;
	}
	return best;
}

static uint32_t find_current(const struct gp_view *view, const struct gp_policy_state *state)
{
	const struct gp_deadline_device *d = state->device;

	if (d->background_chosen)
		return gp_job_of(view, state, view->n) ? view->n : UINT32_MAX;
	for (uint32_t i = 0; i < view->n && d->chosen; i++)
		if (view->task[i].id == d->chosen)
			return gp_job_of(view, state, i) ? i : UINT32_MAX;
	return UINT32_MAX;
}

/* The background works on until it is held, which counts: so it pays for that itself. */
static void move(const struct gp_view *view, struct gp_deadline_device *d, uint64_t id,
                 bool background)
{
	if (d->background_chosen)
		d->got_ns += view->hold_cost_ns + view->release_cost_ns;
	if (background) /* no more than jobs pay for when they interrupt it: what it has, counts */
		d->on_way_ns = view->release_cost_ns + gp_full_switch_ns(view) +
		               (d->jobs && d->chosen ? view->hold_cost_ns : 0);
	d->cuts++;
	d->before = d->chosen;
	d->background_before = d->background_chosen;
	d->chosen = id;
	d->background_chosen = background;
}

static void choose(const struct gp_view *view, const struct gp_policy_state *state,
                   const struct gp_deadline_rules *rules, struct gp_plan *plan)
{
	struct gp_deadline_device *d = state->device;
	uint32_t chosen =
		d->jobs ? rules->pick(view, state, find_current(view, state), plan) : view->n;
	bool background = chosen == view->n && d->background;
	uint64_t id = chosen < view->n ? view->task[chosen].id : 0;

	if (id != d->chosen || background != d->background_chosen)
		move(view, d, id, background);
	if (chosen < view->n) {
		const struct gp_deadline_entity *u = gp_deadline_entity(state, chosen);

		tick_in(view, plan, less(allowed_ns(view, state, u), u->used_ns) + 1);
	} else if (background && d->jobs) {
		tick_in(view, plan, d->on_way_ns + d->reserve.left_ns);
	}
	if (d->jobs && d->background && d->from_ns > view->now_ns)
		tick_in(view, plan, d->from_ns - view->now_ns);
}

int gp_deadline_decide(const struct gp_view *view, const struct gp_policy_state *state,
                       const struct gp_deadline_rules *rules, struct gp_plan *plan)
{
	struct gp_deadline_device *d = state->device;
	uint32_t user_held = gp_entities_gather(view, state);
	struct reserve reserve;
	bool rotates;

	gp_admission_gather(view, state);
	for (uint32_t i = 0; i < view->n; i++)
		note_job(view, state, i);
	gp_admission_decide(view, state, rules);
	survey(view, state);
	note_background(view, state, &reserve);
	rotates = rotate_background(view, state, user_held, &reserve, plan);
	choose(view, state, rules, plan);
	gp_deadline_holds(view, state, user_held, rotates, plan);
	if (d->unannounced)
		tick_in(view, plan, gp_late_ns(view, state));
	if (rotates && d->background_chosen)
		gp_plan_wake_at(plan, later(d->rotation.ends_ns,
		                            view->now_ns + d->on_way_ns +
		                                    less(reserve.run_ns, d->turn_got_ns)));
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
