/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of `share` to tasks that pause briefly after each kernel, and so give the rest of a
 * slice away each time: they have the device for their guaranteed part, including their own pauses.
 * Tasks that only want less than their part are tested, too.
 *
 * If run times are not known at all, a deficit cannot be seen: that device is left out.
 */
#include "sharing.h"

static const uint64_t sample_period_ns[] = {20 * MS, 167 * MS}; /* if activity is sampled */

#define PERIODS (sizeof sample_period_ns / sizeof *sample_period_ns)

static struct gp_task_attr share_attr(uint32_t share_permille)
{
	return ATTR(GP_BEST_EFFORT, .share_permille = share_permille);
}

static struct gp_sim_task pausing(uint64_t kernel_ns, uint64_t gap_ns)
{
	return LOOP(kernel_ns, .gap_ns = gap_ns);
}

static const struct device_kind *sampled(void)
{
	return device_named("slices, sampled activity");
}

static void begin_sampled(uint64_t duration_ns, unsigned period)
{
	begin_on(sampled(), duration_ns);
	scenario.device.activity_window_ns = sample_period_ns[period];
}

static bool tells_run_times(const struct device_kind *kind)
{
	return kind->activity != GP_ACTIVITY_NONE;
}

/* In percent of the work that it could have done alone (a closed loop pauses there, too), in the
 * time without switches: switching is not part of any share. */
static void assert_has(const struct device_kind *kind, uint32_t task, double wanted)
{
	double switching = (double)run.device.switch_ns / (double)run.duration_ns;
	double alone = (double)run.task[task].alone_ns * (1 - switching);
	double got = 100.0 * (double)run.task[task].work_ns / alone;

	if (getenv("GPREEMPT_SHOW"))
		print_message("%-28s task %u: %5.1f %% of alone, wanted %5.1f\n", kind->name, task,
			      got, wanted);
	else if (got < wanted - 2)
		fail_msg("%s: task %u had the device for %.1f %% of the time, not %.1f", kind->name,
			 task, got, wanted);
}

static const struct {
	uint64_t kernel_ns, gap_ns;
} loops[] = {
	{200 * US, 20 * US}, {1 * MS, 50 * US},  {2 * MS, 100 * US},
	{5 * MS, 20 * US},   {5 * MS, 900 * US}, {20 * MS, 500 * US},
};

#define LOOPS (sizeof loops / sizeof *loops)

DEVICE_TEST(a_guarantee_is_kept_to_one_that_pauses)
{
	for (unsigned i = 0; i < LOOPS && tells_run_times(kind); i++) {
		begin_on(kind, 10 * S);
		add(pausing(loops[i].kernel_ns, loops[i].gap_ns), share_attr(500));
		add(busy(13600 * US), share_attr(0));
		finish("share");
		assert_has(kind, 0, 50);
		/* With time to spare, shorter pauses are compensated as well. */
		if (loops[i].gap_ns * 8 <= loops[i].kernel_ns)
			assert_true(part(&run, 0) > 48);
	}
}

DEVICE_TEST(pauses_cost_no_other_task_its_guarantee)
{
	for (unsigned i = 0; i < LOOPS && tells_run_times(kind); i++) {
		begin_on(kind, 10 * S);
		add(pausing(loops[i].kernel_ns, loops[i].gap_ns), share_attr(500));
		add(busy(13600 * US), share_attr(500));
		finish("share");
		assert_has(kind, 0, 50);
		assert_has(kind, 1, 50);
	}
}

TEST(most_of_the_device_can_be_guaranteed_to_one_that_pauses)
{
	for (uint32_t share = 100; share <= 900; share += 200) {
		for (unsigned i = 0; i < PERIODS; i++) {
			begin_sampled(10 * S, i);
			add(pausing(1 * MS, 50 * US), share_attr(share));
			add(busy(13600 * US), share_attr(1000 - share));
			finish("share");
			assert_has(sampled(), 0, share / 10.0);
			assert_has(sampled(), 1, 100 - share / 10.0);
		}
	}
}

TEST(several_may_pause)
{
	static const uint32_t share[] = {300, 300, 200};

	for (unsigned period = 0; period < PERIODS; period++) {
		begin_sampled(10 * S, period);
		add(pausing(1 * MS, 50 * US), share_attr(share[0]));
		add(pausing(2 * MS, 30 * US), share_attr(share[1]));
		add(pausing(5 * MS, 30 * US), share_attr(share[2]));
		add(busy(13600 * US), share_attr(0));
		finish("share");
		for (uint32_t i = 0; i < 3; i++)
			assert_has(sampled(), i, share[i] / 10.0);
		assert_true(part(&run, 3) > 5);
	}
}

/* The limit is 10 s, and finish() fails if the policy was ejected. */
TEST(no_task_starves_beside_many_that_pause)
{
	begin_on(sampled(), 60 * S);
	for (uint32_t i = 0; i < 8; i++)
		add(pausing(200 * US, 50 * US), share_attr(120));
	for (uint32_t i = 0; i < 8; i++)
		add(busy(13600 * US), share_attr(0));
	finish("share");
	for (uint32_t i = 0; i < 16; i++)
		assert_true(run.task[i].finished > 60);
}

/* 3 ms every 10 ms: less than its half, and more than slices of 10 ms of the other task leave. */
TEST(one_that_wants_less_has_it_and_the_others_the_rest)
{
	for (unsigned i = 0; i < PERIODS; i++) {
		begin_sampled(60 * S, i);
		add(PERIODIC(10 * MS, 3 * MS), share_attr(500));
		add(busy(13600 * US), share_attr(0));
		finish("share");
		assert_part(sampled(), 0, 30, 0.5);
		assert_part(sampled(), 1, 66, 2);
	}
}

/* Its pauses are long enough to be seen: slices are sufficient, and no turn is wasted on it. */
TEST(one_that_comes_and_goes_costs_the_others_nothing)
{
	for (unsigned i = 0; i < PERIODS; i++) {
		double sum;

		begin_sampled(20 * S, i);
		add(pausing(500 * MS, 500 * MS), share_attr(500));
		add(busy(13600 * US), share_attr(0));
		finish("share");
		sum = part(&run, 0) + part(&run, 1);
		if (sum < 98)
			fail_msg("%.1f %% of the device are used", sum);
	}
}

TEST(one_that_begins_to_pause_is_seen)
{
	begin_on(sampled(), 30 * S);
	add(LOOP(5 * MS, .stop_ns = 20 * S), share_attr(500));
	add(LOOP(1 * MS, .gap_ns = 50 * US, .start_ns = 20 * S), share_attr(500));
	add(busy(13600 * US), share_attr(500));
	finish("share");
	assert_true((double)run.task[1].work_ns > 0.48 * 0.95 * 10 * (double)S);
}

/* Without holds it does what is possible with slices. */
TEST(where_nothing_can_be_held_slices_go_on)
{
	begin_on(sampled(), 10 * S);
	scenario.device.max_held = 0;
	add(pausing(1 * MS, 50 * US), share_attr(500));
	add(busy(13600 * US), share_attr(0));
	finish("share");
	assert_true(part(&run, 0) > 10);
	assert_true(part(&run, 0) + part(&run, 1) > 85);
}

TEST(random_sets_of_loops_have_what_they_were_guaranteed)
{
	struct gp_rng rng;

	gp_rng_init(&rng, 8, 0);
	for (unsigned set = 0; set < SETS; set++) {
		uint32_t n = (uint32_t)between(&rng, 2, 4), share[4];

		begin_sampled(20 * S, set % PERIODS);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t kernel_ns = between(&rng, 200 * US, 20 * MS);

			share[i] = (uint32_t)between(&rng, 500 / n, 950 / n);
			add(pausing(kernel_ns, between(&rng, 0, kernel_ns / 8)),
			    share_attr(share[i]));
		}
		finish("share");
		for (uint32_t i = 0; i < n; i++)
			assert_has(sampled(), i, share[i] / 10.0);
	}
}
