/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where slices cannot be set, `priority` holds best-effort work as soon as a latency-critical task
 * is seen active. A request that has time does not need that yet: perhaps it is answered beside the
 * others, and if not, several share one preemption. So the task counts as active only from when
 * a hold is due, and stays so a little longer than it is, since the next request may be on its way.
 */
#include "policy/qos.h"

#define BEHIND_NS (10 * (int64_t)GP_MS) /* so much of a guaranteed share may be owed */
#define LOAD_NS   (1000 * GP_MS)
#define VAIN_ALL  256
#define VAIN_MOST (VAIN_ALL * 3 / 4) /* with more waits than that in vain, none is made ... */
#define TRY_EVERY 32                 /* ... but one in so many, to see */

/* So late at most is it known that the task has work, or none any more. */
static uint64_t notice_of(const struct gp_view *view, const struct gp_task_view *t)
{
	return t->known & GP_KNOWN_BRACKET ? 0 : view->notice_ns;
}

/* How long a hold for this task can wait, from when it became active. */
static uint64_t slack_of(const struct gp_view *view, const struct qos_device *d,
                         const struct gp_task_view *t)
{
	uint64_t request_ns = t->budget_ns ? t->budget_ns : t->deadline_ns / 4;
	uint64_t line_ns = gp_qos_line(request_ns, d->lc_ppm, t->deadline_ns / 2);
	uint64_t needs_ns = notice_of(view, t) + view->hold_cost_ns + view->switch_cost_ns +
	                    request_ns + line_ns;

	if (!is_seen_at_once(view, t) || t->deadline_ns <= needs_ns)
		return 0;
	return t->deadline_ns - needs_ns;
}

/* So long after its last request a service has no more. One that says so itself needs no time for
 * that, and where the next look comes later than that, nothing is learned in it. */
static uint64_t linger_after(const struct gp_view *view, const struct gp_policy_state *state,
                             const struct gp_task_view *t)
{
	uint64_t linger_ns = 2 * gap_ns(state);

	if (!t->deadline_ns || (t->known & GP_KNOWN_BRACKET) || linger_ns <= view->notice_ns)
		return 0;
	return linger_ns;
}

/* What the latency-critical tasks want of the others. */
struct demand {
	bool wants;
	uint64_t since_ns; /* the first of them; UINT64_MAX = not known */
	uint64_t slack_ns; /* the shortest of those that want */
	uint64_t linger_ns;
	bool seen_late; /* when one of those that want has no more work */
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
		if (linger_after(view, state, t) > m.linger_ns)
			m.linger_ns = linger_after(view, state, t);
		if (!gp_seen_active(t))
			continue;
		m.wants = true;
		m.seen_late |= notice_of(view, t) != 0;
		if ((t->known & GP_KNOWN_ACTIVE_SINCE) && t->active_since_ns < m.since_ns)
			m.since_ns = t->active_since_ns;
		if (slack_of(view, state->device, t) < m.slack_ns)
			m.slack_ns = slack_of(view, state->device, t);
	}
	return m;
}

/* For how much of the time requests keep the device busy; beside others they take twice as long. */
static void measure_load(const struct gp_view *view, struct qos_device *d, bool wants)
{
	uint64_t had_ns = view->now_ns - d->load.from_ns, lc_ppm;

	if (d->load.wanted && d->load.from_ns)
		d->load.busy_ns += (view->now_ns - d->load.seen_ns) / (d->shut ? 1 : 2);
	d->load.seen_ns = view->now_ns;
	d->load.wanted = wants;
	if (d->load.from_ns && had_ns < LOAD_NS)
		return;
	if (d->load.from_ns) {
		lc_ppm = d->load.busy_ns * GP_PPM / had_ns;
		d->lc_ppm = d->lc_ppm ? (3 * d->lc_ppm + lc_ppm) / 4 : lc_ppm;
	}
	d->load.from_ns = view->now_ns;
	d->load.busy_ns = 0;
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

/*
 * A wait that does not spare the hold saves little, and where the end of a request is found late,
 * it costs: the request ends at another time between two looks. Whether requests are answered
 * while they wait depends on how much of the device they fill, which nobody says: it is tried.
 */
static bool is_worth_it(struct qos_device *d, const struct demand *m)
{
	bool worth = !m->seen_late || d->vain <= VAIN_MOST || d->unwaited >= TRY_EVERY;

	d->unwaited = worth ? 0 : d->unwaited + 1;
	return worth;
}

static void learn(struct qos_device *d, bool vain)
{
	d->vain = vain ? d->vain + (VAIN_ALL - d->vain) / 8 : d->vain - d->vain / 8;
}

static void open_or_shut(const struct gp_view *view, const struct gp_policy_state *state,
                         struct gp_plan *plan)
{
	struct qos_device *d = state->device;
	struct demand m = gather_demand(view, state);
	bool had_work = d->waiting_ns != 0;

	measure_load(view, d, m.wants);
	note_work(view, d, m.wants, m.since_ns, m.linger_ns);
	if (!had_work && d->waiting_ns)
		d->waits = m.slack_ns && is_worth_it(d, &m);
	if (m.wants && !d->shut) {
		uint64_t due_ns = d->waiting_ns + (d->waits ? m.slack_ns : 0);

		d->shut = view->now_ns >= due_ns;
		if (!d->shut)
			gp_look_again(plan, due_ns);
		else if (d->waits)
			learn(d, true);
	} else if (!d->waiting_ns) {
		if (had_work && d->waits && !d->shut)
			learn(d, false);
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
