/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA: one context at a time, round robin by slice, in the fixed order of the runlist. A context
 * that becomes idle yields at once and stays loaded. Its next kernel starts without a switch if no
 * other context was loaded in between. A slice that ends while no other context is ready begins
 * again. So a context that becomes ready waits for the end of the current slice; with a slice of 1
 * us it does not wait.
 */
#include <stdlib.h>

#include "sim/model/model.h"

enum phase { PHASE_IDLE, PHASE_RUN, PHASE_SWITCH };

struct runlist {
	enum phase phase;
	struct gp_sim_task_state
		*loaded; /* its context is on the hardware; stays when it becomes idle */
	struct gp_sim_task_state
		idle_context; /* loaded at first: it never has work, and is last in the list */
	struct gp_sim_task_state *target; /* of the current switch */
	uint64_t *ready; /* one bit per task that waits for its turn, in runlist order */
	uint32_t nready;
	uint64_t phase_ns;  /* the accounts of this phase are up to this time */
	uint64_t turn_ns;   /* begin of the loaded context's slice */
	uint64_t refill_ns; /* rest of the refill */
};

static void ready_add(struct gp_sim *s, const struct gp_sim_task_state *t)
{
	struct runlist *r = s->state;

	r->ready[t->index / 64] |= 1ull << (t->index % 64);
	r->nready++;
}

static void ready_remove(struct gp_sim *s, const struct gp_sim_task_state *t)
{
	struct runlist *r = s->state;
	uint64_t bit = 1ull << (t->index % 64);

	if (!(r->ready[t->index / 64] & bit))
		return;
	r->ready[t->index / 64] &= ~bit;
	r->nready--;
}

static bool ready_is_empty(const struct gp_sim *s)
{
	const struct runlist *r = s->state;

	return !r->nready;
}

/* The first ready task after the loaded one, cyclic. At least one must be ready. */
static struct gp_sim_task_state *ready_next(const struct gp_sim *s)
{
	const struct runlist *r = s->state;
	uint32_t words = s->ntasks / 64 + 1;
	uint32_t after = (r->loaded->index + 1) % s->ntasks;
	uint32_t w = after / 64;
	uint64_t bits = r->ready[w] & ~0ull << (after % 64);

	while (!bits) {
		w = (w + 1) % words;
		bits = r->ready[w];
	}
	return &s->task[w * 64 + (uint32_t)__builtin_ctzll(bits)];
}

/* Brings time and progress of the current phase up to now. */
static void update_accounts(struct gp_sim *s)
{
	struct runlist *r = s->state;
	uint64_t took_ns = s->now_ns - r->phase_ns;
	struct gp_sim_task_state *t = r->loaded;

	r->phase_ns = s->now_ns;
	if (r->phase == PHASE_SWITCH)
		s->totals.switch_ns += took_ns;
	if (r->phase != PHASE_RUN)
		return;
	s->totals.busy_ns += took_ns;
	t->result.run_ns += took_ns;
	if (t->spins)
		return;
	if (took_ns <= r->refill_ns) {
		r->refill_ns -= took_ns;
		return;
	}
	took_ns -= r->refill_ns;
	r->refill_ns = 0;
	t->left_ns -= took_ns;
	t->result.work_ns += took_ns;
}

static void enter(struct gp_sim *s, enum phase phase)
{
	struct runlist *r = s->state;

	if (r->phase == PHASE_RUN)
		gp_sim_notify(s, GP_SIM_STOP, r->loaded);
	r->phase = phase;
}

/* When the running context must yield to the ready ones. */
static uint64_t slice_end(const struct gp_sim *s)
{
	const struct runlist *r = s->state;
	uint64_t slice_ns = r->loaded->slice_us * GP_NS_PER_US;
	uint64_t had_ns = s->now_ns - r->turn_ns;
	uint64_t slices = (had_ns + slice_ns - 1) / slice_ns;

	return r->turn_ns + (slices ? slices : 1) * slice_ns;
}

static void set_run_timer(struct gp_sim *s)
{
	struct runlist *r = s->state;
	uint64_t refilled_ns = s->now_ns + r->refill_ns, end_ns = GP_NEVER;

	gp_sim_changed(s, r->loaded); /* observers see when its work will end */
	if (!r->loaded->spins)
		end_ns = refilled_ns + r->loaded->left_ns;
	if (!ready_is_empty(s) && slice_end(s) < end_ns)
		end_ns = slice_end(s) > refilled_ns ? slice_end(s) : refilled_ns;
	if (end_ns == GP_NEVER)
		gp_heap_cancel(&s->heap, &s->timer);
	else
		gp_heap_set(&s->heap, &s->timer, end_ns);
}

static void run_loaded(struct gp_sim *s)
{
	struct runlist *r = s->state;
	struct gp_sim_task_state *t = r->loaded;

	enter(s, PHASE_RUN);
	r->turn_ns = s->now_ns;
	r->refill_ns = t->interrupted ? s->device.refill_ns : 0;
	t->interrupted = false;
	gp_sim_notify(s, GP_SIM_RUN, t);
	set_run_timer(s);
}

/* Switches to the next ready task, or becomes idle. */
static void switch_to_next(struct gp_sim *s)
{
	struct runlist *r = s->state;
	bool idle = !r->loaded->has_work;
	struct gp_sim_task_state *t;

	if (ready_is_empty(s)) {
		enter(s, PHASE_IDLE);
		gp_heap_cancel(&s->heap, &s->timer);
		return;
	}
	t = ready_next(s);
	ready_remove(s, t);
	if (t == r->loaded) {
		run_loaded(s);
		return;
	}
	enter(s, PHASE_SWITCH);
	r->target = t;
	s->totals.switches++;
	gp_sim_notify(s, GP_SIM_SWITCH, t);
	gp_heap_set(&s->heap, &s->timer,
		    s->now_ns + (idle ? s->device.switch_idle_ns : s->device.switch_ns));
}

static void take_off(struct gp_sim *s, struct gp_sim_task_state *t)
{
	t->interrupted = !t->spins && t->left_ns < t->config.kernel_ns;
	s->totals.preemptions++;
}

static void finish_switch(struct gp_sim *s)
{
	struct runlist *r = s->state;
	struct gp_sim_task_state *t = r->target;

	r->loaded = t;
	r->target = NULL;
	if (t->has_work && !t->held)
		run_loaded(s);
	else
		switch_to_next(s);
}

static void finish_kernel(struct gp_sim *s)
{
	struct runlist *r = s->state;
	struct gp_sim_task_state *t = r->loaded;

	t->has_work = false;
	gp_sim_program_kernel_done(s, t);
	if (t->has_work) {
		set_run_timer(s); /* the context continues in its slice */
		return;
	}
	gp_sim_notify(s, GP_SIM_DONE, t);
	gp_sim_backend_activity_changed(s, t);
	switch_to_next(s);
}

static void timer(struct gp_sim *s)
{
	struct runlist *r = s->state;
	struct gp_sim_task_state *t = r->loaded;

	update_accounts(s);
	if (r->phase == PHASE_SWITCH) {
		finish_switch(s);
	} else if (!t->spins && !t->left_ns) {
		finish_kernel(s);
	} else {
		take_off(s, t);
		ready_add(s, t);
		switch_to_next(s);
	}
}

static void become_ready(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct runlist *r = s->state;

	update_accounts(s);
	ready_add(s, t);
	if (r->phase == PHASE_IDLE)
		switch_to_next(s);
	else if (r->phase == PHASE_RUN)
		set_run_timer(s);
}

static void work_arrives(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct runlist *r = s->state;

	t->active_since_ns = s->now_ns;
	gp_sim_notify(s, GP_SIM_READY, t);
	gp_sim_backend_activity_changed(s, t);
	if (!t->held && t != r->target)
		become_ready(s, t);
}

static void work_changes(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct runlist *r = s->state;

	if (r->phase == PHASE_RUN && r->loaded == t) {
		update_accounts(s);
		t->spins = false;
		set_run_timer(s);
	}
	t->spins = false;
}

/* Takes the task off the hardware, or off the ready list. */
static void withdraw(struct gp_sim *s, struct gp_sim_task_state *t, bool leaves)
{
	struct runlist *r = s->state;

	ready_remove(s, t);
	if (r->phase == PHASE_RUN && r->loaded == t) {
		update_accounts(s);
		if (!leaves)
			take_off(s, t);
		switch_to_next(s);
	} else if (r->phase == PHASE_RUN) {
		update_accounts(s);
		set_run_timer(s); /* the ready list may be empty now */
	}
}

static void task_leaves(struct gp_sim *s, struct gp_sim_task_state *t)
{
	bool had_work = t->has_work;

	withdraw(s, t, true);
	t->has_work = false;
	if (had_work)
		gp_sim_notify(s, GP_SIM_DONE, t);
}

/*
 * A new program must not benefit from the loaded context of the program that had its slot before.
 */
static void task_joins(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct runlist *r = s->state;

	if (r->loaded == t)
		r->loaded = &r->idle_context;
}

static void hold(struct gp_sim *s, struct gp_sim_task_state *t)
{
	if (t->held)
		return;
	t->held = true;
	gp_sim_notify(s, GP_SIM_HELD, t);
	if (t->has_work)
		withdraw(s, t, false);
}

static void release(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct runlist *r = s->state;

	if (!t->held)
		return;
	t->held = false;
	t->released_since_ns = s->now_ns;
	gp_sim_notify(s, GP_SIM_RELEASED, t);
	if (t->has_work && t != r->target)
		become_ready(s, t);
}

/* Takes effect at once: the slice begins again. */
static void set_slice(struct gp_sim *s, struct gp_sim_task_state *t, uint32_t slice_us)
{
	struct runlist *r = s->state;

	t->slice_us = slice_us;
	if (r->phase != PHASE_RUN || r->loaded != t)
		return;
	update_accounts(s);
	r->turn_ns = s->now_ns;
	set_run_timer(s);
}

static bool runs(const struct gp_sim *s, const struct gp_sim_task_state *t)
{
	const struct runlist *r = s->state;

	return r->phase == PHASE_RUN && r->loaded == t;
}

static uint64_t run_ns(const struct gp_sim *s, const struct gp_sim_task_state *t)
{
	const struct runlist *r = s->state;

	return t->result.run_ns + (runs(s, t) ? s->now_ns - r->phase_ns : 0);
}

/* The driver's calls take time, but do not disturb running tasks. */
static uint64_t call(struct gp_sim *s, const struct control *c, unsigned step)
{
	const struct gp_sim_device *d = &s->device;

	if (step)
		return GP_NEVER;
	switch (c->kind) {
	case GP_SIM_CONTROL_HOLD: return s->now_ns + (c->joins ? 0 : d->hold_ns);
	case GP_SIM_CONTROL_RELEASE: return s->now_ns + (c->joins ? 0 : d->release_ns);
	default: return s->now_ns + d->set_slice_ns;
	}
}

static int init(struct gp_sim *s)
{
	struct runlist *r = calloc(1, sizeof *r);

	s->state = r;
	if (!r)
		return -ENOMEM;
	r->ready = calloc(s->ntasks / 64 + 1, sizeof *r->ready);
	r->loaded = &r->idle_context;
	r->idle_context.index = s->ntasks - 1;
	return r->ready ? 0 : -ENOMEM;
}

static void free_state(struct gp_sim *s)
{
	struct runlist *r = s->state;

	if (r)
		free(r->ready);
	free(r);
}

static void describe(const struct gp_sim *s, struct gp_gpu_info *info)
{
	const struct gp_sim_device *d = &s->device;

	info->slice_default_us = d->slice_us;
	info->slice_min_us = d->slices ? 1 : 0;
	info->slice_max_us = d->slices ? 10000000 : 0;
	info->hold_cost_ns = d->hold_ns;
	info->release_cost_ns = d->release_ns;
	info->slice_cost_ns = d->set_slice_ns;
	info->switch_cost_ns = d->switch_ns;
}

const struct gp_sim_model_ops gp_sim_runlist = {
	.init = init,
	.free = free_state,
	.describe = describe,
	.work_arrives = work_arrives,
	.work_changes = work_changes,
	.leaves = task_leaves,
	.joins = task_joins,
	.hold = hold,
	.release = release,
	.set_slice = set_slice,
	.call = call,
	.timer = timer,
	.update_accounts = update_accounts,
	.runs = runs,
	.run_ns = run_ns,
};
