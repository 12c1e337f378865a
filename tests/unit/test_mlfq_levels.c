/* SPDX-License-Identifier: Apache-2.0 */
/* How tasks sink and rise with `mlfq`, and the effects; one claim per test. */
#include "property_stage.h"

static struct model_profile device_with_samples(void)
{
	struct model_profile p = best_device;

	p.activity = SAMPLED;
	p.run = SAMPLED;
	return p;
}

/* Works for `ms`, then pauses long enough for its stretch to end. */
static void work_once(uint32_t i, uint64_t ms)
{
	set_busy(i, true);
	play(ms);
	set_busy(i, false);
	play(8);
}

STAGE_TEST(a_task_sinks_after_10_ms_of_work_and_again_after_100, "mlfq", device_without_slices())
{
	uint32_t job = cast(GP_BEST_EFFORT, true), other = cast(GP_BEST_EFFORT, false);

	play(8);
	set_busy(other, true); /* both at the top: side by side */
	play(1);
	assert_false(held(job));
	set_busy(other, false);
	play(20); /* the job has sunk to the middle */
	set_busy(other, true);
	play(6);
	assert_true(held(job));
	set_busy(other, false);
	play(8);
	assert_false(held(job));
	work_once(other, 50); /* now it is at the middle level, and the job will be below it */
	play(100);
	set_busy(other, true);
	play(12);
	assert_true(held(job));
}

STAGE_TEST(a_task_whose_work_has_become_short_rises, "mlfq", device_without_slices())
{
	uint32_t job = cast(GP_BEST_EFFORT, true), other = cast(GP_BEST_EFFORT, false),
		 third = cast(GP_BEST_EFFORT, false);

	work_once(other, 150); /* with the device shared: below the top */
	play(300);
	set_busy(other, true);
	play(3);
	assert_int_equal(held(job) + held(other), 1); /* turns, not the top */
	set_busy(other, false);
	play(8);
	for (int i = 0; i < 3; i++)
		work_once(other, 3);
	set_busy(third, true); /* which was always at the top */
	set_busy(other, true);
	play(6);
	assert_true(held(job));
	assert_false(held(other));
	assert_false(held(third));
}

STAGE_TEST(a_task_below_gets_an_aging_window_although_the_top_never_pauses, "mlfq",
	   device_without_slices())
{
	uint32_t job, top[2];
	uint64_t before_ns, ran_ns;

	job = cast(GP_BEST_EFFORT, true);
	play(200);
	for (int i = 0; i < 2; i++)
		top[i] = cast(GP_BEST_EFFORT, false);
	before_ns = stage.model.task[job].run_ns;
	for (int i = 0; i < 500; i++) { /* one after the other, 5 ms each */
		set_busy(top[i % 2], true);
		set_busy(top[(i + 1) % 2], false);
		play(5);
	}
	ran_ns = stage.model.task[job].run_ns - before_ns;
	assert_in_range(ran_ns, 30 * MS,
			300 * MS); /* 10 ms in 510 ms, and the time before it is seen */
}

TEST(a_pause_of_a_moment_does_not_end_a_stretch)
{
	struct model_profile device = device_without_slices();
	uint32_t job, other;

	device.events = true;
	open_stage("mlfq", &device);
	job = cast(GP_BEST_EFFORT, false);
	other = cast(GP_BEST_EFFORT, false);
	for (int i = 0; i < 10; i++) { /* 2 ms of work, half a millisecond of pause */
		set_busy(job, true);
		play(2);
		set_busy(job, false);
		play_us(500);
	}
	set_busy(job, true);
	set_busy(other, true);
	play(2);
	assert_true(held(job));
	close_stage();
}

STAGE_TEST(with_samples_the_one_that_takes_much_gives_way_by_its_slice, "mlfq",
	   device_with_samples())
{
	uint32_t job = cast(GP_BEST_EFFORT, true), service = cast(GP_BEST_EFFORT, false);

	model_set_rhythm(&stage.model, service, MS, 20 * MS);
	play(1500);
	assert_int_equal(slice_of(job), 1000);
	assert_int_equal(slice_of(service), 10000);
	model_set_rhythm(&stage.model, job, MS, 20 * MS); /* they exchange roles */
	model_set_rhythm(&stage.model, service, GP_NEVER, GP_NEVER);
	play(5000); /* a task with a small part is trusted for some time */
	assert_int_equal(slice_of(job), 10000);
	assert_int_equal(slice_of(service), 1000);
}

STAGE_TEST(of_several_that_take_much_one_runs_at_a_time, "mlfq", device_with_samples())
{
	uint32_t job[3], service;

	service = cast(GP_BEST_EFFORT, false);
	model_set_rhythm(&stage.model, service, MS, 20 * MS);
	for (int i = 0; i < 3; i++)
		job[i] = cast(GP_BEST_EFFORT, true);
	play(3000);
	for (int i = 0; i < 20; i++) {
		play(97);
		assert_int_equal(held(job[0]) + held(job[1]) + held(job[2]), 2);
		for (int j = 0; j < 3; j++)
			assert_true(held(job[j]) || slice_of(job[j]) == 1000);
		assert_false(held(service));
	}
}
