/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of `priority`, `rr` and `none`, one claim per test. */
#include "property_stage.h"

STAGE_TEST(one_lc_task_gets_a_second_and_several_get_two_ms_each, "priority", best_device)
{
	uint32_t a = cast(GP_LATENCY_CRITICAL, true), b;

	play(10);
	assert_int_equal(slice_of(a), 1000000);
	b = cast(GP_LATENCY_CRITICAL, false);
	play(10);
	assert_int_equal(slice_of(a), 2000);
	assert_int_equal(slice_of(b), 2000);
	model_leave(&stage.model, b);
	play(110);
	assert_int_equal(slice_of(a), 1000000);
}

STAGE_TEST(the_only_be_task_gets_the_tiny_slice_while_there_is_an_lc_task, "priority", best_device)
{
	uint32_t be = cast(GP_BEST_EFFORT, true), lc;

	play(10);
	assert_int_equal(slice_of(be), 0);
	lc = cast(GP_LATENCY_CRITICAL, false);
	play(10);
	assert_int_equal(slice_of(be), 1);
	assert_in_range(permille_of_the_next(be, 100), 1000, 1000); /* it costs nothing */
	set_busy(lc, true);
	assert_in_range(permille_of_the_next(lc, 90), 1000, 1000);
	assert_false(held(be));
	model_leave(&stage.model, lc);
	play(110);
	assert_int_equal(slice_of(be), 0);
}

STAGE_TEST(an_idle_be_task_alone_has_the_tiny_slice_for_when_it_wakes_up, "priority", best_device)
{
	uint32_t lc = cast(GP_LATENCY_CRITICAL, true), be = cast(GP_BEST_EFFORT, false);

	play(10);
	assert_int_equal(slice_of(be), 1);
	set_busy(be, true);
	assert_in_range(permille_of_the_next(lc, 50), 1000, 1000);
}

STAGE_TEST(two_busy_be_tasks_take_turns_of_a_quantum, "priority:quantum=100", best_device)
{
	uint32_t a, b, first, second;

	cast(GP_LATENCY_CRITICAL, false);
	a = cast(GP_BEST_EFFORT, true);
	b = cast(GP_BEST_EFFORT, true);
	play_us(1);
	first = held(a) ? b : a;
	second = held(a) ? a : b;
	for (int turn = 0; turn < 6; turn++) {
		uint32_t other = first;

		play_us(turn ? 1000 : 999);
		assert_false(held(first));
		assert_true(held(second));
		assert_int_equal(slice_of(first), 1);
		play(98);
		assert_false(held(first));
		play(1);
		assert_true(held(first));
		assert_false(held(second));
		first = second;
		second = other;
	}
	assert_in_range(permille_of_the_next(a, 1000), 480, 520);
}

STAGE_TEST(the_higher_of_two_be_priorities_has_the_device_but_for_aging, "priority:quantum=100",
	   best_device)
{
	uint32_t low = cast_gang(GP_BEST_EFFORT, 3, true, 0);

	cast_gang(GP_BEST_EFFORT, 4, true, 0);
	play(10);
	assert_true(held(low));
	assert_in_range(permille_of_the_next(low, 2200), 60, 120); /* 10 ms of 110 */
}

STAGE_TEST(an_idle_be_task_stays_released_and_joins_when_seen_active, "priority:quantum=100",
	   best_device)
{
	uint32_t busy, idle;

	cast(GP_LATENCY_CRITICAL, false);
	busy = cast(GP_BEST_EFFORT, true);
	idle = cast(GP_BEST_EFFORT, false);
	play(500);
	assert_false(held(busy));
	assert_int_equal(slice_of(busy), 1);
	assert_false(held(idle));
	assert_int_equal(slice_of(idle), 0);
	set_busy(idle, true);
	play(2);
	assert_int_equal(held(busy) + held(idle), 1);
	assert_in_range(permille_of_the_next(idle, 1000), 450, 550);
	set_busy(idle, false);
	play(2);
	assert_false(held(idle));
	assert_false(held(busy));
	assert_in_range(permille_of_the_next(busy, 300), 1000, 1000);
}

STAGE_TEST(a_busy_unmanaged_task_keeps_the_tiny_slice_away, "priority", best_device)
{
	uint32_t be, unmanaged;

	cast(GP_LATENCY_CRITICAL, true);
	be = cast(GP_BEST_EFFORT, true);
	unmanaged = cast(GP_UNMANAGED, true);
	play(10);
	assert_int_equal(slice_of(be), 0);
	set_busy(unmanaged, false);
	play(2);
	assert_int_equal(slice_of(be), 1);
	assert_false(held(unmanaged));
	assert_int_equal(slice_of(unmanaged), 0);
}

STAGE_TEST(aging_gives_a_be_task_with_the_tiny_slice_10_ms_in_110, "priority", best_device)
{
	uint32_t lc = cast(GP_LATENCY_CRITICAL, true), be = cast(GP_BEST_EFFORT, true);

	play(99);
	assert_int_equal(stage.model.task[be].run_ns, 0);
	play(4);
	assert_int_equal(slice_of(be), 2000);
	assert_int_equal(slice_of(lc), 2000);
	play(10);
	assert_int_equal(slice_of(be), 1);
	assert_int_equal(slice_of(lc), 1000000);
	assert_in_range(permille_of_the_next(be, 3000), 30, 60); /* half of 10 ms in 110 */
}

STAGE_TEST(aging_reaches_every_be_task_although_they_take_turns, "priority", best_device)
{
	uint32_t be[4];

	cast(GP_LATENCY_CRITICAL, true);
	for (uint8_t i = 0; i < 4; i++)
		be[i] = cast_gang(GP_BEST_EFFORT, i / 2, true, 0);
	play(3000);
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(stage.model.task[be[i]].run_ns, 2 * MS, 200 * MS);
}

TEST(aging_reaches_a_be_task_that_is_never_seen_running)
{
	struct model_profile device = best_device;
	uint32_t a, b;

	device.run = UNSEEN;
	device.running_seen = false;
	open_stage("priority", &device);
	cast(GP_LATENCY_CRITICAL, true);
	a = cast(GP_BEST_EFFORT, true);
	b = cast(GP_BEST_EFFORT, true);
	play(300); /* while a task is held, its wait is known */
	model_leave(&stage.model, b);
	play(100);
	assert_in_range(permille_of_the_next(a, 5000), 3, 100);
	close_stage();
}

STAGE_TEST(without_slices_be_is_held_while_lc_is_seen_active, "priority", device_without_slices())
{
	uint32_t lc = cast(GP_LATENCY_CRITICAL, false), be = cast(GP_BEST_EFFORT, true);

	for (int burst = 0; burst < 5; burst++) {
		play(20);
		assert_false(held(be));
		set_busy(lc, true);
		play(1);
		assert_true(held(be));
		play(20);
		assert_true(held(be));
		set_busy(lc, false);
		play(1);
		assert_false(held(be));
	}
}

static unsigned ms_until(uint32_t i, bool is_held)
{
	unsigned ms = 0;

	for (; held(i) != is_held && ms < 1000; ms++)
		play(1);
	return ms;
}

STAGE_TEST(without_slices_aging_lets_be_in_after_100_ms_for_10, "priority", device_without_slices())
{
	uint32_t be;

	cast(GP_LATENCY_CRITICAL, true);
	be = cast(GP_BEST_EFFORT, true);
	play(1);
	for (int round = 0; round < 5; round++) {
		assert_in_range(ms_until(be, false), 97, 102);
		assert_in_range(ms_until(be, true), 9, 12);
	}
}

STAGE_TEST(a_task_keeps_its_place_when_one_that_came_before_it_leaves, "priority",
	   device_without_slices())
{
	uint32_t idle = cast(GP_BEST_EFFORT, false), be;

	cast(GP_LATENCY_CRITICAL, true);
	be = cast(GP_BEST_EFFORT, true);
	play(50);
	model_leave(&stage.model, idle);
	gp_engine_trigger(stage.engine, true);
	assert_in_range(ms_until(be, false), 47, 52);
}

/*
 * If changes are signalled, ticks are far apart: the task ran until now, not until the last tick.
 */
TEST(a_be_task_that_has_just_run_gets_no_aging_window)
{
	struct model_profile device = device_without_slices();
	uint32_t lc, be;

	device.events = true;
	open_stage("priority", &device);
	lc = cast(GP_LATENCY_CRITICAL, false);
	be = cast(GP_BEST_EFFORT, true);
	play(101); /* the next tick is due in 99 ms */
	pass_time(&stage, stage.model.now_ns + 95 * MS);
	set_busy(lc, true);
	tick(&stage);
	for (int ms = 0; ms < 90; ms++) {
		assert_true(held(be));
		play(1);
	}
	close_stage();
}

TEST(a_device_that_holds_few_holds_the_lowest)
{
	struct model_profile device = device_without_slices();
	uint32_t low_lc, be;

	device.max_held = 1;
	open_stage("priority", &device);
	cast_gang(GP_LATENCY_CRITICAL, 9, true, 0);
	low_lc = cast_gang(GP_LATENCY_CRITICAL, 0, true, 0);
	be = cast(GP_BEST_EFFORT, true);
	play(20);
	assert_true(held(be));
	assert_false(held(low_lc));
	close_stage();
}

TEST(no_more_turns_are_taken_than_the_device_can_hold)
{
	struct model_profile device = best_device;
	uint32_t be[3];

	device.max_held = 1;
	open_stage("priority", &device);
	cast(GP_LATENCY_CRITICAL, false);
	be[0] = cast(GP_BEST_EFFORT, true);
	be[1] = cast(GP_BEST_EFFORT, true);
	play(250);
	assert_int_equal(held(be[0]) + held(be[1]), 1);
	be[2] = cast(GP_BEST_EFFORT, true);
	play(250);
	for (int i = 0; i < 3; i++) { /* two would have to be held: the hardware shares */
		assert_false(held(be[i]));
		assert_int_equal(slice_of(be[i]), 0);
	}
	close_stage();
}

STAGE_TEST(a_gang_takes_its_turn_together, "priority", best_device)
{
	uint32_t a = cast_gang(GP_BEST_EFFORT, 0, true, 7), other = cast(GP_BEST_EFFORT, true),
		 b = cast_gang(GP_BEST_EFFORT, 0, true, 7);

	for (int i = 0; i < 50; i++) {
		play(13);
		assert_int_equal(held(a), held(b));
		assert_int_not_equal(held(a), held(other));
	}
}

STAGE_TEST(a_be_task_in_a_gang_with_an_lc_task_is_not_held, "priority", device_without_slices())
{
	uint32_t mate, be;

	cast_gang(GP_LATENCY_CRITICAL, 0, true, 7);
	mate = cast_gang(GP_BEST_EFFORT, 0, true, 7);
	be = cast(GP_BEST_EFFORT, true);
	play(50);
	assert_false(held(mate));
	assert_true(held(be));
}

STAGE_TEST(what_a_user_holds_stays_held_and_takes_no_turn, "priority:quantum=100", best_device)
{
	uint32_t a, b;

	cast(GP_LATENCY_CRITICAL, false);
	a = cast(GP_BEST_EFFORT, true);
	b = cast(GP_BEST_EFFORT, true);
	play(10);
	change_user_hold(&stage, a);
	play(2);
	assert_true(held(a));
	assert_in_range(permille_of_the_next(b, 1000), 1000, 1000);
	assert_true(held(a));
	change_user_hold(&stage, a);
	assert_in_range(permille_of_the_next(a, 1000), 450, 550);
}

STAGE_TEST(rr_gives_all_tasks_the_same_slice, "rr:quantum=5000", best_device)
{
	uint32_t a = cast(GP_LATENCY_CRITICAL, true), b = cast(GP_BEST_EFFORT, true),
		 c = cast(GP_BEST_EFFORT, false), unmanaged = cast(GP_UNMANAGED, false);

	play(10);
	assert_int_equal(slice_of(a), 5000);
	assert_int_equal(slice_of(b), 5000);
	assert_int_equal(slice_of(c), 5000);
	assert_int_equal(slice_of(unmanaged), 0);
	assert_in_range(permille_of_the_next(a, 1000), 490, 510);
}

STAGE_TEST(rr_rotates_where_there_are_no_slices, "rr", device_without_slices())
{
	uint32_t a = cast(GP_LATENCY_CRITICAL, true), b = cast(GP_BEST_EFFORT, true),
		 c = cast(GP_BEST_EFFORT, true);
	int held_at_once = 0;

	cast(GP_BEST_EFFORT, false);
	play(5);
	for (int i = 0; i < 30; i++) {
		play(10);
		held_at_once += held(a) + held(b) + held(c);
	}
	assert_int_equal(held_at_once, 60);
	assert_in_range(permille_of_the_next(a, 3000), 320, 347);
	assert_in_range(permille_of_the_next(b, 3000), 320, 347);
}

STAGE_TEST(none_puts_everything_back, "priority", best_device)
{
	struct gp_policy_choice none;
	uint32_t task[4];

	task[0] = cast(GP_LATENCY_CRITICAL, true);
	for (int i = 1; i < 4; i++)
		task[i] = cast(GP_BEST_EFFORT, true);
	play(150);
	assert_int_equal(held(task[1]) + held(task[2]) + held(task[3]), 2);
	gp_policy_defaults(&gp_policy_none, &none);
	stage.policy = &gp_policy_none;
	assert_int_equal(gp_engine_set_policy(stage.engine, stage.model.now_ns, &none, NULL), 0);
	play(2);
	for (int i = 0; i < 4; i++) {
		assert_false(held(task[i]));
		assert_int_equal(slice_of(task[i]), 0);
	}
	assert_in_range(permille_of_the_next(task[3], 1000), 245, 255);
}

/* Ticks every 100 ms with slices of 10 ms see the same one of two or five tasks every time. */
TEST(a_task_that_never_runs_at_a_tick_is_not_taken_for_starving)
{
	struct model_profile device = best_device;

	device.events = true;
	device.run = UNSEEN;
	open_stage("rr", &device);
	for (int i = 0; i < 5; i++)
		cast(GP_BEST_EFFORT, true);
	play(15000);
	assert_int_equal(gp_engine_stats(stage.engine)->ejections, 0);
	close_stage();
}
