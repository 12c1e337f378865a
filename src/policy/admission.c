/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which deadlines can be promised.
 *
 * What a job costs beside its own work, where the hardware takes turns. If it is due earlier than
 * the one that has the device, that one is held, and released behind it: two switches, and the
 * device stands still for a release. (While a hold is on its way, whoever is to be held works on.)
 * If it is due later, it may get on the device before it is held: that costs the others a hold and
 * two switches, and its own turn begins with a release and one more switch. So at most
 *
 *     cost = hold + release + 3 switches
 *
 * and what it takes to refill the device behind two of them. Where all run at once (AMD), the calls
 * are the switches: one to hold, one to release. Begin and end may be seen late. So a unit loads
 * the device with
 *
 *     (budget + cost + 2 * late) / (min(deadline, period) - jitter)
 *
 * or with one change of hands (hold, release, two switches) in the shortest of all these times,
 * whichever is more: a rare job with a late deadline also disturbs one that is due soon. Not both:
 * of the jobs of a unit that arrive while another one is in a hurry, the first is there from the
 * start, and interrupts nobody. Promises are given as long as
 *
 *     the sum of the loads + one change in the shortest time <= 1 - reserve
 *
 * where the last term is what was on its way when a job began. That is the density test for the
 * earliest deadline first on one processor (Liu and Layland 1973, with costs and blocking put in),
 * sufficient for sporadic jobs whatever their phases.
 *
 * How far that goes, with equal deadlines: n tasks must pay n costs within one of them, whoever
 * schedules. Budgets of 0.8 of the device take 0.8 * 64/63 = 0.813 when the jitter is at its most,
 * the reserve takes 0.02, one change and n costs must go into the rest. test_edf.c has the numbers
 * that the man page gives.
 *
 * The period is the deadline at first. A unit whose last 16 jobs came closer together on average
 * has that average for a period, and is asked anew; a longer period makes no difference.
 */
#include "policy/deadline.h"

#define LOAD_ONE (1ull << 20) /* the whole device */
#define TIME_CAP (1ull << 42) /* ns, 73 minutes: longer times count as this; the product fits */

uint64_t gp_change_cost_ns(const struct gp_view *view)
{
	return view->hold_cost_ns + view->release_cost_ns + 2 * gp_full_switch_ns(view);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Whether a request's begin is known when it begins. A sample of the past is of no use for that;
 * on a device that gives no more, a unit is promised something when it first says so itself.
 */
static bool is_seen_in_time(const struct gp_view *view, const struct deadline_unit *u)
{
	return u->told || gp_tells_in_time(view->caps, view->news_every_ns);
}

static uint64_t late_of(const struct gp_view *view, const struct gp_policy_state *state,
                        const struct deadline_unit *u)
{
	return u->told ? 0 : gp_late_ns(view, state);
}

static uint64_t cost_of(const struct gp_view *view, const struct gp_policy_state *state,
                        const struct deadline_unit *u)
{
	uint64_t cost_ns = view->slice_default_us ? gp_change_cost_ns(view) + view->switch_cost_ns
	                                          : 2 * gp_full_switch_ns(view);

	return cost_ns + 2 * late_of(view, state, u);
}

/* To take the device from one job and give it to another that waits: nobody is late to see that,
 * and the first works on until it is held. But where run time is not seen, neither is that. */
static uint64_t move_of(const struct gp_view *view, const struct gp_policy_state *state,
                        const struct deadline_unit *u)
{
	if (u->told || !view->slice_default_us)
		return gp_change_cost_ns(view) + late_of(view, state, u);
	return view->release_cost_ns + gp_full_switch_ns(view);
}

static uint64_t jitter_of(const struct gp_view *view, const struct gp_policy_state *state,
                          const struct deadline_unit *u)
{
	uint64_t jitter_ns = (uint64_t)state->param[JITTER] * 1000;

	jitter_ns = smaller(jitter_ns, u->asks.deadline_ns / 64) + (u->told ? 0 : view->notice_ns);
	return smaller(jitter_ns, u->asks.deadline_ns / 2);
}

/* The members of a gang run together: where the hardware takes turns, they take them too. */
static uint64_t need_of(const struct gp_view *view, const struct deadline_unit *u)
{
	uint64_t slice_ns = view->slice_default_us * 1000ull, turns = u->unit.members;

	if (u->unit.members < 2)
		return u->asks.budget_ns;
	if (slice_ns)
		turns += u->asks.budget_ns / slice_ns;
	return u->asks.budget_ns + turns * gp_full_switch_ns(view);
}

static void add_member(struct deadline_unit *u, const struct gp_task_view *t, bool fresh)
{
	bool told = t->known & GP_KNOWN_BRACKET;

	/* Between its brackets a request has the device, gaps and all: run time is not all of it.
	 */
	u->told &= told;
	u->run_known &=
		fresh && !told && t->known & GP_KNOWN_RUN && t->run_source == GP_RUN_MEASURED;
	u->run_ns += t->run_ns;
	if (gp_seen_active(t) && t->known & GP_KNOWN_ACTIVE_SINCE)
		u->since_ns = smaller(u->since_ns, t->active_since_ns);
	if (t->deadline_ns && (!u->asks.deadline_ns || t->deadline_ns < u->asks.deadline_ns))
		u->asks.deadline_ns = smaller(t->deadline_ns, TIME_CAP);
	/* One member that does not say makes the sum mean nothing. */
	if (!t->budget_ns || u->asks.budget_ns == UINT64_MAX)
		u->asks.budget_ns = UINT64_MAX;
	else
		u->asks.budget_ns += smaller(t->budget_ns, TIME_CAP);
}

static bool is_same(const struct gp_asked *a, const struct gp_asked *b)
{
	return a->seen == b->seen && a->deadline_ns == b->deadline_ns &&
	       a->budget_ns == b->budget_ns && a->jitter_ns == b->jitter_ns &&
	       a->change_ns == b->change_ns && a->cost_ns == b->cost_ns &&
	       a->move_ns == b->move_ns && a->need_ns == b->need_ns;
}

static void complete(const struct gp_view *view, const struct gp_policy_state *state,
                     struct deadline_unit *u)
{
	struct deadline_device *d = state->device;

	if (u->asks.budget_ns == UINT64_MAX)
		u->asks.budget_ns = 0;
	if (u->asks.deadline_ns) {
		u->asks.jitter_ns = jitter_of(view, state, u);
		u->asks.seen = is_seen_in_time(view, u);
		u->asks.change_ns = gp_change_cost_ns(view) + late_of(view, state, u);
		u->asks.cost_ns = cost_of(view, state, u);
		u->asks.move_ns = move_of(view, state, u);
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
		struct deadline_unit *u = deadline_unit(state, t->gang);

		if (t->class != GP_UNMANAGED && !(t->known & GP_KNOWN_BRACKET))
			u->busy = !u->unit.user_held;
	}
}

/* Marks the units of which more must be known. */
static void find_askers(const struct gp_view *view, const struct gp_policy_state *state)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct deadline_unit *u = deadline_unit(state, i);
		const struct gp_task_view *t = &view->task[i];

		if (!u->unit.members && (u->has_asked || u->promised))
			*u = (struct deadline_unit){0}; /* nothing of what it was before */
		u->busy = u->unit.members && !u->unit.idle && !u->unit.user_held;
		if (t->deadline_ns && t->class != GP_UNMANAGED)
			deadline_unit(state, t->gang)->has_asked = true;
	}
}

void gp_admission_gather(const struct gp_view *view, const struct gp_policy_state *state)
{
	bool fresh = view->news_every_ns <= (uint64_t)state->param[POLL] * 1000;

	find_askers(view, state);
	if (!gp_tells_in_time(view->caps, view->news_every_ns))
		doubt_samples(view, state);
	for (uint32_t i = 0; i < view->n; i++) {
		uint32_t first = view->task[i].gang;
		struct deadline_unit *u = deadline_unit(state, first);

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
		if (deadline_unit(state, i)->has_asked)
			complete(view, state, deadline_unit(state, i));
}

/* The time in which a job must be done, as the test sees it. */
static uint64_t time_of(const struct deadline_unit *u)
{
	return smaller(u->asked.deadline_ns, u->period_ns) -
	       smaller(u->asked.jitter_ns, u->period_ns / 2);
}

static uint64_t part(uint64_t of_ns, uint64_t in_ns)
{
	return (smaller(of_ns, TIME_CAP) * LOAD_ONE + in_ns - 1) / in_ns;
}

struct total {
	uint64_t shortest_ns; /* time in which somebody's job must be done */
	uint64_t change_ns;   /* the dearest change of hands */
	uint64_t load;
};

/* Adds one unit to what decides about the others: the first of two passes. */
static void include(const struct deadline_unit *u, struct total *t)
{
	t->shortest_ns = smaller(t->shortest_ns, time_of(u));
	t->change_ns = larger(t->change_ns, u->asked.change_ns);
}

static void add_load(const struct gp_policy_state *state, const struct gp_deadline_rules *rules,
                     const struct deadline_unit *u, struct total *t)
{
	uint64_t moves = rules->more_moves ? rules->more_moves(state, &u->asked) : 0;
	uint64_t use_ns = u->asked.need_ns + u->asked.cost_ns + moves * u->asked.move_ns;

	t->load += larger(part(use_ns, time_of(u)), part(u->asked.change_ns, t->shortest_ns));
}

static bool fits(const struct gp_view *view, const struct gp_policy_state *state,
                 const struct gp_deadline_rules *rules, const struct deadline_unit *newcomer)
{
	struct total t = {.shortest_ns = UINT64_MAX};

	include(newcomer, &t);
	for (uint32_t i = 0; i < view->n; i++)
		if (deadline_unit(state, i)->promised)
			include(deadline_unit(state, i), &t);
	t.load = part(t.change_ns, t.shortest_ns);
	add_load(state, rules, newcomer, &t);
	for (uint32_t i = 0; i < view->n; i++)
		if (deadline_unit(state, i)->promised)
			add_load(state, rules, deadline_unit(state, i), &t);
	return t.load <= LOAD_ONE * (uint64_t)(1000 - state->param[RESERVE]) / 1000;
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
		struct deadline_unit *u = deadline_unit(state, i);

		if (!u->has_asked || u->promised || u->had_promise != had_promise ||
		    !u->asked.seen || !u->asked.budget_ns || !time_of(u))
			continue;
		u->promised = fits(view, state, rules, u);
		u->had_promise = false;
	}
}

void gp_admission_decide(const struct gp_view *view, const struct gp_policy_state *state,
                         const struct gp_deadline_rules *rules)
{
	struct deadline_device *d = state->device;

	if (!d->ask_again)
		return;
	d->ask_again = false;
	if (!can_hold_others(view))
		return;
	ask_round(view, state, rules, true);
	ask_round(view, state, rules, false);
	for (uint32_t i = 0; i < view->n; i++)
		deadline_unit(state, i)->in_promise =
			view->task[i].class != GP_UNMANAGED &&
			deadline_unit(state, view->task[i].gang)->promised;
}
