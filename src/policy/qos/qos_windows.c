/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Best-effort work in windows: it runs for a while with a slice that is not interrupted, and is
 * then held for a while. Both times count from the moment at which the release or hold is seen in
 * force. The next action is requested earlier by the time that it takes.
 *
 * If it is known at every moment whether a latency-critical task has work, a window stays open
 * until one has, and best-effort work is held until none has.
 */
#include "policy/qos/qos.h"

/* Whether the requested hold or release has taken effect. If that cannot be seen, the usual time is
 * assumed. */
static bool is_in_force(const struct gp_view *view, const struct gp_policy_state *state)
{
	const struct gp_qos_device *d = state->device;
	uint64_t cost_ns = d->shut ? view->hold_cost_ns : view->release_cost_ns;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_qos_task *q = gp_policy_task(state, i);
		const struct gp_task_view *t = &view->task[i];

		if (!q->windowed)
			continue;
		if (t->known & GP_KNOWN_HELD ? t->held != d->shut
					     : view->now_ns < d->asked_ns + cost_ns)
			return false;
	}
	return true;
}

/* How long after its last request a service is taken to have no more requests. */
static uint64_t linger_of(const struct gp_policy_state *state, const struct gp_qos_counts *counts)
{
	return counts->marked ? 0 : linger_ns(state);
}

static uint64_t ahead(uint64_t at_ns, uint64_t cost_ns)
{
	return at_ns > cost_ns ? at_ns - cost_ns : 0;
}

/* When to request the end of the current phase. UINT64_MAX = not before there is work. */
static uint64_t end_of_phase(const struct gp_view *view, const struct gp_policy_state *state,
			     const struct gp_qos_counts *counts)
{
	const struct gp_qos_device *d = state->device;
	uint64_t stays_ns = linger_of(state, counts);

	if (!counts->seen_at_once || counts->untargeted)
		return d->shut ? ahead(d->phase_ns + d->set.shut_ns, view->release_cost_ns)
			       : ahead(d->phase_ns + d->set.open_ns, view->hold_cost_ns);
	if (!d->shut && d->waiting_ns) {
		/* A backlog that was interrupted for the floor has waited long already; the window
		 * still has its full length. */
		uint64_t from_ns = d->waiting_ns < d->asked_ns ? d->phase_ns : d->waiting_ns;

		return ahead(from_ns + d->set.open_ns, view->hold_cost_ns);
	}
	if (!d->shut)
		return UINT64_MAX;
	if (d->idle_ns && d->idle_ns + stays_ns < d->phase_ns + d->set.most_ns)
		return d->idle_ns + stays_ns;
	return ahead(d->phase_ns + d->set.most_ns, view->release_cost_ns);
}

static void move_on(const struct gp_view *view, const struct gp_policy_state *state,
		    const struct gp_qos_counts *counts, struct gp_plan *plan)
{
	struct gp_qos_device *d = state->device;
	uint64_t end_ns;

	note_work(view, d, counts->wants, counts->since_ns, linger_of(state, counts));
	if (!d->in_force) {
		if (!is_in_force(view, state))
			return; /* the engine ticks again when it is, and repeats lost actions */
		d->in_force = true;
		d->phase_ns = view->now_ns;
	}
	end_ns = end_of_phase(view, state, counts);
	if (view->now_ns < end_ns) {
		gp_plan_wake_at(plan, end_ns);
		return;
	}
	d->shut = !d->shut;
	d->in_force = false;
	d->asked_ns = view->now_ns;
	d->period.shuts += d->shut;
	d->period.cuts += !d->shut && d->waiting_ns;
}

static uint32_t possible_slice(const struct gp_view *view, uint64_t us)
{
	return us < view->slice_min_us   ? view->slice_min_us
	       : us > view->slice_max_us ? view->slice_max_us
					 : (uint32_t)us;
}

/* Whole milliseconds, longer than a window, and so never tiny. */
static uint32_t window_slice(const struct gp_view *view, const struct gp_qos_device *d)
{
	return possible_slice(view, (d->set.open_ns / GP_MS + 1) * 1000);
}

static uint32_t lc_slice(const struct gp_view *view, const struct gp_policy_state *state)
{
	return possible_slice(view, (uint64_t)state->param[GP_PRIORITY_LC_SHARED_SLICE]);
}

void gp_qos_apply_windows(const struct gp_view *view, const struct gp_policy_state *state,
			  const struct gp_qos_counts *counts, struct gp_plan *plan)
{
	const struct gp_qos_device *d = state->device;

	move_on(view, state, counts, plan);
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_qos_task *q = gp_policy_task(state, i);

		/* A service that never pauses would keep the GPU during the whole window. */
		if (view->task[i].class == GP_LATENCY_CRITICAL && !d->set.keeps)
			plan->task[i].slice_us = lc_slice(view, state);
		if (!q->windowed)
			continue;
		if (d->shut)
			plan->task[i].want = GP_HOLD;
		else
			plan->task[i].slice_us = window_slice(view, d);
	}
}
