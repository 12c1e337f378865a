/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undo records are written before the first change, and again after another process undid our
 * changes.
 *
 * Another process may undo at any time: between two ticks, in the middle of a batch, or between a
 * driver call and its effect. So no state is trusted afterwards. The records are written first.
 * Then every desired hold and slice is requested again; a request for a state that is already in
 * force has no effect.
 *
 * Another process may also ask for the release of a task. The task is then put back whatever the
 * plan says. Its record is dropped when the device shows its original state, and the plan applies
 * again from the next tick on.
 */
#include "base/log.h"
#include "engine/engine_state.h"

/* Writes the undo record of a task unless it is written. `slice`: the slice is to be changed, so
 * the record must restore it, from now on. Returns 0 or -errno. */
int gp_engine_keep_record(struct gp_engine *e, struct gp_task *t, bool slice)
{
	struct gp_undo undo;
	int r;

	slice |= t->slice_kept;
	if ((t->undo_kept && slice == t->slice_kept) || !e->config.before_change)
		return 0;
	t->prepared = true;
	r = gp_gpu_undo_record(e->gpu, t->handle, &undo);
	undo.hold_only = !slice;
	if (!r)
		r = e->config.before_change(e->config.arg, &undo);
	if (r < 0)
		return r;
	t->record_number = r;
	t->undo_kept = true;
	t->slice_kept = slice;
	t->unrecorded = false;
	return 0;
}

static bool release_is_asked(const struct gp_engine *e, const struct gp_task *t)
{
	return t->undo_kept && e->config.release_asked &&
	       e->config.release_asked(e->config.arg, t->record_number);
}

/* A released task stays stopped if the driver has confirmed a release that it has not made. */
void gp_engine_release_again(struct gp_task *t)
{
	t->release_again |= t->prepared && !t->held && !t->unsure && !t->unproven &&
			    !t->hold.in_flight && t->evidence == GP_EVIDENCE_DRIVER;
}

static void note_request(const struct gp_engine *e, struct gp_task *t)
{
	if (t->let_go || !release_is_asked(e, t))
		return;
	t->let_go = true;
	gp_engine_release_again(t);
}

void gp_engine_renew_record(struct gp_engine *e, struct gp_task *t)
{
	if (!t->undo_kept)
		return;
	note_request(e, t);
	t->undo_kept = false;
	if (gp_engine_keep_record(e, t, false))
		t->undo_kept = true; /* the old record remains */
}

static bool is_original(const struct gp_task *t)
{
	return !t->held && !t->our_hold && !t->unsure && !t->release_again && !t->slice_us &&
	       !t->hold.in_flight && !t->slice.in_flight;
}

static void drop_record(struct gp_engine *e, struct gp_task *t)
{
	if (!t->undo_kept || !e->config.drop_record)
		return;
	e->config.drop_record(e->config.arg, t->record_number);
	t->undo_kept = t->slice_kept = t->touched = t->hold_again = t->slice_again = false;
}

/* A record tells other processes that this process has changed the task or is about to change it.
 * So it must not outlive the change, as far as the back end knows that this has ended. The same
 * holds for what the back end has prepared. */
void gp_engine_drop_records(struct gp_engine *e)
{
	for (unsigned i = 0; i < e->n; i++) {
		struct gp_task *t = &e->task[i];

		if (!(t->undo_kept || t->prepared) || t->let_go || t->attr.class != GP_UNMANAGED ||
		    t->gang_user_hold || !is_original(t) || t->unfinished)
			continue;
		drop_record(e, t);
		if (t->prepared)
			gp_gpu_unprepare(e->gpu, t->handle);
		t->prepared = false;
	}
}

/*
 * The device does not list the task any more. If it reads back as released, nothing is left to
 * undo: its process has ended, or has executed another program. Otherwise the record stays: another
 * process may have inherited the queues, or the driver may have left the task out.
 */
void gp_engine_drop_record_of_gone(struct gp_engine *e, uint64_t now_ns, struct gp_task *t)
{
	struct gp_observation o = {.handle = t->handle};

	if (t->slice_us || t->slice.in_flight || gp_gpu_observe(e->gpu, now_ns, &o, 1))
		return;
	if ((o.known & GP_KNOWN_HELD) && !o.held && !o.unsure && !o.under_way)
		drop_record(e, t);
}

static void finish_letting_go(struct gp_engine *e, struct gp_task *t)
{
	if (!t->let_go || !is_original(t))
		return;
	e->config.drop_record(e->config.arg, t->record_number);
	t->let_go = t->touched = t->undo_kept = t->slice_kept = false;
	t->hold_again = t->slice_again = false;
	gp_engine_trigger(e, false); /* the plan applies again */
}

void gp_engine_renew_undo(struct gp_engine *e)
{
	for (unsigned i = 0; i < e->n; i++) {
		struct gp_task *t = &e->task[i];

		note_request(e, t);
		t->undo_kept = false;
		if (!t->touched)
			continue;
		t->hold_again = t->slice_again = true;
		t->unrecorded = gp_engine_keep_record(e, t, false) != 0;
	}
	gp_engine_trigger(e, false);
}

/* The record tells it. The device may not show it, and the back end may not know it yet. */
static bool was_undone(const struct gp_engine *e, const struct gp_task *t)
{
	return (t->our_hold || t->slice_us) && t->undo_kept && e->config.undone_ns &&
	       e->config.undone_ns(e->config.arg, t->record_number) > t->undone_ns;
}

static void tell_undone(struct gp_engine *e, uint64_t now_ns)
{
	unsigned n = 0;

	for (unsigned i = 0; i < e->n; i++) {
		struct gp_task *t = &e->task[i];

		if (!was_undone(e, t))
			continue;
		gp_note_lapse(e, t, false);
		gp_note_undone(e, t, now_ns);
		t->undone_told = true;
		n++;
	}
	if (n)
		gp_log(GP_LOG_WARN, "undone", "tasks=%u", n);
}

/* Checks the epoch. If it changed, another process undid changes, perhaps of another owner only.
 * Renews the records, and reports the tasks that were undone. */
bool gp_engine_epoch_changed(struct gp_engine *e, uint64_t now_ns)
{
	uint64_t epoch = e->config.epoch ? e->config.epoch(e->config.arg) : e->epoch;

	if (epoch == e->epoch)
		return false;
	e->epoch = epoch;
	tell_undone(e, now_ns);
	gp_engine_renew_undo(e);
	return true;
}

/* Drops the records of tasks that were released because another process asked for it. Retries, with
 * backoff, the records that could not be written. */
void gp_engine_recover_records(struct gp_engine *e, uint64_t now_ns)
{
	for (unsigned i = 0; i < e->n; i++) {
		struct gp_task *t = &e->task[i];
		int r = 0;

		finish_letting_go(e, t);
		if (!t->unrecorded)
			continue;
		if (now_ns >= t->record.not_before_ns)
			r = gp_engine_keep_record(e, t, false);
		if (r)
			gp_attempt_not_made(e, t, &t->record, now_ns, r, 0);
		if (!t->unrecorded)
			t->record = (struct gp_attempt){0};
		else if (t->record.not_before_ns < e->next_attempt_ns)
			e->next_attempt_ns = t->record.not_before_ns;
	}
}
