/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs. A built-in program handles one request at a time, as a simple server does. The next
 * request starts at its scheduled arrival or when the last one is finished, whichever is later. The
 * time between these two is the backlog, so that a backlog needs no memory.
 *
 * External programs join, submit requests and leave. A request is launched while the one before it
 * runs, as with a real queue: only a request that finds the program idle waits for its launch.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/model/model.h"

#define TIME_MAX_NS (86400 * GP_NS_PER_S) /* longest kernel or gap */

static uint64_t draw_interval(struct gp_sim_task_state *t)
{
	return t->config.load == GP_LOAD_POISSON ? gp_rng_exponential(&t->rng, t->config.every_ns)
						 : t->config.every_ns;
}

/* Computes the arrival of the next request, whether or not the last one is finished. Returns false
 * if there are no more. */
static bool next_arrival(struct gp_sim_task_state *t)
{
	if (t->config.load != GP_LOAD_TRACE) {
		t->arrival_ns += draw_interval(t);
		return true;
	}
	if (t->arrived == t->config.arrivals)
		return false;
	t->arrival_ns = t->config.start_ns + t->config.arrival_ns[t->arrived++];
	return true;
}

static uint64_t draw_launch(const struct gp_sim *s, struct gp_sim_task_state *t)
{
	return s->device.launch_ns + gp_rng_exponential(&t->rng, s->device.launch_jitter_ns);
}

void gp_sim_program_init(struct gp_sim *s, struct gp_sim_task_state *t, uint64_t seed,
			 uint64_t stream)
{
	gp_rng_init(&t->rng, seed, stream);
	t->slice_us = t->config.slice_us ? t->config.slice_us : s->device.slice_us;
	if (t->config.load == GP_LOAD_EXTERNAL)
		return;
	t->stage = GP_SIM_STAGE_START;
	if (t->config.start_ns < t->config.stop_ns)
		gp_heap_set(&s->heap, &t->timer, t->config.start_ns);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void wait_for(struct gp_sim *s, struct gp_sim_task_state *t, enum stage stage,
		     uint64_t at_ns)
{
	t->stage = stage;
	gp_heap_set(&s->heap, &t->timer, at_ns);
}

void gp_sim_program_begin_request(struct gp_sim *s, struct gp_sim_task_state *t)
{
	s->signalled = true; /* a request mark reaches its receiver at once */
	gp_sim_notify(s, GP_SIM_BEGIN, t);
}

static void end_mark(struct gp_sim *s, struct gp_sim_task_state *t)
{
	s->signalled = true;
	gp_sim_notify(s, GP_SIM_END, t);
}

/* The program waits for, or begins, the request that arrives at arrival_ns. */
static void take_request(struct gp_sim *s, struct gp_sim_task_state *t)
{
	t->kernels_left = t->config.kernels ? t->config.kernels : 1;
	if (!t->config.request_marks)
		return;
	if (t->arrival_ns > s->now_ns)
		gp_heap_set(&s->heap, &t->mark_timer, t->arrival_ns);
	else
		gp_sim_program_begin_request(s, t);
}

/*
 * Sends the next request to the GPU. With a hint, an empty kernel goes first and takes the GPU; the
 * real kernel then needs only a part of the launch time.
 */
static void send_request(struct gp_sim *s, struct gp_sim_task_state *t)
{
	uint64_t begin_ns = later(t->arrival_ns, s->now_ns) + t->config.prepare_ns;
	uint64_t hint_ns, lead_ns = t->config.hint_ns;

	take_request(s, t);
	if (!lead_ns) {
		wait_for(s, t, GP_SIM_STAGE_SUBMIT, begin_ns + draw_launch(s, t));
		return;
	}
	hint_ns = begin_ns > lead_ns ? begin_ns - lead_ns : 0;
	hint_ns = later(hint_ns, s->now_ns) + draw_launch(s, t);
	t->submit_ns = begin_ns + draw_launch(s, t) * s->device.launch_hinted_permille / 1000;
	if (hint_ns < t->submit_ns)
		wait_for(s, t, GP_SIM_STAGE_HINT, hint_ns);
	else
		wait_for(s, t, GP_SIM_STAGE_SUBMIT, t->submit_ns);
}

static void begin_kernel(struct gp_sim_task_state *t)
{
	if (t->external)
		t->external->work_done_ns = t->result.work_ns;
	t->left_ns = t->config.kernel_ns;
	t->interrupted = false;
	t->has_work = true;
}

/* The requests of external programs. */

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

static void note_kernel(struct gp_sim_task_state *t)
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

static void end_external_request(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct gp_sim_external *e = t->external;

	e->done = (struct gp_sim_done){.tag = e->queue[e->first].request.tag,
				       .value = e->value,
				       .submitted_ns = e->queue[e->first].submitted_ns,
				       .done_ns = s->now_ns};
	e->first = (e->first + 1) % GP_SIM_REQUESTS;
	e->count--;
}

static void next_external_request(struct gp_sim *s, struct gp_sim_task_state *t)
{
	struct gp_sim_external *e = t->external;

	if (!e->count)
		return;
	take_first(t);
	if (e->queue[e->first].ready_ns > s->now_ns)
		wait_for(s, t, GP_SIM_STAGE_SUBMIT, e->queue[e->first].ready_ns);
	else
		begin_kernel(t);
}

static void start(struct gp_sim *s, struct gp_sim_task_state *t)
{
	t->present = true;
	t->released_since_ns = s->now_ns;
	s->rescan = true;
	s->signalled |= s->device.activity == GP_ACTIVITY_EVENTS;
	if (t->config.stop_ns != GP_NEVER)
		gp_heap_set(&s->heap, &t->stop_timer, t->config.stop_ns);
	switch (t->config.load) {
	case GP_LOAD_PERIODIC: /* at a random phase; otherwise all periodic tasks would coincide */
		t->arrival_ns = s->now_ns + (t->config.phase_ns
						     ? t->config.phase_ns
						     : gp_rng_below(&t->rng, t->config.every_ns));
		send_request(s, t);
		break;
	case GP_LOAD_POISSON:
		t->arrival_ns = s->now_ns + draw_interval(t);
		send_request(s, t);
		break;
	case GP_LOAD_TRACE:
		if (next_arrival(t))
			send_request(s, t);
		break;
	case GP_LOAD_CLOSED:
		t->arrival_ns = s->now_ns;
		take_request(s, t);
		begin_kernel(t);
		s->model->work_arrives(s, t);
		break;
	case GP_LOAD_IDLE:
	case GP_LOAD_EXTERNAL: break;
	}
}

static void submit(struct gp_sim *s, struct gp_sim_task_state *t)
{
	bool behind_hint = t->has_work;

	begin_kernel(t);
	if (behind_hint)
		s->model->work_changes(s, t);
	else
		s->model->work_arrives(s, t);
}

void gp_sim_program_timer(struct gp_sim *s, struct gp_sim_task_state *t)
{
	switch (t->stage) {
	case GP_SIM_STAGE_START: start(s, t); break;
	case GP_SIM_STAGE_HINT:
		t->has_work = true;
		t->spins = true;
		wait_for(s, t, GP_SIM_STAGE_SUBMIT, t->submit_ns);
		s->model->work_arrives(s, t);
		break;
	case GP_SIM_STAGE_SUBMIT: submit(s, t); break;
	}
}

static void begin_kernel_after(struct gp_sim *s, struct gp_sim_task_state *t, uint64_t gap_ns)
{
	if (gap_ns)
		wait_for(s, t, GP_SIM_STAGE_SUBMIT, s->now_ns + gap_ns);
	else
		begin_kernel(t);
}

static void finish_request(struct gp_sim *s, struct gp_sim_task_state *t)
{
	if (t->result.response)
		gp_hist_add(t->result.response, s->now_ns - t->arrival_ns);
	t->result.finished++;
	if (t->external)
		end_external_request(s, t);
	gp_sim_notify(s, GP_SIM_REQUEST, t);
	if (t->config.request_marks)
		end_mark(s, t);
}

void gp_sim_program_kernel_done(struct gp_sim *s, struct gp_sim_task_state *t)
{
	if (t->external)
		note_kernel(t);
	if (--t->kernels_left) {
		begin_kernel_after(s, t, t->config.kernel_gap_ns);
		return;
	}
	finish_request(s, t);
	if (t->external) {
		next_external_request(s, t);
		return;
	}
	if (t->config.load != GP_LOAD_CLOSED) {
		if (next_arrival(t))
			send_request(s, t);
		return;
	}
	/* Kernels of a closed loop are queued in advance: there is no launch time between them,
	 * only the gap. */
	t->arrival_ns = s->now_ns + t->config.gap_ns;
	take_request(s, t);
	begin_kernel_after(s, t, t->config.gap_ns);
}

void gp_sim_program_stop(struct gp_sim *s, struct gp_sim_task_state *t)
{
	gp_sim_program_count_left(t, s->now_ns);
	gp_heap_cancel(&s->heap, &t->timer);
	gp_heap_cancel(&s->heap, &t->mark_timer);
	s->model->leaves(s, t);
	t->present = false;
	s->rescan = true;
	s->signalled = true; /* an exit is always noticed, through a pidfd */
	gp_sim_notify(s, GP_SIM_GONE, t);
}

/* The program handles its requests one at a time and in order. So the unfinished requests are the
 * rest of the list, after the finished ones. */
static uint64_t count_trace(const struct gp_sim_task_state *t, uint64_t end_ns)
{
	uint64_t i = t->result.finished;

	while (i < t->config.arrivals && t->config.start_ns + t->config.arrival_ns[i] < end_ns)
		i++;
	return i - t->result.finished;
}

/* Counts requests that arrived before `end_ns` and were not finished. A closed loop has at most
 * one: the request that it is executing. */
void gp_sim_program_count_left(struct gp_sim_task_state *t, uint64_t end_ns)
{
	if (!t->present || t->config.load == GP_LOAD_IDLE)
		return;
	if (t->external) {
		t->result.left = t->external->count;
		return;
	}
	if (t->config.load == GP_LOAD_CLOSED) {
		t->result.left = t->arrival_ns < end_ns;
		return;
	}
	if (t->config.load == GP_LOAD_TRACE) {
		t->result.left = count_trace(t, end_ns);
		return;
	}
	if (t->arrival_ns >= end_ns)
		return;
	/* One request has arrived. For the rest of a Poisson backlog the expected number is taken.
	 */
	t->result.left = 1 + (end_ns - t->arrival_ns - 1) / t->config.every_ns;
}

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

/* External programs join and leave. */

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
	e->queue[last].ready_ns = s->now_ns + draw_launch(s, t);
	if (e->count++ == 0) {
		take_first(t);
		wait_for(s, t, GP_SIM_STAGE_SUBMIT, e->queue[last].ready_ns);
	}
	gp_sim_changed(s, t);
	return 0;
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
