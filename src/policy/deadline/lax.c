/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lax: the request with the least laxity has the device: the one that could wait least long, given
 * what is left of its budget, and still be done in time. Admission as with `edf`.
 *
 * Pure least laxity alternates between two requests at every look: who waits loses laxity, who runs
 * does not. So the one that is due later takes the device from the one that is due earlier only
 * when it has less laxity by more than `hysteresis`, a part of its deadline; the one that is due
 * earlier takes it back as soon as it has less.
 *
 * That costs no promise, whatever the hysteresis. Let j run although e is due earlier, which
 * happens only while j has no more laxity than e. All that must be done by e's time, now or from
 * requests yet to come, must also be done by j's time, and j's own rest with it: so all of it fits
 * into j's laxity, which is no more than e's; and e can wait. And a request whose budget is no more
 * than the hysteresis never overtakes one that is due earlier; another one does so at most once for
 * each time the hysteresis goes into its budget, and each time the device moves twice more. Whoever
 * loses it works on until it is held, although it may be the one that is due later: so each of
 * these moves is charged as a whole change of hands (demand.c). With changes of 1 % and budgets of
 * 0.8 in all there is room for 12 tasks, where `edf` has room for 18: three of them can have more
 * than a quarter of their deadline for a budget.
 *
 * Good where some requests are long for their deadlines and should get going early, because their
 * budgets are guesses. Bad where switching is dear: `edf` keeps the same promises with fewer
 * switches.
 */
#include "policy/deadline/deadline.h"

enum { HYSTERESIS = GP_DEADLINE_SHARED_PARAMS };

/* clang-format off */
static const struct gp_param lax_params[] = {
	GP_DEADLINE_PARAMS,
	[HYSTERESIS] = {"hysteresis", "permille", "less laxity that overtakes", 250, 50, 1000},
};
/* clang-format on */

static uint64_t hysteresis_ns(const struct gp_policy_state *state, uint64_t deadline_ns)
{
	return deadline_ns / 1000 * (uint64_t)state->param[HYSTERESIS] + 1; /* never 0 */
}

/* Below 0: it can not be done in time. */
static int64_t laxity_ns(const struct gp_view *view, const struct gp_job *job)
{
	return (int64_t)(job->due_ns - view->now_ns - job->left_ns);
}

/* How much longer `job` would have to wait before it takes the device from `from`; 0: now. */
static int64_t until_it_overtakes_ns(const struct gp_view *view,
                                     const struct gp_policy_state *state, const struct gp_job *job,
                                     const struct gp_job *from)
{
	int64_t more_ns = laxity_ns(view, job) - laxity_ns(view, from) + 1;

	if (job->due_ns >= from->due_ns)
		more_ns += (int64_t)hysteresis_ns(state, job->within_ns);
	return more_ns > 0 ? more_ns : 0;
}

/* The one with the least laxity of all that overtake `runs`, or of those only that are due earlier.
 * UINT32_MAX: none. */
static uint32_t find_overtaking(const struct gp_view *view, const struct gp_policy_state *state,
                                uint32_t runs, bool due_earlier)
{
	const struct gp_job *running = gp_job_of(view, state, runs), *job;
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i <= view->n; i++) {
		job = gp_job_of(view, state, i);
		if (!job || i == runs || until_it_overtakes_ns(view, state, job, running) ||
		    (due_earlier && job->due_ns >= running->due_ns))
			continue;
		if (best == UINT32_MAX ||
		    laxity_ns(view, job) < laxity_ns(view, gp_job_of(view, state, best)))
			best = i;
	}
	return best;
}

static uint32_t lax_pick(const struct gp_view *view, const struct gp_policy_state *state,
                         uint32_t current, struct gp_plan *plan)
{
	uint32_t runs = current == UINT32_MAX ? gp_earliest_due(view, state, current) : current;
	uint32_t next = find_overtaking(view, state, runs, false);

	/* Whom it overtakes in turn is due earlier: each step goes that way, so there is an end. */
	while (next != UINT32_MAX) {
		runs = next;
		next = find_overtaking(view, state, runs, true);
	}
	for (uint32_t i = 0; i <= view->n; i++) {
		const struct gp_job *job = gp_job_of(view, state, i);

		if (job && i != runs)
			tick_in(view, plan,
			        (uint64_t)until_it_overtakes_ns(view, state, job,
			                                        gp_job_of(view, state, runs)));
	}
	return runs;
}

static uint64_t lax_more_moves(const struct gp_policy_state *state, const struct gp_asked *asked)
{
	return 2 * (asked->need_ns / hysteresis_ns(state, asked->deadline_ns));
}

static int lax_decide(const struct gp_view *view, const struct gp_policy_state *state,
                      struct gp_plan *plan)
{
	static const struct gp_deadline_rules rules = {.pick = lax_pick,
	                                               .more_moves = lax_more_moves};

	return gp_deadline_decide(view, state, &rules, plan);
}

const struct gp_policy_ops gp_policy_lax = {
	.name = "lax",
	.summary = "least laxity first, with an admission test",
	.param = lax_params,
	.nparam = sizeof lax_params / sizeof *lax_params,
	.device_state = sizeof(struct gp_deadline_device),
	.task_state = sizeof(struct gp_deadline_entity),
	.needs = GP_CAP_HOLD,
	.needs_one = GP_CAP_ACTIVITY | GP_CAP_REQUEST_MARKS,
	.every_deadline = true,
	.watches = true,
	.task_out = gp_deadline_task_out,
	.decide = lax_decide,
};
