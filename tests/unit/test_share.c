/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of `share`, on simulated devices of each kind: a task has its guaranteed part
 * whenever it wants it, within 2 points over 10 seconds; the rest goes by weight; and a ceiling is
 * kept. Which guarantees are refused: test_share_refusals.c.
 */
#include "sharing.h"

static struct gp_task_attr share_attr(uint32_t share_permille, uint32_t ceiling_permille,
				      uint32_t weight)
{
	return (struct gp_task_attr){.class = GP_BEST_EFFORT,
				     .weight = weight,
				     .share_permille = share_permille,
				     .ceiling_permille = ceiling_permille};
}

DEVICE_TEST(guarantees_are_kept_and_the_rest_goes_by_weight)
{
	begin_on(kind, 10 * S);
	add(busy(13600 * US), share_attr(500, 0, 100)); /* 50 + 30/6 */
	add(busy(1 * MS), share_attr(200, 0, 200));     /* 20 + 30/3 */
	add(busy(70 * MS), share_attr(0, 0, 300));      /* 30/2 */
	finish("share");
	ASSERT_PARTS(kind, 2, 55, 30, 15);
}

DEVICE_TEST(what_its_owner_does_not_want_goes_to_the_others)
{
	begin_on(kind, 10 * S);
	add(busy(5 * MS), share_attr(100, 0, 100));
	add(busy(5 * MS), share_attr(300, 0, 100));
	add(LOOP(5 * MS, .start_ns = 2 * S, .stop_ns = 7 * S), share_attr(600, 0, 100));
	finish("share");
	ASSERT_PARTS(kind, 2, 10 * 0.5 + 40 * 0.5, 30 * 0.5 + 60 * 0.5, 60 * 0.5);
}

/* 400 ms of work every second are less than its half: it gets all of them. */
DEVICE_TEST(one_that_is_idle_half_of_the_time_has_its_part_when_it_works)
{
	begin_on(kind, 10 * S);
	add(PERIODIC(1 * S, 400 * MS), share_attr(500, 0, 100));
	add(busy(5 * MS), share_attr(0, 0, 100));
	add(busy(1 * MS), share_attr(0, 0, 300));
	finish("share");
	/* At least the work that arrived early enough, whatever the phase. */
	if (run.task[0].left > 1 || part(&run, 0) < 36)
		fail_msg("%s: %.1f %% and %llu left over", kind->name, part(&run, 0),
			 (unsigned long long)run.task[0].left);
	assert_true(part(&run, 2) > 2.5 * part(&run, 1));
	assert_true(part(&run, 0) + part(&run, 1) + part(&run, 2) > 96);
}

DEVICE_TEST(four_with_guarantees_of_all_there_is_leave_little_to_a_fifth)
{
	static const uint32_t share[] = {400, 300, 200, 100, 0};

	begin_on(kind, 10 * S);
	for (uint32_t i = 0; i < 5; i++)
		add(busy((1 + 5 * i) * MS), share_attr(share[i], 0, 100));
	finish("share");
	for (uint32_t i = 0; i < 5; i++)
		assert_part(kind, i, share[i] / 10.0, 2);
	assert_true(run.task[4].work_ns > 0);
}

struct claim {
	double guarantee, ceiling, weight, part; /* in percent */
};

/* Raises the spare time per weight until all of it is assigned or every task is at its ceiling; a
 * different algorithm from the policy's. */
static void work_out(struct claim *c, uint32_t n)
{
	double low = 0, high = 100;

	for (int step = 0; step < 60; step++) {
		double level = (low + high) / 2, sum = 0;

		for (uint32_t i = 0; i < n; i++) {
			c[i].part = c[i].guarantee + level * c[i].weight;
			if (c[i].part > c[i].ceiling)
				c[i].part = c[i].ceiling;
			sum += c[i].part;
		}
		*(sum < 100 ? &low : &high) = level;
	}
}

DEVICE_TEST(random_sets_of_claims_are_kept)
{
	struct gp_rng rng;

	gp_rng_init(&rng, 6, 0);
	for (unsigned set = 0; set < SETS; set++) {
		uint32_t n = (uint32_t)between(&rng, 2, 6);
		struct claim c[6];

		begin_on(kind, 10 * S);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t share = (uint32_t)between(&rng, 0, 990 / n);
			uint32_t ceiling = (uint32_t)between(&rng, share + 10, 1000);
			uint32_t weight = (uint32_t)between(&rng, 50, 500);

			c[i] = (struct claim){share / 10.0, ceiling / 10.0, weight, 0};
			add(busy(between(&rng, 50 * US, 50 * MS)),
			    share_attr(share, ceiling, weight));
		}
		work_out(c, n);
		finish("share");
		for (uint32_t i = 0; i < n; i++)
			assert_part(kind, i, c[i].part, 2);
	}
}

DEVICE_TEST(a_ceiling_leaves_more_to_the_others)
{
	begin_on(kind, 10 * S);
	add(busy(5 * MS), share_attr(0, 200, 1000));
	add(busy(5 * MS), share_attr(300, 350, 100));
	add(busy(5 * MS), share_attr(0, 0, 100));
	finish("share");
	ASSERT_PARTS(kind, 2, 20, 35, 45);
}

DEVICE_TEST(a_ceiling_is_kept_if_no_other_task_wants_the_device)
{
	begin_on(kind, 10 * S);
	add(busy(5 * MS), share_attr(0, 300, 100));
	add(busy(200 * US), share_attr(100, 200, 100));
	finish("share");
	ASSERT_PARTS(kind, 2, 30, 20);
}

/* It is not known how much of the device a kernel fills: a task has all of it in its turn. */
DEVICE_TEST(a_guarantee_is_of_time_however_narrow_the_kernels)
{
	struct gp_sim_task narrow = busy(5 * MS);

	narrow.width_permille = 300; /* together they would fit */
	begin_on(kind, 10 * S);
	add(narrow, share_attr(500, 0, 100));
	add(narrow, share_attr(300, 0, 100));
	add(narrow, share_attr(200, 0, 100));
	finish("share");
	ASSERT_PARTS(kind, 2, 50, 30, 20);
}

TEST(without_holds_a_ceiling_costs_no_task_anything)
{
	begin_on(&device_kinds[0], 10 * S);
	scenario.device.max_held = 0;
	add(busy(5 * MS), share_attr(0, 300, 100));
	finish("share");
	assert_part(&device_kinds[0], 0, 100, 1);
}
