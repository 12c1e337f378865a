/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * priority with slices: the hardware arbitrates. This file decides which task has the tiny slice,
 * which of the busy best-effort tasks has the turn, and when an aging window opens although
 * latency-critical tasks want the device.
 */
#include "policy/priority/priority.h"

/* Counts of tasks that are not latency-critical and not held, and so may be running. */
struct released {
	uint32_t runnable; /* active, or of unknown activity */
	uint32_t all;
	uint32_t task;      /* index of the last runnable task; the only one if runnable == 1 */
	uint32_t idle_task; /* index of the last task; the only one if all == 1 */
	uint32_t be;        /* best-effort tasks in `runnable`; all others are unmanaged */
	bool idle_be;       /* a released best-effort task makes no progress */
	bool starving;      /* a best-effort entity is starving */
	bool blind;         /* the run time of a best-effort task was never known */
};

/*
 * Returns by how much the run time has grown, and in which time. False: the run time has not grown
 * or is not known.
 */
static bool take_growth(const struct gp_view *view, const struct gp_task_view *t,
			struct gp_priority_task *p, uint64_t *ran_ns, uint64_t *in_ns)
{
	if (!p->run_at_ns)
		p->run_at_ns = view->now_ns;
	*ran_ns = t->run_ns - p->run_ns;
	*in_ns = view->now_ns - p->run_at_ns;
	if (!(t->known & GP_KNOWN_RUN) || !*ran_ns)
		return false;
	p->run_ns = t->run_ns;
	p->run_at_ns = view->now_ns;
	return true;
}

/*
 * Records when best-effort work had the device, as far as run times show it. Run time is not always
 * progress. A task with the tiny slice that runs in each gap of a busy service is preempted as soon
 * as its state is restored. Measured on an H200, such a task finishes nothing; in the model it runs
 * for up to 9 % of the time. Therefore:
 *
 *   - best-effort work as a whole had the device if a task ran for 1 ms, or 1/128 of the time;
 *   - an entity makes progress if a task of it ran for 20 ms, or 1/8 of the time.
 */
static void note_run(const struct gp_view *view, uint32_t i)
{
	struct gp_priority_device *d = view->state->device;
	struct gp_priority_task *p = gp_policy_task(view, i);
	struct gp_priority_task *first = gp_policy_task(view, view->task[i].gang);
	const struct gp_task_view *t = &view->task[i];
	uint64_t ran_ns, in_ns;
	bool grew = take_growth(view, t, p, &ran_ns, &in_ns);

	p->run_seen |= (t->known & GP_KNOWN_RUN) != 0;
	if (grew && (ran_ns >= GP_MS || ran_ns >= in_ns / 128)) {
		d->got_ns = view->now_ns;
		first->got_ns = view->now_ns;
	}
	if (gp_seen_idle(t) || !first->got_ns)
		first->got_ns = view->now_ns;
	if (gp_seen_idle(t) || !first->progress_ns ||
	    (grew && (ran_ns >= 20 * GP_MS || ran_ns >= in_ns / 8)))
		first->progress_ns = view->now_ns;
}

/* An entity is starving if it made no progress for clearly longer than it waits for its turn
 * anyway. Other entities may have made progress. */
static bool is_starving(const struct gp_view *view, const struct gp_rotation *rotation,
			const struct gp_priority_task *p)
{
	uint64_t long_ns = rotation->round_ns + view->starve_limit_ns / 8;

	long_ns = gp_most(long_ns, view->starve_limit_ns / 4);
	return p->entity.members && !p->entity.idle && !p->entity.user_held && !p->entity.barred &&
	       p->entity.class == GP_BEST_EFFORT && view->now_ns - p->progress_ns >= long_ns;
}

/* Whether the task has been released long enough for a sample to show run time, but no sample
 * did. */
static bool gets_nothing(const struct gp_view *view, uint32_t i)
{
	const struct gp_priority_task *p = gp_policy_task(view, i);
	const struct gp_priority_task *first = gp_policy_task(view, view->task[i].gang);
	const struct gp_task_view *t = &view->task[i];
	uint64_t released_ns = view->now_ns - p->released_ns, got_ns = view->now_ns - first->got_ns;
	uint64_t long_ns = param_ns(view, GP_PRIORITY_AGE_AFTER) + view->sample_period_ns;

	if (!p->run_seen || !released_ns || ((t->known & GP_KNOWN_HELD) && t->held))
		return false;
	return released_ns >= view->sample_period_ns &&
	       (got_ns >= released_ns || got_ns >= long_ns);
}

static struct released find_released(const struct gp_view *view, const struct gp_plan *plan)
{
	struct gp_priority_device *d = view->state->device;
	struct released r = {0};

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		struct gp_priority_task *p = gp_policy_task(view, i);

		if (t->class == GP_BEST_EFFORT) {
			note_run(view, i);
			r.starving |= is_starving(view, &d->rotation, p);
		}
		if (t->class == GP_LATENCY_CRITICAL || plan->task[i].want == GP_HOLD ||
		    (t->held_by & GP_HELD_BY_USER)) {
			p->released_ns = 0;
			continue;
		}
		if (!p->released_ns)
			p->released_ns = view->now_ns;
		r.all++;
		r.idle_task = i;
		if (gp_seen_idle(t))
			continue;
		r.runnable++;
		r.task = i;
		if (t->class != GP_BEST_EFFORT)
			continue;
		r.be++;
		r.blind |= !p->run_seen;
		r.idle_be |= gets_nothing(view, i);
	}
	if (!r.be || !d->got_ns)
		d->got_ns = view->now_ns;
	return r;
}

/* Whether it is time for an aging window. */
static bool is_due(const struct gp_view *view, const struct released *r, struct gp_plan *plan)
{
	struct gp_priority_device *d = view->state->device;
	uint64_t from_ns = d->got_ns > d->aged_ns ? d->got_ns : d->aged_ns;
	uint64_t after_ns = param_ns(view, GP_PRIORITY_AGE_AFTER),
		 blind_ns = param_ns(view, GP_PRIORITY_AGE_BLIND);
	uint64_t due_ns = UINT64_MAX;

	if (r->idle_be)
		due_ns = from_ns + after_ns + view->sample_period_ns; /* a sample may be this old */
	/* If run time is unknown or a task starves, windows are rare (age_blind), because the run
	 * time may only not have been observed. But each entity must get its window before the
	 * starvation limit. */
	if (r->starving && blind_ns > view->starve_limit_ns / 4 / (d->rotation.entities + 1))
		blind_ns = view->starve_limit_ns / 4 / (d->rotation.entities + 1);
	if (blind_ns < after_ns)
		blind_ns = after_ns;
	if ((r->blind || r->starving) && d->aged_ns + blind_ns < due_ns)
		due_ns = d->aged_ns + blind_ns;
	if (view->now_ns >= due_ns)
		return true;
	gp_plan_wake_at(plan, due_ns);
	return false;
}

/*
 * Gives up turns for a while, so that the hardware shares the device among all tasks. That is
 * needed if services never pause and there are too many entities to give each an aging window
 * before the first one starves.
 */
static void give_up_turns(const struct gp_view *view, struct gp_priority_device *d,
			  const struct released *r)
{
	if (r->starving && d->rotation.entities * d->age_ns > view->starve_limit_ns)
		d->share_until_ns = view->now_ns + view->starve_limit_ns;
}

/* Opens and closes the aging window, in which the hardware shares as if there were no classes.
 * `opens` is set at the tick at which it opens. */
static bool is_aging(const struct gp_view *view, const struct released *r, struct gp_plan *plan,
		     bool *opens)
{
	struct gp_priority_device *d = view->state->device;

	if (!d->aged_ns)
		d->aged_ns = view->now_ns;
	if (d->age_until_ns && view->now_ns >= d->age_until_ns) {
		d->age_until_ns = 0;
		d->aged_ns = view->now_ns;
	}
	*opens = !d->age_until_ns && is_due(view, r, plan);
	if (*opens) {
		d->age_from_ns = view->now_ns;
		d->age_until_ns = view->now_ns + d->age_ns;
	}
	if (!d->age_until_ns)
		return false;
	gp_plan_wake_at(plan, d->age_until_ns);
	return true;
}

/* An aging window begins when the release is in force, not when it was requested. */
static void wait_for_release(const struct gp_view *view, struct gp_priority_device *d)
{
	if (!d->age_until_ns || view->now_ns >= d->age_from_ns + 10 * d->age_ns)
		return;
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];

		if (view->task[t->gang].id != d->rotation.current || !(t->known & GP_KNOWN_HELD) ||
		    !t->held)
			continue;
		d->age_until_ns = view->now_ns + d->age_ns;
		d->rotation.ends_ns = gp_most(d->rotation.ends_ns, d->age_until_ns);
	}
}

static bool rotate_best_effort(const struct gp_view *view, uint32_t user_held, uint32_t lc,
			       struct gp_plan *plan)
{
	struct gp_priority_device *d = view->state->device;
	/*
	 * A new process, whose activity is not known yet, would keep the tiny slice from all other
	 * tasks. If there are latency-critical tasks, the new process waits for its turn. If not,
	 * the hardware shares until its activity is known.
	 */
	struct gp_rotation_rules rules = {
		.classes_apply = true,
		.unknown_joins = lc > 0,
		.room = gp_room_for_holds(view, user_held),
		.quantum_ns = param_ns(view, GP_PRIORITY_QUANTUM),
		.age_after_ns = param_ns(view, GP_PRIORITY_AGE_AFTER),
		.age_run_ns = param_ns(view, GP_PRIORITY_AGE_RUN),
	};

	if (view->now_ns < d->share_until_ns) {
		d->rotation.current = 0;
		return false;
	}
	if (!(view->caps & GP_CAP_HOLD) || !gp_rotate(view, &d->rotation, &rules, plan))
		return false;
	gp_plan_wake_at(plan, d->rotation.ends_ns);
	return true;
}

static void plan_turns(const struct gp_view *view, bool rotates, struct gp_plan *plan)
{
	const struct gp_priority_device *d = view->state->device;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_entity *e = gp_entity_of(view, i);
		bool current = view->task[view->task[i].gang].id == d->rotation.current;

		bool waits = rotates && e->rotating && !current;

		if (view->task[i].class != GP_UNMANAGED)
			plan->task[i].want = e->barred || waits ? GP_HOLD : GP_RUN;
	}
}

static uint64_t last_progress(const struct gp_priority_task *p)
{
	return p->progress_ns > p->aging_turn_ns ? p->progress_ns : p->aging_turn_ns;
}

/* Gives the turn in an aging window to the entity with the oldest progress. Otherwise the same
 * entity might have the turn in each window by chance. */
static void give_longest_waiting_turn(const struct gp_view *view, struct gp_plan *plan)
{
	struct gp_priority_device *d = view->state->device;
	struct gp_priority_task *longest_waiting = NULL;
	uint32_t index = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_priority_task *p = gp_policy_task(view, i);

		if (p->entity.rotating &&
		    (!longest_waiting || last_progress(p) < last_progress(longest_waiting))) {
			longest_waiting = p;
			index = i;
		}
	}
	if (!longest_waiting)
		return;
	longest_waiting->aging_turn_ns = view->now_ns;
	if (view->task[index].id != d->rotation.current)
		gp_rotation_take(view, &d->rotation, index, d->age_ns);
	else if (d->rotation.ends_ns < view->now_ns + d->age_ns)
		d->rotation.ends_ns = view->now_ns + d->age_ns; /* its turn was about to end */
	plan_turns(view, true, plan);
}

/* In an aging window all managed tasks have the same slice. */
static void set_aging_slices(const struct gp_view *view, struct gp_plan *plan)
{
	for (uint32_t i = 0; i < view->n; i++)
		if (plan->task[i].want == GP_RUN)
			plan->task[i].slice_us = gp_slice_param(view, GP_PRIORITY_AGE_SLICE);
}

/* A latency-critical task has the long slice only if all its competitors are best-effort. Other
 * latency-critical or unmanaged tasks would have to wait for the end of that slice. */
static void set_slices(const struct gp_view *view, const struct released *r, uint32_t lc,
		       struct gp_plan *plan)
{
	bool alone = lc == 1 && r->runnable == r->be;
	uint32_t lc_slice =
		gp_slice_param(view, alone ? GP_PRIORITY_LC_SLICE : GP_PRIORITY_LC_SHARED_SLICE);
	uint32_t chosen = UINT32_MAX;

	if (r->runnable == 1)
		chosen = r->task;
	else if (r->runnable == 0 && r->all == 1)
		chosen = r->idle_task; /* so that it has the tiny slice when it becomes active */
	if (chosen != UINT32_MAX && view->task[chosen].class == GP_BEST_EFFORT)
		plan->task[chosen].slice_us = gp_slice_param(view, GP_PRIORITY_TINY_SLICE);
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class == GP_LATENCY_CRITICAL)
			plan->task[i].slice_us = lc_slice;
}

void gp_priority_by_slices(const struct gp_view *view, uint32_t user_held, uint32_t lc,
			   struct gp_plan *plan)
{
	struct gp_priority_device *d = view->state->device;
	bool rotates, aging, opens;
	struct released r;

	wait_for_release(view, d);
	rotates = rotate_best_effort(view, user_held, lc, plan);
	plan_turns(view, rotates, plan);
	r = find_released(view, plan);
	if (!lc) {
		d->age_until_ns = 0;
		return; /* no latency-critical task: hardware slices are used */
	}
	d->age_ns = aging_ns(view, lc + r.all, gp_slice_param(view, GP_PRIORITY_AGE_SLICE));
	give_up_turns(view, d, &r);
	aging = is_aging(view, &r, plan, &opens);
	if (opens && rotates) {
		give_longest_waiting_turn(view, plan);
		r = find_released(view, plan);
		gp_plan_wake_at(plan, d->rotation.ends_ns);
	}
	if (aging)
		set_aging_slices(view, plan);
	else
		set_slices(view, &r, lc, plan);
}
