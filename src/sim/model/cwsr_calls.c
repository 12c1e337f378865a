/* SPDX-License-Identifier: Apache-2.0 */
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
#include "sim/model/cwsr.h"

/* The time to save its waves: those that did not end in the grace period, at its part of the
 * bandwidth. */
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

	gp_cwsr_account(s);
	for (uint32_t i = 0; i < c->non; i++) /* all of them, while they still share the device */
		save_ns += save(s, c->on[i], grace_of(s, call));
	while (c->non)
		gp_cwsr_go_off(s, c->on[0]);
	gp_cwsr_set_timer(s);
	c->phase = GP_CWSR_STOPPED;
	s->totals.switches++;
	gp_sim_notify(s, GP_SIM_SWITCH, &s->task[call->task]);
	return s->now_ns + s->device.unmap_ns + save_ns + s->device.map_ns;
}

/* Starts all tasks that may run; all waves are restored through the same memory. */
static void start_all(struct gp_sim *s)
{
	struct cwsr *c = s->state;
	uint64_t restore_ns = 0;

	gp_cwsr_account(s);
	c->phase = GP_CWSR_RUNNING;
	for (uint32_t i = 0; i < s->top; i++)
		if (may_run(s, &s->task[i]))
			restore_ns += c->context[i].saved_ns;
	for (uint32_t i = 0; i < s->top; i++)
		if (may_run(s, &s->task[i]))
			gp_cwsr_come_on(s, &s->task[i], restore_ns);
	gp_cwsr_set_timer(s);
}

static uint64_t hws_call(struct gp_sim *s, const struct control *call, unsigned step)
{
	const struct gp_sim_device *d = &s->device;
	struct cwsr *c = s->state;

	if (call->joins)
		return step ? GP_NEVER : s->now_ns;
	switch (step) {
	case 0: return s->now_ns + (call->kind == GP_SIM_CONTROL_HOLD ? d->hold_ns : d->release_ns);
	case 1: c->phase = GP_CWSR_DRAINING; return s->now_ns + grace_of(s, call);
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
		gp_cwsr_account(s);
		save_ns = save(s, t, 0);
		gp_cwsr_go_off(s, t);
		gp_cwsr_set_timer(s);
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

uint64_t gp_cwsr_call(struct gp_sim *s, const struct control *call, unsigned step)
{
	return s->device.scheduler == GP_SIM_HWS ? hws_call(s, call, step)
						 : mes_call(s, call, step);
}

void gp_cwsr_call_over(struct gp_sim *s, struct gp_sim_task_state *t, bool last)
{
	context_of(s, t)->removed = false;
	if (s->device.scheduler == GP_SIM_MES)
		gp_cwsr_start(s, t); /* unless it is held now */
	else if (last)
		start_all(s);
}

void gp_cwsr_hold(struct gp_sim *s, struct gp_sim_task_state *t)
{
	if (t->held)
		return;
	t->held = true; /* the call has taken it off */
	gp_sim_notify(s, GP_SIM_HELD, t);
}

void gp_cwsr_release(struct gp_sim *s, struct gp_sim_task_state *t)
{
	if (!t->held)
		return;
	t->held = false;
	t->released_since_ns = s->now_ns;
	gp_sim_notify(s, GP_SIM_RELEASED, t);
	gp_cwsr_start(s, t);
}

/* Costs for a task that fills the device. */
void gp_cwsr_describe(const struct gp_sim *s, struct gp_gpu_info *info)
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
