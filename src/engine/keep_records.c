/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undo records are written before the first change, and again after another process undid our
 * changes.
 *
 * Another process may undo at any time: between two ticks, in the middle of a batch, or between a
 * driver call and its effect. So no state is trusted afterwards. The records are written first;
 * then every desired hold and slice is requested again, which has no effect where it is in force.
 */
#include "base/log.h"
#include "engine/engine_state.h"

/* The record is written if this returns 0. */
int gp_engine_keep_record(struct gp_engine *e, struct gp_task *t)
{
	struct gp_undo undo;
	int r;

	if (t->undo_kept || !e->config.before_change)
		return 0;
	r = gp_gpu_undo_record(e->gpu, t->handle, &undo);
	if (!r)
		r = e->config.before_change(e->config.arg, &undo);
	t->undo_kept = !r;
	if (!r)
		t->unrecorded = false;
	return r;
}

void gp_engine_renew_undo(struct gp_engine *e)
{
	for (unsigned i = 0; i < e->n; i++) {
		struct gp_task *t = &e->task[i];

		t->undo_kept = false;
		if (!t->touched)
			continue;
		t->hold_again = t->slice_again = true;
		t->unrecorded = gp_engine_keep_record(e, t) != 0;
	}
	gp_engine_trigger(e, false);
}

static unsigned count_touched(const struct gp_engine *e)
{
	unsigned n = 0;

	for (unsigned i = 0; i < e->n; i++)
		n += e->task[i].touched;
	return n;
}

/* Checks the epoch. If it changed, renews the records and emits an event. */
bool gp_engine_epoch_changed(struct gp_engine *e, uint64_t now_ns)
{
	uint64_t epoch = e->config.epoch ? e->config.epoch(e->config.arg) : e->epoch;
	unsigned touched;

	if (epoch == e->epoch)
		return false;
	e->epoch = epoch;
	touched = count_touched(e);
	gp_engine_renew_undo(e);
	if (touched) {
		gp_log(GP_LOG_WARN, "undone", "tasks=%u", touched);
		gp_engine_emit(e, now_ns, GP_EVENT_UNDONE, 0, 0, 0);
	}
	return true;
}

/* Retries the records that could not be written, with backoff. */
void gp_engine_recover_records(struct gp_engine *e, uint64_t now_ns)
{
	for (unsigned i = 0; i < e->n; i++) {
		struct gp_task *t = &e->task[i];
		int r = 0;

		if (!t->unrecorded)
			continue;
		if (now_ns >= t->record.not_before_ns)
			r = gp_engine_keep_record(e, t);
		if (r)
			gp_attempt_failed(e, t, &t->record, now_ns, r, 0);
		if (!t->unrecorded)
			t->record = (struct gp_attempt){0};
		else if (t->record.not_before_ns < e->next_attempt_ns)
			e->next_attempt_ns = t->record.not_before_ns;
	}
}
