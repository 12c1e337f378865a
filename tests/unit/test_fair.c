/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of `fair`, on simulated devices of each kind: tasks that want the device have it in
 * proportion to their weights, within 2 points over 10 seconds; a task that wants less gets what it
 * wants; and idle time cannot be saved up.
 */
#include "sharing.h"

DEVICE_TEST(equal_weights_get_equal_parts_whatever_the_kernels)
{
	begin_on(kind, 10 * S);
	add(busy(200 * US), be_attr(100));
	add(busy(13600 * US), be_attr(100));
	add(busy(70 * MS), be_attr(100));
	finish("fair");
	for (uint32_t i = 0; i < 3; i++)
		assert_part(kind, i, 100.0 / 3, 2);
}

DEVICE_TEST(unequal_weights_get_their_parts)
{
	static const uint32_t weight[] = {100, 300, 1000, 50, 550};

	begin_on(kind, 10 * S);
	for (uint32_t i = 0; i < 5; i++)
		add(busy((1 + 3 * i) * MS), be_attr(weight[i]));
	finish("fair");
	for (uint32_t i = 0; i < 5; i++)
		assert_part(kind, i, weight[i] / 20.0, 2);
}

DEVICE_TEST(random_sets_of_tasks_get_their_parts)
{
	struct gp_rng rng;

	gp_rng_init(&rng, 5, 0);
	for (unsigned set = 0; set < SETS; set++) {
		uint32_t n = (uint32_t)between(&rng, 2, 7), weight[7], sum = 0;

		begin_on(kind, 10 * S);
		for (uint32_t i = 0; i < n; i++) {
			weight[i] = (uint32_t)between(&rng, 30, 1000);
			sum += weight[i];
			add(busy(between(&rng, 50 * US, 50 * MS)), be_attr(weight[i]));
		}
		finish("fair");
		for (uint32_t i = 0; i < n; i++)
			assert_part(kind, i, 100.0 * weight[i] / sum, 2);
	}
}

DEVICE_TEST(the_lightest_of_all_weights_is_not_forgotten)
{
	begin_on(kind, 30 * S);
	add(busy(1 * MS), be_attr(10000));
	add(busy(1 * MS), be_attr(1));
	finish("fair");
	assert_part(kind, 0, 100, 2);
	assert_true(run.task[1].finished > 10);
}

/* The limit is 10 s, and finish() fails if the policy was ejected. */
DEVICE_TEST(the_longest_possible_turns_starve_no_task)
{
	begin_on(kind, 60 * S);
	add(busy(1 * MS), be_attr(10000));
	for (int i = 0; i < 60; i++)
		add(busy(1 * MS), be_attr(1));
	finish("fair:turn=10000:round=10000:slice=1000000");
	for (uint32_t i = 0; i <= 60; i++)
		assert_true(run.task[i].finished > 0);
}

DEVICE_TEST(one_that_comes_and_goes_has_its_part_while_it_is_there)
{
	begin_on(kind, 10 * S);
	add(busy(5 * MS), be_attr(100));
	add(busy(5 * MS), be_attr(100));
	add(LOOP(5 * MS, .start_ns = 3 * S, .stop_ns = 8 * S), be_attr(200));
	finish("fair");
	ASSERT_PARTS(kind, 2, 50 * 0.5 + 25 * 0.5, 50 * 0.5 + 25 * 0.5, 50 * 0.5);
}

/*
 * 30 ms of work every 100 ms are less than its half: it gets all of them, the other gets the rest.
 */
DEVICE_TEST(one_that_wants_less_than_its_part_gets_what_it_wants)
{
	begin_on(kind, 10 * S);
	add(PERIODIC(100 * MS, 30 * MS), be_attr(100));
	add(busy(5 * MS), be_attr(100));
	finish("fair");
	assert_part(kind, 0, 30, 2);
	/* Each request costs two switches. If its end is not signalled, it is noticed at
	 * the next tick, after up to 5 ms. */
	assert_part(kind, 1, kind->activity == GP_ACTIVITY_EXACT ? 65 : 68, 2);
}

/* Half a second of work, half a second of pause: its part is a half while it works, so that takes a
 * second, and a third in total. If it could claim the time it missed, it would get more. */
DEVICE_TEST(one_that_is_idle_half_of_the_time_has_no_claim_for_it)
{
	begin_on(kind, 15 * S);
	add(busy(5 * MS), be_attr(100));
	add(LOOP(500 * MS, .gap_ns = 500 * MS), be_attr(100));
	finish("fair");
	ASSERT_PARTS(kind, 2, 200.0 / 3, 100.0 / 3);
}

DEVICE_TEST(a_task_that_slept_for_long_does_not_shut_the_others_out)
{
	begin_on(kind, 20 * S);
	add(busy(5 * MS), be_attr(100));
	/* It works and sleeps for seconds, and works in the last ones. */
	add(PERIODIC(10 * S, 6 * S), be_attr(100));
	finish("fair");
	assert_true(part(&run, 0) > 48);
}

DEVICE_TEST(a_gang_is_one_in_the_line)
{
	const struct gp_task_attr gang = ATTR(GP_BEST_EFFORT, .gang = 7);

	begin_on(kind, 10 * S);
	add(busy(5 * MS), gang);
	add(busy(5 * MS), be_attr(100));
	add(busy(5 * MS), gang);
	finish("fair");
	assert_part(kind, 1, 50, 2);
	/* In its turn it switches between its members as the hardware does. */
	assert_part(kind, 0, 25, kind->slices ? 2 : 4);
	assert_part(kind, 2, 25, kind->slices ? 2 : 4);
}

/* If short pauses are seen at once, it keeps its turn. With slices it gives the turn away, and gets
 * some of it back if run times are measured. */
DEVICE_TEST(a_pause_of_a_moment_costs_no_turn_where_it_is_seen)
{
	begin_on(kind, 20 * S);
	add(busy(5 * MS), be_attr(100));
	add(LOOP(2 * MS, .gap_ns = 100 * US), be_attr(100));
	finish("fair");
	if (knows_at_once(kind))
		assert_part(kind, 1, 47, 2);
	else if (kind->activity == GP_ACTIVITY_SAMPLED)
		assert_true(part(&run, 1) > 28);
	else
		assert_part(kind, 1, 16, 2); /* 2 ms in 12 */
}

/* Its slice of 30 ms ends with its kernel: 27 in 37 are 73 %. */
TEST(a_slice_that_is_not_used_up_is_made_up_for)
{
	const struct device_kind *kind = device_named("slices, sampled activity");
	double got;

	begin_on(kind, 30 * S);
	scenario.device.activity_window_ns = 167 * MS; /* so that slices are used */
	add(LOOP(27 * MS, .gap_ns = 50 * US), be_attr(300));
	add(busy(5 * MS), be_attr(100));
	finish("fair");
	got = 100 * part(&run, 0) / (part(&run, 0) + part(&run, 1));
	if (got < 74.3 || got > 75.7)
		fail_msg("it got %.1f of 100, not 75", got);
}

DEVICE_TEST(one_that_comes_back_does_not_wait_for_the_end_of_a_long_turn)
{
	begin_on(kind, 10 * S);
	add(PERIODIC(100 * MS, 5 * MS), be_attr(100));
	add(busy(5 * MS), be_attr(100));
	add(busy(5 * MS), be_attr(100));
	finish("fair:turn=500:round=2000");
	if (knows_at_once(kind))
		assert_in_range(run.task[0].p50_ns, 5 * MS, 25 * MS);
}

DEVICE_TEST(little_is_lost_to_switching)
{
	double sum = 0;

	begin_on(kind, 10 * S);
	for (uint32_t i = 0; i < 8; i++)
		add(busy(13600 * US), be_attr(50 + 100 * (i % 2)));
	finish("fair");
	for (uint32_t i = 0; i < 8; i++)
		sum += part(&run, i);
	if (sum < 97)
		fail_msg("%s: %.1f %% are left of the device", kind->name, sum);
}

TEST(where_not_all_can_be_held_all_run)
{
	begin_on(device_named("no slices, events"), 10 * S);
	scenario.device.max_held = 1;
	for (uint32_t i = 0; i < 3; i++)
		add(busy(5 * MS), be_attr(100));
	finish("fair");
	for (uint32_t i = 0; i < 3; i++)
		assert_true(part(&run, i) > 28);
}
