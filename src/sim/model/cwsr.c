/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD: the queues of all tasks are on the hardware at once and share its compute units. Compute
 * waves are saved and restored (CWSR) when a queue is taken off.
 *
 * A kernel has a width, the part of the device that it can fill. If the widths of all running
 * kernels fit, all run at full speed. Otherwise they share the device in proportion: all slow down
 * by the same factor, the sum of the widths. Progress is counted in whole nanoseconds. The
 * remainder of a division is carried over while the same tasks run, and dropped when the set
 * changes. So the total never exceeds the device.
 */
#include <stdlib.h>

#include "sim/model/model.h"

#define WHOLE 1000u /* permille */

struct context {
	uint32_t place;       /* 1 + its index in `on`; 0 = off the hardware */
	bool removed;         /* MES is taking it off; not held yet */
	uint64_t saved_ns;    /* time that saving its waves took; 0 = no waves are in memory */
	uint64_t restored_ns; /* when its waves are restored; no progress before that */
};

enum cwsr_phase { RUNNING, DRAINING, STOPPED };

struct cwsr {
	enum cwsr_phase phase;
	struct context *context;       /* by index of the task */
	struct gp_sim_task_state **on; /* the tasks on the hardware */
	uint32_t non;
	uint64_t width; /* sum over these tasks, in permille; may exceed WHOLE */
	uint64_t rest;  /* remainder of the last division: progress in 1/1000 ns x width */
	uint64_t accounted_ns;
	uint64_t full_ns; /* time to save, or to restore, a device that is full of waves */
};

static struct context *context_of(const struct gp_sim *s, const struct gp_sim_task_state *t)
{
	const struct cwsr *c = s->state;

	return &c->context[t->index];
}

/* A hint occupies a single wave only. */
static uint32_t width_of(const struct gp_sim_task_state *t)
{
	if (t->spins)
		return 0;
	return t->config.width_permille ? t->config.width_permille : WHOLE;
}

/* Time for one nanosecond of progress, in permille of a nanosecond. */
static uint64_t slowness(const struct cwsr *c)
{
	return c->width > WHOLE ? c->width : WHOLE;
}

/* Whether the task can run, whatever the other tasks do. */
static bool may_run(const struct gp_sim *s, const struct gp_sim_task_state *t)
{
	return t->has_work && !t->held && !context_of(s, t)->removed;
}

/* Brings run times, work and remaining times up to now. To be called before any change. */
static void account(struct gp_sim *s)
{
	struct cwsr *c = s->state;
	uint64_t from_ns = c->accounted_ns, took_ns = s->now_ns - from_ns;
	uint64_t done = took_ns * WHOLE + c->rest;
	uint64_t progress_ns = done / slowness(c);

	c->accounted_ns = s->now_ns;
	c->rest = done % slowness(c);
	if (c->phase == STOPPED)
		s->totals.switch_ns += took_ns;
	if (c->non)
		s->totals.busy_ns += took_ns;
	for (uint32_t i = 0; i < c->non; i++) {
		struct gp_sim_task_state *t = c->on[i];

		t->result.run_ns += took_ns;
		if (t->spins || context_of(s, t)->restored_ns > from_ns)
			continue;
		t->left_ns -= progress_ns;
		t->result.work_ns += progress_ns;
	}
}

/* When `left_ns` of progress will be made, if nothing changes. */
static uint64_t time_of(const struct gp_sim *s, uint64_t left_ns)
{
	const struct cwsr *c = s->state;
	unsigned __int128 need = (unsigned __int128)left_ns * slowness(c);

	need = need > c->rest ? (need - c->rest + WHOLE - 1) / WHOLE : 0;
	return need < GP_NEVER - s->now_ns ? s->now_ns + (uint64_t)need : GP_NEVER;
}

/* Fires when the first kernel ends or the first waves are restored. The accounts must be up to
 * date. */
static void set_timer(struct gp_sim *s)
{
	const struct cwsr *c = s->state;
	uint64_t next_ns = GP_NEVER, least_ns = GP_NEVER;

	for (uint32_t i = 0; i < c->non; i++) {
		const struct gp_sim_task_state *t = c->on[i];
		uint64_t restored_ns = context_of(s, t)->restored_ns;

		if (t->spins)
			continue;
		if (restored_ns > s->now_ns)
			next_ns = restored_ns < next_ns ? restored_ns : next_ns;
		else
			least_ns = t->left_ns < least_ns ? t->left_ns : least_ns;
	}
	if (least_ns != GP_NEVER && time_of(s, least_ns) < next_ns)
		next_ns = time_of(s, least_ns);
	if (next_ns == GP_NEVER)
		gp_heap_cancel(&s->heap, &s->timer);
	else
		gp_heap_set(&s->heap, &s->timer, next_ns);
}

/* Put a task on the hardware, or take it off. The accounts must be up to date; the caller sets the
 * timer. */
static void come_on(struct gp_sim *s, struct gp_sim_task_state *t, uint64_t restore_ns)
{
	struct context *context = context_of(s, t);
	struct cwsr *c = s->state;

	c->on[c->non++] = t;
	c->width += width_of(t);
	c->rest = 0;
	context->place = c->non;
	context->restored_ns = s->now_ns + (context->saved_ns ? restore_ns : 0);
	context->saved_ns = 0;
	gp_sim_notify(s, GP_SIM_RUN, t);
}

static void go_off(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct context *context = context_of(s, t);
	struct cwsr *c = s->state;
	struct gp_sim_task_state *last = c->on[--c->non];

	c->on[context->place - 1] = last;
	context_of(s, last)->place = context->place;
	context->place = 0;
	c->width -= width_of(t);
	c->rest = 0;
	gp_sim_notify(s, GP_SIM_STOP, t);
}

/* Puts the task on the hardware if it may run and the device is running. */
static void start(struct gp_sim *s, struct gp_sim_task_state *t)
{
	const struct cwsr *c = s->state;

	if (!may_run(s, t) || c->phase != RUNNING || context_of(s, t)->place)
		return;
	account(s);
	come_on(s, t, context_of(s, t)->saved_ns);
	set_timer(s);
}

/* Events. */

static void work_arrives(struct gp_sim *s, struct gp_sim_task_state *t)
{
	t->active_since_ns = s->now_ns;
	gp_sim_notify(s, GP_SIM_READY, t);
	gp_sim_backend_activity_changed(s, t);
	start(s, t);
}

static void work_changes(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct cwsr *c = s->state;

	account(s);
	t->spins = false;
	if (!context_of(s, t)->place)
		return;
	c->width += width_of(t);
	c->rest = 0;
	set_timer(s);
}

static void leaves(struct gp_sim *s, struct gp_sim_task_state *t)
{
	bool had_work = t->has_work;

	account(s);
	if (context_of(s, t)->place)
		go_off(s, t);
	set_timer(s);
	t->has_work = false;
	if (had_work)
		gp_sim_notify(s, GP_SIM_DONE, t);
}

static void joins(struct gp_sim *s, struct gp_sim_task_state *t)
{
	*context_of(s, t) =
		(struct context){0}; /* the waves of the program that had the slot are gone */
}

/* A kernel of the task is finished. Returns whether the task stays on the hardware, because its
 * next kernel follows at once. */
static bool stays_on(struct gp_sim *s, struct gp_sim_task_state *t)
{
	const struct cwsr *c = s->state;

	t->has_work = false;
	gp_sim_program_kernel_done(s, t);
	if (t->has_work && c->phase == RUNNING)
		return true;
	if (!t->has_work) {
		gp_sim_notify(s, GP_SIM_DONE, t);
		gp_sim_backend_activity_changed(s, t);
	}
	go_off(s, t);
	return false;
}

static void timer(struct gp_sim *s)
{
	struct cwsr *c = s->state;
	uint32_t i = 0;

	account(s);
	while (i < c->non) {
		struct gp_sim_task_state *t = c->on[i];
		bool ended = !t->spins && !t->left_ns;

		i += !ended || stays_on(s, t);
	}
	set_timer(s);
}

static bool runs(const struct gp_sim *s, const struct gp_sim_task_state *t)
{
	return context_of(s, t)->place;
}

static uint64_t run_ns(const struct gp_sim *s, const struct gp_sim_task_state *t)
{
	const struct cwsr *c = s->state;

	return t->result.run_ns + (runs(s, t) ? s->now_ns - c->accounted_ns : 0);
}

/*
 * Hold and release on AMD hardware.
 *
 * With HWS (the scheduler in the firmware of Instinct GPUs) each hold or release takes all queues
 * of the device off. Then a new list is loaded, without or with the queues of the call:
 *
 *     driver's work | grace: no new kernel | unmap, save, map: all stopped | waves are restored
 *                   ^ phase = DRAINING     ^ STOPPED                       ^ RUNNING
 *
 * A grace period belongs to a hold. A release has the driver's own grace period; its length is not
 * known and taken as 0.
 *
 * With MES a single queue is removed or added, and the others are not disturbed.
 */

/* Returns the time to save the waves of the task that did not end in the grace period. The task has
 * its part of the bandwidth. */
static uint64_t save(struct gp_sim *s, const struct gp_sim_task_state *t, uint64_t grace_ns)
{
	const struct cwsr *c = s->state;
	uint64_t wave_ns = t->config.wave_ns ? t->config.wave_ns : t->config.kernel_ns;
	uint64_t part = width_of(t) * (uint64_t)WHOLE / slowness(c);
	unsigned __int128 saved_ns = 0;

	if (wave_ns > grace_ns)
		saved_ns = (unsigned __int128)c->full_ns * part * (wave_ns - grace_ns) / wave_ns;
	s->totals.preemptions += !t->spins;
	return context_of(s, t)->saved_ns = (uint64_t)(saved_ns / WHOLE);
}

/* Calls. */

static uint64_t grace_of(const struct gp_sim *s, const struct control *call)
{
	return call->kind == GP_SIM_CONTROL_HOLD ? s->device.grace_ns : 0;
}

static uint64_t stop_all(struct gp_sim *s, const struct control *call)
{
	struct cwsr *c = s->state;
	uint64_t save_ns = 0;

	account(s);
	for (uint32_t i = 0; i < c->non; i++) /* all of them, while they still share the device */
		save_ns += save(s, c->on[i], grace_of(s, call));
	while (c->non)
		go_off(s, c->on[0]);
	set_timer(s);
	c->phase = STOPPED;
	s->totals.switches++;
	gp_sim_notify(s, GP_SIM_SWITCH, &s->task[call->task]);
	return s->now_ns + s->device.unmap_ns + save_ns + s->device.map_ns;
}

/* Starts all tasks that may run; all waves are restored through the same memory. */
static void start_all(struct gp_sim *s)
{
	struct cwsr *c = s->state;
	uint64_t restore_ns = 0;

	account(s);
	c->phase = RUNNING;
	for (uint32_t i = 0; i < s->top; i++)
		if (may_run(s, &s->task[i]))
			restore_ns += c->context[i].saved_ns;
	for (uint32_t i = 0; i < s->top; i++)
		if (may_run(s, &s->task[i]))
			come_on(s, &s->task[i], restore_ns);
	set_timer(s);
}

static uint64_t hws_call(struct gp_sim *s, const struct control *call, unsigned step)
{
	const struct gp_sim_device *d = &s->device;
	struct cwsr *c = s->state;

	if (call->joins)
		return step ? GP_NEVER : s->now_ns;
	switch (step) {
	case 0: return s->now_ns + (call->kind == GP_SIM_CONTROL_HOLD ? d->hold_ns : d->release_ns);
	case 1: c->phase = DRAINING; return s->now_ns + grace_of(s, call);
	case 2: return stop_all(s, call);
	default: return GP_NEVER;
	}
}

static uint64_t remove_queue(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct context *context = context_of(s, t);
	uint64_t save_ns = 0;

	context->removed = true;
	if (context->place) {
		account(s);
		save_ns = save(s, t, 0);
		go_off(s, t);
		set_timer(s);
	}
	return s->now_ns + s->device.unmap_ns + save_ns;
}

static uint64_t mes_call(struct gp_sim *s, const struct control *call, unsigned step)
{
	const struct gp_sim_device *d = &s->device;
	bool holds = call->kind == GP_SIM_CONTROL_HOLD;

	if (!step)
		return s->now_ns + (call->joins ? 0 : holds ? d->hold_ns : d->release_ns);
	if (step > 1)
		return GP_NEVER;
	s->totals.switches++;
	return holds ? remove_queue(s, &s->task[call->task]) : s->now_ns + d->map_ns;
}

static uint64_t call(struct gp_sim *s, const struct control *call, unsigned step)
{
	return s->device.scheduler == GP_SIM_HWS ? hws_call(s, call, step)
						 : mes_call(s, call, step);
}

static void call_over(struct gp_sim *s, struct gp_sim_task_state *t, bool last)
{
	context_of(s, t)->removed = false;
	if (s->device.scheduler == GP_SIM_MES)
		start(s, t); /* unless it is held now */
	else if (last)
		start_all(s);
}

static void hold(struct gp_sim *s, struct gp_sim_task_state *t)
{
	if (t->held)
		return;
	t->held = true; /* the call has taken the task off the hardware */
	gp_sim_notify(s, GP_SIM_HELD, t);
}

static void release(struct gp_sim *s, struct gp_sim_task_state *t)
{
	if (!t->held)
		return;
	t->held = false;
	t->released_since_ns = s->now_ns;
	gp_sim_notify(s, GP_SIM_RELEASED, t);
	start(s, t);
}

/* Costs for a task that fills the device. */
static void describe(const struct gp_sim *s, struct gp_gpu_info *info)
{
	const struct gp_sim_device *d = &s->device;
	const struct cwsr *c = s->state;
	bool hws = d->scheduler == GP_SIM_HWS;

	info->hold_cost_ns = d->hold_ns + d->unmap_ns + c->full_ns;
	info->release_cost_ns = d->release_ns + d->map_ns;
	if (hws) {
		info->hold_cost_ns += d->grace_ns + d->map_ns;
		info->release_cost_ns += d->unmap_ns + c->full_ns;
	}
	info->switch_cost_ns = info->hold_cost_ns + c->full_ns; /* includes restoring waves */
}

static int init(struct gp_sim *s)
{
	const struct gp_sim_device *d = &s->device;
	uint32_t n = s->ntasks ? s->ntasks : 1;
	struct cwsr *c = calloc(1, sizeof *c);

	s->state = c;
	if (!c)
		return -ENOMEM;
	/* Each XCC saves its own waves. All do so at the same time, each with its part of the
	 * bandwidth. */
	c->full_ns = (uint64_t)d->save_area_kb * 1000000 / (d->save_mb_per_s / d->xccs);
	c->context = calloc(n, sizeof *c->context);
	c->on = calloc(n, sizeof(struct gp_sim_task_state *));
	return c->context && c->on ? 0 : -ENOMEM;
}

static void free_state(struct gp_sim *s)
{
	struct cwsr *c = s->state;

	if (c) {
		free(c->context);
		free((void *)c->on);
	}
	free(c);
}

const struct gp_sim_model_ops gp_sim_cwsr = {
	.init = init,
	.free = free_state,
	.describe = describe,
	.work_arrives = work_arrives,
	.work_changes = work_changes,
	.leaves = leaves,
	.joins = joins,
	.call = call,
	.hold = hold,
	.release = release,
	.call_over = call_over,
	.timer = timer,
	.update_accounts = account,
	.runs = runs,
	.run_ns = run_ns,
};
