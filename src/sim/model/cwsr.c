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

#include "sim/model/cwsr.h"

void gp_cwsr_account(struct gp_sim *s)
{
	struct cwsr *c = s->state;
	uint64_t from_ns = c->accounted_ns, took_ns = s->now_ns - from_ns;
	uint64_t done = took_ns * WHOLE + c->rest;
	uint64_t progress_ns = done / slowness(c);

	c->accounted_ns = s->now_ns;
	c->rest = done % slowness(c);
	if (c->phase == GP_CWSR_STOPPED)
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
void gp_cwsr_set_timer(struct gp_sim *s)
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

void gp_cwsr_come_on(struct gp_sim *s, struct gp_sim_task_state *t, uint64_t restore_ns)
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

void gp_cwsr_go_off(struct gp_sim *s, struct gp_sim_task_state *t)
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

void gp_cwsr_start(struct gp_sim *s, struct gp_sim_task_state *t)
{
	const struct cwsr *c = s->state;

	if (!may_run(s, t) || c->phase != GP_CWSR_RUNNING || context_of(s, t)->place)
		return;
	gp_cwsr_account(s);
	gp_cwsr_come_on(s, t, context_of(s, t)->saved_ns);
	gp_cwsr_set_timer(s);
}

/* Events. */

static void work_arrives(struct gp_sim *s, struct gp_sim_task_state *t)
{
	t->active_since_ns = s->now_ns;
	gp_sim_notify(s, GP_SIM_READY, t);
	gp_sim_backend_activity_changed(s, t);
	gp_cwsr_start(s, t);
}

static void work_changes(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct cwsr *c = s->state;

	gp_cwsr_account(s);
	t->spins = false;
	if (!context_of(s, t)->place)
		return;
	c->width += width_of(t);
	c->rest = 0;
	gp_cwsr_set_timer(s);
}

static void leaves(struct gp_sim *s, struct gp_sim_task_state *t)
{
	bool had_work = t->has_work;

	gp_cwsr_account(s);
	if (context_of(s, t)->place)
		gp_cwsr_go_off(s, t);
	gp_cwsr_set_timer(s);
	t->has_work = false;
	if (had_work)
		gp_sim_notify(s, GP_SIM_DONE, t);
}

static void joins(struct gp_sim *s, struct gp_sim_task_state *t)
{
	*context_of(s, t) =
		(struct context){0}; /* the saved waves of the program before it are gone */
}

/* Its kernel is finished. Returns whether it stays on the hardware, because the next one follows at
 * once. */
static bool stays_on(struct gp_sim *s, struct gp_sim_task_state *t)
{
	const struct cwsr *c = s->state;

	t->has_work = false;
	gp_sim_program_kernel_done(s, t);
	if (t->has_work && c->phase == GP_CWSR_RUNNING)
		return true;
	if (!t->has_work) {
		gp_sim_notify(s, GP_SIM_DONE, t);
		gp_sim_backend_activity_changed(s, t);
	}
	gp_cwsr_go_off(s, t);
	return false;
}

static void timer(struct gp_sim *s)
{
	struct cwsr *c = s->state;
	uint32_t i = 0;

	gp_cwsr_account(s);
	while (i < c->non) {
		struct gp_sim_task_state *t = c->on[i];
		bool ended = !t->spins && !t->left_ns;

		i += !ended || stays_on(s, t);
	}
	gp_cwsr_set_timer(s);
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
	.describe = gp_cwsr_describe,
	.work_arrives = work_arrives,
	.work_changes = work_changes,
	.leaves = leaves,
	.joins = joins,
	.call = gp_cwsr_call,
	.hold = gp_cwsr_hold,
	.release = gp_cwsr_release,
	.call_over = gp_cwsr_call_over,
	.timer = timer,
	.update_accounts = gp_cwsr_account,
	.runs = runs,
	.run_ns = run_ns,
};
