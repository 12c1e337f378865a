/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each unit asks for, what it would cost, and who has a promise: as long as demand.c finds
 * room for all of them, in the order in which they came, those first who had one before they asked
 * for something else.
 *
 * The period is the deadline at first. A unit whose last 16 jobs came closer together on average
 * has that average for a period, and is asked anew; a longer period makes no difference.
 */
#include "policy/deadline/deadline.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Whether a request's begin is known when it begins. A sample of the past is of no use for that;
 * on a device that gives no more, a unit is promised something when it first says so itself.
 */
static bool is_seen_in_time(const struct gp_view *view, const struct gp_deadline_entity *u)
{
	return u->told || gp_tells_in_time(view->caps, view->sample_period_ns);
}

static uint64_t jitter_of(const struct gp_view *view, const struct gp_policy_state *state,
                          const struct gp_deadline_entity *u)
{
	uint64_t jitter_ns = (uint64_t)state->param[GP_DEADLINE_JITTER] * 1000;

	jitter_ns = smaller(jitter_ns, u->asks.deadline_ns / 64) + (u->told ? 0 : view->notice_ns);
	return smaller(jitter_ns, u->asks.within_ns / 2);
}

/* The members of a gang run together: where the hardware takes turns, they take them too. */
static uint64_t need_of(const struct gp_view *view, const struct gp_deadline_entity *u)
{
	uint64_t slice_ns = view->slice_default_us * 1000ull, turns = u->entity.members;

	if (u->entity.members < 2)
		return u->asks.budget_ns;
	if (slice_ns)
		turns += u->asks.budget_ns / slice_ns;
	return u->asks.budget_ns + turns * gp_full_switch_ns(view);
}

static void add_member(struct gp_deadline_entity *u, const struct gp_task_view *t, bool fresh)
{
	bool told = t->known & GP_KNOWN_REQUEST;

	/* Between its brackets a request has the device, gaps and all: run time is not all of it.
	 */
	u->told &= told;
	u->run_known &=
		fresh && !told && t->known & GP_KNOWN_RUN && t->run_source == GP_RUN_MEASURED;
	u->run_ns += t->run_ns;
	if (gp_seen_active(t) && t->known & GP_KNOWN_ACTIVE_SINCE)
		u->since_ns = smaller(u->since_ns, t->active_since_ns);
	if (t->deadline_ns && (!u->asks.deadline_ns || t->deadline_ns < u->asks.deadline_ns))
		u->asks.deadline_ns = smaller(t->deadline_ns, GP_TIME_CAP);
	/* One member that does not say makes the sum mean nothing. */
	if (!t->budget_ns || u->asks.budget_ns == UINT64_MAX)
		u->asks.budget_ns = UINT64_MAX;
	else
		u->asks.budget_ns += smaller(t->budget_ns, GP_TIME_CAP);
}

static bool is_same(const struct gp_asked *a, const struct gp_asked *b)
{
	return a->seen == b->seen && a->deadline_ns == b->deadline_ns &&
	       a->within_ns == b->within_ns && a->budget_ns == b->budget_ns &&
	       a->jitter_ns == b->jitter_ns && a->change_ns == b->change_ns &&
	       a->late_ns == b->late_ns && a->told == b->told && a->need_ns == b->need_ns;
}

static void complete(const struct gp_view *view, const struct gp_policy_state *state,
                     struct gp_deadline_entity *u)
{
	struct gp_deadline_device *d = state->device;

	if (u->asks.budget_ns == UINT64_MAX)
		u->asks.budget_ns = 0;
	if (u->asks.deadline_ns) {
		u->asks.within_ns = smaller(u->asks.deadline_ns, view->starve_limit_ns / 2);
		u->asks.jitter_ns = jitter_of(view, state, u);
		u->asks.seen = is_seen_in_time(view, u);
		u->asks.told = u->told;
		u->asks.late_ns = u->told ? 0 : gp_late_ns(view, state);
		u->asks.change_ns = gp_change_cost_ns(view) + u->asks.late_ns;
		u->asks.need_ns = need_of(view, u);
	}
	if (is_same(&u->asks, &u->asked))
		return;
	if (u->asks.deadline_ns != u->asked.deadline_ns || u->asks.seen != u->asked.seen) {
		u->period_ns = u->asks.deadline_ns;
		u->nominal_ns = 0;
		u->jobs = 0;
	}
	u->asked = u->asks;
	u->has_asked = u->asks.deadline_ns;
	u->job.waits &= u->has_asked;
	u->had_promise |= u->promised || u->in_promise;
	u->promised = false;
	d->ask_again = true;
}

/* A sample that says idle is old: what does not say so itself may begin to work at any time. */
static void doubt_samples(const struct gp_view *view, const struct gp_policy_state *state)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		struct gp_deadline_entity *u = gp_deadline_entity(state, t->gang);

		if (t->class != GP_UNMANAGED && !(t->known & GP_KNOWN_REQUEST))
			u->busy = !u->entity.user_held;
	}
}

/* Marks the units of which more must be known. */
static void find_askers(const struct gp_view *view, const struct gp_policy_state *state)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_deadline_entity *u = gp_deadline_entity(state, i);
		const struct gp_task_view *t = &view->task[i];

		if (!u->entity.members && (u->has_asked || u->promised))
			*u = (struct gp_deadline_entity){0}; /* nothing of what it was before */
		u->busy = u->entity.members && !u->entity.idle && !u->entity.user_held;
		if (t->deadline_ns && t->class != GP_UNMANAGED)
			gp_deadline_entity(state, t->gang)->has_asked = true;
	}
}

void gp_admission_gather(const struct gp_view *view, const struct gp_policy_state *state)
{
	bool fresh = view->sample_period_ns <= (uint64_t)state->param[GP_DEADLINE_POLL] * 1000;

	find_askers(view, state);
	if (!gp_tells_in_time(view->caps, view->sample_period_ns))
		doubt_samples(view, state);
	for (uint32_t i = 0; i < view->n; i++) {
		uint32_t first = view->task[i].gang;
		struct gp_deadline_entity *u = gp_deadline_entity(state, first);

		if (view->task[i].class == GP_UNMANAGED || !u->has_asked)
			continue;
		if (i == first) { /* it comes before the others */
			u->told = u->run_known = true;
			u->run_ns = 0;
			u->since_ns = UINT64_MAX;
			u->asks = (struct gp_asked){0};
		}
		add_member(u, &view->task[i], fresh);
	}
	for (uint32_t i = 0; i < view->n; i++)
		if (gp_deadline_entity(state, i)->has_asked)
			complete(view, state, gp_deadline_entity(state, i));
}

/* Everybody but one can be held: otherwise nobody can be kept out of a job's way. */
static bool can_hold_others(const struct gp_view *view)
{
	uint32_t managed = 0;

	for (uint32_t i = 0; i < view->n; i++)
		managed += view->task[i].class != GP_UNMANAGED;
	return managed < 2 || managed - 1 <= view->max_held;
}

/* One round: those who had a promise before they asked for something else, or all the others. */
static void ask_round(const struct gp_view *view, const struct gp_policy_state *state,
                      const struct gp_deadline_rules *rules, bool had_promise)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_deadline_entity *u = gp_deadline_entity(state, i);

		if (!u->has_asked || u->promised || u->had_promise != had_promise ||
		    !u->asked.seen || !u->asked.budget_ns || !u->period_ns)
			continue;
		u->promised = rules->promise_all || gp_demand_fits(view, state, rules, u);
		u->had_promise = false;
	}
}

void gp_admission_decide(const struct gp_view *view, const struct gp_policy_state *state,
                         const struct gp_deadline_rules *rules)
{
	struct gp_deadline_device *d = state->device;

	if (!d->ask_again)
		return;
	d->ask_again = false;
	d->work = 0;
	if (!can_hold_others(view))
		return;
	ask_round(view, state, rules, true);
	ask_round(view, state, rules, false);
	for (uint32_t i = 0; i < view->n; i++)
		gp_deadline_entity(state, i)->in_promise =
			view->task[i].class != GP_UNMANAGED &&
			gp_deadline_entity(state, view->task[i].gang)->promised;
}
