/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission test: which deadlines can be promised. It is the processor demand criterion (Baruah,
 * Rosier and Howell 1990) including all costs of switching. It is evaluated from long intervals to
 * short ones, as Zhang and Burns (2009) do. It assumes the worst behaviour of the policy, as
 * follows.
 *
 * Let a job be late at time d. Let t0 be the begin of the interval before d in which there was
 * always a job due by d. Let L = d - t0. Within L the device must do
 *
 *     jobs(L) of each entity, each with its budget and its cost; the part of the reserve that the
 *     background uses; and, once, the actions that were under way at t0.
 *
 * If that is at most L for every L, no job is late.
 *
 * jobs: The begins of jobs are one period apart. They are seen up to one jitter late, and are due a
 * deadline less jitter after they are seen. So there is one job from L = deadline - jitter on, and
 * one more for each period from L = deadline + period - 2 * jitter on.
 *
 * cost, if the hardware takes turns: From the moment an entity waits, all entities but one are held
 * until no job is left, including idle ones (deadline.c). So a job that is due later than the
 * running one does not interrupt it. When its time comes, the device stands still for its release,
 * and switches. A job that is due earlier is released while the other one runs on, and then the
 * other one is held. Both may share the device for the time of a hold, in turns of a slice. The
 * other one comes back with a release, a switch, and a quarter of a switch to fill the device
 * again:
 *
 *     cost = release + 2 1/4 switches + the turns that they take, or a second release
 *
 * The second release counts if turns cost more: then the other job is held first. Requests with
 * gaps give the device away at each gap, so with request marks the whole hold may be lost. A job
 * causes one of the two cases, never both. An entity that has finished is held when the next entity
 * is released. A job that ends before this call returns must wait for the call. So a job that is
 * shorter than a hold counts as long as a hold.
 *
 * once: A hold and a release may be under way at t0, for a job that is due after d. Then the first
 * job due by d needs a release and a hold itself. Jobs that come before the first hold is in force
 * run until they are held. After that all are held until no job is left, so this happens at most
 * once in L:
 *
 *     once = 2 * (hold + release) + 1 1/2 switches
 *
 * The reserve is a job of its own. Its jobs are at least gp_reserve_apart_ns apart, so none of it
 * is due by d if L is less than that. The reserve pays for its own handovers. A job that interrupts
 * it pays the same cost as for interrupting another job.
 *
 * If all tasks run at once (AMD), each call is a switch that stops all of them. Holding idle
 * entities would need one more call. There a job costs two calls: one hold and one release. One
 * handover is under way at t0. Each entity may have one job that is not due by d and disturbs until
 * it is seen and held.
 *
 * The policy may see the begin and the end of a job late. This costs the job twice the delay.
 *
 * docs/deadlines.md says how tight this test is, compared with the failures that really occur.
 */
#include "policy/deadline/deadline.h"

#define LOAD_ONE  (1ull << 20) /* the load of the whole device */
#define MOST_WORK 100000       /* limit of terms to add up in one decision: about 1 ms */

/* Costs. */

uint64_t gp_change_cost_ns(const struct gp_view *view)
{
	return view->hold_cost_ns + view->release_cost_ns + 2 * gp_full_switch_ns(view);
}

/* The number of switches between two tasks that share the device for the time of a hold, in turns
 * of a slice. */
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

/* The time that is lost by sharing the device during a hold. */
static uint64_t shared_hold_ns(const struct gp_view *view, bool request_marks)
{
	if (request_marks)
		return view->hold_cost_ns;
	return gp_least(view->hold_cost_ns, turns_in_hold(view) * gp_full_switch_ns(view));
}

bool gp_runs_on(const struct gp_view *view, bool request_marks)
{
	return view->slice_default_us &&
	       shared_hold_ns(view, request_marks) < view->release_cost_ns;
}

static uint64_t job_cost_ns(const struct gp_view *view, bool request_marks)
{
	if (!view->slice_default_us)
		return 2 * gp_full_switch_ns(view);
	return view->release_cost_ns + view->switch_cost_ns + gp_full_switch_ns(view) +
	       gp_least(view->release_cost_ns, shared_hold_ns(view, request_marks));
}

/* Demand. */

/* All entities that have a promise, and the candidate. */
struct demand {
	const struct gp_view *view;
	const struct gp_deadline_rules *rules;
	const struct gp_deadline_entity *candidate;

	uint64_t shortest_job_ns; /* a shorter job counts as long as this: it waits for a driver
				     call */
	uint64_t cost_ns;         /* cost of one job; the same for all entities */
	uint64_t once_ns;         /* cost of the actions that are under way at t0 */
	uint64_t shortest_ns;     /* the shortest time limit of a job */
	uint64_t reserve_from_ns;
	uint64_t load;     /* long-term load without the reserve, in units of LOAD_ONE */
	uint64_t ahead_ns; /* upper bound of demand above the long-term load */
};

static const struct gp_deadline_entity *asker(const struct demand *d, uint32_t i)
{
	const struct gp_deadline_entity *e = gp_deadline_entity(d->view, i);

	return e->promised || e == d->candidate ? e : NULL;
}

static uint64_t jitter(const struct gp_deadline_entity *e)
{
	return gp_least(e->asked.jitter_ns, e->period_ns / 2);
}

/* Device time of a job that is not due by d, until it is seen and held. 0 = it is kept off the
 * device. */
static uint64_t intrusion_ns(const struct demand *d, const struct gp_deadline_entity *e)
{
	if (d->view->slice_default_us)
		return 0;
	return e->asked.late_ns + d->view->hold_cost_ns + gp_full_switch_ns(d->view);
}

static uint64_t job_ns(const struct demand *d, const struct gp_deadline_entity *e)
{
	uint64_t moves = d->rules->more_moves ? d->rules->more_moves(d->view, &e->asked) : 0;
	uint64_t need_ns = gp_most(e->asked.need_ns, d->shortest_job_ns);
	uint64_t all_ns = need_ns + d->cost_ns + 2 * e->asked.late_ns + moves * e->asked.change_ns;

	return gp_least(gp_most(all_ns, intrusion_ns(d, e)), GP_TIME_CAP);
}

/* The time limit of a job: never more than a period. */
static uint64_t within_ns(const struct gp_deadline_entity *e)
{
	return gp_least(e->asked.within_ns, e->period_ns);
}

/* How many jobs of the entity can be due within `in_ns`. */
static uint64_t jobs_due(const struct gp_deadline_entity *e, uint64_t in_ns)
{
	if (in_ns < within_ns(e) - jitter(e))
		return 0;
	return (in_ns + 2 * jitter(e) - within_ns(e)) / e->period_ns + 1;
}

/* The part of `in_ns` for which the first job that is not due in `in_ns` can be present. */
static uint64_t is_there_ns(const struct gp_deadline_entity *e, uint64_t in_ns)
{
	uint64_t before_ns = jobs_due(e, in_ns) * e->period_ns;

	before_ns = gp_less(before_ns, jitter(e));
	return gp_less(in_ns, before_ns);
}

/* All intrusions together cannot take more time than is left when the first one begins. */
static uint64_t demand(const struct demand *d, uint64_t in_ns)
{
	uint64_t permille = gp_param(d->view, GP_DEADLINE_RESERVE), all_ns = d->once_ns;
	uint64_t intrude_ns = 0, longest_ns = 0;

	if (in_ns >= d->reserve_from_ns)
		all_ns += in_ns / 1000 * permille + permille;
	for (uint32_t i = 0; i < d->view->n; i++) {
		const struct gp_deadline_entity *e = asker(d, i);

		if (!e)
			continue;
		all_ns += jobs_due(e, in_ns) * job_ns(d, e);
		intrude_ns += intrusion_ns(d, e);
		longest_ns = gp_most(longest_ns, is_there_ns(e, in_ns));
	}
	return all_ns + gp_least(intrude_ns, longest_ns);
}

static uint64_t part(uint64_t of_ns, uint64_t in_ns)
{
	return (of_ns * LOAD_ONE + in_ns - 1) / in_ns;
}

/* Costs that depend on the set of entities. */
static void find_costs(struct demand *d)
{
	const struct gp_view *view = d->view;
	uint64_t late_ns = 0;
	bool request_marks = false;

	for (uint32_t i = 0; i < view->n; i++)
		if (asker(d, i)) {
			request_marks |= asker(d, i)->asked.marked;
			late_ns = gp_most(late_ns, asker(d, i)->asked.late_ns);
		}
	d->cost_ns = job_cost_ns(view, request_marks);
	d->once_ns = late_ns + gp_change_cost_ns(view);
	if (!view->slice_default_us)
		return;
	d->shortest_job_ns = gp_less(view->hold_cost_ns, view->switch_cost_ns / 2);
	d->once_ns = 2 * (late_ns + view->hold_cost_ns + view->release_cost_ns) +
		     gp_refill_ns(view) + view->switch_cost_ns / 4;
}

/* Returns false if the long-term load exceeds `whole`. */
static bool sum_up(struct demand *d, uint64_t whole)
{
	d->ahead_ns = d->once_ns + 1000;
	d->shortest_ns = UINT64_MAX;
	d->reserve_from_ns = gp_reserve_apart_ns(d->view);
	for (uint32_t i = 0; i < d->view->n && d->load < whole; i++) {
		const struct gp_deadline_entity *e = asker(d, i);
		uint64_t all_ns, early_ns;

		if (!e)
			continue;
		all_ns = job_ns(d, e);
		early_ns = e->period_ns - within_ns(e) + 2 * jitter(e);
		d->load += part(all_ns, e->period_ns);
		d->shortest_ns = gp_least(d->shortest_ns, within_ns(e) - jitter(e));
		d->ahead_ns +=
			intrusion_ns(d, e) + (all_ns * (early_ns * 1024 / e->period_ns + 1) >> 10);
	}
	return d->load < whole;
}

/*
 * Evaluates long intervals first. A longer interval never has less demand. So if demand(t) is at
 * most t, all intervals between demand(t) and t suffice, too, and the next t is demand(t). There
 * are few such steps. If very many entities ask for all of the device, MOST_WORK limits the steps,
 * and the last entities are refused.
 */
bool gp_demand_fits(const struct gp_view *view, const struct gp_deadline_rules *rules,
		    const struct gp_deadline_entity *candidate)
{
	struct demand d = {.view = view, .rules = rules, .candidate = candidate};
	struct gp_deadline_device *device = view->state->device;
	uint64_t whole =
		LOAD_ONE * (uint64_t)(1000 - view->state->param[GP_DEADLINE_RESERVE]) / 1000;
	uint64_t in_ns, needs_ns;

	find_costs(&d);
	if (!sum_up(&d, whole))
		return false;
	in_ns = gp_least(d.ahead_ns, 2 * GP_TIME_CAP) * LOAD_ONE / (whole - d.load) + 1;
	while (in_ns >= d.shortest_ns) {
		needs_ns = demand(&d, in_ns);
		device->work += view->n;
		if (needs_ns > in_ns || device->work > MOST_WORK)
			return false;
		in_ns = needs_ns < in_ns ? needs_ns : in_ns - 1;
	}
	return true;
}
