/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `priority` end to end on the simulated H200, with the information of that device (samples of
 * utilisation, nothing about held tasks): latency beside many best-effort tasks, idle ones, tasks
 * that come and leave, a device that is never idle, and unmanaged tasks.
 */
#include "scenario_world.h"

static void add_inference(uint64_t every_ns, uint64_t kernel_ns)
{
	add(PERIODIC(every_ns, kernel_ns), ATTR(GP_LATENCY_CRITICAL));
}

static void add_training(unsigned count, uint64_t start_ns, uint64_t stop_ns)
{
	for (unsigned i = 0; i < count; i++)
		add(LOOP(13600 * US, .start_ns = start_ns, .stop_ns = stop_ns),
		    ATTR(GP_BEST_EFFORT));
}

TEST(a_request_waits_no_longer_beside_many_best_effort_tasks_than_beside_one)
{
	for (unsigned n = 1; n <= 8; n *= 2) {
		double sum = 0;

		begin(20 * S);
		add_inference(3 * MS, 100 * US);
		add_training(n, 0, 0);
		finish("priority");
		for (unsigned i = 1; i <= n; i++) {
			sum += kept(&run, i);
			assert_true(kept(&run, i) > 70.0 / n); /* each has its share */
		}
		assert_in_range(run.task[0].p50_ns, 280 * US, 320 * US);
		assert_in_range(run.task[0].p99_ns, 300 * US, 350 * US);
		assert_true(sum > 83);
	}
}

TEST(idle_tasks_cost_little_at_the_start_and_nothing_later)
{
	begin(20 * S);
	add_inference(3 * MS, 100 * US);
	add_training(2, 0, 0);
	for (int i = 0; i < 4; i++)
		add(IDLE, ATTR(GP_BEST_EFFORT));
	finish("priority");
	assert_in_range(run.task[0].p99_ns, 300 * US, 350 * US);
	assert_true(kept(&run, 1) + kept(&run, 2) > 78); /* at most 0.25 s for each of them */
}

TEST(tasks_may_come_and_go)
{
	begin(20 * S);
	add_inference(3 * MS, 100 * US);
	add_training(1, 0, 15 * S);
	for (uint64_t at = 1; at < 12; at += 2)
		add_training(1, at * S, (at + 3) * S);
	finish("priority");
	/* A new process shares with hardware slices until it is found, up to 0.1 s later. */
	assert_in_range(run.task[0].p50_ns, 280 * US, 330 * US);
	assert_true(run.task[0].left <= 1);
	for (uint32_t i = 1; i < run.ntasks; i++)
		assert_true(kept(&run, i) > 25);
}

TEST(no_task_starves_beside_a_service_that_never_pauses)
{
	for (unsigned n = 1; n <= 8; n *= 2) {
		begin(30 * S);
		add_inference(1 * MS, 1 * MS);
		add_training(n, 0, 0);
		finish("priority");
		assert_true(kept(&run, 0) > 70);
		for (unsigned i = 1; i <= n; i++)
			assert_true(run.task[i].finished > 0);
	}
}

static void add_busy_services(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		add(LOOP(1 * MS), ATTR(GP_LATENCY_CRITICAL));
}

TEST(no_task_starves_beside_many_of_them)
{
	for (int exact = 0; exact < 2; exact++) {
		begin(30 * S);
		scenario.device.activity = exact ? GP_ACTIVITY_EXACT : GP_ACTIVITY_SAMPLED;
		add_busy_services(8);
		add_training(3, 0, 0);
		finish("priority");
		for (unsigned i = 8; i < 11; i++)
			assert_true(run.task[i].work_ns > 10 * MS);
	}
}

static void add_light_services(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		add(POISSON(count * (10 * MS), 300 * US), ATTR(GP_LATENCY_CRITICAL));
}

/* An entity that loses its turn to a starving one must not be the next again. */
TEST(many_that_take_turns_get_the_same)
{
	uint64_t least_ns = UINT64_MAX, most_ns = 0;

	begin(40 * S);
	add_light_services(16);
	add_training(16, 0, 0);
	finish("priority");
	for (unsigned i = 16; i < 32; i++) {
		least_ns = run.task[i].work_ns < least_ns ? run.task[i].work_ns : least_ns;
		most_ns = run.task[i].work_ns > most_ns ? run.task[i].work_ns : most_ns;
	}
	assert_true(most_ns < least_ns + least_ns / 4);
	assert_true(run.task[0].p99_ns < 2 * MS);
}

/* Their turns and windows cannot all come before one starves; finish() detects an ejection. */
TEST(too_many_to_take_turns_share)
{
	for (unsigned n = 64; n <= 256; n *= 2) {
		begin(25 * S);
		add_busy_services(n);
		add_training(n, 0, 0);
		finish("priority");
		for (unsigned i = n; i < 2 * n; i++)
			assert_true(run.task[i].work_ns > 0);

		begin(25 * S);
		add_light_services(n);
		add_training(n, 0, 0);
		finish("priority");
	}
}

TEST(no_task_starves_beside_many_of_them_without_slices)
{
	begin(30 * S);
	scenario.device.slices = false;
	scenario.device.activity = GP_ACTIVITY_EVENTS;
	add_busy_services(8);
	add_training(1, 0, 0);
	finish("priority");
	assert_true(run.task[8].work_ns > 10 * MS);
}

/* Each gap is filled by the first of them: the second is released for it and gets nothing. */
TEST(no_task_starves_in_gaps_that_others_fill)
{
	begin(15 * S);
	scenario.device.slices = false;
	scenario.device.activity = GP_ACTIVITY_EVENTS;
	scenario.device.hold_ns = 500 * US;
	scenario.device.release_ns = 400 * US;
	add(LOOP(9 * MS, .gap_ns = 1200 * US), ATTR(GP_LATENCY_CRITICAL));
	add_training(2, 0, 0);
	finish("priority");
	for (unsigned i = 1; i <= 2; i++)
		assert_true(run.task[i].work_ns > 100 * MS);
}

TEST(a_busy_service_does_not_squeeze_an_unmanaged_neighbour_out)
{
	begin(10 * S);
	add_busy_services(1);
	add(LOOP(5 * MS), ATTR(GP_UNMANAGED));
	finish("priority");
	assert_true(kept(&run, 1) > 40);
}

TEST(a_task_that_has_the_device_to_itself_does_all_its_work)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		begin(2 * S);
		scenario.seed = seed;
		add(IDLE, ATTR(GP_UNMANAGED));
		add(POISSON(100 * MS, 1 * MS), ATTR(GP_BEST_EFFORT));
		finish("none");
		assert_int_equal(run.task[1].work_ns, run.task[1].alone_ns);
	}
}

TEST(an_unmanaged_neighbour_keeps_what_the_driver_gave_it)
{
	struct gp_run before, after;

	for (int managed = 0; managed < 2; managed++) {
		begin(10 * S);
		add_inference(10 * MS, 100 * US);
		add(LOOP(5 * MS), ATTR(GP_UNMANAGED));
		add_training(1, 0, 0);
		*(managed ? &after : &before) =
			run_scenario(&scenario, managed ? "priority" : "none", NULL);
		gp_scenario_free(&scenario);
	}
	assert_true(kept(&after, 1) > kept(&before, 1) - 2);
	gp_run_free(&before);
	gp_run_free(&after);
}

TEST(without_slices_best_effort_work_is_held_while_requests_run)
{
	struct gp_run none, priority;

	for (int managed = 0; managed < 2; managed++) {
		begin(10 * S);
		scenario.device.slices = false;
		scenario.device.activity = GP_ACTIVITY_EVENTS;
		add_inference(20 * MS, 5 * MS);
		add_training(2, 0, 0);
		*(managed ? &priority : &none) =
			run_scenario(&scenario, managed ? "priority" : "none", NULL);
		gp_scenario_free(&scenario);
	}
	assert_true(priority.task[0].p99_ns * 2 < none.task[0].p99_ns);
	assert_true(kept(&priority, 1) + kept(&priority, 2) > 60);
	gp_run_free(&none);
	gp_run_free(&priority);
}
