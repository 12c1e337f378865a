/* SPDX-License-Identifier: Apache-2.0 */
/* Observes the device: asks the back end, settles pending actions, and fills the view. */
#include <string.h>

#include "engine/engine_state.h"

/* Whether a pending action has ended, as far as is known. */
static bool has_ended(const struct gp_attempt *a, const struct gp_observation *o, bool under_way,
		      bool known, uint32_t is)
{
	if (a->accepted)
		return known ? is == a->target : !a->observable;
	return !under_way && (known || o->failed || !a->observable);
}

/* Compares a pending action with the observation. `is` is the current state, if `known`. Returns
 * true if the action has just succeeded. */
static bool settle(struct gp_engine *e, struct gp_task *t, struct gp_attempt *a, uint64_t now_ns,
		   const struct gp_observation *o, bool under_way, bool known, uint32_t is)
{
	bool unsure = a == &t->hold && o->unsure;
	bool good = known ? is == a->target && !unsure : a->accepted || !o->failed;

	a->observable |= known;
	if (!a->in_flight)
		return false;
	if (!has_ended(a, o, under_way, known, is)) {
		/* An action with an invisible effect gets more time. */
		uint64_t patience_ns = known ? 0 : e->config.backoff_max_ns;

		if ((a->accepted || !under_way) && now_ns >= gp_time_add(a->lost_ns, patience_ns))
			gp_attempt_failed(e, t, a, now_ns, -ETIME, 0);
		return false;
	}
	if (!good) {
		gp_attempt_failed(e, t, a, now_ns, o->failed ? o->failed : -EIO, o->driver_code);
		return false;
	}
	a->in_flight = false;
	a->backoff_ns = 0;
	a->not_before_ns = 0;
	return true;
}

void gp_note_undone(struct gp_engine *e, struct gp_task *t, uint64_t now_ns)
{
	t->undone_ns = now_ns;
	if (t->undone_told)
		return;
	gp_counters_of(e, t)->undone++;
	e->stats.undone++;
	gp_engine_emit(e, now_ns, GP_EVENT_UNDONE, t->id, 0, 0);
}

void gp_note_lapse(struct gp_engine *e, const struct gp_task *t, bool worked)
{
	struct gp_lapses *lapses = &gp_counters_of(e, t)->lapses;

	if (!t->held || t->effect_due || t->untold)
		return;
	lapses->all++;
	lapses->worked += worked;
}

/* The driver confirmed the last hold or release; later activity proves or disproves it. If it is
 * disproved, it has failed, and is neither counted nor announced, until the back end is sure of it
 * again: it has seen work late. */
static void settle_effect(struct gp_engine *e, struct gp_task *t, const struct gp_observation *o,
			  uint64_t now_ns)
{
	bool disproved = o->unsure && !t->unsure && o->failed && t->touched;

	if (disproved && !t->hold.in_flight) {
		gp_note_lapse(e, t, true);
		gp_attempt_failed(e, t, &t->hold, now_ns, o->failed, o->driver_code);
	}
	if (t->untold && !o->unsure && (o->known & GP_KNOWN_HELD) && o->held == t->held &&
	    !t->hold.in_flight) {
		t->effect_due = true;
		t->untold = false;
	}
	if (o->unsure) {
		t->untold |= t->effect_due;
		t->stood_still |= t->effect_due && !t->held;
		t->effect_due = false;
	} else if (t->effect_due && !o->unproven && !t->hold.in_flight) {
		gp_effect_confirmed(e, t, now_ns);
		t->distrusted &= !t->held;
	}
	t->unsure = o->unsure || (t->unsure && !(o->known & GP_KNOWN_HELD));
	t->unproven = o->unproven;
	t->evidence = o->evidence;
	t->in_part = o->in_part;
	t->unfinished = o->unfinished;
}

/* The state changed without a request that is under way. If the back end reports a failure, the
 * hold did not last. Otherwise another process changed the state. */
static void note_change(struct gp_engine *e, struct gp_task *t, const struct gp_observation *o,
			uint64_t now_ns)
{
	if (!t->touched)
		return;
	if (!t->undone_told)
		gp_note_lapse(e, t, false);
	if (o->failed && !o->held)
		gp_attempt_failed(e, t, &t->hold, now_ns, o->failed, o->driver_code);
	else
		gp_note_undone(e, t, now_ns);
}

static void settle_hold(struct gp_engine *e, struct gp_task *t, const struct gp_observation *o,
			uint64_t now_ns)
{
	bool known = o->known & GP_KNOWN_HELD;
	bool was = t->held, was_in_flight = t->hold.in_flight, untold;
	bool was_released = !was && !t->unsure && !t->untold;

	settle_effect(e, t, o, now_ns);
	untold = t->untold;
	if (settle(e, t, &t->hold, now_ns, o, o->under_way & GP_UNDER_WAY_HOLD, known, o->held)) {
		t->held = t->hold.target;
		t->unsure = o->unsure;
		t->our_hold |= t->held; /* an observation in between may have cleared it */
		t->untold = false;
		if (t->held || !was_released) /* else it was released again */
			gp_hold_took_effect(e, t, now_ns - t->hold.issued_ns, o->unproven);
	} else if (!known && was_in_flight && !t->hold.in_flight) {
		/* The task may be released, or this engine may still hold it. */
		t->held = false;
		t->unsure = true;
		t->untold |= was;
		return;
	} else if (known && !o->unsure && o->held != t->held && !t->hold.in_flight) {
		note_change(e, t, o, now_ns);
		t->held = o->held;
		t->effect_due = t->untold = false;
	}
	if (known && !o->held && !o->unsure && !o->unproven && !t->hold.in_flight)
		t->our_hold = false; /* also after a hold that failed */
	if (t->held == was && t->untold == untold)
		return;
	t->our_hold &= t->held || t->effect_due;
	/* A released task is assumed to have the device if the device cannot show whether it runs.
	 */
	if (!t->held && !(o->known & GP_KNOWN_RUNNING))
		t->last_progress_ns = now_ns;
	if (!t->effect_due)
		gp_engine_emit(e, now_ns, t->held ? GP_EVENT_HELD : GP_EVENT_RELEASED, t->id, 0, 0);
}

static void note_eviction(struct gp_engine *e, struct gp_task *t, const struct gp_observation *o,
			  uint64_t now_ns)
{
	struct gp_eviction was = t->evicted;

	t->evicted = (struct gp_eviction){o->evicted_ns, o->evicted_by_reset};
	if (t->evicted.ns && (!was.ns || was.by_reset != t->evicted.by_reset))
		gp_engine_emit(e, now_ns, GP_EVENT_EVICTED, t->id, 0, 0);
	else if (was.ns && !t->evicted.ns && !o->eviction_lost)
		gp_engine_emit(e, now_ns, GP_EVENT_RESTORED, t->id, 0, 0);
}

static void settle_slice(struct gp_engine *e, struct gp_task *t, const struct gp_observation *o,
			 uint64_t now_ns)
{
	bool known = o->known & GP_KNOWN_SLICE;
	bool was_in_flight = t->slice.in_flight;

	if (settle(e, t, &t->slice, now_ns, o, o->under_way & GP_UNDER_WAY_SLICE, known,
		   o->slice_us)) {
		t->slice_us = t->slice.target;
		e->stats.slices++;
		return;
	}
	if (was_in_flight && !t->slice.in_flight)
		gp_engine_renew_record(e, t); /* the record may name a slice that proved wrong */
	if (known && o->slice_us != t->slice_us) {
		if (!t->slice.in_flight && t->touched)
			gp_note_undone(e, t, now_ns);
		t->slice_us = o->slice_us;
	}
}

/* Any run time counts as progress. The policy judges whether the task got enough. */
static void note_run(struct gp_task *t, const struct gp_observation *o)
{
	if (o->run_ns == t->last_run_ns)
		return;
	t->last_run_ns = o->run_ns;
	if (o->run_at_ns > t->last_progress_ns)
		t->last_progress_ns = o->run_at_ns;
}

/* Evidence from a single instant. If the hardware switches tasks by itself, a task that is off the
 * hardware at one instant may still get its turns. A known run time is better evidence than being
 * on the hardware at one instant. */
static bool is_seen_on(const struct gp_engine *e, const struct gp_task_view *v)
{
	return (v->known & GP_KNOWN_RUNNING) && v->running &&
	       (!(e->gpu->info.caps & GP_CAP_SLICE) || !(v->known & GP_KNOWN_RUN));
}

static bool is_seen_off(const struct gp_engine *e, const struct gp_task_view *v)
{
	return gp_seen_active(v) && (v->known & GP_KNOWN_RUNNING) && !v->running &&
	       !(e->gpu->info.caps & GP_CAP_SLICE);
}

/*
 * Measures how long the task has wanted the device without getting it. If the task is held or seen
 * off the hardware, there is evidence up to now. If only its run time is known, there is evidence
 * up to the last sample. Without evidence the wait is unknown and counting starts again. Returns
 * the run time since the last tick, as far as it is known.
 */
static uint64_t measure_wait(struct gp_engine *e, struct gp_task *t, struct gp_task_view *v,
			     const struct gp_observation *o, uint64_t now_ns)
{
	uint64_t evidence_ns = 0, ran_ns = t->last_run_ns;

	if (o->known & GP_KNOWN_RUN)
		note_run(t, o);
	if (is_seen_on(e, v))
		t->last_progress_ns = now_ns;
	if (t->held || is_seen_on(e, v) || is_seen_off(e, v))
		evidence_ns = now_ns;
	else if (o->known & GP_KNOWN_RUN)
		evidence_ns = o->run_at_ns;
	if (t->gang_user_hold || gp_seen_idle(v) || !evidence_ns)
		t->last_progress_ns = now_ns;

	t->waited_known = evidence_ns >= t->last_progress_ns && evidence_ns;
	if (t->waited_known) {
		v->known |= GP_KNOWN_WAITED;
		v->waited_ns = evidence_ns - t->last_progress_ns;
		if (v->waited_ns > t->waited_max_ns)
			t->waited_max_ns = v->waited_ns;
	}
	ran_ns = t->last_run_ns - ran_ns;
	if (t->waits || v->waited_ns)
		gp_account_wait(e, t, v, o, evidence_ns, ran_ns);
	return ran_ns;
}

/*
 * Measures how much of the wait the policy causes: its plan holds the task, or releases it and the
 * hardware does not serve it. A task does not starve while the plan releases it but the back end
 * fails to release it. Nor does a released task starve that is not known to want the device. Only
 * time with new evidence counts, without time in which the owning thread was suspended. If the wait
 * is shorter than at the last tick, the earlier wait has ended.
 */
static void measure_starvation(struct gp_task *t, const struct gp_task_view *v, uint64_t gap_ns)
{
	uint64_t more_ns = v->waited_ns - t->last_waited_ns;
	bool settled = !t->hold.in_flight && !t->hold.backoff_ns && !t->slice.in_flight &&
		       !t->slice.backoff_ns;

	if (!(v->known & GP_KNOWN_WAITED)) {
		return;
	} else if (t->attr.class == GP_UNMANAGED || t->gang_user_hold || gp_seen_idle(v) ||
		   v->waited_ns < t->last_waited_ns || (!t->held && !gp_seen_active(v))) {
		t->starved_ns = 0;
	} else if (t->held ? t->policy_hold : settled) {
		t->starved_ns += more_ns > gap_ns ? more_ns - gap_ns : 0;
	}
	t->last_waited_ns = v->waited_ns;
}

void gp_engine_fill_view(const struct gp_task *t, struct gp_task_view *v,
			 const struct gp_observation *o)
{
	*v = (struct gp_task_view){
		.id = t->id,
		.gang = t->gang,
		.known = o->known & ~(uint32_t)GP_KNOWN_WAITED,
		.class = t->attr.class,
		.priority = t->attr.priority,
		.held_by = (uint8_t)((t->policy_hold ? GP_HELD_BY_POLICY : 0) |
				     (t->gang_user_hold ? GP_HELD_BY_USER : 0)),
		.run_source = o->run_source,
		.active = o->active,
		.running = o->running,
		.held = o->held,
		.slice_us = o->slice_us,
		.weight = t->attr.weight,
		.share_permille = t->attr.share_permille,
		.ceiling_permille = t->attr.ceiling_permille,
		.deadline_ns = t->attr.deadline_ns,
		.budget_ns = t->attr.budget_ns,
		.pending = o->pending,
		.active_since_ns = o->active_since_ns,
		.run_ns = o->run_ns,
	};
}

/* Whether the task works at this moment, not only in an old sample. */
static bool works_now(const struct gp_engine *e, const struct gp_task_view *v)
{
	return gp_seen_active(v) &&
	       gp_tells_in_time(e->gpu->info.caps, e->gpu->info.sample_period_ns);
}

/* A task with a hint counts as active until the back end sees its work or the hint expires. */
static void apply_hint(struct gp_engine *e, struct gp_task *t, struct gp_task_view *v,
		       uint64_t now_ns)
{
	if (!t->hint_until_ns)
		return;
	if (now_ns >= t->hint_until_ns || works_now(e, v)) {
		t->hint_until_ns = 0;
		return;
	}
	v->known |= GP_KNOWN_ACTIVE | GP_KNOWN_ACTIVE_SINCE;
	v->active = true;
	v->active_since_ns = t->hint_ns;
	if (t->hint_until_ns < e->hint_over_ns)
		e->hint_over_ns = t->hint_until_ns;
}

/* A program's marks override what the back end infers, because a gap between two kernels does not
 * end the request. But work that the back end sees at this moment counts. */
static void apply_mark(const struct gp_engine *e, const struct gp_task *t, struct gp_task_view *v)
{
	bool seen_now = works_now(e, v);

	if (!t->has_marks)
		return;
	v->known |= GP_KNOWN_REQUEST | GP_KNOWN_ACTIVE;
	v->in_request = t->in_request;
	v->active = t->in_request || seen_now;
	if (!t->in_request)
		return;
	v->known |= GP_KNOWN_ACTIVE_SINCE;
	v->active_since_ns = t->request_since_ns;
}

/* `ns` since the last tick. A task that stays held after its release failed is not known to run. */
static void account_hold(struct gp_task *t, uint64_t ns)
{
	bool stuck = t->held && !t->hold.target && (t->hold.in_flight || t->hold.backoff_ns);

	if (t->held && t->policy_hold && !t->unsure)
		*(t->effect_due ? &t->effect_held_ns : &t->held_ns) += ns;
	else if (stuck || (!t->held && (t->effect_due || t->unsure)))
		t->unproven_ns += ns;
}

static void observe_task(struct gp_engine *e, unsigned i, uint64_t now_ns, bool blind,
			 struct gp_tick *tick)
{
	struct gp_task *t = &e->task[i];
	struct gp_task_view *v = &e->view_task[i];
	const struct gp_observation *o = &e->seen[i];
	uint64_t ran_ns;

	if (!blind) {
		settle_hold(e, t, o, now_ns);
		settle_slice(e, t, o, now_ns);
		note_eviction(e, t, o, now_ns);
	}
	gp_engine_fill_view(t, v, o);
	apply_mark(e, t, v);
	apply_hint(e, t, v, now_ns);
	ran_ns = measure_wait(e, t, v, o, now_ns);
	measure_starvation(t, v, e->gap_ns);
	if (t->starved_ns > e->starved_ns)
		e->starved_ns = t->starved_ns;
	if (t->starved_ns > tick->starved_ns && (v->known & GP_KNOWN_WAITED))
		tick->starved_ns = t->starved_ns;
	account_hold(t, now_ns - e->last_tick_ns);
	tick->ran_ns += o->run_source == GP_RUN_MEASURED ? ran_ns : 0;
	tick->measured |= o->run_source == GP_RUN_MEASURED;
	tick->active |= v->active;
	tick->known &= v->known;
	if (gp_has_begun(t, v) || o->scheduled > t->scheduled)
		gp_account_task(e, i, now_ns);
}

void gp_engine_observe(struct gp_engine *e, uint64_t now_ns)
{
	const struct gp_gpu_info *info = &e->gpu->info;
	struct gp_tick tick = {.known = UINT32_MAX};
	bool blind;

	if (e->gangs_stale)
		gp_engine_update_gangs(e);
	for (unsigned i = 0; i < e->n; i++)
		e->seen[i] = (struct gp_observation){.handle = e->task[i].handle};
	blind = e->n && gp_gpu_observe(e->gpu, now_ns, e->seen, e->n);
	if (blind) {
		memset(e->seen, 0, e->n * sizeof *e->seen); /* a partial answer is not used */
		e->stats.blind++;
	}
	e->starved_ns = 0;
	e->hint_over_ns = GP_NEVER;
	for (unsigned i = 0; i < e->n; i++)
		observe_task(e, i, now_ns, blind, &tick);
	gp_account_tick(e, now_ns, &tick);
	e->view = (struct gp_view){
		.now_ns = now_ns,
		.caps = gp_engine_caps(e),
		.max_held = info->max_held,
		.slice_default_us = info->slice_default_us,
		.slice_min_us = info->slice_min_us,
		.slice_max_us = info->slice_max_us,
		.hold_cost_ns = info->hold_cost_ns,
		.release_cost_ns = info->release_cost_ns,
		.switch_cost_ns = info->switch_cost_ns,
		.sample_period_ns = info->sample_period_ns,
		.notice_ns = info->notice_ns,
		.starve_limit_ns = e->config.starve_limit_ns,
		.n = e->n,
		.task = e->view_task,
		.state = &e->state,
	};
	e->stats.ticks++;
}
