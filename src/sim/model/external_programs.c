/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External programs, which join, submit requests and leave. A request is launched while the one
 * before it runs, as with a real queue: only a request that finds the program idle waits for its
 * launch.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/model/model.h"

#define TIME_MAX_NS (86400 * GP_NS_PER_S) /* longest kernel or gap */

int gp_sim_external_init(struct gp_sim *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->ntasks; i++) {
		if (s->task[i].config.load == GP_LOAD_EXTERNAL)
			n++;
		else
			s->top = i + 1;
	}
	if (!n)
		return 0;
	s->external = calloc(n, sizeof *s->external);
	s->changed = calloc(s->ntasks / 64 + 1, sizeof *s->changed);
	if (!s->external || !s->changed)
		return -ENOMEM;
	for (uint32_t i = s->ntasks; i--;)
		if (s->task[i].config.load == GP_LOAD_EXTERNAL)
			s->task[i].external = &s->external[--n];
	return 0;
}

/* Joining and leaving. */

/* Finds a free slot that no pending control call refers to. */
static struct gp_sim_task_state *find_slot(struct gp_sim *s)
{
	for (uint32_t i = 0; i < s->ntasks; i++) {
		struct gp_sim_task_state *t = &s->task[i];

		if (t->external && !t->present && !t->holds_queued && !t->slices_queued)
			return t;
	}
	return NULL;
}

static bool program_is_valid(const struct gp_sim_program *p)
{
	return p->width_permille <= 1000 && p->wave_ns <= TIME_MAX_NS;
}

int gp_sim_join(struct gp_sim *s, const struct gp_sim_program *program, uint32_t *task)
{
	struct gp_sim_task_state *t = find_slot(s);

	if (!program_is_valid(program))
		return -EINVAL;
	if (!t)
		return -ENOSPC;
	*t = (struct gp_sim_task_state){
		.config = {.load = GP_LOAD_EXTERNAL,
			   .slice_us = program->slice_us,
			   .width_permille = program->width_permille,
			   .wave_ns = program->wave_ns,
			   .stop_ns = GP_NEVER},
		.index = t->index,
		.rng = t->rng,
		.external = t->external,
		.slice_us = program->slice_us ? program->slice_us : s->device.slice_us,
		.present = true,
		.attached = true,
		.released_since_ns = s->now_ns,
	};
	memcpy(t->config.name, program->name, sizeof t->config.name);
	t->config.name[sizeof t->config.name - 1] = 0;
	*t->external = (struct gp_sim_external){0};
	s->model->joins(s, t);
	if (t->index >= s->top)
		s->top = t->index + 1;
	s->rescan = true;
	s->signalled = true;
	gp_sim_changed(s, t);
	*task = t->index;
	return 0;
}

void gp_sim_leave(struct gp_sim *s, uint32_t task)
{
	struct gp_sim_task_state *t = &s->task[task];

	gp_sim_program_stop(s, t);
	t->attached = false;
	t->held = false;
	t->external->count = 0;
}

/* Requests. */

/* Each bit of the executed time changes every bit of the value. */
static uint64_t mix(uint64_t value, uint64_t executed_ns)
{
	value = (value ^ executed_ns) * 0x9e3779b97f4a7c15ull;
	value ^= value >> 32;
	return value * 0xd6e8feb86659fd93ull + 1;
}

uint64_t gp_sim_right_value(uint32_t kernels, uint64_t kernel_ns)
{
	uint64_t value = 0;

	while (kernels--)
		value = mix(value, kernel_ns);
	return value;
}

void gp_sim_external_kernel_done(struct gp_sim_task_state *t)
{
	struct gp_sim_external *e = t->external;

	e->value = mix(e->value, t->result.work_ns - e->work_done_ns);
}

static void take_first(struct gp_sim_task_state *t)
{
	struct gp_sim_external *e = t->external;
	const struct gp_sim_request *r = &e->queue[e->first].request;

	t->config.kernels = r->kernels;
	t->config.kernel_ns = r->kernel_ns;
	t->config.kernel_gap_ns = r->gap_ns;
	t->kernels_left = r->kernels;
	t->arrival_ns = e->queue[e->first].submitted_ns;
	e->value = 0;
}

int gp_sim_submit(struct gp_sim *s, uint32_t task, const struct gp_sim_request *request)
{
	struct gp_sim_task_state *t = &s->task[task];
	struct gp_sim_external *e = t->external;
	uint32_t last = (e->first + e->count) % GP_SIM_REQUESTS;

	if (!request->kernels || !request->kernel_ns || request->kernel_ns > TIME_MAX_NS ||
	    request->gap_ns > TIME_MAX_NS)
		return -EINVAL;
	if (e->count == GP_SIM_REQUESTS)
		return -EAGAIN;
	e->queue[last].request = *request;
	e->queue[last].submitted_ns = s->now_ns;
	e->queue[last].ready_ns = s->now_ns + gp_sim_program_draw_launch(s, t);
	if (e->count++ == 0) {
		take_first(t);
		gp_sim_program_wait_for_launch(s, t, e->queue[last].ready_ns);
	}
	gp_sim_changed(s, t);
	return 0;
}

void gp_sim_external_request_done(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct gp_sim_external *e = t->external;

	e->done = (struct gp_sim_done){.tag = e->queue[e->first].request.tag,
				       .value = e->value,
				       .submitted_ns = e->queue[e->first].submitted_ns,
				       .done_ns = s->now_ns};
	e->first = (e->first + 1) % GP_SIM_REQUESTS;
	e->count--;
}

void gp_sim_external_next(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct gp_sim_external *e = t->external;

	if (!e->count)
		return;
	take_first(t);
	if (e->queue[e->first].ready_ns > s->now_ns)
		gp_sim_program_wait_for_launch(s, t, e->queue[e->first].ready_ns);
	else
		gp_sim_program_begin_kernel(t);
}

const struct gp_sim_done *gp_sim_done(const struct gp_sim *s, uint32_t task)
{
	return &s->task[task].external->done;
}

/* Changes, for observers. */

uint64_t gp_sim_runs_until_ns(const struct gp_sim *s)
{
	return gp_timer_is_set(&s->timer) ? s->timer.at_ns : GP_NEVER;
}

bool gp_sim_take_changed(struct gp_sim *s, uint32_t *task)
{
	for (uint32_t w = 0; s->changed && w <= s->ntasks / 64; w++) {
		if (!s->changed[w])
			continue;
		*task = w * 64 + (uint32_t)__builtin_ctzll(s->changed[w]);
		s->changed[w] &= s->changed[w] - 1;
		return true;
	}
	return false;
}
