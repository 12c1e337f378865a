/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs on the simulated device: they start and stop at their time; unfinished requests are
 * counted exactly; requests come at the times of a trace; a request of many kernels leaves the
 * device free in its gaps; request marks enclose each request; preparation on the host takes time
 * and can be hidden by a hint.
 */
#include "support/test.h"

#include "sim_world.h"

struct presence {
	unsigned gone;
	uint64_t gone_ns;
};

static void note_presence(void *arg, const struct gp_sim_event *e)
{
	struct presence *p = arg;

	p->gone += e->what == GP_SIM_GONE;
	if (e->what == GP_SIM_GONE)
		p->gone_ns = e->now_ns;
}

SIM_TEST(tasks_start_and_stop_at_their_time)
{
	struct gp_sim *sim =
		MAKE_SIM(&plain, closed_loop(1 * MS),
			 LOOP(1 * MS, .name = "guest", .start_ns = 100 * MS, .stop_ns = 200 * MS),
			 LOOP(1 * MS, .start_ns = 50 * MS, .stop_ns = 50 * MS)); /* never present */
	struct presence p = {0};
	struct gp_seen seen[3] = {0};
	uint32_t handle;
	bool rescan;

	gp_sim_set_watch(sim, note_presence, &p);
	run_to(sim, 100 * MS - 1);
	assert_int_equal(gp_gpu_scan(gp_sim_gpu(sim), 0, seen, 3), 1);
	assert_int_equal(seen[0].key, 1);
	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), 2, &handle), -ESRCH);
	run_to(sim, 100 * MS);
	assert_int_equal(gp_gpu_scan(gp_sim_gpu(sim), 0, seen, 1), 2); /* as many as there are */
	assert_int_equal(gp_gpu_scan(gp_sim_gpu(sim), 0, seen, 3), 2);
	assert_int_equal(seen[1].key, 2);
	assert_string_equal(seen[1].name, "guest");
	attach(sim, 1);
	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), 2, &handle), -EBUSY);
	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), 0, &handle), -ESRCH);
	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), 4, &handle), -ESRCH);
	assert_int_equal(gp_sim_advance(sim, 1 * S), 200 * MS); /* an exit is signalled */
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_true(rescan);
	assert_false(gp_sim_take_signal(sim, &rescan)); /* reading clears it */
	assert_int_equal(gp_gpu_scan(gp_sim_gpu(sim), 0, seen, 3), 1);
	gp_gpu_detach(gp_sim_gpu(sim), 1);
	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), 2, &handle), -ESRCH);
	finish_at(sim, 400 * MS);
	assert_int_equal(p.gone, 1);
	assert_int_equal(p.gone_ns, 200 * MS);
	assert_in_range(gp_sim_result(sim, 1)->run_ns, 49 * MS, 51 * MS);
	assert_in_range(gp_sim_result(sim, 0)->run_ns, 349 * MS, 351 * MS);
	assert_int_equal(gp_sim_result(sim, 2)->run_ns, 0);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 400 * MS);
}

static void note_first_arrival(void *arg, const struct gp_sim_event *e)
{
	uint64_t *first_ns = arg;

	if (e->what == GP_SIM_REQUEST && *first_ns == GP_NEVER)
		*first_ns = e->arrival_ns;
}

SIM_TEST(what_is_left_over_in_overload_is_counted_exactly)
{
	for (int exits = 0; exits < 2; exits++) {
		const struct gp_sim_task task =
			PERIODIC(1 * MS, 3 * MS, .stop_ns = exits ? 600 * MS : GP_NEVER);
		struct gp_sim *sim = new_sim(&plain, &task, 1, 5);
		uint64_t first_ns = GP_NEVER, arrived;

		gp_sim_set_watch(sim, note_first_arrival, &first_ns);
		finish_at(sim, 900 * MS);
		arrived = ((exits ? 600 : 900) * MS - first_ns + 1 * MS - 1) / (1 * MS);
		assert_int_equal(finished(sim, 0) + gp_sim_result(sim, 0)->left, arrived);
		assert_in_range(finished(sim, 0), exits ? 199 : 299, exits ? 200 : 300);
		/* The response time of the last one has grown by 2 ms for each before it. */
		assert_int_equal(gp_sim_result(sim, 0)->response->max,
				 3 * MS + (finished(sim, 0) - 1) * 2 * MS);
		free_sims();
	}
}

SIM_TEST(what_arrives_at_the_very_end_is_not_left_over)
{
	const struct gp_sim_task task[] = {periodic(1 * MS, 3 * MS)};
	struct gp_sim *sim = new_sim(&plain, task, 1, 5);
	uint64_t first_ns = GP_NEVER, end_ns;

	gp_sim_set_watch(sim, note_first_arrival, &first_ns);
	run_to(sim, 10 * MS);
	end_ns = first_ns + 100 * MS;
	finish_at(sim, end_ns);
	assert_int_equal(finished(sim, 0) + gp_sim_result(sim, 0)->left, 100);
}

SIM_TEST(poisson_arrivals_have_their_rate_and_their_spread)
{
	struct gp_sim_task task[] = {periodic(1 * MS, 1 * US)};
	struct gp_sim *sim;
	uint64_t arrived;

	task[0].load = GP_LOAD_POISSON;
	sim = new_sim(&plain, task, 1, 1);
	finish_at(sim, 10 * S);
	arrived = finished(sim, 0) + gp_sim_result(sim, 0)->left;
	assert_in_range(arrived, 10000 - 400, 10000 + 400); /* four sigma */
	assert_true(arrived != 10000);
	assert_true(gp_sim_result(sim, 0)->response->max > 1 * US); /* some came close together */

	task[0].kernel_ns = 2 * MS; /* in overload as many arrive */
	sim = new_sim(&plain, task, 1, 1);
	finish_at(sim, 10 * S);
	assert_in_range(finished(sim, 0), 4990, 5000);
	arrived = finished(sim, 0) + gp_sim_result(sim, 0)->left;
	assert_in_range(arrived, 10000 - 400, 10000 + 400);
}

SIM_TEST(a_periodic_task_has_its_period_at_a_phase_of_its_own)
{
	struct gp_sim *sim = MAKE_SIM(&plain, periodic(10 * MS, 1 * US), periodic(10 * MS, 1 * US));
	uint64_t next_ns;

	run_to(sim, 0);
	next_ns = gp_sim_next_ns(sim);
	assert_true(next_ns < 10 * MS);
	run_to(sim, next_ns);
	assert_true(gp_sim_next_ns(sim) != next_ns);
	run_to(sim, 1 * S);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(finished(sim, i), 100);
		assert_int_equal(gp_sim_result(sim, i)->response->max, 1 * US);
	}
}

SIM_TEST(a_phase_says_when_the_first_request_comes)
{
	const struct gp_sim_task task =
		PERIODIC(10 * MS, 1 * US, .phase_ns = 7 * MS, .start_ns = 1 * MS);

	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct gp_sim *sim = new_sim(&plain, &task, 1, seed);

		assert_int_equal(finished_by(sim, 0, 8 * MS), 0);
		assert_int_equal(finished_by(sim, 0, 8 * MS + 1 * US), 1);
		assert_int_equal(finished_by(sim, 0, 18 * MS + 1 * US - 1), 1);
		assert_int_equal(finished_by(sim, 0, 18 * MS + 1 * US), 2);
		free_sims();
	}
}

SIM_TEST(a_closed_loop_pauses_between_requests)
{
	struct gp_sim *sim = MAKE_SIM(&plain, LOOP(1 * MS, .gap_ns = 3 * MS));

	finish_at(sim, 1 * S);
	assert_int_equal(finished(sim, 0), 250);
	assert_int_equal(gp_sim_result(sim, 0)->response->max, 1 * MS);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 250 * MS);
}

/* Traces, request marks, preparation. */

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

/* Runs to `end_ns` and completes the results. */
static struct gp_sim *play(struct record *r, const struct gp_sim_device *device, uint64_t end_ns,
			   const struct gp_sim_task *task, size_t ntasks)
{
	struct gp_sim *sim = make_sim(device, task, ntasks);

	*r = (struct record){0};
	gp_sim_set_watch(sim, record, r);
	finish_at(sim, end_ns);
	return sim;
}

#define PLAY(r, device, end_ns, ...) play(r, device, end_ns, TASKS(__VA_ARGS__))

SIM_TEST(requests_come_at_the_times_of_the_trace)
{
	const uint64_t at[] = {0, 3 * MS, 3 * MS, 10 * MS};
	struct record r;
	struct gp_sim *sim = PLAY(&r, &plain, 100 * MS, TRACE(at, 1 * MS, .start_ns = 5 * MS));

	assert_int_equal(finished(sim, 0), 4);
	assert_int_equal(gp_sim_result(sim, 0)->left, 0);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 0), 6 * MS);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 1), 9 * MS);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 2), 10 * MS); /* had to wait for the one before */
	assert_int_equal(when(&r, GP_SIM_REQUEST, 3), 16 * MS);
	assert_true(gp_sim_next_ns(sim) == GP_NEVER); /* the list has ended */
}

SIM_TEST(what_a_trace_leaves_over_is_counted_exactly)
{
	const uint64_t at[] = {0, 1 * MS, 2 * MS, 3 * MS, 28 * MS};
	struct record r;
	struct gp_sim *sim = PLAY(&r, &plain, 30 * MS, TRACE(at, 10 * MS, .start_ns = 5 * MS));

	assert_int_equal(finished(sim, 0), 2);
	assert_int_equal(gp_sim_result(sim, 0)->left, 2); /* the last has not arrived */
}

TEST(a_trace_that_is_out_of_order_is_refused)
{
	const uint64_t at[] = {2 * MS, 1 * MS};
	const struct gp_sim_task task = TRACE(at, 1 * MS, .stop_ns = GP_NEVER);
	const struct gp_sim_config config = {.device = plain, .task = &task, .ntasks = 1};
	struct gp_sim *sim;

	assert_int_equal(gp_sim_new(&config, &sim), -EINVAL);
}

SIM_TEST(a_request_of_many_kernels_is_done_with_the_last)
{
	const uint64_t at[] = {0};
	struct record r;
	struct gp_sim *sim = PLAY(&r, &plain, 100 * MS,
				  TRACE(at, 1 * MS, .kernels = 4, .kernel_gap_ns = 250 * US));

	assert_int_equal(finished(sim, 0), 1);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 0), 4750 * US);
	assert_int_equal(gp_sim_result(sim, 0)->work_ns, 4 * MS);
	assert_int_equal(count(&r, GP_SIM_READY), 4); /* each gap is the end of its work */
	assert_int_equal(count(&r, GP_SIM_DONE), 4);
}

SIM_TEST(without_a_gap_many_kernels_are_as_one)
{
	const uint64_t at[] = {0};
	struct record r;

	PLAY(&r, &plain, 100 * MS, TRACE(at, 1 * MS, .kernels = 4));
	assert_int_equal(when(&r, GP_SIM_REQUEST, 0), 4 * MS);
	assert_int_equal(count(&r, GP_SIM_READY), 1);
	assert_int_equal(count(&r, GP_SIM_DONE), 1);
}

SIM_TEST(the_device_is_free_in_a_gap)
{
	struct record r;
	struct gp_sim *sim =
		PLAY(&r, &plain, 1 * S, LOOP(1 * MS, .kernels = 10, .kernel_gap_ns = 3 * MS),
		     LOOP(1 * MS, .slice_us = 1));

	/* 10 kernels and 9 gaps per request: 37 ms. The other task yields at once and has the
	 * gaps only, 27 ms. */
	assert_in_range(finished(sim, 0), 26, 28);
	assert_in_range(finished(sim, 1), 700, 735);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 1 * S);
}

SIM_TEST(request_marks_enclose_each_request)
{
	const uint64_t at[] = {10 * MS, 12 * MS, 50 * MS};
	struct record r;

	PLAY(&r, &plain, 100 * MS,
	     TRACE(at, 1 * MS, .request_marks = true, .kernels = 3, .kernel_gap_ns = 1 * MS,
		   .prepare_ns = 500 * US));
	assert_int_equal(count(&r, GP_SIM_BEGIN), 3);
	assert_int_equal(count(&r, GP_SIM_END), 3);
	assert_int_equal(when(&r, GP_SIM_BEGIN, 0), 10 * MS); /* before it is prepared */
	assert_int_equal(when(&r, GP_SIM_END, 0), 15 * MS + 500 * US);
	assert_int_equal(when(&r, GP_SIM_BEGIN, 1),
			 when(&r, GP_SIM_END, 0)); /* waited until then */
	assert_int_equal(when(&r, GP_SIM_END, 1), 21 * MS);
	assert_int_equal(when(&r, GP_SIM_BEGIN, 2), 50 * MS);
}

SIM_TEST(a_closed_loop_can_send_request_marks_too)
{
	struct record r;

	PLAY(&r, &plain, 5 * MS + 500 * US, LOOP(1 * MS, .request_marks = true, .gap_ns = 1 * MS));
	assert_int_equal(when(&r, GP_SIM_BEGIN, 0), 0);
	assert_int_equal(when(&r, GP_SIM_END, 0), 1 * MS);
	assert_int_equal(when(&r, GP_SIM_BEGIN, 1), 2 * MS);
	assert_int_equal(count(&r, GP_SIM_BEGIN), 3);
}

SIM_TEST(a_request_mark_is_seen_at_once)
{
	const uint64_t at[] = {10 * MS};
	bool rescan;
	struct gp_sim *sim = MAKE_SIM(&plain, TRACE(at, 1 * MS, .request_marks = true));

	assert_int_equal(gp_sim_advance(sim, 100 * MS), 10 * MS);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_int_equal(gp_sim_advance(sim, 100 * MS), 11 * MS);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_int_equal(gp_sim_advance(sim, 100 * MS), 100 * MS);
}

SIM_TEST(a_program_that_exits_says_nothing_more)
{
	const uint64_t at[] = {10 * MS, 30 * MS};
	struct record r;

	PLAY(&r, &plain, 100 * MS, TRACE(at, 1 * MS, .request_marks = true, .stop_ns = 20 * MS));
	assert_int_equal(count(&r, GP_SIM_BEGIN), 1);
	assert_int_equal(count(&r, GP_SIM_GONE), 1);
}

SIM_TEST(preparing_takes_its_time)
{
	const uint64_t at[] = {10 * MS};
	struct record r;

	PLAY(&r, &plain, 100 * MS, TRACE(at, 1 * MS, .prepare_ns = 200 * US));
	assert_int_equal(when(&r, GP_SIM_READY, 0), 10 * MS + 200 * US);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 0), 11 * MS + 200 * US);
}

/* As in GPreempt: 100 us before the end of 200 us of preparation. */
SIM_TEST(a_hint_can_act_while_a_request_is_prepared)
{
	const uint64_t at[] = {10 * MS};
	struct record r;

	PLAY(&r, DEVICE(.switch_ns = 80 * US), 100 * MS,
	     TRACE(at, 1 * MS, .prepare_ns = 200 * US, .hint_ns = 100 * US),
	     LOOP(50 * MS, .slice_us = 1));
	assert_int_equal(when(&r, GP_SIM_READY, 0), 10 * MS + 100 * US);
	assert_in_range(when(&r, GP_SIM_RUN, 0), 10 * MS + 180 * US, 10 * MS + 181 * US);
	assert_int_equal(when(&r, GP_SIM_REQUEST, 0), 11 * MS + 200 * US); /* as if it were alone */
}
