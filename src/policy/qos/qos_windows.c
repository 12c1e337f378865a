/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Best-effort work in windows: it runs for a while, with a slice that nobody interrupts, and is
 * then held for a while. Both count from the moment at which the release or hold is seen to be in
 * force, and the next one is asked for as long ahead as it takes.
 *
 * Where it is known at every moment whether a latency-critical task has work, a window stays open
 * until one has, and best-effort work is held until none has.
 */
#include "policy/qos/qos.h"

/* Whether what was asked for is so. Where that cannot be seen: after as long as it usually takes.
 */
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

/* So long after its last request, a service has no more. */
static uint64_t linger_of(const struct gp_policy_state *state, const struct gp_qos_crew *crew)
{
	return crew->marked ? 0 : linger_ns(state);
}

static uint64_t ahead(uint64_t at_ns, uint64_t cost_ns)
{
	return at_ns > cost_ns ? at_ns - cost_ns : 0;
}

/* When to ask for the end of the phase that is in force; UINT64_MAX: not before there is work. */
static uint64_t end_of_phase(const struct gp_view *view, const struct gp_policy_state *state,
                             const struct gp_qos_crew *crew)
{
	const struct gp_qos_device *d = state->device;
	uint64_t stays_ns = linger_of(state, crew);

	if (!crew->seen_at_once || crew->untargeted)
		return d->shut ? ahead(d->phase_ns + d->set.shut_ns, view->release_cost_ns)
		               : ahead(d->phase_ns + d->set.open_ns, view->hold_cost_ns);
	if (!d->shut && d->waiting_ns) {
		/* A line that was cut short for the floor has waited long, and a window is one. */
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
                    const struct gp_qos_crew *crew, struct gp_plan *plan)
{
	struct gp_qos_device *d = state->device;
	uint64_t end_ns;

	note_work(view, d, crew->wants, crew->since_ns, linger_of(state, crew));
	if (!d->in_force) {
		if (!is_in_force(view, state))
			return; /* the engine looks again when it is, and repeats what was lost */
		d->in_force = true;
		d->phase_ns = view->now_ns;
	}
	end_ns = end_of_phase(view, state, crew);
	if (view->now_ns < end_ns) {
		gp_plan_wake_at(plan, end_ns);
		return;
	}
	d->shut = !d->shut;
	d->in_force = false;
	d->asked_ns = view->now_ns;
	d->book.shuts += d->shut;
	d->book.cuts += !d->shut && d->waiting_ns;
}

static uint32_t possible_slice(const struct gp_view *view, uint64_t us)
{
	return us < view->slice_min_us   ? view->slice_min_us
	       : us > view->slice_max_us ? view->slice_max_us
	                                 : (uint32_t)us;
}

/* Whole milliseconds, longer than a window and so never tiny. */
static uint32_t window_slice(const struct gp_view *view, const struct gp_qos_device *d)
{
	return possible_slice(view, (d->set.open_ns / GP_MS + 1) * 1000);
}

static uint32_t lc_slice(const struct gp_view *view, const struct gp_policy_state *state)
{
	return possible_slice(view, (uint64_t)state->param[GP_PRIORITY_LC_SHARED_SLICE]);
}

void gp_qos_apply_windows(const struct gp_view *view, const struct gp_policy_state *state,
                          const struct gp_qos_crew *crew, struct gp_plan *plan)
{
	const struct gp_qos_device *d = state->device;

	move_on(view, state, crew, plan);
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_qos_task *q = gp_policy_task(state, i);

		/* One that never pauses would keep the window to itself. */
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
