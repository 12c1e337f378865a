/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inversions: a task that should run is waiting while one that should not is running.
 *   - A latency-critical task has work and is held or off the hardware while a best-effort task
 *     is on it.
 *   - Inside a class: a task is held by the policy while one of lower priority is on the hardware.
 *     (Released ones are the hardware's to arbitrate.)
 * Unmanaged tasks and those that a user holds take no part. One pass: the highest rank that waits
 * against the lowest that runs.
 */
#include "engine/engine_state.h"

struct ranks {
	int waits;      /* highest priority that waits; -1 = nobody */
	int waits_held; /* ... and is held by the policy */
	int runs;       /* lowest priority that is on the hardware; 16 = nobody */
};

static void take(struct ranks *r, const struct gp_task_view *t)
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
			take(&lc, t);
		else if (t->class == GP_BEST_EFFORT)
			take(&be, t);
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
