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
	struct draw short_ones = {.sets = 20, /* deadlines from 1.4 ms */
				  .most = 18,
				  .low = 100,
				  .high = 799,
				  .change_permille = 10,
				  .cost_permille = 10};

	four_fifths_are_accepted("edf", 18);
	none_are_refused("edf", short_ones);
}

TEST(more_than_the_device_is_never_promised)
{
	all_are_refused("edf",
			DRAW(300, .most = 10, .low = 1003, .high = 1500, .change_permille = 10));
}

/* A handover is a tenth of the shortest deadline: most of the load is switching. */
TEST(what_is_accepted_is_not_late_if_switching_is_expensive)
{
	some_are_refused("edf",
			 DRAW(300, .most = 10, .low = 100, .high = 1500, .change_permille = 100));
}

TEST(what_is_accepted_is_not_late_when_requests_come_at_odd_times)
{
	some_are_refused("edf", DRAW(300, .most = 10, .low = 100, .high = 1500,
				     .change_permille = 30, .sporadic = true));
}

/* The worst case: deadlines are equal, and a task that was refused because of switching costs would
 * be late. */
TEST(what_is_accepted_is_not_late_when_all_come_at_once)
{
	for (unsigned most = 2; most <= 6; most++)
		some_are_refused("edf",
				 DRAW(100, .most = most, .low = 300, .high = 1000,
				      .change_permille = 40, .equal = true, .sporadic = true));
}

TEST(a_device_that_must_be_asked_is_asked_often_enough)
{
	/* Deadlines from 33 ms. */
	some_are_refused("edf", DRAW(100, .most = 7, .low = 100, .high = 1100, .change_permille = 4,
				     .cost_permille = 100, .unannounced = true));
}

/* The engine itself would tick every 5 ms, and with 4 ms of work that is too late. */
DEADLINE_TEST(a_short_deadline_is_kept_on_a_device_that_must_be_asked, 100)
{
	uint32_t service;

	w->device.activity = GP_ACTIVITY_EXACT;
	service = world_add_service(w, 6 * MS, 101300 * US, 4 * MS);
	w->attr[service].class = GP_BEST_EFFORT;
	world_add_job(w);
	world_run(w, "edf:poll=200");
	world_check(w, "edf");
	assert_int_equal(world_refused(w), 0);
}

TEST(what_is_accepted_is_not_late_whatever_a_change_consists_of)
{
	for (unsigned most = 4; most <= 20; most += 4)
		some_are_refused("edf", (struct draw){.sets = 40,
						      .most = most,
						      .low = 600,
						      .high = 1000,
						      .change_permille = 15,
						      .any_costs = true,
						      .equal = true,
						      .sporadic = true});
}

TEST(gangs_are_done_in_time_as_a_whole)
{
	some_are_refused("edf", DRAW(200, .most = 6, .low = 100, .high = 1200,
				     .change_permille = 30, .gangs = true));
}

TEST(the_same_holds_on_an_amd_gpu)
{
	amd_keeps_promises("edf", 7);
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
DEADLINE_TEST(so_many_tasks_fit_where_a_change_is_one_percent_of_the_deadline, 47)
{
	assert_in_range(world_change_ns(w) * 100, 6 * MS, 6400 * US);
	assert_int_equal(count_that_fit(&w->device, world_change_ns(w) * 100), 30);
	w->device.hold_ns = w->device.release_ns = 1;
	w->device.switch_ns = w->device.switch_idle_ns = 25600;
	w->device.refill_ns = 6 * US;
	assert_int_equal(count_that_fit(&w->device, world_change_ns(w) * 100), 18);
}

DEADLINE_TEST(accepted_tasks_stay_and_later_ones_are_refused_until_there_is_room, 100)
{
	uint32_t first, second, third;

	first = world_add_service(w, 100 * MS, 100 * MS, 50 * MS);
	second = world_add_service(w, 50 * MS, 50 * MS, 20 * MS);
	third = world_add_service(w, 200 * MS, 200 * MS, 60 * MS);
	w->task[second].start_ns = 1 * S;
	w->task[third].start_ns = 2 * S;
	world_run(w, "edf");
	assert_false(w->stats[first].refused);
	assert_false(w->stats[second].refused);
	assert_true(w->stats[third].refused);
	assert_int_equal(w->missed[first] + w->missed[second], 0);
	assert_true(w->work_ns[third] > 0);

	w->task[first].stop_ns = 3 * S;
	world_run(w, "edf");
	assert_false(w->stats[third].refused);
}

DEADLINE_TEST(a_task_without_a_budget_is_refused_and_runs_with_the_others, 100)
{
	uint32_t service, silent;

	service = world_add_service(w, 100 * MS, 100 * MS, 10 * MS);
	silent = world_add_service(w, 100 * MS, 100 * MS, 10 * MS);
	w->attr[silent].budget_ns = 0;
	world_run(w, "edf");
	assert_false(w->stats[service].refused);
	assert_true(w->stats[silent].refused);
	assert_true(w->finished[silent] >= 99);
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
DEADLINE_TEST(a_burst_of_requests_harms_no_other_task, 100)
{
	static const uint64_t at_once[15] = {0};
	uint32_t hasty, steady;

	steady = world_add_service(w, 200 * MS, 200 * MS, 90 * MS);
	hasty = world_add_service(w, 100 * MS, 100 * MS, 40 * MS);
	world_set_trace(w, hasty, at_once, 15);
	world_run(w, "edf");
	assert_int_equal(world_refused(w), 0);
	assert_int_equal(w->finished[hasty], 15);
	assert_int_equal(w->missed[steady], 0);
}

DEADLINE_TEST(a_gang_whose_first_task_leaves_keeps_its_promise, 100)
{
	uint32_t first, other, last;

	first = world_add_service(w, 100 * MS, 100 * MS, 5 * MS);
	other = world_add_service(w, 100 * MS, 100 * MS, 55 * MS);
	last = world_add_service(w, 100 * MS, 100 * MS, 50 * MS);
	w->attr[first].gang = w->attr[last].gang = 7;
	w->task[first].stop_ns = 3 * S;
	world_run(w, "edf");
	assert_true(w->stats[other].refused);
	assert_false(w->stats[last].refused);
	assert_int_equal(w->missed[last], 0);
}

DEADLINE_TEST(a_task_with_one_burst_gets_a_promise_again, 100)
{
	uint64_t at[140];

	for (uint64_t i = 0; i < 140; i++)
		at[i] = i < 40 ? i * 6 * MS : 1 * S + (i - 40) * 60 * MS;
	world_add_service(w, 50 * MS, 50 * MS, 6 * MS);
	world_add_job(w);
	world_set_trace(w, 0, at, 140);
	world_run(w, "edf");
	assert_int_equal(world_refused(w), 0);
	assert_int_equal(w->finished[0], 140);
}

/* Requests that exceed their budget. */

TEST(an_overrun_harms_no_other_task_and_is_counted)
{
	overruns_harm_no_other_task("edf");
}

/* Tasks without a promise. */

DEADLINE_TEST(no_task_starves_behind_promises_that_fill_the_device, 100)
{
	w->duration_ns = 40 * S;
	world_add_service(w, 100 * MS, 100 * MS, 97 * MS);
	for (int i = 0; i < 12; i++)
		world_add_job(w);
	world_run(w, "edf");
	world_check(w, "edf"); /* no policy was ejected, and each task got something */
	assert_int_equal(world_refused(w), 0);
	for (uint32_t i = 1; i < w->n; i++) /* 40 s * 2 % / 12 are 67 ms, and half is enough */
		assert_true(w->work_ns[i] > 33 * MS);
}

/* Its next request comes when the last is done: that is noticed after 16 requests, 16 s. */
DEADLINE_TEST(no_task_starves_behind_requests_that_never_pause, 100)
{
	w->duration_ns = 15 * S;
	world_add(w, LOOP(1 * S, .gap_ns = 1 * US), 2 * S, 1 * S);
	for (int i = 0; i < 3; i++)
		world_add_job(w);
	world_run(w, "edf");
	assert_string_equal(w->ejected, "");
	assert_int_equal(world_refused(w), 0);
	for (uint32_t i = 1; i < w->n; i++) /* 15 s * 2 % / 3 are 100 ms */
		assert_in_range(w->work_ns[i], 70 * MS, 130 * MS);
}

DEADLINE_TEST(what_no_request_needs_is_shared_equally, 100)
{
	uint64_t all_ns = 0;

	world_add_service(w, 100 * MS, 100 * MS, 30 * MS);
	for (int i = 0; i < 3; i++)
		world_add_job(w);
	world_run(w, "edf");
	for (uint32_t i = 1; i < w->n; i++)
		all_ns += w->work_ns[i];
	assert_true(all_ns > 10 * S * 65 / 100);
	for (uint32_t i = 1; i < w->n; i++)
		assert_in_range(w->work_ns[i] * 100 / all_ns, 31, 36);
	assert_int_equal(w->missed[0], 0);
}
