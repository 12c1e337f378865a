/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device as a back end (gpu.h). Control calls take their measured time, one after the
 * other, and take effect at the end. Until then the status is -EINPROGRESS, as from a back end with
 * a worker thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/model/model.h"

static struct gp_sim *of(struct gp_gpu *gpu)
{
	return (struct gp_sim *)gpu; /* `base` is the first member */
}

static int sim_scan(struct gp_gpu *gpu, uint64_t now_ns, struct gp_seen *seen, unsigned max)
{
	struct gp_sim *s = of(gpu);
	unsigned n = 0;

	(void)now_ns;
	for (uint32_t i = 0; i < s->top; i++) {
		const struct gp_sim_task_state *t = &s->task[i];

		if (!t->present)
			continue;
		if (n < max) {
			seen[n] = (struct gp_seen){.key = i + 1u, .pid = (pid_t)(i + 1)};
			memcpy(seen[n].name, t->config.name, sizeof seen[n].name);
		}
		n++;
	}
	return (int)n;
}

/* 0 = the program's own slice. */
static void set_slice(struct gp_sim *s, struct gp_sim_task_state *t, uint32_t slice_us)
{
	uint32_t own_us = t->config.slice_us ? t->config.slice_us : s->device.slice_us;

	t->slice_set_us = slice_us;
	if (s->model->set_slice)
		s->model->set_slice(s, t, slice_us ? slice_us : own_us);
}

static int sim_attach(struct gp_gpu *gpu, uint64_t key, uint32_t *handle)
{
	struct gp_sim *s = of(gpu);
	struct gp_sim_task_state *t;

	if (key < 1 || key > s->ntasks)
		return -ESRCH;
	t = &s->task[key - 1];
	if (!t->present)
		return -ESRCH;
	if (t->attached)
		return -EBUSY;
	s->model->update_accounts(s); /* run time before the attachment does not count */
	t->attached = true;
	t->attach_run_ns = t->result.run_ns;
	*handle = t->index;
	return 0;
}

static void sim_detach(struct gp_gpu *gpu, uint32_t handle)
{
	struct gp_sim *s = of(gpu);
	struct gp_sim_task_state *t = &s->task[handle];

	t->attached = false;
	set_slice(s, t, 0);
	if (t->present)
		s->model->release(s, t);
}

static void observe_run(const struct gp_sim *s, const struct gp_sim_task_state *t,
			struct gp_observation *o)
{
	o->known |= GP_KNOWN_RUNNING | GP_KNOWN_RUN;
	o->running = s->model->runs(s, t);
	o->run_source = GP_RUN_MEASURED;
	o->run_ns = s->model->run_ns(s, t) - t->attach_run_ns;
	o->run_at_ns = s->now_ns;
}

static void observe_exactly(const struct gp_sim *s, const struct gp_sim_task_state *t,
			    struct gp_observation *o)
{
	bool looks = s->device.detect_ns; /* otherwise activity is known continuously */

	o->known |= GP_KNOWN_ACTIVE | GP_KNOWN_PENDING;
	o->active = looks ? t->found_active : t->has_work;
	o->pending = o->active;
	if (o->active && t->external)
		o->pending = t->external->count;
	if (o->active) {
		o->known |= GP_KNOWN_ACTIVE_SINCE;
		o->active_since_ns = looks ? t->found_since_ns : t->active_since_ns;
	}
	if (!s->device.hides_run)
		observe_run(s, t, o);
}

/* A held task does not run, whether it has work or not, so its activity is not known. */
static void observe_sample(const struct gp_sim_task_state *t, struct gp_observation *o)
{
	if (!t->sample_ns)
		return;
	o->known |= GP_KNOWN_RUN;
	o->run_source = GP_RUN_MEASURED;
	o->run_ns = t->sample_run_ns > t->attach_run_ns ? t->sample_run_ns - t->attach_run_ns : 0;
	o->run_at_ns = t->sample_ns;
	if (t->sample_known && !t->held) {
		o->known |= GP_KNOWN_ACTIVE;
		o->active = t->sample_active;
	}
}

static int sim_observe(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *seen, unsigned n)
{
	struct gp_sim *s = of(gpu);

	(void)now_ns;
	for (unsigned i = 0; i < n; i++) {
		const struct gp_sim_task_state *t = &s->task[seen[i].handle];

		seen[i].known = GP_KNOWN_HELD | (s->device.slices ? GP_KNOWN_SLICE : 0);
		seen[i].held = t->held;
		seen[i].under_way = (uint8_t)((t->holds_queued ? GP_UNDER_WAY_HOLD : 0) |
					      (t->slices_queued ? GP_UNDER_WAY_SLICE : 0));
		seen[i].slice_us = t->slice_set_us;
		if (s->device.activity == GP_ACTIVITY_SAMPLED)
			observe_sample(t, &seen[i]);
		else if (s->device.activity != GP_ACTIVITY_NONE)
			observe_exactly(s, t, &seen[i]);
	}
	return 0;
}

static uint32_t *queued_of(struct gp_sim *s, const struct control *c)
{
	struct gp_sim_task_state *t = &s->task[c->task];

	return c->kind == GP_SIM_CONTROL_SLICE ? &t->slices_queued : &t->holds_queued;
}

/* The device refuses impossible calls at once, as a driver does. */
static bool is_possible(const struct gp_sim *s, const struct control *c)
{
	if (c->kind != GP_SIM_CONTROL_SLICE)
		return s->device.max_held;
	return s->device.slices && (!c->slice_us || (c->slice_us >= s->base.info.slice_min_us &&
						     c->slice_us <= s->base.info.slice_max_us));
}

static void apply(struct gp_sim *s, const struct control *c)
{
	struct gp_sim_task_state *t = &s->task[c->task];

	if (!t->attached || !t->present)
		return; /* it has left in the meantime */
	switch (c->kind) {
	case GP_SIM_CONTROL_HOLD: s->model->hold(s, t); break;
	case GP_SIM_CONTROL_RELEASE: s->model->release(s, t); break;
	case GP_SIM_CONTROL_SLICE: set_slice(s, t, c->slice_us); break;
	}
}

static void next_step(struct gp_sim *s)
{
	gp_heap_set(&s->heap, &s->control_timer,
		    s->model->call(s, &s->queue[s->queue_first], s->step++));
}

static void ask(struct gp_sim *s, struct control c, struct gp_action *a)
{
	if (!is_possible(s, &c)) {
		a->status = -EINVAL;
		return;
	}
	if (s->queue_count == s->queue_capacity) {
		a->status = -EAGAIN;
		return;
	}
	s->queue[(s->queue_first + s->queue_count++) % s->queue_capacity] = c;
	++*queued_of(s, &c);
	gp_sim_changed(s, &s->task[c.task]);
	if (s->queue_count == 1)
		next_step(s);
	a->status = -EINPROGRESS;
}

/* All tasks of a batch are handled by one call. */
static int sim_act(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind kind, struct gp_action *a,
		   unsigned n)
{
	static const uint8_t control[] = {[GP_ACT_HOLD] = GP_SIM_CONTROL_HOLD,
					  [GP_ACT_RELEASE] = GP_SIM_CONTROL_RELEASE,
					  [GP_ACT_SLICE] = GP_SIM_CONTROL_SLICE};
	struct gp_sim *s = of(gpu);

	(void)now_ns;
	for (unsigned i = 0; i < n; i++)
		ask(s,
		    (struct control){.kind = control[kind],
				     .task = a[i].handle,
				     .joins = kind != GP_ACT_SLICE && i > 0,
				     .slice_us = kind == GP_ACT_SLICE ? a[i].slice_us : 0},
		    &a[i]);
	return 0;
}

/* The first call in the queue has finished a step. */
void gp_sim_backend_control_timer(struct gp_sim *s)
{
	struct control c = s->queue[s->queue_first];
	uint64_t next_ns = s->model->call(s, &c, s->step++);
	bool more;

	if (next_ns != GP_NEVER) {
		gp_heap_set(&s->heap, &s->control_timer, next_ns);
		return;
	}
	s->step = 0;
	s->queue_first = (s->queue_first + 1) % s->queue_capacity;
	s->queue_count--;
	more = s->queue_count && s->queue[s->queue_first].joins;
	--*queued_of(s, &c);
	if (s->queue_count)
		next_step(s);
	s->signalled = true;
	gp_sim_changed(s, &s->task[c.task]);
	apply(s, &c);
	if (s->model->call_over)
		s->model->call_over(s, &s->task[c.task], !more);
}

/*
 * The sample of a utilisation counter for the last window. Active: the task ran. Idle: it did not
 * run, although it was released for a good part of the window, and the device had spare time or
 * switched among other tasks. In all other cases its activity is not known.
 */
void gp_sim_backend_window_timer(struct gp_sim *s)
{
	uint64_t busy_ns, window_ns = s->device.activity_window_ns;
	unsigned workers = 0;
	bool had_time;

	s->model->update_accounts(s);
	busy_ns = s->totals.busy_ns + s->totals.switch_ns;
	had_time = busy_ns - s->window_busy_ns < window_ns - window_ns / 50;
	s->window_busy_ns = busy_ns;
	for (uint32_t i = 0; i < s->top; i++)
		workers += s->task[i].result.run_ns != s->task[i].window_run_ns;
	for (uint32_t i = 0; i < s->top; i++) {
		struct gp_sim_task_state *t = &s->task[i];
		bool worked = t->result.run_ns != t->window_run_ns;
		bool was_free = !t->held && s->now_ns - t->released_since_ns >= window_ns / 4;

		t->window_run_ns = t->result.run_ns;
		t->sample_run_ns = t->result.run_ns;
		t->sample_ns = t->present ? s->now_ns : 0;
		t->sample_active = worked;
		t->sample_known = worked || (was_free && (had_time || workers >= 2));
		gp_sim_changed(s, t);
	}
	gp_heap_set(&s->heap, &s->window_timer, s->now_ns + window_ns);
}

/* Polls the queues. Activity that began and ended between two polls is not seen. */
void gp_sim_backend_detect_timer(struct gp_sim *s)
{
	for (uint32_t i = 0; i < s->top; i++) {
		struct gp_sim_task_state *t = &s->task[i];

		if (t->found_active == t->has_work)
			continue;
		t->found_active = t->has_work;
		t->found_since_ns = s->now_ns;
		gp_sim_changed(s, t);
		s->signalled |= s->device.activity == GP_ACTIVITY_EVENTS;
	}
}

void gp_sim_backend_activity_changed(struct gp_sim *s, struct gp_sim_task_state *t)
{
	uint64_t every_ns = s->device.detect_ns;

	(void)t;
	if (s->device.activity != GP_ACTIVITY_EVENTS && s->device.activity != GP_ACTIVITY_EXACT)
		return;
	if (!every_ns)
		s->signalled |= s->device.activity == GP_ACTIVITY_EVENTS;
	else if (!gp_timer_is_set(&s->detect_timer))
		gp_heap_set(&s->heap, &s->detect_timer,
			    s->now_ns - s->now_ns % every_ns + every_ns);
}

static const struct gp_gpu_ops sim_ops = {
	.name = "sim",
	.scan = sim_scan,
	.attach = sim_attach,
	.detach = sim_detach,
	.observe = sim_observe,
	.act = sim_act,
};

int gp_sim_backend_init(struct gp_sim *s)
{
	const struct gp_sim_device *d = &s->device;
	struct gp_gpu_info *info = &s->base.info;

	/* Each task can have a hold and a slice pending, and some from before it was detached. */
	s->queue_capacity = 4 * s->ntasks + 4;
	s->queue = calloc(s->queue_capacity, sizeof *s->queue);
	if (!s->queue)
		return -ENOMEM;
	s->base.ops = &sim_ops;
	snprintf(info->name, sizeof info->name, "simulated GPU");
	info->caps = (d->max_held ? GP_CAP_HOLD : 0) | (d->slices ? GP_CAP_SLICE : 0) |
		     (d->activity != GP_ACTIVITY_NONE ? GP_CAP_ACTIVITY : 0) |
		     (d->activity == GP_ACTIVITY_EVENTS ? GP_CAP_EVENTS : 0);
	info->max_held = d->max_held;
	s->model->describe(s, info);
	/* If polling is as fast as the engine's own ticks, activity counts as known at once. */
	info->notice_ns = d->detect_ns;
	if (d->detect_ns > GP_NS_PER_MS)
		info->sample_period_ns = d->detect_ns;
	if (d->activity == GP_ACTIVITY_SAMPLED) {
		info->sample_period_ns = d->activity_window_ns;
		gp_heap_set(&s->heap, &s->window_timer, d->activity_window_ns);
	}
	return 0;
}
