/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs on the simulated device: requests come at the times of a trace; a request of many
 * kernels leaves the device free in its gaps; request marks enclose each request; preparation on
 * the host takes time and can be hidden by a hint.
 */
#include "support/test.h"

#include "sim_world.h"

#define SEEN_MAX 64

/* The events of task 0, in order. */
struct record {
	unsigned n;
	struct gp_sim_event event[SEEN_MAX];
};

static void record(void *arg, const struct gp_sim_event *event)
{
	struct record *r = arg;

	if (!event->task && r->n < SEEN_MAX)
		r->event[r->n++] = *event;
}

/* The time of event `what` number n, counted from 0; GP_NEVER = it did not happen. */
static uint64_t when(const struct record *r, enum gp_sim_what what, unsigned n)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->event[i].what == what && !n--)
			return r->event[i].now_ns;
	return GP_NEVER;
}

static unsigned count(const struct record *r, enum gp_sim_what what)
{
	unsigned n = 0;

	while (when(r, what, n) != GP_NEVER)
		n++;
	return n;
}

static struct gp_sim_task trace(const uint64_t *at_ns, uint32_t n, uint64_t kernel_ns)
{
	return (struct gp_sim_task){.load = GP_LOAD_TRACE,
				    .arrival_ns = at_ns,
				    .arrivals = n,
				    .kernel_ns = kernel_ns,
				    .stop_ns = GP_NEVER};
}

/* Runs to `end_ns` and completes the results. */
static struct gp_sim *play(const struct gp_sim_device *device, const struct gp_sim_task *task,
			   uint32_t ntasks, uint64_t end_ns, struct record *r)
{
	struct gp_sim *sim = new_sim(device, task, ntasks, 1);

	*r = (struct record){0};
	gp_sim_set_watch(sim, record, r);
	run_to(sim, end_ns);
	gp_sim_finish(sim, end_ns);
	return sim;
}

TEST(requests_come_at_the_times_of_the_trace)
{
	const uint64_t at[] = {0, 3 * MS, 3 * MS, 10 * MS};
	struct gp_sim_task task = trace(at, 4, 1 * MS);
	struct record r;
	struct gp_sim *sim;

	task.start_ns = 5 * MS;
	sim = play(&plain, &task, 1, 100 * MS, &r);
	assert_int_equal(finished(sim, 0), 4);
	assert_int_equal(gp_sim_result(sim, 0)->left, 0);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 0), 6 * MS);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 1), 9 * MS);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 2), 10 * MS); /* had to wait for the one before */
	assert_int_equal(when(&r, GP_SIM_REQUEST, 3), 16 * MS);
	assert_true(gp_sim_next_ns(sim) == GP_NEVER); /* the list has ended */
	gp_sim_free(sim);
}

TEST(what_a_trace_leaves_over_is_counted_exactly)
{
	const uint64_t at[] = {0, 1 * MS, 2 * MS, 3 * MS, 28 * MS};
	struct gp_sim_task task = trace(at, 5, 10 * MS);
	struct record r;
	struct gp_sim *sim;

	task.start_ns = 5 * MS;
	sim = play(&plain, &task, 1, 30 * MS, &r);
	assert_int_equal(finished(sim, 0), 2);
	assert_int_equal(gp_sim_result(sim, 0)->left, 2); /* the last has not arrived */
	gp_sim_free(sim);
}

TEST(a_trace_that_is_out_of_order_is_refused)
{
	const uint64_t at[] = {2 * MS, 1 * MS};
	struct gp_sim_task task = trace(at, 2, 1 * MS);
	const struct gp_sim_config config = {.device = plain, .task = &task, .ntasks = 1};
	struct gp_sim *sim;

	assert_int_equal(gp_sim_new(&config, &sim), -EINVAL);
}

TEST(a_request_of_many_kernels_is_done_with_the_last)
{
	const uint64_t at[] = {0};
	struct gp_sim_task task = trace(at, 1, 1 * MS);
	struct record r;
	struct gp_sim *sim;

	task.kernels = 4;
	task.kernel_gap_ns = 250 * US;
	sim = play(&plain, &task, 1, 100 * MS, &r);
	assert_int_equal(finished(sim, 0), 1);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 0), 4750 * US);
	assert_int_equal(gp_sim_result(sim, 0)->work_ns, 4 * MS);
	assert_int_equal(count(&r, GP_SIM_READY), 4); /* each gap is the end of its work */
	assert_int_equal(count(&r, GP_SIM_DONE), 4);
	gp_sim_free(sim);
}

TEST(without_a_gap_many_kernels_are_as_one)
{
	const uint64_t at[] = {0};
	struct gp_sim_task task = trace(at, 1, 1 * MS);
	struct record r;
	struct gp_sim *sim;

	task.kernels = 4;
	sim = play(&plain, &task, 1, 100 * MS, &r);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 0), 4 * MS);
	assert_int_equal(count(&r, GP_SIM_READY), 1);
	assert_int_equal(count(&r, GP_SIM_DONE), 1);
	gp_sim_free(sim);
}

TEST(the_device_is_free_in_a_gap)
{
	struct gp_sim_task task[] = {closed_loop(1 * MS), closed_loop(1 * MS)};
	struct record r;
	struct gp_sim *sim;

	task[0].kernels = 10;
	task[0].kernel_gap_ns = 3 * MS;
	task[1].slice_us = 1; /* yields at once: it has the gaps only */
	sim = play(&plain, task, 2, 1 * S, &r);
	/* 10 kernels and 9 gaps per request: 37 ms, in which the other has 27 ms. */
	assert_in_range(finished(sim, 0), 26, 28);
	assert_in_range(finished(sim, 1), 700, 735);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 1 * S);
	gp_sim_free(sim);
}

TEST(request_marks_enclose_each_request)
{
	const uint64_t at[] = {10 * MS, 12 * MS, 50 * MS};
	struct gp_sim_task task = trace(at, 3, 1 * MS);
	struct record r;
	struct gp_sim *sim;

	task.request_marks = true;
	task.kernels = 3;
	task.kernel_gap_ns = 1 * MS;
	task.prepare_ns = 500 * US;
	sim = play(&plain, &task, 1, 100 * MS, &r);
	assert_int_equal(count(&r, GP_SIM_BEGIN), 3);
	assert_int_equal(count(&r, GP_SIM_END), 3);
	assert_int_equal(when(&r, GP_SIM_BEGIN, 0), 10 * MS); /* before it is prepared */
	assert_int_equal(when(&r, GP_SIM_END, 0), 15 * MS + 500 * US);
	assert_int_equal(when(&r, GP_SIM_BEGIN, 1),
			 when(&r, GP_SIM_END, 0)); /* waited until then */
	assert_int_equal(when(&r, GP_SIM_END, 1), 21 * MS);
	assert_int_equal(when(&r, GP_SIM_BEGIN, 2), 50 * MS);
	gp_sim_free(sim);
}

TEST(a_closed_loop_can_send_request_marks_too)
{
	struct gp_sim_task task = closed_loop(1 * MS);
	struct record r;
	struct gp_sim *sim;

	task.request_marks = true;
	task.gap_ns = 1 * MS;
	sim = play(&plain, &task, 1, 5 * MS + 500 * US, &r);
	assert_int_equal(when(&r, GP_SIM_BEGIN, 0), 0);
	assert_int_equal(when(&r, GP_SIM_END, 0), 1 * MS);
	assert_int_equal(when(&r, GP_SIM_BEGIN, 1), 2 * MS);
	assert_int_equal(count(&r, GP_SIM_BEGIN), 3);
	gp_sim_free(sim);
}

TEST(a_request_mark_is_seen_at_once)
{
	const uint64_t at[] = {10 * MS};
	struct gp_sim_task task = trace(at, 1, 1 * MS);
	bool rescan;
	struct gp_sim *sim;

	task.request_marks = true;
	sim = new_sim(&plain, &task, 1, 1);
	assert_int_equal(gp_sim_advance(sim, 100 * MS), 10 * MS);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_int_equal(gp_sim_advance(sim, 100 * MS), 11 * MS);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_int_equal(gp_sim_advance(sim, 100 * MS), 100 * MS);
	gp_sim_free(sim);
}

TEST(a_program_that_exits_says_nothing_more)
{
	const uint64_t at[] = {10 * MS, 30 * MS};
	struct gp_sim_task task = trace(at, 2, 1 * MS);
	struct record r;
	struct gp_sim *sim;

	task.request_marks = true;
	task.stop_ns = 20 * MS;
	sim = play(&plain, &task, 1, 100 * MS, &r);
	assert_int_equal(count(&r, GP_SIM_BEGIN), 1);
	assert_int_equal(count(&r, GP_SIM_GONE), 1);
	gp_sim_free(sim);
}

TEST(preparing_takes_its_time)
{
	const uint64_t at[] = {10 * MS};
	struct gp_sim_task task = trace(at, 1, 1 * MS);
	struct record r;
	struct gp_sim *sim;

	task.prepare_ns = 200 * US;
	sim = play(&plain, &task, 1, 100 * MS, &r);
	assert_int_equal(when(&r, GP_SIM_READY, 0), 10 * MS + 200 * US);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 0), 11 * MS + 200 * US);
	gp_sim_free(sim);
}

/* As in GPreempt: 100 us before the end of 200 us of preparation. */
TEST(a_hint_can_act_while_a_request_is_prepared)
{
	const uint64_t at[] = {10 * MS};
	struct gp_sim_task task[] = {trace(at, 1, 1 * MS), closed_loop(50 * MS)};
	struct gp_sim_device device = plain;
	struct record r;
	struct gp_sim *sim;

	device.switch_ns = 80 * US;
	task[0].prepare_ns = 200 * US;
	task[0].hint_ns = 100 * US;
	task[1].slice_us = 1;
	sim = play(&device, task, 2, 100 * MS, &r);
	assert_int_equal(when(&r, GP_SIM_READY, 0), 10 * MS + 100 * US);
	assert_in_range(when(&r, GP_SIM_RUN, 0), 10 * MS + 180 * US, 10 * MS + 181 * US);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 0), 11 * MS + 200 * US); /* as if it were alone */
	gp_sim_free(sim);
}
