/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lax: the request with the least laxity has the device. Laxity is the time that a request can
 * still wait, given the rest of its budget, and be done in time. Admission is the same as for
 * `edf`.
 *
 * Pure least laxity would alternate between two requests at every tick: a waiting request loses
 * laxity, a running one does not. So a request that is due later takes the device only if its
 * laxity is smaller by more than `hysteresis`, a part of its deadline. The request that is due
 * earlier takes the device back as soon as it has less laxity.
 *
 * This breaks no promise, whatever the hysteresis. Let j run although e is due earlier. That
 * happens only while j has no more laxity than e. All work that is due by e's deadline is also due
 * by j's deadline, and so is the rest of j. All of it fits into j's laxity, which is no more than
 * e's. So e can wait.
 *
 * A request with a budget of at most the hysteresis never overtakes a request that is due earlier.
 * A request with a larger budget overtakes at most as often as the hysteresis fits into its budget.
 * Each time causes two more handovers. The request that loses the device runs on until it is held,
 * even if it is due later. So each of these is charged as a whole handover (demand.c). With
 * handovers of 1 % and budgets of 0.8 in total, 12 tasks can be admitted, compared with 18 under
 * `edf`: three of them can have a budget of more than a quarter of their deadline.
 *
 * Good if some requests are long compared with their deadlines and should start early, because
 * their budgets are estimates. Bad if switching is expensive: `edf` keeps the same promises with
 * fewer switches.
 */
#include "policy/deadline/deadline.h"

enum { HYSTERESIS = GP_DEADLINE_SHARED_PARAMS };

/* clang-format off */
static const struct gp_param lax_params[] = {
	GP_DEADLINE_PARAMS,
	[HYSTERESIS] = {"hysteresis", "permille", "laxity lead needed to overtake", 250, 50, 1000},
};
/* clang-format on */

static uint64_t hysteresis_ns(const struct gp_view *view, uint64_t deadline_ns)
{
	return deadline_ns / 1000 * gp_param(view, HYSTERESIS) + 1; /* never 0 */
}

/* Negative: the job cannot be done in time. */
static int64_t laxity_ns(const struct gp_view *view, const struct gp_job *job)
{
	return (int64_t)(job->due_ns - view->now_ns - job->left_ns);
}

/* How much longer `job` must wait before it takes the device from `from`; 0 = it takes it now. */
static int64_t until_it_overtakes_ns(const struct gp_view *view, const struct gp_job *job,
				     const struct gp_job *from)
{
	int64_t more_ns = laxity_ns(view, job) - laxity_ns(view, from) + 1;

	if (job->due_ns >= from->due_ns)
		more_ns += (int64_t)hysteresis_ns(view, job->within_ns);
	return more_ns > 0 ? more_ns : 0;
}

/* The job with the least laxity of all jobs that overtake `runs`. With `due_earlier`, only jobs
 * that are due before `runs`. UINT32_MAX = none. */
static uint32_t find_overtaking(const struct gp_view *view, uint32_t runs, bool due_earlier)
{
	const struct gp_job *running = gp_job_of(view, runs), *job;
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i <= view->n; i++) {
		job = gp_job_of(view, i);
		if (!job || i == runs || until_it_overtakes_ns(view, job, running) ||
		    (due_earlier && job->due_ns >= running->due_ns))
			continue;
		if (best == UINT32_MAX ||
		    laxity_ns(view, job) < laxity_ns(view, gp_job_of(view, best)))
			best = i;
	}
	return best;
}

static uint32_t lax_pick(const struct gp_view *view, uint32_t current, struct gp_plan *plan)
{
	uint32_t runs = current == UINT32_MAX ? gp_earliest_due(view, current) : current;
	uint32_t next = find_overtaking(view, runs, false);

	/* A job that overtakes again is due earlier. Each step moves to an earlier deadline, so the
	 * loop ends. */
	while (next != UINT32_MAX) {
		runs = next;
		next = find_overtaking(view, runs, true);
	}
	for (uint32_t i = 0; i <= view->n; i++) {
		const struct gp_job *job = gp_job_of(view, i);

		if (job && i != runs)
			tick_in(view, plan,
				(uint64_t)until_it_overtakes_ns(view, job, gp_job_of(view, runs)));
	}
	return runs;
}

static uint64_t lax_more_moves(const struct gp_view *view, const struct gp_asked *asked)
{
	return 2 * (asked->need_ns / hysteresis_ns(view, asked->deadline_ns));
}

static int lax_decide(const struct gp_view *view, struct gp_plan *plan)
{
	static const struct gp_deadline_rules rules = {.pick = lax_pick,
						       .more_moves = lax_more_moves};

	return gp_deadline_decide(view, &rules, plan);
}

const struct gp_policy_ops gp_policy_lax = {
	.name = "lax",
	.summary = "least laxity first, with an admission test",
	.param = lax_params,
	.nparam = sizeof lax_params / sizeof *lax_params,
	GP_DEADLINE_OPS,
	.decide = lax_decide,
};
