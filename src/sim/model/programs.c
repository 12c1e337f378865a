/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in programs. Each handles one request at a time, as a simple server does. The next
 * request starts at its scheduled arrival or when the last one is finished, whichever is later. So
 * a backlog needs no memory: it is the time between the two.
 */
#include "sim/model/model.h"

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

uint64_t gp_sim_program_draw_launch(const struct gp_sim *s, struct gp_sim_task_state *t)
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
		wait_for(s, t, GP_SIM_STAGE_SUBMIT, begin_ns + gp_sim_program_draw_launch(s, t));
		return;
	}
	hint_ns = begin_ns > lead_ns ? begin_ns - lead_ns : 0;
	hint_ns = later(hint_ns, s->now_ns) + gp_sim_program_draw_launch(s, t);
	t->submit_ns = begin_ns +
		       gp_sim_program_draw_launch(s, t) * s->device.launch_hinted_permille / 1000;
	if (hint_ns < t->submit_ns)
		wait_for(s, t, GP_SIM_STAGE_HINT, hint_ns);
	else
		wait_for(s, t, GP_SIM_STAGE_SUBMIT, t->submit_ns);
}

void gp_sim_program_wait_for_launch(struct gp_sim *s, struct gp_sim_task_state *t, uint64_t at_ns)
{
	wait_for(s, t, GP_SIM_STAGE_SUBMIT, at_ns);
}

void gp_sim_program_begin_kernel(struct gp_sim_task_state *t)
{
	if (t->external)
		t->external->work_done_ns = t->result.work_ns;
	t->left_ns = t->config.kernel_ns;
	t->interrupted = false;
	t->has_work = true;
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
		gp_sim_program_begin_kernel(t);
		s->model->work_arrives(s, t);
		break;
	case GP_LOAD_IDLE:
	case GP_LOAD_EXTERNAL: break;
	}
}

static void submit(struct gp_sim *s, struct gp_sim_task_state *t)
{
	bool behind_hint = t->has_work;

	gp_sim_program_begin_kernel(t);
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
		gp_sim_program_begin_kernel(t);
}

static void finish_request(struct gp_sim *s, struct gp_sim_task_state *t)
{
	if (t->result.response)
		gp_hist_add(t->result.response, s->now_ns - t->arrival_ns);
	t->result.finished++;
	if (t->external)
		gp_sim_external_request_done(s, t);
	gp_sim_notify(s, GP_SIM_REQUEST, t);
	if (t->config.request_marks)
		end_mark(s, t);
}

void gp_sim_program_kernel_done(struct gp_sim *s, struct gp_sim_task_state *t)
{
	if (t->external)
		gp_sim_external_kernel_done(t);
	if (--t->kernels_left) {
		begin_kernel_after(s, t, t->config.kernel_gap_ns);
		return;
	}
	finish_request(s, t);
	if (t->external) {
		gp_sim_external_next(s, t);
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

/* One request is in work at a time, so the unfinished ones are the rest of the list. */
static uint64_t count_trace(const struct gp_sim_task_state *t, uint64_t end_ns)
{
	uint64_t i = t->result.finished;

	while (i < t->config.arrivals && t->config.start_ns + t->config.arrival_ns[i] < end_ns)
		i++;
	return i - t->result.finished;
}

/* Counts requests that arrived by `end_ns` and were not finished. A closed loop has one, the
 * request in work. */
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
	/* One has arrived. For the rest of a Poisson backlog the expected number is taken. */
	t->result.left = 1 + (end_ns - t->arrival_ns - 1) / t->config.every_ns;
}
