/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edf: accepted tasks are never late, tasks that must be accepted are accepted, and impossible
 * promises are refused. Tested on simulated devices of several kinds, over random sets of tasks;
 * then single claims.
 */
#include "deadline_world.h"

/* Random sets. */

TEST(four_fifths_of_the_device_are_always_accepted)
{
	const struct draw any = {.sets = sets_of(300),
				 .most = 18,
				 .low = 100,
				 .high = 799,
				 .change_permille = 10,
				 .cost_permille = 1000};
	struct draw short_ones = any, equal = any;

	assert_int_equal(run_sets("edf", &any), 0);
	short_ones.cost_permille = 10; /* deadlines from 1.4 ms */
	short_ones.sets = 20;
	assert_int_equal(run_sets("edf", &short_ones), 0);
	equal.equal = true;
	equal.low = equal.high;
	assert_int_equal(run_sets("edf", &equal), 0);
}

TEST(more_than_the_device_is_never_promised)
{
	const struct draw draw = {.sets = sets_of(300),
				  .most = 10,
				  .low = 1003,
				  .high = 1500,
				  .change_permille = 10,
				  .cost_permille = 1000};

	assert_int_equal(run_sets("edf", &draw), draw.sets);
}

/* A handover is a tenth of the shortest deadline: most of the load is switching. */
TEST(what_is_accepted_is_not_late_if_switching_is_expensive)
{
	const struct draw draw = {.sets = sets_of(300),
				  .most = 10,
				  .low = 100,
				  .high = 1500,
				  .change_permille = 100,
				  .cost_permille = 1000};

	assert_in_range(run_sets("edf", &draw), 1, draw.sets - 1);
}

TEST(what_is_accepted_is_not_late_when_requests_come_at_odd_times)
{
	const struct draw draw = {.sets = sets_of(300),
				  .most = 10,
				  .low = 100,
				  .high = 1500,
				  .change_permille = 30,
				  .cost_permille = 1000,
				  .sporadic = true};

	assert_in_range(run_sets("edf", &draw), 1, draw.sets - 1);
}

/* The worst case: deadlines are equal, and a task that was refused because of switching costs would
 * be late. */
TEST(what_is_accepted_is_not_late_when_all_come_at_once)
{
	struct draw draw = {.sets = sets_of(100),
			    .low = 300,
			    .high = 1000,
			    .change_permille = 40,
			    .cost_permille = 1000,
			    .equal = true,
			    .sporadic = true};

	for (draw.most = 2; draw.most <= 6; draw.most++)
		assert_in_range(run_sets("edf", &draw), 1, draw.sets - 1);
}

TEST(a_device_that_must_be_asked_is_asked_often_enough)
{
	const struct draw draw = {.sets = sets_of(100),
				  .most = 7,
				  .low = 100,
				  .high = 1100,
				  .change_permille = 4, /* deadlines from 33 ms */
				  .cost_permille = 100,
				  .unannounced = true};

	assert_in_range(run_sets("edf", &draw), 1, draw.sets - 1);
}

/* The engine itself would tick every 5 ms, and with 4 ms of work that is too late. */
TEST(a_short_deadline_is_kept_on_a_device_that_must_be_asked)
{
	uint32_t service;
	struct world w;

	deadline_world_init(&w, 100);
	w.device.activity = GP_ACTIVITY_EXACT;
	service = world_add_service(&w, 6 * MS, 101300 * US, 4 * MS);
	w.attr[service].class = GP_BEST_EFFORT;
	world_add_job(&w);
	world_run(&w, "edf:poll=200");
	world_check(&w, "edf");
	assert_int_equal(world_refused(&w), 0);
}

TEST(what_is_accepted_is_not_late_whatever_a_change_consists_of)
{
	struct draw draw = {.sets = 40,
			    .low = 600,
			    .high = 1000,
			    .change_permille = 15,
			    .cost_permille = 1000,
			    .any_costs = true,
			    .equal = true,
			    .sporadic = true};

	for (draw.most = 4; draw.most <= 20; draw.most += 4)
		assert_in_range(run_sets("edf", &draw), 1, draw.sets - 1);
}

TEST(gangs_are_done_in_time_as_a_whole)
{
	const struct draw draw = {.sets = sets_of(200),
				  .most = 6,
				  .low = 100,
				  .high = 1200,
				  .change_permille = 30,
				  .cost_permille = 1000,
				  .gangs = true};

	assert_in_range(run_sets("edf", &draw), 1, draw.sets - 1);
}

/* Many tasks run at the same time, a hold stops all of them, and changes are noticed a millisecond
 * late. */
TEST(the_same_holds_on_an_amd_gpu)
{
	const struct draw fits = {.sets = sets_of(100),
				  .most = 7,
				  .low = 100,
				  .high = 799,
				  .change_permille = 10,
				  .cwsr = true};
	struct draw any = fits;

	assert_int_equal(run_sets("edf", &fits), 0);
	any.sporadic = true;
	any.change_permille = 50;
	any.high = 1500;
	assert_in_range(run_sets("edf", &any), 1, any.sets - 1);
	any.gangs = true;
	assert_in_range(run_sets("edf", &any), 1, any.sets - 1);
}

/* How far the promise goes. */

/* The number of tasks with one deadline, 0.8 of the device in total, that are accepted and kept. */
static unsigned count_that_fit(const struct gp_sim_device *device, uint64_t deadline_ns)
{
	unsigned count = 0, refused = 0;

	while (!refused) {
		struct world w;

		count++;
		deadline_world_init(&w, 1000);
		w.device = *device;
		w.duration_ns = 2 * S;
		for (unsigned i = 0; i < count; i++)
			world_add_service(&w, deadline_ns, deadline_ns,
					  deadline_ns * 8 / 10 / count);
		world_run(&w, "edf");
		world_check(&w, "edf");
		refused = world_refused(&w);
	}
	return count - 1;
}

/*
 * With equal budgets; deadlines of 6.4 ms have the largest jitter. Other budgets: test_edf_sets.c.
 */
TEST(so_many_tasks_fit_where_a_change_is_one_percent_of_the_deadline)
{
	struct world w;

	deadline_world_init(&w, 47);
	assert_in_range(world_change_ns(&w) * 100, 6 * MS, 6400 * US);
	assert_int_equal(count_that_fit(&w.device, world_change_ns(&w) * 100), 30);
	w.device.hold_ns = w.device.release_ns = 1;
	w.device.switch_ns = w.device.switch_idle_ns = 25600;
	w.device.refill_ns = 6 * US;
	assert_int_equal(count_that_fit(&w.device, world_change_ns(&w) * 100), 18);
}

TEST(accepted_tasks_stay_and_later_ones_are_refused_until_there_is_room)
{
	uint32_t first, second, third;
	struct world w;

	deadline_world_init(&w, 100);
	first = world_add_service(&w, 100 * MS, 100 * MS, 50 * MS);
	second = world_add_service(&w, 50 * MS, 50 * MS, 20 * MS);
	third = world_add_service(&w, 200 * MS, 200 * MS, 60 * MS);
	w.task[second].start_ns = 1 * S;
	w.task[third].start_ns = 2 * S;
	world_run(&w, "edf");
	assert_false(w.stats[first].refused);
	assert_false(w.stats[second].refused);
	assert_true(w.stats[third].refused);
	assert_int_equal(w.missed[first] + w.missed[second], 0);
	assert_true(w.work_ns[third] > 0);

	w.task[first].stop_ns = 3 * S;
	world_run(&w, "edf");
	assert_false(w.stats[third].refused);
}

TEST(a_task_without_a_budget_is_refused_and_runs_with_the_others)
{
	uint32_t service, silent;
	struct world w;

	deadline_world_init(&w, 100);
	service = world_add_service(&w, 100 * MS, 100 * MS, 10 * MS);
	silent = world_add_service(&w, 100 * MS, 100 * MS, 10 * MS);
	w.attr[silent].budget_ns = 0;
	world_run(&w, "edf");
	assert_false(w.stats[service].refused);
	assert_true(w.stats[silent].refused);
	assert_true(w.finished[silent] >= 99);
}

/* 0.3 of the device at one request per deadline; it sends two. */
TEST(a_task_with_more_requests_than_deadlines_needs_room_for_them)
{
	uint32_t hasty, steady;
	struct world w;

	deadline_world_init(&w, 100);
	hasty = world_add_service(&w, 100 * MS, 50 * MS, 30 * MS);
	world_run(&w, "edf");
	assert_false(w.stats[hasty].refused);
	assert_int_equal(w.missed[hasty], 0);

	deadline_world_init(&w, 100);
	hasty = world_add_service(&w, 100 * MS, 50 * MS, 30 * MS);
	steady = world_add_service(&w, 100 * MS, 100 * MS, 45 * MS);
	world_run(&w, "edf");
	assert_true(w.stats[hasty].refused);
	assert_false(w.stats[steady].refused);
	assert_int_equal(w.missed[steady], 0);
}

/* Fifteen at once: too few to change the measured period. The others would be late if each request
 * were due in its own time. */
TEST(a_burst_of_requests_harms_no_other_task)
{
	static const uint64_t at_once[15] = {0};
	uint32_t hasty, steady;
	struct world w;

	deadline_world_init(&w, 100);
	steady = world_add_service(&w, 200 * MS, 200 * MS, 90 * MS);
	hasty = world_add_service(&w, 100 * MS, 100 * MS, 40 * MS);
	w.task[hasty].load = GP_LOAD_TRACE;
	w.task[hasty].arrival_ns = at_once;
	w.task[hasty].arrivals = 15;
	world_run(&w, "edf");
	assert_int_equal(world_refused(&w), 0);
	assert_int_equal(w.finished[hasty], 15);
	assert_int_equal(w.missed[steady], 0);
}

TEST(a_gang_whose_first_task_leaves_keeps_its_promise)
{
	uint32_t first, other, last;
	struct world w;

	deadline_world_init(&w, 100);
	first = world_add_service(&w, 100 * MS, 100 * MS, 5 * MS);
	other = world_add_service(&w, 100 * MS, 100 * MS, 55 * MS);
	last = world_add_service(&w, 100 * MS, 100 * MS, 50 * MS);
	w.attr[first].gang = w.attr[last].gang = 7;
	w.task[first].stop_ns = 3 * S;
	world_run(&w, "edf");
	assert_true(w.stats[other].refused);
	assert_false(w.stats[last].refused);
	assert_int_equal(w.missed[last], 0);
}

TEST(a_task_with_one_burst_gets_a_promise_again)
{
	uint64_t at[140];
	struct world w;

	for (uint64_t i = 0; i < 140; i++)
		at[i] = i < 40 ? i * 6 * MS : 1 * S + (i - 40) * 60 * MS;
	deadline_world_init(&w, 100);
	world_add_service(&w, 50 * MS, 50 * MS, 6 * MS);
	world_add_job(&w);
	w.task[0].load = GP_LOAD_TRACE;
	w.task[0].arrival_ns = at;
	w.task[0].arrivals = 140;
	world_run(&w, "edf");
	assert_int_equal(world_refused(&w), 0);
	assert_int_equal(w.finished[0], 140);
}

/* Requests that exceed their budget. */

TEST(an_overrun_harms_no_other_task_and_is_counted)
{
	for (unsigned permille = 1100; permille <= 4000; permille += 100) {
		uint32_t liar;
		struct world w;

		(void)state;
		deadline_world_init(&w, 100);
		liar = world_add_service(&w, 100 * MS, 100 * MS, 20 * MS);
		world_add_service(&w, 90 * MS, 90 * MS, 30 * MS);
		world_add_service(&w, 250 * MS, 250 * MS, 60 * MS);
		w.task[liar].kernel_ns = 20 * MS * permille / 1000;
		world_run(&w, "edf");
		assert_int_equal(world_refused(&w), 0);
		assert_int_equal(w.missed[1] + w.missed[2], 0);
		assert_true(w.finished[liar] > 0);
		assert_in_range(w.stats[liar].overruns, w.finished[liar], w.finished[liar] + 1);
		assert_int_equal(w.stats[1].overruns + w.stats[2].overruns, 0);
	}
}

/* Tasks without a promise. */

TEST(no_task_starves_behind_promises_that_fill_the_device)
{
	struct world w;

	deadline_world_init(&w, 100);
	w.duration_ns = 40 * S;
	world_add_service(&w, 100 * MS, 100 * MS, 97 * MS);
	for (int i = 0; i < 12; i++)
		world_add_job(&w);
	world_run(&w, "edf");
	world_check(&w, "edf"); /* no policy was ejected, and each task got something */
	assert_int_equal(world_refused(&w), 0);
	for (uint32_t i = 1; i < w.n; i++) /* 40 s * 2 % / 12 are 67 ms, and half is enough */
		assert_true(w.work_ns[i] > 33 * MS);
}

/* Its next request comes when the last is done: that is noticed after 16 requests, 16 s. */
TEST(no_task_starves_behind_requests_that_never_pause)
{
	struct world w;

	deadline_world_init(&w, 100);
	w.duration_ns = 15 * S;
	world_add(
		&w,
		(struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = 1 * S, .gap_ns = 1 * US},
		2 * S, 1 * S);
	for (int i = 0; i < 3; i++)
		world_add_job(&w);
	world_run(&w, "edf");
	assert_string_equal(w.ejected, "");
	assert_int_equal(world_refused(&w), 0);
	for (uint32_t i = 1; i < w.n; i++) /* 15 s * 2 % / 3 are 100 ms */
		assert_in_range(w.work_ns[i], 70 * MS, 130 * MS);
}

TEST(what_no_request_needs_is_shared_equally)
{
	uint64_t all_ns = 0;
	struct world w;

	deadline_world_init(&w, 100);
	world_add_service(&w, 100 * MS, 100 * MS, 30 * MS);
	for (int i = 0; i < 3; i++)
		world_add_job(&w);
	world_run(&w, "edf");
	for (uint32_t i = 1; i < w.n; i++)
		all_ns += w.work_ns[i];
	assert_true(all_ns > 10 * S * 65 / 100);
	for (uint32_t i = 1; i < w.n; i++)
		assert_in_range(w.work_ns[i] * 100 / all_ns, 31, 36);
	assert_int_equal(w.missed[0], 0);
}

TEST_BEGIN
{
	gp_log_set_level(GP_LOG_ERROR);
}
