/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qos: each task can have a guaranteed share, a ceiling and, if it is latency-critical, a target:
 * the time in which 99 of 100 requests are to be answered. Targets are kept with the least loss of
 * best-effort work. A task without such attributes is treated as by `priority`.
 *
 * With slices there are two modes, and measured run times decide between them. Slices: best-effort
 * work has a tiny slice, as under `priority`; this is better if requests are rare. Windows:
 * requests are collected and then share two switches; this is better if requests are frequent
 * (qos_plan.c explains when and why). Without slices, a preemption is delayed as long as the target
 * allows, if that saves preemptions. A target that the load makes impossible is refused.
 *
 * Good for a service that is so busy that `priority` leaves little time to best-effort work, or
 * that cannot keep up itself. Much better if its programs send request marks. Bad beside unmanaged
 * tasks, which run in every gap of the service: then it behaves as `priority`. A target that is
 * longer than needed is used up: answers come as late as the target allows.
 */
#include "policy/qos/qos.h"

/*
 * Best-effort work in windows: it runs for a while with a slice that is not interrupted, and is
 * then held for a while. Both times count from the moment at which the release or hold is seen in
 * force. The next action is requested earlier by the time that it takes.
 *
 * If it is known at every moment whether a latency-critical task has work, a window stays open
 * until such a task has work. Best-effort work is then held until no such task has work.
 */

/* Whether the requested hold or release has taken effect. If the device does not show it, the usual
 * time of a hold or release is assumed. */
static bool is_in_force(const struct gp_view *view)
{
	const struct gp_qos_device *d = view->state->device;
	uint64_t cost_ns = d->shut ? view->hold_cost_ns : view->release_cost_ns;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_qos_task *q = gp_policy_task(view, i);
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
static uint64_t linger_of(const struct gp_view *view, const struct gp_qos_counts *counts)
{
	return counts->marked ? 0 : linger_ns(view);
}

/* When to request the end of the current phase. UINT64_MAX = not before an lc task has work. */
static uint64_t end_of_phase(const struct gp_view *view, const struct gp_qos_counts *counts)
{
	const struct gp_qos_device *d = view->state->device;
	uint64_t stays_ns = linger_of(view, counts);

	if (!counts->seen_at_once || counts->untargeted)
		return d->shut ? gp_less(d->phase_ns + d->set.shut_ns, view->release_cost_ns)
			       : gp_less(d->phase_ns + d->set.open_ns, view->hold_cost_ns);
	if (!d->shut && d->waiting_ns) {
		/* A backlog that was interrupted for the floor has waited long already; the window
		 * still has its full length. */
		uint64_t from_ns = d->waiting_ns < d->asked_ns ? d->phase_ns : d->waiting_ns;

		return gp_less(from_ns + d->set.open_ns, view->hold_cost_ns);
	}
	if (!d->shut)
		return UINT64_MAX;
	if (d->idle_ns && d->idle_ns + stays_ns < d->phase_ns + d->set.most_ns)
		return d->idle_ns + stays_ns;
	return gp_less(d->phase_ns + d->set.most_ns, view->release_cost_ns);
}

static void move_on(const struct gp_view *view, const struct gp_qos_counts *counts,
		    struct gp_plan *plan)
{
	struct gp_qos_device *d = view->state->device;
	uint64_t end_ns;

	note_work(view, d, counts->wants, counts->since_ns, linger_of(view, counts));
	if (!d->in_force) {
		if (!is_in_force(view))
			return; /* the engine ticks when the action takes effect, and repeats it if
				   lost */
		d->in_force = true;
		d->phase_ns = view->now_ns;
	}
	end_ns = end_of_phase(view, counts);
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

/* The slice in a window: whole milliseconds, longer than the window, and therefore never tiny. */
static uint32_t window_slice(const struct gp_view *view, const struct gp_qos_device *d)
{
	return gp_slice_near(view, (d->set.open_ns / GP_MS + 1) * 1000);
}

/* Changes the plan of `priority` according to the state of the window. */
static void apply_windows(const struct gp_view *view, const struct gp_qos_counts *counts,
			  struct gp_plan *plan)
{
	const struct gp_qos_device *d = view->state->device;

	move_on(view, counts, plan);
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_qos_task *q = gp_policy_task(view, i);

		/* A service that never pauses would keep the GPU during the whole window. */
		if (view->task[i].class == GP_LATENCY_CRITICAL && !d->set.keeps)
			plan->task[i].slice_us = gp_slice_param(view, GP_PRIORITY_LC_SHARED_SLICE);
		if (!q->windowed)
			continue;
		if (d->shut)
			plan->task[i].want = GP_HOLD;
		else
			plan->task[i].slice_us = window_slice(view, d);
	}
}

#define STARVING_NS (1000 * GP_MS)

/* clang-format off */
static const struct gp_param qos_params[] = {
	GP_PRIORITY_PARAM_TABLE,
	[GP_QOS_GAP]    = {"gap", "us", "host time between two requests", 30, 0, 10000},
	[GP_QOS_KEEP]   = {"keep", "ms", "time before mode or refusal changes", 2000, 100, 60000},
	[GP_QOS_FLOOR]  = {"floor", "permille", "minimum for be work in windows", 50, 10, 900},
	[GP_QOS_WINDOW] = {"window", "ms", "longest window for be work", 10, 1, 1000},
};
/* clang-format on */

static void count_lc_task(const struct gp_view *view, const struct gp_task_view *t,
			  struct gp_qos_counts *c)
{
	c->lc++;
	c->untargeted += !t->deadline_ns && !gp_seen_idle(t);
	c->seen_at_once &= is_seen_at_once(view, t);
	c->marked &= (t->known & GP_KNOWN_REQUEST) != 0;
	if (t->deadline_ns && (!c->target_ns || t->deadline_ns < c->target_ns))
		c->target_ns = t->deadline_ns;
	if (t->budget_ns > c->budget_ns)
		c->budget_ns = t->budget_ns;
	if (!gp_seen_active(t))
		return;
	c->wants = true;
	if ((t->known & GP_KNOWN_ACTIVE_SINCE) && t->active_since_ns < c->since_ns)
		c->since_ns = t->active_since_ns;
}

/* Called after `priority` has made its plan. Tasks that this plan holds are not counted. */
static struct gp_qos_counts gather_counts(const struct gp_view *view, const struct gp_plan *plan)
{
	struct gp_qos_counts c = {.seen_at_once = true, .marked = true, .since_ns = UINT64_MAX};

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_entity *e = gp_entity_of(view, i);
		struct gp_qos_task *q = gp_policy_task(view, i);
		bool managed = t->class != GP_UNMANAGED;
		bool held = managed && (e->user_held || plan->task[i].want == GP_HOLD);

		q->windowed = managed && !held && e->class == GP_BEST_EFFORT && !e->idle;
		c.held += held;
		c.unmanaged |= !managed && !gp_seen_idle(t);
		if (!held && t->class == GP_LATENCY_CRITICAL)
			count_lc_task(view, t, &c);
		c.be += q->windowed;
		c.share_ppm += q->windowed ? (uint64_t)t->share_permille * 1000 : 0;
	}
	if (asks_too_much(view))
		c.share_ppm = 0;
	return c;
}

/* Whether the device and the tasks allow windows, and a target or share asks for them. */
static bool can_have_windows(const struct gp_view *view, const struct gp_qos_counts *counts)
{
	bool asked = counts->share_ppm || (counts->target_ns && !counts->untargeted);

	return asked && (view->caps & GP_CAP_HOLD) && counts->lc && counts->be &&
	       !counts->unmanaged && counts->held + counts->be <= view->max_held;
}

/* Aging windows are for starving entities. With windows for best-effort work every entity makes
 * progress. So aging windows are used only if an entity is starving in spite of that. */
static bool any_starving(const struct gp_view *view)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_qos_task *q = gp_policy_task(view, i);

		if (q->windowed && (t->known & GP_KNOWN_WAITED) && t->waited_ns >= STARVING_NS)
			return true;
	}
	return false;
}

static bool refuses_shares(const struct gp_view *view, const struct gp_qos_counts *counts)
{
	return asks_too_much(view) || counts->unmanaged || !(view->caps & GP_CAP_HOLD);
}

static void refuse(const struct gp_view *view, const struct gp_qos_counts *counts,
		   struct gp_plan *plan)
{
	const struct gp_qos_device *d = view->state->device;
	bool shares = refuses_shares(view, counts);

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		bool late = t->deadline_ns < t->budget_ns + view->switch_cost_ns ||
			    (d->refuses && t->deadline_ns == counts->target_ns);

		if (t->class == GP_LATENCY_CRITICAL)
			plan->task[i].refused = t->deadline_ns && late;
		else if (t->class == GP_BEST_EFFORT)
			plan->task[i].refused = t->share_permille && shares;
	}
}

static void decide_with_slices(const struct gp_view *view, uint32_t held, bool over,
			       struct gp_plan *plan)
{
	struct gp_qos_device *d = view->state->device;
	uint64_t often_ns = view->sample_period_ns / 16;
	struct gp_qos_counts counts;

	gp_qos_favor(view);
	gp_priority_by_slices(view, held, count_lc(view), plan);
	counts = gather_counts(view, plan);
	d->seen_at_once = counts.seen_at_once;
	if (!can_have_windows(view, &counts)) {
		d->windows = false;
		d->refuses = false;
		d->period.from_ns = 0;
	} else {
		if (over) {
			gp_qos_choose(view, &counts);
			gp_qos_begin_period(view, d);
		}
		if (d->windows && !(d->priority.age_until_ns && any_starving(view)))
			apply_windows(view, &counts, plan);
		/* A sample ends the period, so it must be seen soon after it was taken. */
		gp_plan_wake_at(plan, view->now_ns + (often_ns > GP_MS ? often_ns : GP_MS));
	}
	refuse(view, &counts, plan);
}

static int qos_decide(const struct gp_view *view, struct gp_plan *plan)
{
	bool over = gp_qos_account(view);
	uint32_t held = gp_entities_gather(view);

	held += gp_qos_bar(view, held, plan);
	if (view->caps & GP_CAP_SLICE) {
		decide_with_slices(view, held, over, plan);
	} else {
		struct gp_qos_counts counts;

		gp_qos_wait(view, plan);
		gp_priority_by_activity(view, held, plan);
		counts = gather_counts(view, plan);
		refuse(view, &counts, plan);
	}
	return 0;
}

/* Run time before the task came does not count. */
static void qos_task_in(const struct gp_policy_state *state, const struct gp_task_view *task,
			void *task_state)
{
	struct gp_qos_task *q = task_state;

	(void)state;
	q->run_ns = task->known & GP_KNOWN_RUN ? task->run_ns : 0;
}

const struct gp_policy_ops gp_policy_qos = {
	.name = "qos",
	.summary = "shares, ceilings and latency targets, with the least loss of be work",
	.param = qos_params,
	.nparam = sizeof qos_params / sizeof *qos_params,
	.device_state = sizeof(struct gp_qos_device),
	.task_state = sizeof(struct gp_qos_task),
	.uses = GP_USES_CLASS | GP_USES_PRIORITY | GP_USES_SHARE | GP_USES_CEILING |
		GP_USES_DEADLINE | GP_USES_BUDGET,
	.watches = true,
	.task_in = qos_task_in,
	.decide = qos_decide,
};
