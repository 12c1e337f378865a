/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inversions: a task of higher rank waits while one of lower rank runs.
 *   - A latency-critical task has work and is held or off the hardware while a best-effort task
 *     is on it.
 *   - Inside a class: a task is held by the policy while one of lower priority is on the hardware.
 *     (The hardware arbitrates between released tasks.)
 * Unmanaged tasks and tasks that a user holds are ignored. One pass compares the highest rank that
 * waits with the lowest that runs.
 */
#include "engine/engine_state.h"

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
