/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated device tells of its tasks, and its control calls: activity is reported
 * according to the mode; calls take their time one after the other.
 */
#include "sim_world.h"

/* Observation. */

SIM_TEST(without_activity_reports_nothing_is_known)
{
	struct gp_sim *sim = MAKE_SIM(DEVICE_WITH_ACTIVITY(GP_ACTIVITY_NONE), closed_loop(1 * MS));

	assert_int_equal(gp_sim_gpu(sim)->info.caps, GP_CAP_HOLD | GP_CAP_SLICE);
	attach_at(sim, 0, 0);
	for (uint64_t at_ns = 0; at_ns < 1 * S; at_ns += 30 * MS) {
		run_to(sim, at_ns);
		assert_int_equal(observe(sim, 0, at_ns).known, GP_KNOWN_HELD | GP_KNOWN_SLICE);
	}
}

SIM_TEST(a_device_says_what_it_can_do)
{
	struct gp_sim_device device = gp_sim_h200;
	struct gp_sim *sim = new_sim(&device, NULL, 0, 1);
	const struct gp_gpu_info *info = &gp_sim_gpu(sim)->info;

	assert_int_equal(info->caps, GP_CAP_HOLD | GP_CAP_SLICE | GP_CAP_ACTIVITY);
	assert_int_equal(info->max_held, device.max_held);
	assert_int_equal(info->slice_default_us, device.slice_us);
	assert_int_equal(info->slice_min_us, 1);
	assert_true(info->slice_max_us >= 1000000);
	assert_int_equal(info->hold_cost_ns, device.hold_ns);
	assert_int_equal(info->release_cost_ns, device.release_ns);
	assert_int_equal(info->slice_cost_ns, device.set_slice_ns);
	assert_int_equal(info->switch_cost_ns, device.switch_ns);
	assert_int_equal(info->sample_period_ns, device.activity_window_ns);
	device.activity = GP_ACTIVITY_EVENTS;
	device.slices = false;
	device.max_held = 0;
	sim = new_sim(&device, NULL, 0, 1);
	info = &gp_sim_gpu(sim)->info;
	assert_int_equal(info->caps, GP_CAP_ACTIVITY | GP_CAP_EVENTS);
	assert_int_equal(info->max_held, 0);
	assert_int_equal(info->slice_max_us, 0);
	assert_int_equal(info->sample_period_ns, 0);
}

#define SAMPLED_DEVICE DEVICE_WITH_ACTIVITY(GP_ACTIVITY_SAMPLED, .activity_window_ns = 100 * MS)

/* Task 0 is a closed loop, task 1 is idle. */
static struct gp_sim *new_sampled(uint64_t gap_ns)
{
	struct gp_sim *sim = MAKE_SIM(SAMPLED_DEVICE, LOOP(1 * MS, .gap_ns = gap_ns), IDLE);

	attach_at(sim, 0, 0);
	attach(sim, 1);
	return sim;
}

SIM_TEST(sampled_activity_is_known_after_a_window)
{
	struct gp_sim *sim = new_sampled(3 * MS);
	struct gp_observation o;

	run_to(sim, 100 * MS - 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(observe(sim, i, 0).known, GP_KNOWN_HELD | GP_KNOWN_SLICE);
	run_to(sim, 150 * MS);
	o = observe(sim, 0, 150 * MS);
	assert_int_equal(o.known, GP_KNOWN_HELD | GP_KNOWN_SLICE | GP_KNOWN_ACTIVE | GP_KNOWN_RUN);
	assert_true(o.active);
	assert_int_equal(o.run_source, GP_RUN_MEASURED);
	assert_int_equal(o.run_ns, 25 * MS); /* up to the sample, not up to now */
	assert_int_equal(o.run_at_ns, 100 * MS);
	o = observe(sim, 1, 150 * MS);
	assert_true(o.known & GP_KNOWN_ACTIVE); /* the device had time for it */
	assert_false(o.active);
	assert_int_equal(o.run_ns, 0);
}

SIM_TEST(sampled_activity_of_a_held_task_is_not_known)
{
	struct gp_sim *sim = new_sampled(3 * MS);
	struct gp_observation o;

	run_to(sim, 100 * MS);
	assert_true(observe(sim, 0, 0).known & GP_KNOWN_ACTIVE);
	hold(sim, 0, 100 * MS);
	run_to(sim, 110 * MS);
	assert_false(observe(sim, 0, 0).known & GP_KNOWN_ACTIVE); /* at once, not with the window */
	run_to(sim, 310 * MS);
	o = observe(sim, 0, 0);
	assert_false(o.known & GP_KNOWN_ACTIVE);
	assert_true(o.known & GP_KNOWN_RUN);
	assert_int_equal(o.run_at_ns, 300 * MS);
	release(sim, 0, 310 * MS);
	run_to(sim, 320 * MS); /* the last window says nothing */
	assert_false(observe(sim, 0, 0).known & GP_KNOWN_ACTIVE);
	run_to(sim, 400 * MS);
	assert_true(observe(sim, 0, 0).known & GP_KNOWN_ACTIVE);
	assert_true(observe(sim, 0, 0).active);
}

SIM_TEST(a_full_device_says_nothing_of_those_that_did_not_run)
{
	struct gp_sim *sim = new_sampled(0);

	run_to(sim, 100 * MS);
	assert_true(observe(sim, 0, 0).active);
	assert_false(observe(sim, 1, 0).known & GP_KNOWN_ACTIVE); /* idle, or never reached */
}

SIM_TEST(a_task_that_two_others_go_round_past_is_idle)
{
	struct gp_sim *sim =
		MAKE_SIM(SAMPLED_DEVICE, closed_loop(1 * MS), IDLE, closed_loop(1 * MS));

	attach_at(sim, 1, 0);
	run_to(sim, 100 * MS);
	assert_true(observe(sim, 1, 0).known & GP_KNOWN_ACTIVE);
	assert_false(observe(sim, 1, 0).active);
}

SIM_TEST(a_task_just_released_is_not_called_idle_for_it)
{
	struct gp_sim *sim = new_sampled(3 * MS);

	hold(sim, 1, 0);
	release_at(sim, 1, 90 * MS);
	run_to(sim, 110 * MS); /* released for a tenth of the window only */
	assert_false(observe(sim, 1, 0).known & GP_KNOWN_ACTIVE);
	run_to(sim, 210 * MS);
	assert_true(observe(sim, 1, 0).known & GP_KNOWN_ACTIVE);
	assert_false(observe(sim, 1, 0).active);
}

SIM_TEST(exact_activity_is_what_is_true_at_the_moment)
{
	struct gp_sim *sim =
		MAKE_SIM(DEVICE(.switch_ns = 100 * US, .switch_idle_ns = 100 * US),
			 LOOP(1 * MS, .gap_ns = 9 * MS), LOOP(100 * MS, .start_ns = 50 * MS));
	struct gp_observation o;

	attach_at(sim, 0, 0);
	run_to(sim, 50 * US); /* wants the device, which is switching to it */
	o = observe(sim, 0, 0);
	assert_true(o.active);
	assert_false(o.running);
	assert_int_equal(o.pending, 1);
	assert_int_equal(o.active_since_ns, 0);
	run_to(sim, 600 * US);
	o = observe(sim, 0, 0);
	assert_true(o.active && o.running);
	assert_int_equal(o.run_ns, 500 * US);
	assert_int_equal(o.run_at_ns, 600 * US);
	assert_int_equal(o.run_source, GP_RUN_MEASURED);
	run_to(sim, 1100 * US); /* finished at this moment */
	o = observe(sim, 0, 0);
	assert_false(o.active || o.running);
	assert_int_equal(o.pending, 0);
	assert_false(o.known & GP_KNOWN_ACTIVE_SINCE);
	run_to(sim, 10200 * US);
	o = observe(sim, 0, 0);
	assert_true(o.active && o.running);
	assert_int_equal(o.active_since_ns, 10100 * US);
	attach_at(sim, 1, 60 * MS); /* run time counts from here */
	assert_int_equal(observe(sim, 1, 0).run_ns, 0);
	run_to(sim, 200 * MS);
	assert_in_range(observe(sim, 1, 0).run_ns, 119 * MS, 126 * MS);
}

SIM_TEST(only_a_device_with_events_signals_changes_of_activity)
{
	struct gp_sim *sim = MAKE_SIM(&plain, LOOP(1 * MS, .gap_ns = 4 * MS));
	bool rescan;

	assert_int_equal(gp_sim_advance(sim, 1 * S), 1 * S);
	assert_false(gp_sim_take_signal(sim, &rescan));

	sim = MAKE_SIM(DEVICE_WITH_ACTIVITY(GP_ACTIVITY_EVENTS), LOOP(1 * MS, .gap_ns = 4 * MS));
	assert_int_equal(gp_sim_advance(sim, 1 * S), 0); /* it has come, with work */
	assert_int_equal(gp_sim_advance(sim, 1 * S), 0); /* the signal stays until it is read */
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_true(rescan);
	assert_int_equal(gp_sim_advance(sim, 1 * S), 1 * MS);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_false(rescan);
	assert_int_equal(gp_sim_advance(sim, 1 * S), 5 * MS);
}

/* Control calls. */

SIM_TEST(a_control_call_has_its_effect_at_its_end_and_signals_it)
{
	struct gp_sim *sim = MAKE_SIM(
		DEVICE(.hold_ns = 500 * US, .release_ns = 400 * US, .set_slice_ns = 300 * US),
		closed_loop(1 * MS), closed_loop(1 * MS));
	bool rescan;

	attach_at(sim, 0, 0);
	attach(sim, 1);
	hold_at(sim, 0, 10 * MS);
	set_slice(sim, 1, 77, 10 * MS); /* one after the other */
	assert_int_equal(gp_sim_advance(sim, 10 * MS + 499 * US), 10 * MS + 499 * US);
	assert_false(observe(sim, 0, 0).held);
	assert_int_equal(gp_sim_advance(sim, 20 * MS), 10 * MS + 500 * US);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_true(observe(sim, 0, 0).held);
	assert_int_equal(observe(sim, 1, 0).slice_us, 0);
	assert_int_equal(gp_sim_advance(sim, 20 * MS), 10 * MS + 800 * US);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_int_equal(observe(sim, 1, 0).slice_us, 77);
	release_at(sim, 0, 20 * MS);
	assert_int_equal(gp_sim_advance(sim, 30 * MS), 20 * MS + 400 * US);
	assert_false(observe(sim, 0, 0).held);
}

SIM_TEST(one_call_holds_many_but_slices_are_set_one_by_one)
{
	struct gp_sim_device device = plain;
	struct gp_sim_task task[8];
	struct gp_action a[8];
	struct gp_sim *sim;

	device.hold_ns = device.release_ns = device.set_slice_ns = 1 * MS;
	for (int i = 0; i < 8; i++)
		task[i] = closed_loop(1 * MS);
	sim = new_sim(&device, task, 8, 1);
	run_to(sim, 0);
	for (uint32_t i = 0; i < 8; i++) {
		attach(sim, i);
		a[i] = (struct gp_action){.handle = i, .slice_us = 100 + i};
	}
	assert_int_equal(gp_gpu_hold(gp_sim_gpu(sim), 0, a, 8), 0);
	run_to(sim, 1 * MS);
	for (uint32_t i = 0; i < 8; i++)
		assert_true(observe(sim, i, 0).held);
	assert_int_equal(gp_gpu_release(gp_sim_gpu(sim), 1 * MS, a, 8), 0);
	run_to(sim, 2 * MS);
	for (uint32_t i = 0; i < 8; i++)
		assert_false(observe(sim, i, 0).held);
	assert_int_equal(gp_gpu_set_slice(gp_sim_gpu(sim), 2 * MS, a, 8), 0);
	run_to(sim, 5 * MS);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(observe(sim, i, 0).slice_us, i < 3 ? 100 + i : 0);
}

SIM_TEST(too_many_calls_at_once_are_turned_away)
{
	struct gp_action a = {.handle = 0};
	struct gp_sim *sim = MAKE_SIM(DEVICE(.hold_ns = 1 * MS), closed_loop(1 * MS));
	unsigned taken = 0;

	attach_at(sim, 0, 0);
	do {
		assert_int_equal(gp_gpu_hold(gp_sim_gpu(sim), 0, &a, 1), 0);
		taken += a.status == -EINPROGRESS;
	} while (a.status == -EINPROGRESS && taken < 100);
	assert_int_equal(a.status, -EAGAIN);
	assert_in_range(taken, 4, 16);
	run_to(sim, 1 * MS); /* one is done: there is room again */
	assert_int_equal(gp_gpu_hold(gp_sim_gpu(sim), 0, &a, 1), 0);
	assert_int_equal(a.status, -EINPROGRESS);
	run_to(sim, 1 * S);
	assert_true(observe(sim, 0, 0).held);
}

SIM_TEST(detaching_puts_a_task_back)
{
	struct gp_sim *sim = MAKE_SIM(&plain, LOOP(100 * MS, .slice_us = 1000),
				      LOOP(100 * MS, .slice_us = 1000));

	attach_at(sim, 0, 0);
	set_slice(sim, 0, 50000, 0);
	hold(sim, 0, 0);
	run_to(sim, 100 * MS);
	gp_gpu_detach(gp_sim_gpu(sim), 0);
	attach(sim, 0);
	assert_false(observe(sim, 0, 0).held);
	assert_int_equal(observe(sim, 0, 0).slice_us, 0);
	run_to(sim, 200 * MS);
	assert_in_range(observe(sim, 0, 0).run_ns, 49 * MS, 51 * MS); /* its own slice */
}

SIM_TEST(a_call_that_comes_after_the_detaching_has_no_effect)
{
	struct gp_sim *sim = MAKE_SIM(DEVICE(.hold_ns = 500 * US, .set_slice_ns = 500 * US),
				      closed_loop(1 * MS));

	attach_at(sim, 0, 0);
	hold(sim, 0, 0);
	set_slice(sim, 0, 77, 0);
	gp_gpu_detach(gp_sim_gpu(sim), 0);
	attach_at(sim, 0, 2 * MS);
	assert_false(observe(sim, 0, 0).held);
	assert_int_equal(observe(sim, 0, 0).slice_us, 0);
}

SIM_TEST(what_has_not_ended_is_under_way)
{
	struct gp_sim *sim = MAKE_SIM(
		DEVICE(.hold_ns = 500 * US, .release_ns = 500 * US, .set_slice_ns = 500 * US),
		closed_loop(1 * MS), closed_loop(1 * MS));

	attach_at(sim, 0, 0);
	attach(sim, 1);
	assert_int_equal(observe(sim, 0, 0).under_way, 0);
	hold(sim, 0, 0);
	set_slice(sim, 0, 77, 0);
	release(sim, 0, 0);
	assert_int_equal(observe(sim, 0, 0).under_way, GP_UNDER_WAY_HOLD | GP_UNDER_WAY_SLICE);
	assert_int_equal(observe(sim, 1, 0).under_way, 0);
	run_to(sim, 1 * MS);
	assert_int_equal(observe(sim, 0, 0).under_way, GP_UNDER_WAY_HOLD);
	run_to(sim, 1500 * US);
	assert_int_equal(observe(sim, 0, 0).under_way, 0);
}
