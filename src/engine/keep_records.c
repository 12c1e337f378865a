/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undo records: written before the first change, and again when somebody else undid our work.
 *
 * Whoever undoes may do so at any time: while we looked the other way, in the middle of a batch, or
 * between a call to the driver and its effect. So nothing is believed afterwards: records first,
 * then every hold and slice that is wanted is asked for once more, which changes nothing where it
 * is there.
 */
#include "base/log.h"
#include "engine/engine_state.h"

/* The record stands when this returns 0. */
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

/* Renews, if so, and says it. */
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
		gp_engine_tell(e, now_ns, GP_EVENT_UNDONE, 0, 0, 0);
	}
	return true;
}

/* Those that could not be written, with patience. */
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
