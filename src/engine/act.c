/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acts: computes the difference between the desired state (plan and user holds) and the current
 * state, and requests it from the back end. The order keeps every intermediate state safe:
 *     longer slices, holds, tiny slices, releases.
 *
 * Two runnable tasks with tiny slices would starve each other on the hardware. The engine prevents
 * this whatever the policy wants and whichever action fails. A tiny slice or a release that would
 * cause it is postponed until the other task is known to be held or to have no tiny slice.
 */
#include "base/log.h"
#include "engine/engine_state.h"

#define FAILURES_LOGGED 8 /* per tick; if a device is lost, every action fails */

static void back_off(struct gp_engine *e, struct gp_attempt *a, uint64_t now_ns)
{
	a->in_flight = false;
	a->backoff_ns = a->backoff_ns ? a->backoff_ns * 2 : e->config.backoff_min_ns;
	if (a->backoff_ns > e->config.backoff_max_ns)
		a->backoff_ns = e->config.backoff_max_ns;
	a->not_before_ns = gp_time_add(now_ns, a->backoff_ns);
}

void gp_attempt_failed(struct gp_engine *e, struct gp_task *t, struct gp_attempt *a,
		       uint64_t now_ns, int code, uint32_t driver_code)
{
	/* -EAGAIN (not yet) and -ESRCH (the process has just ended) are expected. */
	bool is_unexpected = !a->backoff_ns && code != -EAGAIN && code != -ESRCH;
	bool is_release = a == &t->hold && !a->target;

	t->distrusted |= code == -EREMOTEIO;
	t->failure = code;
	t->hold_failure = a == &t->hold && a->target ? code : t->hold_failure;
	back_off(e, a, now_ns);
	gp_counters_of(e, t)->failures++;
	e->stats.failures++;
	e->stats.release_failures += is_release;
	if (++e->failures <= FAILURES_LOGGED)
		gp_log(is_unexpected ? GP_LOG_WARN : GP_LOG_DEBUG, "action.failed",
		       "task=%llu pid=%d action=%s errno=%d driver=0x%x retry_ms=%llu",
		       (unsigned long long)t->id, e->identity[t - e->task].pid,
		       is_release       ? "release"
		       : a == &t->hold  ? "hold"
		       : a == &t->slice ? "slice"
					: "record",
		       -code, driver_code, (unsigned long long)(a->backoff_ns / GP_NS_PER_MS));
	gp_engine_emit(e, now_ns, GP_EVENT_ACTION_FAILED, t->id, code, driver_code);
}

/* -EAGAIN: the back end attaches to the process, or has too many requests. The driver has refused
 * nothing, so this is no failure. */
void gp_attempt_not_made(struct gp_engine *e, struct gp_task *t, struct gp_attempt *a,
			 uint64_t now_ns, int code, uint32_t driver_code)
{
	if (code != -EAGAIN) {
		gp_attempt_failed(e, t, a, now_ns, code, driver_code);
		return;
	}
	t->failure = code;
	back_off(e, a, now_ns);
	e->stats.deferred++;
}

static void count_effect(struct gp_engine *e, struct gp_task *t)
{
	bool counts = !t->held || !t->stood_still;

	if (counts) {
		gp_hist_add(t->held ? &e->stats.hold_ns : &e->stats.release_ns, t->effect_ns);
		*(t->held ? &e->stats.holds : &e->stats.releases) += 1;
		gp_counters_of(e, t)->preemptions += t->effect_preempts;
		e->stats.preemptions += t->effect_preempts;
	}
	t->held_ns += t->effect_held_ns;
	t->effect_due = false;
	t->stood_still &= t->held;
}

void gp_hold_took_effect(struct gp_engine *e, struct gp_task *t, uint64_t took_ns, bool unproven)
{
	t->effect_ns = took_ns;
	t->effect_preempts = t->held && t->preempting;
	t->effect_held_ns = 0;
	t->hold_failure = t->held ? 0 : t->hold_failure;
	t->preempting &= !t->held;
	t->effect_due = unproven;
	if (!unproven)
		count_effect(e, t);
}

/* The next hold or release is requested. If the last one is not proven by now, a hold counts:
 * nothing has disproved it. A release counts if some of its work was seen. Else neither it nor the
 * hold after it counts: the task may have stood still all the time. */
static void close_effect(struct gp_engine *e, struct gp_task *t, uint64_t now_ns)
{
	if (t->effect_due && !t->held && !t->in_part) {
		t->effect_due = false;
		t->stood_still = true;
	} else if (!t->distrusted) {
		gp_effect_confirmed(e, t, now_ns);
	}
}

void gp_effect_confirmed(struct gp_engine *e, struct gp_task *t, uint64_t now_ns)
{
	if (!t->effect_due)
		return;
	count_effect(e, t);
	gp_engine_emit(e, now_ns, t->held ? GP_EVENT_HELD : GP_EVENT_RELEASED, t->id, 0, 0);
}

static bool is_tiny(uint32_t slice_us)
{
	return slice_us >= 1 && slice_us <= GP_TINY_SLICE_US;
}

/* The state after the pending action; the current state `is` if no action is pending. */
static uint32_t expected(const struct gp_attempt *a, uint32_t is)
{
	return a->in_flight ? a->target : is;
}

/* Held, and no pending action will change that. */
static bool is_surely_held(const struct gp_task *t)
{
	return t->held && !t->unsure && !t->hold_again && expected(&t->hold, t->held);
}

/* Whether the task may run with a tiny slice, as far as is known. */
static bool is_released_and_tiny(const struct gp_task *t)
{
	return t->attr.class != GP_LATENCY_CRITICAL && !is_surely_held(t) &&
	       (is_tiny(t->slice_us) || is_tiny(expected(&t->slice, t->slice_us)));
}

static void count_released_and_tiny(struct gp_engine *e)
{
	e->released_tiny = 0;
	for (unsigned i = 0; i < e->n; i++)
		e->released_tiny += is_released_and_tiny(&e->task[i]);
}

static bool another_is_released_and_tiny(const struct gp_engine *e, const struct gp_task *t)
{
	return e->released_tiny > is_released_and_tiny(t);
}

static bool wants_hold(const struct gp_task *t)
{
	return !t->unrecorded && !t->let_go && (t->gang_user_hold || t->policy_hold);
}

static bool is_to_be_held(const struct gp_task *t)
{
	return wants_hold(t) && !t->held && !t->hold.in_flight;
}

static bool is_to_be_held_again(const struct gp_task *t)
{
	return wants_hold(t) && t->held && (t->hold_again || t->unsure || !t->our_hold) &&
	       !t->hold.in_flight;
}

/* Whether other tasks must be released before the device can hold this task and the rest of its
 * gang. */
static bool has_no_room(const struct gp_engine *e, const struct gp_task *t)
{
	return e->held + e->gang_todo[t->gang] > e->gpu->info.max_held;
}

/*
 * The slice that the task should have. A task that is no longer managed gets its original slice
 * back if we changed it. The slice of a held task has no effect. It is set just before the release,
 * which saves two calls per turn. A task that should be held but must wait until the device can
 * hold it loses its tiny slice, so that the next task can have one.
 */
static uint32_t wanted_slice(const struct gp_engine *e, unsigned i)
{
	const struct gp_task *t = &e->task[i];

	if (t->unrecorded || t->let_go)
		return 0;
	if (wants_hold(t))
		return is_to_be_held(t) && has_no_room(e, t) && is_tiny(t->slice_us) ? 0
										     : t->slice_us;
	if (t->attr.class == GP_UNMANAGED)
		return t->touched ? 0 : t->slice_us;
	return e->plan_task[i].want == GP_LEAVE ? t->slice_us : e->plan_task[i].slice_us;
}

/* Only one action of a kind is pending at a time. The next waits for its result. */
static bool differs_in_slice(const struct gp_engine *e, unsigned i)
{
	const struct gp_task *t = &e->task[i];
	uint32_t wanted_us = wanted_slice(e, i);

	return !t->slice.in_flight && (t->slice_us != wanted_us || (t->slice_again && wanted_us)) &&
	       (e->gpu->info.caps & GP_CAP_SLICE);
}

bool gp_is_left_alone(const struct gp_engine *e, unsigned i)
{
	return e->task[i].attr.class == GP_UNMANAGED || e->plan_task[i].want == GP_LEAVE ||
	       e->task[i].unrecorded;
}

/* A hold by another process is ended if the plan says GP_RUN, and kept if it says GP_LEAVE. While
 * the last release is unfinished, the hold is ours. */
static bool differs_in_hold(const struct gp_engine *e, unsigned i)
{
	const struct gp_task *t = &e->task[i];
	bool left_alone = gp_is_left_alone(e, i);

	return !t->hold.in_flight &&
	       (t->unsure || t->held != wants_hold(t) || is_to_be_held_again(t) ||
		t->release_again) &&
	       (e->gpu->info.caps & GP_CAP_HOLD) &&
	       (wants_hold(t) || t->our_hold || t->unfinished || !left_alone || t->release_again);
}

/* Copies the plan into the task. */
static void take_plan(struct gp_engine *e, unsigned i)
{
	struct gp_task *t = &e->task[i];
	uint8_t want = e->plan_task[i].want;
	bool hold = t->attr.class != GP_UNMANAGED &&
		    (want == GP_HOLD || (want == GP_LEAVE && t->policy_hold));

	if (hold && !t->policy_hold && !t->gang_user_hold)
		t->preempting = gp_seen_active(&e->view_task[i]);
	t->policy_hold = hold;
	t->preempting &= hold;
}

static void try_again_at(struct gp_engine *e, uint64_t at_ns)
{
	if (at_ns < e->next_attempt_ns)
		e->next_attempt_ns = at_ns;
}

static void try_again_soon(struct gp_engine *e, uint64_t now_ns)
{
	try_again_at(e, gp_time_add(now_ns, e->config.check_lc_ns));
}

/* The backoff is reset when the failed action is no longer wanted, but not before it has elapsed.
 * So a plan that changes at every tick cannot bypass the backoff. */
static void forget_failure(struct gp_attempt *a, uint64_t now_ns)
{
	if (!a->in_flight && now_ns >= a->not_before_ns)
		a->backoff_ns = 0;
}

/* Lists the tasks that are not in the desired state. */
static unsigned find_differences(struct gp_engine *e, uint64_t now_ns)
{
	unsigned todo = 0;

	e->held = 0;
	for (unsigned i = 0; i < e->n; i++) {
		take_plan(e, i);
		e->held += e->task[i].held || e->task[i].unsure ||
			   expected(&e->task[i].hold, e->task[i].held);
		e->gang_todo[i] = 0;
	}
	for (unsigned i = 0; i < e->n; i++)
		e->gang_todo[e->task[i].gang] += is_to_be_held(&e->task[i]);
	for (unsigned i = 0; i < e->n; i++) {
		struct gp_task *t = &e->task[i];

		if (differs_in_hold(e, i) || differs_in_slice(e, i))
			e->todo[todo++] = i;
		if (!differs_in_hold(e, i))
			forget_failure(&t->hold, now_ns);
		if (!differs_in_slice(e, i))
			forget_failure(&t->slice, now_ns);
		if (t->hold.in_flight || t->slice.in_flight)
			try_again_soon(e, now_ns);
		else if (t->attr.class == GP_UNMANAGED && !t->our_hold && !t->slice_us)
			t->touched = t->unrecorded = false; /* in its original state */
	}
	return todo;
}

static struct gp_attempt *attempt_of(struct gp_task *t, enum gp_act_kind kind)
{
	return kind == GP_ACT_SLICE ? &t->slice : &t->hold;
}

/* The engine may always revert its own change. Any other change requires an undo record first. */
static int may_change(struct gp_engine *e, struct gp_task *t, enum gp_act_kind kind,
		      uint32_t slice_us)
{
	if (t->unrecorded && (kind == GP_ACT_RELEASE || (kind == GP_ACT_SLICE && !slice_us)))
		return 0;
	return gp_engine_keep_record(e, t, kind == GP_ACT_SLICE && slice_us);
}

/* Adds a task to the batch unless its backoff has not elapsed. */
static unsigned add_action(struct gp_engine *e, uint64_t now_ns, enum gp_act_kind kind, unsigned n,
			   unsigned i, uint32_t slice_us)
{
	struct gp_task *t = &e->task[i];
	struct gp_attempt *a = attempt_of(t, kind);
	int r;

	if (now_ns < a->not_before_ns) {
		try_again_at(e, a->not_before_ns);
		return n;
	}
	a->target = kind == GP_ACT_SLICE ? slice_us : kind == GP_ACT_HOLD;
	r = may_change(e, t, kind, slice_us);
	if (r) {
		gp_attempt_not_made(e, t, a, now_ns, r, 0);
		try_again_at(e, a->not_before_ns);
		return n;
	}
	t->touched = true;
	e->action[n] = (struct gp_action){.handle = t->handle, .slice_us = slice_us};
	e->action_task[n] = i;
	return n + 1;
}

static uint64_t cost_of(const struct gp_engine *e, enum gp_act_kind kind)
{
	const struct gp_gpu_info *info = &e->gpu->info;

	return kind == GP_ACT_SLICE  ? info->slice_cost_ns
	       : kind == GP_ACT_HOLD ? info->hold_cost_ns
				     : info->release_cost_ns;
}

/* The back end has confirmed the effect, so the next observation is not needed. */
static void finish_at_once(struct gp_engine *e, uint64_t now_ns, enum gp_act_kind kind,
			   struct gp_task *t)
{
	struct gp_attempt *a = attempt_of(t, kind);

	a->in_flight = false;
	a->backoff_ns = 0;
	if (kind == GP_ACT_SLICE) {
		t->slice_us = a->target;
		e->stats.slices++;
		return;
	}
	t->held = a->target;
	t->our_hold &= t->held;
	gp_hold_took_effect(e, t, 0, false);
	gp_engine_emit(e, now_ns, t->held ? GP_EVENT_HELD : GP_EVENT_RELEASED, t->id, 0, 0);
}

static void take_result(struct gp_engine *e, uint64_t now_ns, enum gp_act_kind kind,
			struct gp_task *t, const struct gp_action *action)
{
	struct gp_attempt *a = attempt_of(t, kind);

	if (kind != GP_ACT_SLICE)
		close_effect(e, t, now_ns);
	a->issued_ns = now_ns;
	a->lost_ns = gp_time_add(now_ns, 4 * e->config.check_ns + 8 * cost_of(e, kind));
	a->accepted = action->status == 0;
	a->in_flight = action->status == 0 || action->status == -EINPROGRESS;
	t->undone_told &= !a->in_flight;
	t->release_again &= kind == GP_ACT_SLICE || !a->in_flight;
	t->our_hold |= kind == GP_ACT_HOLD && a->in_flight;
	if (a->in_flight && kind == GP_ACT_HOLD) {
		t->held &= !t->hold_again; /* not trusted; the next observation shows the state */
		t->hold_again = false;
	} else if (a->in_flight && kind == GP_ACT_SLICE) {
		t->slice_again = false;
	}
	if (!a->in_flight) {
		gp_attempt_not_made(e, t, a, now_ns, action->status, action->driver_code);
		try_again_at(e, a->not_before_ns);
	} else if (a->accepted && action->certainty == GP_OBSERVED) {
		finish_at_once(e, now_ns, kind, t);
	} else {
		try_again_soon(e, now_ns);
	}
}

static void send_batch(struct gp_engine *e, uint64_t now_ns, enum gp_act_kind kind, unsigned n)
{
	int r;

	e->interrupted = e->interrupted || (n && gp_engine_epoch_changed(e, now_ns));
	if (!n || e->interrupted)
		return;
	r = gp_gpu_act(e->gpu, now_ns, kind, e->action, n);
	for (unsigned k = 0; k < n; k++) {
		if (r)
			e->action[k].status = r;
		take_result(e, now_ns, kind, &e->task[e->action_task[k]], &e->action[k]);
	}
	count_released_and_tiny(e);
}

static void defer(struct gp_engine *e, uint64_t now_ns)
{
	e->stats.deferred++;
	try_again_soon(e, now_ns);
}

static void set_slices(struct gp_engine *e, uint64_t now_ns, unsigned todo, bool tiny)
{
	unsigned n = 0;

	for (unsigned k = 0; k < todo; k++) {
		unsigned i = e->todo[k];
		const struct gp_task *t = &e->task[i];
		uint32_t slice_us = wanted_slice(e, i);

		if (!differs_in_slice(e, i) || is_tiny(slice_us) != tiny)
			continue;
		if (tiny && t->attr.class != GP_LATENCY_CRITICAL && !is_surely_held(t) &&
		    another_is_released_and_tiny(e, t))
			defer(e, now_ns);
		else
			n = add_action(e, now_ns, GP_ACT_SLICE, n, i, slice_us);
	}
	send_batch(e, now_ns, GP_ACT_SLICE, n);
}

/* A gang is held as a whole or not at all. */
static void hold_tasks(struct gp_engine *e, uint64_t now_ns, unsigned todo)
{
	unsigned n = 0, before;

	for (unsigned k = 0; k < todo; k++) {
		unsigned i = e->todo[k];
		struct gp_task *t = &e->task[i];

		if (!differs_in_hold(e, i) || !wants_hold(t))
			continue;
		if (!t->held && has_no_room(e, t)) {
			defer(e, now_ns);
			continue;
		}
		before = n;
		n = add_action(e, now_ns, GP_ACT_HOLD, n, i, 0);
		if (t->held)
			continue; /* e->held already includes it */
		e->held += n - before;
		e->gang_todo[t->gang] -= n - before;
	}
	send_batch(e, now_ns, GP_ACT_HOLD, n);
}

static void release_tasks(struct gp_engine *e, uint64_t now_ns, unsigned todo)
{
	unsigned n = 0;

	for (unsigned k = 0; k < todo; k++) {
		unsigned i = e->todo[k];
		const struct gp_task *t = &e->task[i];
		bool tiny = t->attr.class != GP_LATENCY_CRITICAL &&
			    (is_tiny(t->slice_us) || is_tiny(expected(&t->slice, t->slice_us)));

		if (!differs_in_hold(e, i) || wants_hold(t))
			continue;
		if (tiny && another_is_released_and_tiny(e, t)) {
			defer(e, now_ns);
			continue;
		}
		n = add_action(e, now_ns, GP_ACT_RELEASE, n, i, 0);
		/* Tasks with tiny slices are released one at a time: within one batch the check
		 * above would miss them. */
		if (tiny) {
			send_batch(e, now_ns, GP_ACT_RELEASE, n);
			n = 0;
		}
	}
	send_batch(e, now_ns, GP_ACT_RELEASE, n);
}

void gp_engine_act(struct gp_engine *e, uint64_t now_ns)
{
	unsigned todo;

	e->interrupted = false;
	e->next_attempt_ns = GP_NEVER;
	gp_engine_recover_records(e, now_ns);
	todo = find_differences(e, now_ns);
	if (todo) {
		count_released_and_tiny(e);
		set_slices(e, now_ns, todo, false);
		hold_tasks(e, now_ns, todo);
		set_slices(e, now_ns, todo, true);
		release_tasks(e, now_ns, todo);
	}
	gp_engine_drop_records(e);
	if (e->failures > FAILURES_LOGGED)
		gp_log(GP_LOG_WARN, "actions.failed", "more=%u", e->failures - FAILURES_LOGGED);
	e->failures = 0;
}
