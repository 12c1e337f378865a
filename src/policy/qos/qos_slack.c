/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delayed preemption, for devices without slices. There `priority` holds best-effort work as soon
 * as a latency-critical task is seen active. A request that has time left does not need the hold
 * yet. It may be answered beside the other tasks, and if not, several requests share one
 * preemption. So the task counts as active only when a hold is due. It then counts as active a
 * little longer than its work lasts, because the next request may follow soon.
 */
#include "policy/qos/qos.h"

#define BEHIND_NS    (10 * (int64_t)GP_MS) /* with a larger deficit a share precedes requests */
#define LOAD_NS      (500 * GP_MS)
#define LONGEST_NS   (1000 * GP_MS) /* upper limit of a request's length in these estimates */
#define DELAYS_ALL   256
#define USELESS_MOST (DELAYS_ALL * 3 / 4) /* with more, only one in TRY_EVERY is delayed */
#define TRY_EVERY    32                   /* requests per delay, as a trial */

/* The longest delay until the policy knows that the task has work, or has none. */
static uint64_t notice_of(const struct gp_view *view, const struct gp_task_view *t)
{
	return t->known & GP_KNOWN_REQUEST ? 0 : view->notice_ns;
}

static uint64_t request_of(const struct gp_task_view *t)
{
	return t->budget_ns ? t->budget_ns : t->deadline_ns / 4;
}

/* Includes the host's time, unless the measurement does so already. */
static uint64_t load_with_gaps(const struct gp_view *view, const struct gp_task_view *t,
			       uint64_t lc_ppm)
{
	uint64_t request_ns = request_of(t);

	if (t->known & GP_KNOWN_REQUEST || !request_ns)
		return lc_ppm;
	return lc_ppm * (request_ns + gap_ns(view)) / request_ns;
}

/*
 * If a task is observed only at ticks, a tick in a gap between two requests ends the backlog for
 * the policy, and a later tick sees it again. If requests take very long beside other tasks, such a
 * backlog may grow without end.
 */
static bool may_be_overloaded(const struct gp_view *view, const struct gp_task_view *t)
{
	const struct gp_qos_device *d = view->state->device;
	uint64_t load_ppm = load_with_gaps(view, t, lc_at_most(d));

	return notice_of(view, t) && (d->sharers + 1) * load_ppm >= GP_QOS_LOAD_MOST;
}

/* How long a hold for this task can be delayed, counted from when it became active. */
static uint64_t slack_of(const struct gp_view *view, const struct gp_task_view *t)
{
	const struct gp_qos_device *d = view->state->device;
	uint64_t request_ns = request_of(t);
	uint64_t line_ns = gp_qos_wait_for_others(request_ns, lc_at_most(d), t->deadline_ns / 2);
	uint64_t needs_ns = notice_of(view, t) + view->hold_cost_ns + view->switch_cost_ns +
			    request_ns + line_ns;

	if (!is_seen_at_once(view, t) || t->deadline_ns <= needs_ns || may_be_overloaded(view, t))
		return 0;
	return t->deadline_ns - needs_ns;
}

/* Computed once for each measurement of the load. */
static uint64_t slack_now(const struct gp_view *view, uint32_t i)
{
	const struct gp_qos_device *d = view->state->device;
	struct gp_qos_task *q = gp_policy_task(view, i);

	if (!q->slack_at_ns || q->slack_at_ns != d->busy.from_ns)
		q->slack_ns = slack_of(view, &view->task[i]);
	q->slack_at_ns = d->busy.from_ns;
	return q->slack_ns;
}

/*
 * How long after its last request a service is taken to have no more requests. A service with
 * request marks needs no such time. If the next tick comes later than this time, waiting is
 * useless, and the result is 0.
 */
static uint64_t linger_after(const struct gp_view *view, const struct gp_task_view *t)
{
	uint64_t stays_ns = linger_ns(view);

	if (!t->deadline_ns || (t->known & GP_KNOWN_REQUEST) || stays_ns <= view->notice_ns)
		return 0;
	return stays_ns;
}

/* What the latency-critical tasks demand. */
struct demand {
	bool wants;
	bool uncounted;    /* the requests of an active task cannot be counted */
	uint64_t since_ns; /* when the first of them became active; UINT64_MAX = not known */
	uint64_t slack_ns; /* the shortest of the active tasks */
	uint64_t linger_ns;
};

/* Charges the budget of a request when it begins. false: the task has no budget or sends no request
 * marks, so its requests cannot be counted. */
static bool count_requests(const struct gp_view *view, const struct gp_task_view *t,
			   struct gp_qos_task *q)
{
	struct gp_qos_device *d = view->state->device;

	if (!(t->known & GP_KNOWN_REQUEST) || !t->budget_ns)
		return false;
	if (t->in_request && t->active_since_ns != q->begun_ns)
		d->busy.ran_ns += t->budget_ns + gap_ns(view);
	if (t->in_request)
		q->begun_ns = t->active_since_ns;
	return true;
}

static struct demand gather_demand(const struct gp_view *view)
{
	struct demand m = {.since_ns = UINT64_MAX, .slack_ns = UINT64_MAX};

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_entity *e = gp_entity_of(view, i);

		if (t->class == GP_UNMANAGED || e->class != GP_LATENCY_CRITICAL || e->user_held ||
		    e->barred)
			continue;
		m.linger_ns = gp_most(m.linger_ns, linger_after(view, t));
		if (!gp_seen_active(t))
			continue;
		m.wants = true;
		m.uncounted |= !count_requests(view, t, gp_policy_task(view, i));
		if ((t->known & GP_KNOWN_ACTIVE_SINCE) && t->active_since_ns < m.since_ns)
			m.since_ns = t->active_since_ns;
		if (slack_now(view, i) < m.slack_ns)
			m.slack_ns = slack_now(view, i);
	}
	return m;
}

/* Whether requests have the device to themselves. */
static bool have_device_alone(const struct gp_view *view, struct gp_qos_device *d)
{
	bool all = true;

	d->sharers = 0;
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_entity *e = gp_entity_of(view, i);
		bool other = t->class != GP_LATENCY_CRITICAL && !gp_seen_idle(t) && !e->user_held;

		d->sharers += other;
		all &= !other || ((t->known & GP_KNOWN_HELD) ? t->held : d->shut);
	}
	/* Until the release takes effect the other tasks are seen as held, but no task runs in that
	 * time. */
	return all && view->now_ns >= d->asked_ns + view->release_cost_ns;
}

/*
 * The time within which 99 of 100 requests are answered if other tasks are held without delay.
 * Until a request is noticed it runs beside other tasks, and loses half of that time. If requests
 * are observed only at ticks, the backlog is not seen, and a tick in a gap releases the other
 * tasks. Then the true time may be much longer than the estimate, or up to 1/8 shorter.
 */
static uint64_t late_at(const struct gp_view *view, const struct gp_task_view *t, uint64_t lc_ppm)
{
	uint64_t request_ns = request_of(t), each_ns = request_ns + gap_ns(view);
	uint64_t lost_ns = notice_of(view, t) / 2, late_ns;
	uint64_t setup_ns = view->hold_cost_ns + (lost_ns < request_ns ? lost_ns : request_ns);

	if (!lost_ns)
		lc_ppm = load_with_gaps(view, t, lc_ppm);
	late_ns = setup_ns + each_ns + gp_qos_wait_for_others(each_ns, lc_ppm, setup_ns);
	return lost_ns ? late_ns - late_ns / 8 : late_ns;
}

/* Judges the shortest target: whether it can certainly be kept, or certainly not. */
static void judge_target(const struct gp_view *view)
{
	const struct gp_task_view *first = NULL;
	struct gp_qos_device *d = view->state->device;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];

		if (t->class == GP_LATENCY_CRITICAL && t->deadline_ns && is_seen_at_once(view, t) &&
		    (!first || t->deadline_ns < first->deadline_ns))
			first = t;
	}
	d->request_ns = first ? request_of(first) : 0;
	d->request_ns = gp_least(d->request_ns, LONGEST_NS);
	if (!first || !first->budget_ns)
		gp_qos_judge(view, true, false);
	else
		gp_qos_judge(view, late_at(view, first, lc_at_most(d)) <= first->deadline_ns,
			     d->full || late_at(view, first, lc_at_least(d)) > first->deadline_ns ||
				     load_with_gaps(view, first, lc_at_least(d)) >=
					     GP_QOS_LOAD_MOST);
}

/* Measures the part of the time for which requests keep the device busy. Beside other tasks a
 * request takes longer. While a hold or release is under way, most devices stand still. */
static void measure_load(const struct gp_view *view, const struct demand *m)
{
	struct gp_qos_device *d = view->state->device;
	uint64_t had_ns = view->now_ns - d->busy.from_ns;
	bool alone = have_device_alone(view, d);

	if (d->busy.uncounted && d->busy.from_ns && d->busy.alone == d->shut)
		d->busy.ran_ns +=
			(view->now_ns - d->busy.seen_ns) / (d->busy.alone ? 1 : d->sharers + 1);
	if (!d->busy.wanted || !d->shut) /* or the hold was delayed */
		d->busy.idle_ns += view->now_ns - d->busy.seen_ns;
	d->busy.seen_ns = view->now_ns;
	d->busy.wanted = m->wants;
	d->busy.uncounted = m->uncounted;
	d->busy.alone = alone;
	if (d->busy.from_ns && had_ns < LOAD_NS)
		return;
	if (d->busy.from_ns) {
		gp_qos_add_up(d, had_ns, d->busy.ran_ns);
		gp_qos_note_full(d, d->busy.idle_ns < had_ns / 50, d->busy.ran_ns);
		judge_target(view);
	}
	d->busy.from_ns = view->now_ns;
	d->busy.ran_ns = d->busy.idle_ns = 0;
}

static bool is_share_owed(const struct gp_view *view)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_qos_task *q = gp_policy_task(view, i);

		if (view->task[i].class == GP_BEST_EFFORT && q->behind_ns >= BEHIND_NS)
			return true;
	}
	return false;
}

/*
 * A delay that does not save the hold is harmful, because the request ran beside other tasks at
 * half the speed. Whether requests are answered during the delay depends on how much of the device
 * they fill. This is not known, so delays are tried.
 */
static bool delay_is_useful(struct gp_qos_device *d)
{
	bool worth = d->useless <= USELESS_MOST || d->undelayed >= TRY_EVERY;

	d->undelayed = worth ? 0 : d->undelayed + 1;
	return worth;
}

static void learn(struct gp_qos_device *d, bool useless)
{
	d->useless =
		useless ? d->useless + (DELAYS_ALL - d->useless) / 8 : d->useless - d->useless / 8;
}

static void open_or_shut(const struct gp_view *view, struct gp_plan *plan)
{
	struct gp_qos_device *d = view->state->device;
	struct demand m = gather_demand(view);
	bool had_work = d->waiting_ns != 0;

	measure_load(view, &m);
	note_work(view, d, m.wants, m.since_ns, m.linger_ns);
	if (!had_work && d->waiting_ns)
		d->waits = m.slack_ns && delay_is_useful(d);
	if (m.wants && !d->shut) {
		uint64_t due_ns = d->waiting_ns + (d->waits ? m.slack_ns : 0);

		d->shut = view->now_ns >= due_ns;
		if (!d->shut)
			gp_plan_wake_at(plan, due_ns);
		else if (d->waits)
			learn(d, true);
	} else if (!d->waiting_ns) {
		if (had_work && d->waits && !d->shut)
			learn(d, false);
		if (d->shut)
			d->asked_ns = view->now_ns;
		d->shut = false;
	}
	if (d->waiting_ns && !m.wants)
		gp_plan_wake_at(plan, d->idle_ns + m.linger_ns);
}

void gp_qos_wait(const struct gp_view *view, struct gp_plan *plan)
{
	const struct gp_qos_device *d = view->state->device;
	bool owed = is_share_owed(view);

	open_or_shut(view, plan);
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_entity *e = gp_policy_task(view, i);

		if (e->members && e->class == GP_LATENCY_CRITICAL)
			e->active = d->shut && !owed;
	}
}
