/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of it for people: waits that have ended, how late work was noticed, how the device's
 * time went. Nothing here is decided by. */
#include "engine/engine_state.h"

/*
 * When a wait ended. It is seen to have at a look, or at the sample before it; it came on the
 * hardware earlier than that: then, where the back end says when, else it has run at least as long
 * as it is measured to have.
 */
static uint64_t end_of_wait(const struct gp_task *t, const struct gp_observation *o,
                            uint64_t ran_ns)
{
	uint64_t end_ns = t->last_got_ns;

	if (o->on_at_ns > t->waits_since_ns && o->on_at_ns < end_ns)
		return o->on_at_ns;
	if (o->run_source != GP_RUN_MEASURED)
		return end_ns;
	return ran_ns < end_ns - t->waits_since_ns ? end_ns - ran_ns : t->waits_since_ns;
}

/*
 * A wait stands while the engine knows it (GP_KNOWN_WAITED) and the task is held or seen to want
 * the device, and is recorded when the task has it. One that a user's hold cuts short, or of which
 * nothing is known any more, never ended as far as anybody can tell; but who was held and is not is
 * taken to have the device.
 */
void gp_account_wait(struct gp_engine *e, struct gp_task *t, const struct gp_task_view *v,
                     const struct gp_observation *o, uint64_t evidence_ns, uint64_t ran_ns)
{
	if (t->waits && t->last_got_ns > t->waits_since_ns) {
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
		t->waits_since_ns = t->last_got_ns;
		/* It wants the device since then, which may be later than the last look. */
		if ((v->known & GP_KNOWN_ACTIVE_SINCE) && v->active_since_ns > t->last_got_ns &&
		    v->active_since_ns <= evidence_ns)
			t->waits_since_ns = v->active_since_ns;
	}
	t->waits = true;
	t->waits_held = t->held;
}

void gp_account_task(struct gp_engine *e, unsigned i, uint64_t now_ns)
{
	struct gp_task *t = &e->task[i];
	const struct gp_task_view *v = &e->view_task[i];
	uint64_t came = e->seen[i].scheduled - t->scheduled;

	/* What is said to begin later tells nothing. */
	if (gp_has_begun(t, v) && v->active_since_ns <= now_ns) {
		t->noticed_ns = v->active_since_ns;
		gp_hist_add(&e->stats.detect_ns, now_ns - v->active_since_ns);
	}
	if (e->seen[i].scheduled > t->scheduled) {
		e->stats.switches += came;
		e->stats.switch_ns += came * e->gpu->info.switch_cost_ns;
		e->stats.switches_seen = e->gpu->info.switch_cost_ns;
		t->scheduled = e->seen[i].scheduled;
	}
}

/* Since the last look the device was as idle as it was then, but for what has run since. */
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
