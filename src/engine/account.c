/* SPDX-License-Identifier: Apache-2.0 */
/* Accounting: completed waits, detection delays, and how the device's time was used. No decision
 * depends on these values. */
#include "engine/engine_state.h"

/*
 * Returns when a wait ended, which is earlier than the tick that notices it. If the back end
 * reports when the task was put on the hardware, that is the end. Otherwise the task has been
 * running for at least its measured run time.
 */
static uint64_t end_of_wait(const struct gp_task *t, const struct gp_observation *o,
			    uint64_t ran_ns)
{
	uint64_t end_ns = t->last_progress_ns;

	if (o->on_at_ns > t->waits_since_ns && o->on_at_ns < end_ns)
		return o->on_at_ns;
	if (o->run_source != GP_RUN_MEASURED)
		return end_ns;
	return ran_ns < end_ns - t->waits_since_ns ? end_ns - ran_ns : t->waits_since_ns;
}

/*
 * A wait is in progress while its length is known (GP_KNOWN_WAITED) and the task is held or wants
 * the device. It is recorded when the task gets the device. A wait that ends with a user's hold, or
 * that is no longer known, is not recorded. A task that was just released counts as having the
 * device.
 */
void gp_account_wait(struct gp_engine *e, struct gp_task *t, const struct gp_task_view *v,
		     const struct gp_observation *o, uint64_t evidence_ns, uint64_t ran_ns)
{
	if (t->waits && t->last_progress_ns > t->waits_since_ns) {
		bool had_it = evidence_ns || (t->waits_held && !t->held);
		uint64_t wait_ns = end_of_wait(t, o, ran_ns) - t->waits_since_ns;

		if (had_it && !t->gang_user_hold) {
			gp_hist_add(&e->stats.wait_ns, wait_ns);
			gp_log2_hist_add(&e->stats.class_waits[t->attr.class], wait_ns);
			gp_log2_hist_add(&gp_counters_of(e, t)->waits, wait_ns);
		}
		t->waits = false;
	}
	if (!v->waited_ns || !(t->held || gp_seen_active(v)))
		return;
	if (!t->waits) {
		t->waits_since_ns = t->last_progress_ns;
		/* The task wants the device since then, which may be later than the last tick. */
		if ((v->known & GP_KNOWN_ACTIVE_SINCE) &&
		    v->active_since_ns > t->last_progress_ns && v->active_since_ns <= evidence_ns)
			t->waits_since_ns = v->active_since_ns;
	}
	t->waits = true;
	t->waits_held = t->held;
}

void gp_account_task(struct gp_engine *e, unsigned i, uint64_t now_ns)
{
	struct gp_task *t = &e->task[i];
	const struct gp_task_view *v = &e->view_task[i];
	uint64_t switches = e->seen[i].scheduled - t->scheduled;

	/* A start in the future is ignored. */
	if (gp_has_begun(t, v) && v->active_since_ns <= now_ns) {
		t->noticed_ns = v->active_since_ns;
		gp_hist_add(&e->stats.detect_ns, now_ns - v->active_since_ns);
	}
	if (e->seen[i].scheduled > t->scheduled) {
		e->stats.switches += switches;
		e->stats.switch_ns += switches * e->gpu->info.switch_cost_ns;
		e->stats.switches_seen = e->gpu->info.switch_cost_ns;
		t->scheduled = e->seen[i].scheduled;
	}
}

/* If no task had work at the last tick, the time since that tick counts as idle, minus the run time
 * since. */
void gp_account_tick(struct gp_engine *e, uint64_t now_ns, const struct gp_tick *tick)
{
	uint64_t passed_ns = now_ns - e->last_tick_ns;
	bool known = tick->known & GP_KNOWN_ACTIVE;

	e->stats.busy_ns += tick->ran_ns;
	e->stats.busy_seen |= tick->measured;
	if (e->idle && passed_ns > tick->ran_ns)
		e->stats.idle_ns += passed_ns - tick->ran_ns;
	e->stats.idle_seen |= known && (e->n || (e->gpu->info.caps & GP_CAP_ACTIVITY));
	e->idle = known && !tick->active;
	e->stats.starved_ns = tick->starved_ns;
}

/*
 * Inversions: a task of higher rank waits while one of lower rank runs.
 *   - A latency-critical task has work and is held or off the hardware while a best-effort task
 *     is on the hardware.
 *   - Inside a class: a task is held by the policy while one of lower priority is on the hardware.
 *     (The hardware arbitrates between released tasks.)
 * Unmanaged tasks and tasks that a user holds are ignored. One pass compares the highest rank that
 * waits with the lowest that runs.
 */

struct ranks {
	int waits;      /* highest priority that waits; -1: none */
	int waits_held; /* the same, of tasks that the policy holds */
	int runs;       /* lowest priority on the hardware; 16: none */
};

static void add_task(struct ranks *r, const struct gp_task_view *t)
{
	bool on_hardware = (t->known & GP_KNOWN_RUNNING) && t->running;
	bool held = (t->known & GP_KNOWN_HELD) && t->held;
	bool off_hardware = held || ((t->known & GP_KNOWN_RUNNING) && !t->running);

	if (on_hardware && t->priority < r->runs)
		r->runs = t->priority;
	if (!gp_seen_active(t) || !off_hardware)
		return;
	if (t->priority > r->waits)
		r->waits = t->priority;
	if (held && (t->held_by & GP_HELD_BY_POLICY) && t->priority > r->waits_held)
		r->waits_held = t->priority;
}

bool gp_view_has_inversion(const struct gp_view *view, bool *visible)
{
	struct ranks be = {-1, -1, GP_PRIORITY_MAX + 1}, lc = be;

	*visible = false;
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];

		*visible |= (t->known & GP_KNOWN_RUNNING) != 0;
		if (t->held_by & GP_HELD_BY_USER)
			continue;
		if (t->class == GP_LATENCY_CRITICAL)
			add_task(&lc, t);
		else if (t->class == GP_BEST_EFFORT)
			add_task(&be, t);
	}
	return (lc.waits >= 0 && be.runs <= (int)GP_PRIORITY_MAX) || lc.waits_held > lc.runs ||
	       be.waits_held > be.runs;
}

void gp_engine_find_inversion(struct gp_engine *e, uint64_t now_ns)
{
	bool visible;
	bool stands = gp_view_has_inversion(&e->view, &visible);

	e->stats.inversions_seen |= visible;
	if (e->inverted)
		e->stats.inversion_ns += now_ns - e->last_tick_ns;
	else if (stands)
		e->stats.inversions++;
	e->inverted = stands;
}
