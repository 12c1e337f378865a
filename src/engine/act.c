/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What should be: turns plan and user holds into the difference to what is, and asks the back end
 * for that, in an order in which nothing bad can stand in between:
 *     longer slices, holds, tiny slices, releases.
 *
 * The engine itself keeps the rule that two runnable tasks never have a tiny slice (they would
 * starve each other on the hardware), whatever a policy wants and whichever action fails: a tiny
 * slice or a release that would break it waits until the hold before it is seen to be in force.
 */
#include "base/log.h"
#include "engine/engine_state.h"

#define FAILURES_LOGGED 8 /* per look: a device that is gone fails for everybody */

void gp_attempt_failed(struct gp_engine *e, struct gp_task *t, struct gp_attempt *a,
                       uint64_t now_ns, int code, uint32_t driver_code)
{
	/* "Not yet", and "it has just ended", are no news. */
	bool is_news = !a->backoff_ns && code != -EAGAIN && code != -ESRCH;

	a->in_flight = false;
	a->backoff_ns = a->backoff_ns ? a->backoff_ns * 2 : e->config.backoff_min_ns;
	if (a->backoff_ns > e->config.backoff_max_ns)
		a->backoff_ns = e->config.backoff_max_ns;
	a->not_before_ns = gp_time_add(now_ns, a->backoff_ns);
	gp_counters_of(e, t)->failures++;
	e->stats.failures++;
	if (++e->failures <= FAILURES_LOGGED)
		gp_log(is_news ? GP_LOG_WARN : GP_LOG_DEBUG, "action.failed",
		       "task=%llu pid=%d errno=%d driver=0x%x retry_ms=%llu",
		       (unsigned long long)t->id, e->who[t - e->task].pid, -code, driver_code,
		       (unsigned long long)(a->backoff_ns / GP_NS_PER_MS));
	gp_engine_tell(e, now_ns, GP_EVENT_ACTION_FAILED, t->id, code, driver_code);
}

static bool is_tiny(uint32_t slice_us)
{
	return slice_us >= 1 && slice_us <= GP_TINY_SLICE_US;
}

/* Where an action under way will lead, or what is. */
static uint32_t heading(const struct gp_attempt *a, uint32_t is)
{
	return a->in_flight ? a->target : is;
}

/* Held, and nothing on its way that would change that. */
static bool is_surely_held(const struct gp_task *t)
{
	return t->held && !t->hold_again && heading(&t->hold, t->held);
}

/* Whether the task may be running with a tiny slice, as far as is known for sure. */
static bool is_released_and_tiny(const struct gp_task *t)
{
	return t->attr.class != GP_LATENCY_CRITICAL && !is_surely_held(t) &&
	       (is_tiny(t->slice_us) || is_tiny(heading(&t->slice, t->slice_us)));
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
	return !t->unrecorded && (t->gang_user_hold || t->policy_hold);
}

static bool is_to_be_held(const struct gp_task *t)
{
	return wants_hold(t) && !t->held && !t->hold.in_flight;
}

static bool is_to_be_held_again(const struct gp_task *t)
{
	return wants_hold(t) && t->held && t->hold_again && !t->hold.in_flight;
}

/* The device cannot hold the task and what is left of its gang: somebody must be released first. */
static bool has_no_room(const struct gp_engine *e, const struct gp_task *t)
{
	return e->held + e->gang_todo[t->gang] > e->gpu->info.max_held;
}

/*
 * What we changed on a task that is no longer managed is put back; otherwise it is left alone. The
 * slice of a held task means nothing: it is set before the release, which saves two calls a turn.
 * But one that waits to be held until there is room must not keep a tiny slice from the next.
 */
static uint32_t wanted_slice(const struct gp_engine *e, unsigned i)
{
	const struct gp_task *t = &e->task[i];

	if (t->unrecorded)
		return 0;
	if (wants_hold(t))
		return is_to_be_held(t) && has_no_room(e, t) && is_tiny(t->slice_us) ? 0
		                                                                     : t->slice_us;
	if (t->attr.class == GP_UNMANAGED)
		return t->touched ? 0 : t->slice_us;
	return e->plan_task[i].want == GP_LEAVE ? t->slice_us : e->plan_task[i].slice_us;
}

/* One action of a kind at a time: what is on its way is waited for, then looked at again. */
static bool wants_new_slice(const struct gp_engine *e, unsigned i)
{
	const struct gp_task *t = &e->task[i];
	uint32_t wanted_us = wanted_slice(e, i);

	return !t->slice.in_flight && (t->slice_us != wanted_us || (t->slice_again && wanted_us)) &&
	       (e->gpu->info.caps & GP_CAP_SLICE);
}

/* A hold that is not ours ends when the plan says run, not when it says leave alone. */
static bool wants_other_hold(const struct gp_engine *e, unsigned i)
{
	const struct gp_task *t = &e->task[i];
	bool left_alone =
		t->attr.class == GP_UNMANAGED || e->plan_task[i].want == GP_LEAVE || t->unrecorded;

	return !t->hold.in_flight && (t->held != wants_hold(t) || is_to_be_held_again(t)) &&
	       (e->gpu->info.caps & GP_CAP_HOLD) && (wants_hold(t) || t->our_hold || !left_alone);
}

/* Takes the plan over into the task. */
static void take_plan(struct gp_engine *e, unsigned i)
{
	struct gp_task *t = &e->task[i];
	uint8_t want = e->plan_task[i].want;
	bool hold = t->attr.class != GP_UNMANAGED &&
	            (want == GP_HOLD || (want == GP_LEAVE && t->policy_hold));

	if (hold && !t->policy_hold && !t->gang_user_hold && gp_seen_active(&e->view_task[i])) {
		e->counters[i].preemptions++;
		e->stats.preemptions++;
	}
	t->policy_hold = hold;
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

/* A failure is forgotten when what failed is no longer wanted, but not before its time: a plan that
 * changes its mind at every look does not get around the backoff. */
static void forget_failure(struct gp_attempt *a, uint64_t now_ns)
{
	if (!a->in_flight && now_ns >= a->not_before_ns)
		a->backoff_ns = 0;
}

/* Lists the tasks that are not as they should be. */
static unsigned find_differences(struct gp_engine *e, uint64_t now_ns)
{
	unsigned todo = 0;

	e->held = 0;
	for (unsigned i = 0; i < e->n; i++) {
		take_plan(e, i);
		e->held += e->task[i].held || heading(&e->task[i].hold, e->task[i].held);
		e->gang_todo[i] = 0;
	}
	for (unsigned i = 0; i < e->n; i++)
		e->gang_todo[e->task[i].gang] += is_to_be_held(&e->task[i]);
	for (unsigned i = 0; i < e->n; i++) {
		struct gp_task *t = &e->task[i];

		if (wants_other_hold(e, i) || wants_new_slice(e, i))
			e->todo[todo++] = i;
		if (!wants_other_hold(e, i))
			forget_failure(&t->hold, now_ns);
		if (!wants_new_slice(e, i))
			forget_failure(&t->slice, now_ns);
		if (t->hold.in_flight || t->slice.in_flight)
			try_again_soon(e, now_ns);
		else if (t->attr.class == GP_UNMANAGED && !t->our_hold && !t->slice_us)
			t->touched = t->unrecorded = false; /* as it was found: not ours */
	}
	return todo;
}

static struct gp_attempt *attempt_of(struct gp_task *t, enum gp_act_kind kind)
{
	return kind == GP_ACT_SLICE ? &t->slice : &t->hold;
}

/* What we changed can always be put back; otherwise the undo record stands before the change, or
 * there is no change. */
static int may_change(struct gp_engine *e, struct gp_task *t, enum gp_act_kind kind,
                      uint32_t slice_us)
{
	if (t->unrecorded && (kind == GP_ACT_RELEASE || (kind == GP_ACT_SLICE && !slice_us)))
		return 0;
	return gp_engine_keep_record(e, t);
}

/* Adds a task to the batch unless its last failure is too fresh. */
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
	r = may_change(e, t, kind, slice_us);
	if (r) {
		gp_attempt_failed(e, t, a, now_ns, r, 0);
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

/* The back end has seen the effect: no need to look again. */
static void finish_at_once(struct gp_engine *e, uint64_t now_ns, enum gp_act_kind kind,
                           struct gp_task *t)
{
	struct gp_attempt *a = attempt_of(t, kind);

	a->in_flight = false;
	a->backoff_ns = 0;
	if (kind == GP_ACT_SLICE) {
		t->slice_us = a->target;
		return;
	}
	t->held = a->target;
	t->our_hold &= t->held;
	gp_hist_add(t->held ? &e->stats.hold_ns : &e->stats.release_ns, 0);
	gp_engine_tell(e, now_ns, t->held ? GP_EVENT_HELD : GP_EVENT_RELEASED, t->id, 0, 0);
}

static void take_result(struct gp_engine *e, uint64_t now_ns, enum gp_act_kind kind,
                        struct gp_task *t, const struct gp_action *action)
{
	struct gp_attempt *a = attempt_of(t, kind);

	a->target = kind == GP_ACT_SLICE ? action->slice_us : kind == GP_ACT_HOLD;
	a->issued_ns = now_ns;
	a->lost_ns = gp_time_add(now_ns, 4 * e->config.check_ns + 8 * cost_of(e, kind));
	a->accepted = action->status == 0;
	a->in_flight = action->status == 0 || action->status == -EINPROGRESS;
	t->our_hold |= kind == GP_ACT_HOLD && a->in_flight;
	if (a->in_flight && kind == GP_ACT_HOLD) {
		t->held &= !t->hold_again; /* that is seen afterwards */
		t->hold_again = false;
	} else if (a->in_flight && kind == GP_ACT_SLICE) {
		t->slice_again = false;
	}
	if (!a->in_flight) {
		gp_attempt_failed(e, t, a, now_ns, action->status, action->driver_code);
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
	*(kind == GP_ACT_SLICE  ? &e->stats.slices
	  : kind == GP_ACT_HOLD ? &e->stats.holds
	                        : &e->stats.releases) += n;
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

		if (!wants_new_slice(e, i) || is_tiny(slice_us) != tiny)
			continue;
		if (tiny && t->attr.class != GP_LATENCY_CRITICAL && !is_surely_held(t) &&
		    another_is_released_and_tiny(e, t))
			defer(e, now_ns);
		else
			n = add_action(e, now_ns, GP_ACT_SLICE, n, i, slice_us);
	}
	send_batch(e, now_ns, GP_ACT_SLICE, n);
}

/* A gang is held as a whole, or not yet. */
static void hold_tasks(struct gp_engine *e, uint64_t now_ns, unsigned todo)
{
	unsigned n = 0, before;

	for (unsigned k = 0; k < todo; k++) {
		unsigned i = e->todo[k];
		struct gp_task *t = &e->task[i];

		if (!wants_other_hold(e, i) || !wants_hold(t))
			continue;
		if (!t->held && has_no_room(e, t)) {
			defer(e, now_ns);
			continue;
		}
		before = n;
		n = add_action(e, now_ns, GP_ACT_HOLD, n, i, 0);
		if (t->held)
			continue; /* it has its place */
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
		            (is_tiny(t->slice_us) || is_tiny(heading(&t->slice, t->slice_us)));

		if (!wants_other_hold(e, i) || wants_hold(t))
			continue;
		if (tiny && another_is_released_and_tiny(e, t)) {
			defer(e, now_ns);
			continue;
		}
		n = add_action(e, now_ns, GP_ACT_RELEASE, n, i, 0);
		/* Several tiny ones in one batch would not see each other: one at a time. */
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
	if (e->failures > FAILURES_LOGGED)
		gp_log(GP_LOG_WARN, "actions.failed", "more=%u", e->failures - FAILURES_LOGGED);
	e->failures = 0;
}
