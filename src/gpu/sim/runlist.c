/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One context at a time, round robin by slice, in the fixed order of the runlist. A context that
 * falls idle yields at once and stays loaded, so that its next kernel starts without a switch if
 * nobody came in between. A slice that ends while nobody else is ready begins anew: a newcomer
 * waits for the end of the current one, and with a slice of 1 us not at all.
 */
#include "gpu/sim/model.h"

static void line_add(struct gp_sim *s, const struct sim_task *t)
{
	s->ready[t->index / 64] |= 1ull << (t->index % 64);
	s->nready++;
}

static void line_remove(struct gp_sim *s, const struct sim_task *t)
{
	uint64_t bit = 1ull << (t->index % 64);

	if (!(s->ready[t->index / 64] & bit))
		return;
	s->ready[t->index / 64] &= ~bit;
	s->nready--;
}

static bool line_is_empty(const struct gp_sim *s)
{
	return !s->nready;
}

/* The first that is ready behind the loaded one, round the end of the list. It is not empty. */
static struct sim_task *line_next(const struct gp_sim *s)
{
	uint32_t words = s->ntasks / 64 + 1;
	uint32_t after = (s->loaded->index + 1) % s->ntasks;
	uint32_t w = after / 64;
	uint64_t bits = s->ready[w] & ~0ull << (after % 64);

	while (!bits) {
		w = (w + 1) % words;
		bits = s->ready[w];
	}
	return &s->task[w * 64 + (uint32_t)__builtin_ctzll(bits)];
}

/* Brings time and progress of the current phase up to now. */
static void keep_books(struct gp_sim *s)
{
	uint64_t took_ns = s->now_ns - s->phase_ns;
	struct sim_task *t = s->loaded;

	s->phase_ns = s->now_ns;
	if (s->phase == PHASE_SWITCH)
		s->totals.switch_ns += took_ns;
	if (s->phase != PHASE_RUN)
		return;
	s->totals.busy_ns += took_ns;
	t->result.run_ns += took_ns;
	if (t->spins)
		return;
	if (took_ns <= s->refill_ns) {
		s->refill_ns -= took_ns;
		return;
	}
	took_ns -= s->refill_ns;
	s->refill_ns = 0;
	t->left_ns -= took_ns;
	t->result.work_ns += took_ns;
}

static void enter(struct gp_sim *s, enum phase phase)
{
	if (s->phase == PHASE_RUN)
		sim_tell(s, GP_SIM_STOP, s->loaded);
	s->phase = phase;
}

/* When the running context must give way to those in line. */
static uint64_t slice_end(const struct gp_sim *s)
{
	uint64_t slice_ns = s->loaded->slice_us * GP_NS_PER_US;
	uint64_t had_ns = s->now_ns - s->turn_ns;
	uint64_t slices = (had_ns + slice_ns - 1) / slice_ns;

	return s->turn_ns + (slices ? slices : 1) * slice_ns;
}

static void set_run_timer(struct gp_sim *s)
{
	uint64_t refilled_ns = s->now_ns + s->refill_ns, end_ns = GP_NEVER;

	if (!s->loaded->spins)
		end_ns = refilled_ns + s->loaded->left_ns;
	if (!line_is_empty(s) && slice_end(s) < end_ns)
		end_ns = slice_end(s) > refilled_ns ? slice_end(s) : refilled_ns;
	if (end_ns == GP_NEVER)
		gp_heap_cancel(&s->heap, &s->timer);
	else
		gp_heap_set(&s->heap, &s->timer, end_ns);
}

static void run_loaded(struct gp_sim *s)
{
	struct sim_task *t = s->loaded;

	enter(s, PHASE_RUN);
	s->turn_ns = s->now_ns;
	s->refill_ns = t->cut ? s->device.refill_ns : 0;
	t->cut = false;
	sim_tell(s, GP_SIM_RUN, t);
	set_run_timer(s);
}

/* The next in line, or nobody. */
static void give_to_next(struct gp_sim *s)
{
	bool idle = !s->loaded->has_work;
	struct sim_task *t;

	if (line_is_empty(s)) {
		enter(s, PHASE_IDLE);
		gp_heap_cancel(&s->heap, &s->timer);
		return;
	}
	t = line_next(s);
	line_remove(s, t);
	if (t == s->loaded) {
		run_loaded(s);
		return;
	}
	enter(s, PHASE_SWITCH);
	s->target = t;
	s->totals.switches++;
	sim_tell(s, GP_SIM_SWITCH, t);
	gp_heap_set(&s->heap, &s->timer,
	            s->now_ns + (idle ? s->device.switch_idle_ns : s->device.switch_ns));
}

static void take_off(struct gp_sim *s, struct sim_task *t)
{
	t->cut = !t->spins && t->left_ns < t->config.kernel_ns;
	s->totals.preemptions++;
}

static void finish_switch(struct gp_sim *s)
{
	struct sim_task *t = s->target;

	s->loaded = t;
	s->target = NULL;
	if (t->has_work && !t->held)
		run_loaded(s);
	else
		give_to_next(s);
}

static void finish_kernel(struct gp_sim *s)
{
	struct sim_task *t = s->loaded;

	t->has_work = false;
	load_request_done(s, t);
	if (t->has_work) {
		set_run_timer(s); /* goes on in its slice */
		return;
	}
	sim_tell(s, GP_SIM_DONE, t);
	backend_activity_changed(s, t);
	give_to_next(s);
}

void runlist_timer(struct gp_sim *s)
{
	struct sim_task *t = s->loaded;

	keep_books(s);
	if (s->phase == PHASE_SWITCH) {
		finish_switch(s);
	} else if (!t->spins && !t->left_ns) {
		finish_kernel(s);
	} else {
		take_off(s, t);
		line_add(s, t);
		give_to_next(s);
	}
}

static void join_line(struct gp_sim *s, struct sim_task *t)
{
	keep_books(s);
	line_add(s, t);
	if (s->phase == PHASE_IDLE)
		give_to_next(s);
	else if (s->phase == PHASE_RUN)
		set_run_timer(s);
}

void runlist_work_arrives(struct gp_sim *s, struct sim_task *t)
{
	t->active_since_ns = s->now_ns;
	sim_tell(s, GP_SIM_READY, t);
	backend_activity_changed(s, t);
	if (!t->held && t != s->target)
		join_line(s, t);
}

void runlist_work_changes(struct gp_sim *s, struct sim_task *t)
{
	if (s->phase == PHASE_RUN && s->loaded == t) {
		keep_books(s);
		t->spins = false;
		set_run_timer(s);
	}
	t->spins = false;
}

/* Off the hardware or out of the line, whichever it is in. */
static void withdraw(struct gp_sim *s, struct sim_task *t, bool leaves)
{
	line_remove(s, t);
	if (s->phase == PHASE_RUN && s->loaded == t) {
		keep_books(s);
		if (!leaves)
			take_off(s, t);
		give_to_next(s);
	} else if (s->phase == PHASE_RUN) {
		keep_books(s);
		set_run_timer(s); /* perhaps nobody waits any more */
	}
}

void runlist_task_leaves(struct gp_sim *s, struct sim_task *t)
{
	bool had_work = t->has_work;

	withdraw(s, t, true);
	t->has_work = false;
	if (had_work)
		sim_tell(s, GP_SIM_DONE, t);
}

void runlist_hold(struct gp_sim *s, struct sim_task *t)
{
	if (t->held)
		return;
	t->held = true;
	sim_tell(s, GP_SIM_HELD, t);
	if (t->has_work)
		withdraw(s, t, false);
}

void runlist_release(struct gp_sim *s, struct sim_task *t)
{
	if (!t->held)
		return;
	t->held = false;
	t->loose_since_ns = s->now_ns;
	sim_tell(s, GP_SIM_RELEASED, t);
	if (t->has_work && t != s->target)
		join_line(s, t);
}

/* Takes effect at once: the slice begins anew. */
void runlist_set_slice(struct gp_sim *s, struct sim_task *t, uint32_t slice_us)
{
	t->slice_us = slice_us;
	if (s->phase != PHASE_RUN || s->loaded != t)
		return;
	keep_books(s);
	s->turn_ns = s->now_ns;
	set_run_timer(s);
}

void runlist_close_books(struct gp_sim *s)
{
	keep_books(s);
}
