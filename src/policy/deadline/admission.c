/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: what each entity asks for, what it would cost, and which entities have a promise. An
 * entity gets a promise if demand.c finds that all promises can still be kept. Entities are tested
 * in the order of their arrival. Those that had a promise and changed their attributes come first.
 *
 * At first the period of an entity is its deadline. If its last 16 jobs came closer together on
 * average, that average becomes the period and admission is repeated. A longer period makes no
 * difference.
 */
#include "policy/deadline/deadline.h"

/*
 * Whether the policy learns at once that a request begins. A sample shows only the past. On a
 * device that offers only samples, an entity can get a promise after its first request mark.
 */
static bool is_seen_in_time(const struct gp_view *view, const struct gp_deadline_entity *e)
{
	return e->marked || gp_tells_in_time(view->caps, view->sample_period_ns);
}

static uint64_t jitter_of(const struct gp_view *view, const struct gp_deadline_entity *e)
{
	uint64_t jitter_ns = gp_param(view, GP_DEADLINE_JITTER) * 1000;

	jitter_ns =
		gp_least(jitter_ns, e->asks.deadline_ns / 64) + (e->marked ? 0 : view->notice_ns);
	return gp_least(jitter_ns, e->asks.within_ns / 2);
}

/* The time that a job needs. The members of a gang run together. If the hardware runs them by
 * slices, the switches between members cost time. */
static uint64_t need_of(const struct gp_view *view, const struct gp_deadline_entity *e)
{
	uint64_t slice_ns = view->slice_default_us * 1000ull, turns = e->entity.members;

	if (e->entity.members < 2)
		return e->asks.budget_ns;
	if (slice_ns)
		turns += e->asks.budget_ns / slice_ns;
	return e->asks.budget_ns + turns * gp_full_switch_ns(view);
}

static void add_member(struct gp_deadline_entity *e, const struct gp_task_view *t, bool fresh)
{
	bool marked = t->known & GP_KNOWN_REQUEST;

	/* A request with marks has the device from begin to end, including gaps between kernels.
	 * Its run time does not include the gaps. */
	e->marked &= marked;
	e->run_known &=
		fresh && !marked && t->known & GP_KNOWN_RUN && t->run_source == GP_RUN_MEASURED;
	e->run_ns += t->run_ns;
	if (gp_seen_active(t) && t->known & GP_KNOWN_ACTIVE_SINCE)
		e->since_ns = gp_least(e->since_ns, t->active_since_ns);
	if (t->deadline_ns && (!e->asks.deadline_ns || t->deadline_ns < e->asks.deadline_ns))
		e->asks.deadline_ns = gp_least(t->deadline_ns, GP_TIME_CAP);
	/* If one member declares no budget, the sum is meaningless. */
	if (!t->budget_ns || e->asks.budget_ns == UINT64_MAX)
		e->asks.budget_ns = UINT64_MAX;
	else
		e->asks.budget_ns += gp_least(t->budget_ns, GP_TIME_CAP);
}

static bool is_same(const struct gp_asked *a, const struct gp_asked *b)
{
	return a->seen == b->seen && a->deadline_ns == b->deadline_ns &&
	       a->within_ns == b->within_ns && a->budget_ns == b->budget_ns &&
	       a->jitter_ns == b->jitter_ns && a->change_ns == b->change_ns &&
	       a->late_ns == b->late_ns && a->marked == b->marked && a->need_ns == b->need_ns;
}

static void complete(const struct gp_view *view, struct gp_deadline_entity *e)
{
	struct gp_deadline_device *d = view->state->device;

	if (e->asks.budget_ns == UINT64_MAX)
		e->asks.budget_ns = 0;
	if (e->asks.deadline_ns) {
		e->asks.within_ns = gp_least(e->asks.deadline_ns, view->starve_limit_ns / 2);
		e->asks.jitter_ns = jitter_of(view, e);
		e->asks.seen = is_seen_in_time(view, e);
		e->asks.marked = e->marked;
		e->asks.late_ns = e->marked ? 0 : gp_late_ns(view);
		e->asks.change_ns = gp_change_cost_ns(view) + e->asks.late_ns;
		e->asks.need_ns = need_of(view, e);
	}
	if (is_same(&e->asks, &e->asked))
		return;
	if (e->asks.deadline_ns != e->asked.deadline_ns || e->asks.seen != e->asked.seen) {
		e->period_ns = e->asks.deadline_ns;
		e->nominal_ns = 0;
		e->jobs = 0;
	}
	e->asked = e->asks;
	e->has_asked = e->asks.deadline_ns;
	e->job.waits &= e->has_asked;
	e->had_promise |= e->promised || e->in_promise;
	e->promised = false;
	d->ask_again = true;
}

/* A task without request marks may have begun to work after the sample that shows it idle. So it
 * counts as busy. */
static void doubt_samples(const struct gp_view *view)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		struct gp_deadline_entity *e = gp_deadline_entity(view, t->gang);

		if (t->class != GP_UNMANAGED && !(t->known & GP_KNOWN_REQUEST))
			e->busy = !e->entity.user_held;
	}
}

/* Marks the entities that ask for a deadline; more is recorded for these. */
static void find_askers(const struct gp_view *view)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_deadline_entity *e = gp_deadline_entity(view, i);
		const struct gp_task_view *t = &view->task[i];

		if (!e->entity.members && (e->has_asked || e->promised))
			*e = (struct gp_deadline_entity){
				0}; /* no members: the state is that of an earlier entity */
		e->busy = e->entity.members && !e->entity.idle && !e->entity.user_held;
		if (t->deadline_ns && t->class != GP_UNMANAGED)
			gp_deadline_entity(view, t->gang)->has_asked = true;
	}
}

void gp_admission_gather(const struct gp_view *view)
{
	bool fresh = view->sample_period_ns <= gp_param(view, GP_DEADLINE_POLL) * 1000;

	find_askers(view);
	if (!gp_tells_in_time(view->caps, view->sample_period_ns))
		doubt_samples(view);
	for (uint32_t i = 0; i < view->n; i++) {
		uint32_t first = view->task[i].gang;
		struct gp_deadline_entity *e = gp_deadline_entity(view, first);

		if (view->task[i].class == GP_UNMANAGED || !e->has_asked)
			continue;
		if (i == first) { /* the first member has the lowest index */
			e->marked = e->run_known = true;
			e->run_ns = 0;
			e->since_ns = UINT64_MAX;
			e->asks = (struct gp_asked){0};
		}
		add_member(e, &view->task[i], fresh);
	}
	for (uint32_t i = 0; i < view->n; i++)
		if (gp_deadline_entity(view, i)->has_asked)
			complete(view, gp_deadline_entity(view, i));
}

/* Whether the device can hold all managed tasks but one. Otherwise a job cannot be protected from
 * the other tasks. */
static bool can_hold_others(const struct gp_view *view)
{
	uint32_t managed = 0;

	for (uint32_t i = 0; i < view->n; i++)
		managed += view->task[i].class != GP_UNMANAGED;
	return managed < 2 || managed - 1 <= view->max_held;
}

/* One round of admission. had_promise: true for the entities that had a promise before they changed
 * their attributes, false for all other entities. */
static void ask_round(const struct gp_view *view, const struct gp_deadline_rules *rules,
		      bool had_promise)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_deadline_entity *e = gp_deadline_entity(view, i);

		if (!e->has_asked || e->promised || e->had_promise != had_promise ||
		    !e->asked.seen || !e->asked.budget_ns || !e->period_ns)
			continue;
		e->promised = rules->promise_all || gp_demand_fits(view, rules, e);
		e->had_promise = false;
	}
}

void gp_admission_decide(const struct gp_view *view, const struct gp_deadline_rules *rules)
{
	struct gp_deadline_device *d = view->state->device;

	if (!d->ask_again)
		return;
	d->ask_again = false;
	d->work = 0;
	if (!can_hold_others(view))
		return;
	ask_round(view, rules, true);
	ask_round(view, rules, false);
	for (uint32_t i = 0; i < view->n; i++)
		gp_deadline_entity(view, i)->in_promise =
			view->task[i].class != GP_UNMANAGED &&
			gp_deadline_entity(view, view->task[i].gang)->promised;
}
