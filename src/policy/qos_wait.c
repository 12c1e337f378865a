/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where slices cannot be set, `priority` holds best-effort work as soon as a latency-critical task
 * is seen active. A request that has time does not need that yet: perhaps it is answered beside the
 * others, and if not, several share one preemption. So the task counts as active only from when
 * a hold is due, and stays so a little longer than it is, since the next request may be on its way.
 */
#include "policy/qos.h"

#define BEHIND_NS (10 * (int64_t)GP_MS) /* so much of a guaranteed share may be owed */

/* How long a hold for this task can wait, from when it became active. */
static uint64_t slack_of(const struct gp_view *view, const struct gp_task_view *t)
{
	uint64_t request_ns = t->budget_ns ? t->budget_ns : t->deadline_ns / 4;
	uint64_t needs_ns = view->hold_cost_ns + view->switch_cost_ns + 2 * request_ns;

	if (!is_seen_at_once(view, t) || t->deadline_ns <= needs_ns)
		return 0;
	return t->deadline_ns - needs_ns;
}

/* What the latency-critical tasks want of the others. */
struct demand {
	bool wants;
	uint64_t since_ns; /* the first of them; UINT64_MAX = not known */
	uint64_t slack_ns; /* the shortest of those that want */
	uint64_t linger_ns;
};

static struct demand gather_demand(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct demand m = {.since_ns = UINT64_MAX, .slack_ns = UINT64_MAX};

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_unit *u = gp_unit_of(view, state, i);

		if (t->class == GP_UNMANAGED || u->class != GP_LATENCY_CRITICAL || u->user_held ||
		    u->barred)
			continue;
		if (t->deadline_ns)
			m.linger_ns = 2 * gap_ns(state);
		if (!gp_seen_active(t))
			continue;
		m.wants = true;
		if ((t->known & GP_KNOWN_ACTIVE_SINCE) && t->active_since_ns < m.since_ns)
			m.since_ns = t->active_since_ns;
		if (slack_of(view, t) < m.slack_ns)
			m.slack_ns = slack_of(view, t);
	}
	return m;
}

static bool is_share_owed(const struct gp_view *view, const struct gp_policy_state *state)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct qos_task *q = gp_policy_task(state, i);

		if (view->task[i].class == GP_BEST_EFFORT && q->behind_ns >= BEHIND_NS)
			return true;
	}
	return false;
}

static void open_or_shut(const struct gp_view *view, const struct gp_policy_state *state,
                         struct gp_plan *plan)
{
	struct qos_device *d = state->device;
	struct demand m = gather_demand(view, state);

	note_work(view, d, m.wants, m.since_ns, m.linger_ns);
	if (m.wants && !d->shut) {
		d->shut = view->now_ns >= d->waiting_ns + m.slack_ns;
		if (!d->shut)
			gp_look_again(plan, d->waiting_ns + m.slack_ns);
	} else if (!d->waiting_ns) {
		d->shut = false;
	}
	if (d->waiting_ns && !m.wants)
		gp_look_again(plan, d->idle_ns + m.linger_ns);
}

void gp_qos_wait(const struct gp_view *view, const struct gp_policy_state *state,
                 struct gp_plan *plan)
{
	const struct qos_device *d = state->device;
	bool owed = is_share_owed(view, state);

	open_or_shut(view, state, plan);
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_unit *u = gp_policy_task(state, i);

		if (u->members && u->class == GP_LATENCY_CRITICAL)
			u->active = d->shut && !owed;
	}
}
