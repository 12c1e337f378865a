/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which deadlines can be promised: the processor demand criterion (Baruah, Rosier and Howell 1990)
 * with all that switching costs put in, decided from above as Zhang and Burns (2009) do. What it
 * counts is the worst that the policy can do, as follows.
 *
 * Take a job that is late at d, and let t0 be when the jobs due by d, which were there without a
 * pause until d, began to be: L = d - t0. Within L the device must do
 *
 *     jobs(L) of each unit, with a budget and a cost each; what the background has of the reserve;
 *     and, once, what was on its way at t0.
 *
 * If that is no more than L, for any L, nobody is late.
 *
 * jobs: begins are a period apart, seen up to a jitter late, and due a deadline less jitter after
 * they are seen. So one from L = deadline - jitter on, and one more for each period from
 * L = deadline + period - 2 * jitter on.
 *
 * cost, where the hardware takes turns: From the first moment that somebody waits, all but one are
 * held, also those that have nothing to do, until no job is left (deadline_holds.c). So a job that
 * is due later than the one that has the device interrupts nobody; when its time comes, the device
 * stands still for its release, and switches. A job that is due earlier is released while the other
 * works on, and that one is held; the two may share the device for the time of a hold, in turns of
 * a slice. And the other comes back with a release, a switch, and a quarter of one to refill the
 * device:
 *
 *     cost = release + 2 1/4 switches + the turns that they take, or a second release
 *
 * A second release if turns are dearer: then the other is held first. Requests with gaps give the
 * device away at each of them, so where there are brackets the whole hold may be lost. A job is one
 * or the other, never both. Who has just finished is held when the next one is released; a job that
 * is over before that call is waits for it, so a shorter one counts as long as a hold.
 *
 * once: on its way at t0 may be a hold and a release, for somebody due after d; then the first job
 * that is due by d needs a release and a hold itself. Those who come before the first hold is in
 * force get on the device before they are held; that is over until no job is left, so it happens
 * once in L at most:
 *
 *     once = 2 * (hold + release) + 1 1/2 switches
 *
 * The reserve is a job of its own, gp_reserve_apart_ns apart at least, so none of it is due by d if
 * L is less than that. It pays for its own moves, and jobs that interrupt it pay as they do for
 * another job.
 *
 * Where all run at once (AMD), each call is a switch that stops everybody, and to hold who has
 * nothing to do makes one more of them. There a job costs two, one to hold and one to release; one
 * change is on its way at t0; and each unit may have one job that is not due by d, and is in the
 * way until it is seen and held.
 *
 * Begin and end may be seen late, which costs a job twice that time.
 *
 * docs/deadlines.md says how far that goes, and how close it comes to what really goes wrong.
 */
#include "policy/deadline/deadline.h"

#define LOAD_ONE  (1ull << 20) /* the whole device */
#define MOST_WORK 100000       /* terms to add up in one decision: about a millisecond */

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- costs ---- */

uint64_t gp_change_cost_ns(const struct gp_view *view)
{
	return view->hold_cost_ns + view->release_cost_ns + 2 * gp_full_switch_ns(view);
}

/* How often two change places who share the device for the time of a hold, a slice each. */
static uint64_t turns_in_hold(const struct gp_view *view)
{
	uint64_t turn_ns = view->slice_default_us * 1000ull + view->switch_cost_ns;
	uint64_t turns = view->slice_default_us ? view->hold_cost_ns / turn_ns : 0;

	return turns ? turns + 1 : 0;
}

uint64_t gp_refill_ns(const struct gp_view *view)
{
	return gp_full_switch_ns(view) + turns_in_hold(view) * (view->switch_cost_ns / 4);
}

/* What is lost by that. */
static uint64_t shared_hold_ns(const struct gp_view *view, bool request_marks)
{
	if (request_marks)
		return view->hold_cost_ns;
	return smaller(view->hold_cost_ns, turns_in_hold(view) * gp_full_switch_ns(view));
}

bool gp_works_on(const struct gp_view *view, bool request_marks)
{
	return view->slice_default_us &&
	       shared_hold_ns(view, request_marks) < view->release_cost_ns;
}

static uint64_t job_cost_ns(const struct gp_view *view, bool request_marks)
{
	if (!view->slice_default_us)
		return 2 * gp_full_switch_ns(view);
	return view->release_cost_ns + view->switch_cost_ns + gp_full_switch_ns(view) +
	       smaller(view->release_cost_ns, shared_hold_ns(view, request_marks));
}

/* ---- demand ---- */

/* All units that have a promise, and one that asks. */
struct demand {
	const struct gp_view *view;
	const struct gp_policy_state *state;
	const struct gp_deadline_rules *rules;
	const struct gp_deadline_entity *newcomer;

	uint64_t shortest_job_ns; /* a shorter one waits for a call */
	uint64_t cost_ns;         /* of a job: what is the same for all */
	uint64_t once_ns;         /* on its way */
	uint64_t shortest_ns;     /* time in which a job must be done */
	uint64_t reserve_from_ns;
	uint64_t load;     /* in the long run; without the reserve */
	uint64_t ahead_ns; /* at no time is demand more than this above the load */
};

static const struct gp_deadline_entity *asker(const struct demand *d, uint32_t i)
{
	const struct gp_deadline_entity *u = gp_deadline_entity(d->state, i);

	return u->promised || u == d->newcomer ? u : NULL;
}

static uint64_t jitter(const struct gp_deadline_entity *u)
{
	return smaller(u->asked.jitter_ns, u->period_ns / 2);
}

/* Of a job that is not due in time; 0: it is kept off the device. It is seen, and held. */
static uint64_t intrusion_ns(const struct demand *d, const struct gp_deadline_entity *u)
{
	if (d->view->slice_default_us)
		return 0;
	return u->asked.late_ns + d->view->hold_cost_ns + gp_full_switch_ns(d->view);
}

static uint64_t job_ns(const struct demand *d, const struct gp_deadline_entity *u)
{
	uint64_t moves = d->rules->more_moves ? d->rules->more_moves(d->state, &u->asked) : 0;
	uint64_t need_ns = larger(u->asked.need_ns, d->shortest_job_ns);
	uint64_t all_ns = need_ns + d->cost_ns + 2 * u->asked.late_ns + moves * u->asked.change_ns;

	return smaller(larger(all_ns, intrusion_ns(d, u)), GP_TIME_CAP);
}

/* The time in which a job must be done: never more than a period. */
static uint64_t within_ns(const struct gp_deadline_entity *u)
{
	return smaller(u->asked.within_ns, u->period_ns);
}

/* How many of its jobs can be due within a time. */
static uint64_t jobs_due(const struct gp_deadline_entity *u, uint64_t in_ns)
{
	if (in_ns < within_ns(u) - jitter(u))
		return 0;
	return (in_ns + 2 * jitter(u) - within_ns(u)) / u->period_ns + 1;
}

/* For how much of it the first one that is not due can be there. */
static uint64_t is_there_ns(const struct gp_deadline_entity *u, uint64_t in_ns)
{
	uint64_t before_ns = jobs_due(u, in_ns) * u->period_ns;

	before_ns -= smaller(before_ns, jitter(u));
	return in_ns - smaller(in_ns, before_ns);
}

/* All intrusions together take no more of a time than is left of it when the first begins. */
static uint64_t demand(const struct demand *d, uint64_t in_ns)
{
	uint64_t permille = (uint64_t)d->state->param[GP_DEADLINE_RESERVE], all_ns = d->once_ns;
	uint64_t intrude_ns = 0, longest_ns = 0;

	if (in_ns >= d->reserve_from_ns)
		all_ns += in_ns / 1000 * permille + permille;
	for (uint32_t i = 0; i < d->view->n; i++) {
		const struct gp_deadline_entity *u = asker(d, i);

		if (!u)
			continue;
		all_ns += jobs_due(u, in_ns) * job_ns(d, u);
		intrude_ns += intrusion_ns(d, u);
		longest_ns = larger(longest_ns, is_there_ns(u, in_ns));
	}
	return all_ns + smaller(intrude_ns, longest_ns);
}

static uint64_t part(uint64_t of_ns, uint64_t in_ns)
{
	return (of_ns * LOAD_ONE + in_ns - 1) / in_ns;
}

/* What depends on who they are: costs, and what is on its way. */
static void find_costs(struct demand *d)
{
	const struct gp_view *view = d->view;
	uint64_t late_ns = 0;
	bool request_marks = false;

	for (uint32_t i = 0; i < view->n; i++)
		if (asker(d, i)) {
			request_marks |= asker(d, i)->asked.told;
			late_ns = larger(late_ns, asker(d, i)->asked.late_ns);
		}
	d->cost_ns = job_cost_ns(view, request_marks);
	d->once_ns = late_ns + gp_change_cost_ns(view);
	if (!view->slice_default_us)
		return;
	d->shortest_job_ns =
		view->hold_cost_ns - smaller(view->hold_cost_ns, view->switch_cost_ns / 2);
	d->once_ns = 2 * (late_ns + view->hold_cost_ns + view->release_cost_ns) +
	             gp_refill_ns(view) + view->switch_cost_ns / 4;
}

/* False: it is more than `whole` in the long run. */
static bool sum_up(struct demand *d, uint64_t whole)
{
	d->ahead_ns = d->once_ns + 1000;
	d->shortest_ns = UINT64_MAX;
	d->reserve_from_ns = gp_reserve_apart_ns(d->view, d->state);
	for (uint32_t i = 0; i < d->view->n && d->load < whole; i++) {
		const struct gp_deadline_entity *u = asker(d, i);
		uint64_t all_ns, early_ns;

		if (!u)
			continue;
		all_ns = job_ns(d, u);
		early_ns = u->period_ns - within_ns(u) + 2 * jitter(u);
		d->load += part(all_ns, u->period_ns);
		d->shortest_ns = smaller(d->shortest_ns, within_ns(u) - jitter(u));
		d->ahead_ns +=
			intrusion_ns(d, u) + (all_ns * (early_ns * 1024 / u->period_ns + 1) >> 10);
	}
	return d->load < whole;
}

/* From above: demand never falls with time, so whatever lies between a time and the demand in it
 * has room. Each step takes off a part of what is left, so there are few, unless a crowd asks for
 * all that there is: the last of them are refused then for want of time. */
bool gp_demand_fits(const struct gp_view *view, const struct gp_policy_state *state,
                    const struct gp_deadline_rules *rules,
                    const struct gp_deadline_entity *newcomer)
{
	struct demand d = {.view = view, .state = state, .rules = rules, .newcomer = newcomer};
	struct gp_deadline_device *device = state->device;
	uint64_t whole = LOAD_ONE * (uint64_t)(1000 - state->param[GP_DEADLINE_RESERVE]) / 1000;
	uint64_t in_ns, needs_ns;

	find_costs(&d);
	if (!sum_up(&d, whole))
		return false;
	in_ns = smaller(d.ahead_ns, 2 * GP_TIME_CAP) * LOAD_ONE / (whole - d.load) + 1;
	while (in_ns >= d.shortest_ns) {
		needs_ns = demand(&d, in_ns);
		device->work += view->n;
		if (needs_ns > in_ns || device->work > MOST_WORK)
			return false;
		in_ns = needs_ns < in_ns ? needs_ns : in_ns - 1;
	}
	return true;
}
