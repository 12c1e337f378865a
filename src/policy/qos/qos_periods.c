/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run times, period by period. Run times are updated at intervals (on NVIDIA every 20 or 170 ms),
 * so a period ends with an update.
 */
#include "policy/qos/qos.h"

#define PERIOD_NS      (250 * GP_MS) /* some hundred requests of a busy service: an error of 5 % */
#define PERIOD_UPDATES 3

/* Adds the run time of each task since the last tick. Returns true if one has grown. */
static bool take_run_times(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct gp_qos_device *d = state->device;
	bool fresh = false;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		struct gp_qos_task *q = gp_policy_task(state, i);

		q->ran_ns = 0;
		if (!(t->known & GP_KNOWN_RUN))
			continue;
		if (t->run_ns > q->run_ns)
			q->ran_ns = t->run_ns - q->run_ns;
		q->run_ns = t->run_ns;
		fresh |= q->ran_ns > 0;
		if (t->class == GP_LATENCY_CRITICAL)
			d->period.lc_ns += q->ran_ns;
		else if (t->class == GP_BEST_EFFORT)
			d->period.be_ns += q->ran_ns;
	}
	return fresh;
}

bool gp_qos_is_full(const struct gp_view *view, const struct gp_policy_state *state)
{
	const struct gp_qos_device *d = state->device;
	uint64_t lost_ns = d->period.shuts * view->switch_cost_ns;
	uint64_t time_ns = d->period.shut_ns > lost_ns ? d->period.shut_ns - lost_ns : 0;
	uint64_t each_ns = each_request(state), ran_ns = d->period.lc_ns;
	/* Gaps may be twice as long as declared, and run time varies by chance. */
	uint64_t slow_ns = each_ns ? time_ns * d->request_ns / (each_ns + gap_ns(state)) : 0;
	uint64_t full_ns = each_ns ? time_ns * d->request_ns / each_ns : 0;

	slow_ns += 2 * gp_qos_square_root(ran_ns * d->request_ns);
	if (slow_ns < full_ns)
		full_ns = slow_ns;
	return ran_ns >= full_ns - full_ns / 32;
}

/* The service cannot keep up. That should end soon, so one sample is enough. */
static bool is_urgent(const struct gp_view *view, const struct gp_policy_state *state,
		      uint64_t had_ns)
{
	const struct gp_qos_device *d = state->device;

	if (!d->period.lc_ns || had_ns < PERIOD_NS / 2)
		return false;
	return d->windows ? !d->seen_at_once && gp_qos_is_full(view, state)
			  : d->period.be_ns < had_ns / 4;
}

void gp_qos_begin_period(const struct gp_view *view, struct gp_qos_device *d)
{
	d->period = (struct gp_qos_period){.from_ns = view->now_ns, .seen_ns = view->now_ns};
}

bool gp_qos_account(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct gp_qos_device *d = state->device;
	uint64_t period_ns = PERIOD_UPDATES * view->sample_period_ns, had_ns;
	bool fresh = take_run_times(view, state);

	d->run_seen |= fresh;
	if (!d->period.from_ns) {
		/* A run time that is reported in the middle of a period may be older than the
		 * period, except for the first one. */
		if (fresh || !d->run_seen)
			gp_qos_begin_period(view, d);
		return false;
	}
	/* Held from the time that a hold is in force until a release is. */
	if (d->windows && d->shut == d->in_force)
		d->period.shut_ns += view->now_ns - d->period.seen_ns;
	d->period.seen_ns = view->now_ns;
	if (period_ns < PERIOD_NS)
		period_ns = PERIOD_NS;
	had_ns = view->now_ns - d->period.from_ns;
	if (fresh && is_urgent(view, state, had_ns))
		return true;
	/* No run time has grown for a long time: no task ran. */
	return had_ns >= period_ns && (fresh || had_ns >= 4 * period_ns);
}
