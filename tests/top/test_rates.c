/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks and devices had in the last second, from counters. */
#include "made_up.h"

#define NEAR(a, b) assert_true((a) > (b)-1e-6 && (a) < (b) + 1e-6)

/* One shot with one task that has run so long; the rates are left in `*task` and `*device`. */
static void look(struct gp_top_past *past, uint64_t at_ns, uint64_t run_ns, uint64_t preemptions,
                 struct gp_top_task *task, struct gp_top_device *device)
{
	struct gp_top_snapshot snapshot = made_up_snapshot(1, at_ns);

	snapshot.task[0].run_ns = snapshot.device[0].busy_ns = run_ns;
	snapshot.task[0].preemptions = snapshot.device[0].preemptions = preemptions;
	snapshot.device[0].inversions = 2 * preemptions;
	gp_top_past_add(past, &snapshot, at_ns);
	*task = snapshot.task[0];
	*device = snapshot.device[0];
	gp_top_snapshot_clear(&snapshot);
}

TEST(the_first_look_knows_nothing)
{
	struct gp_top_past past = {0};
	struct gp_top_device d;
	struct gp_top_task t;

	look(&past, 5 * S, 4 * S, 100, &t, &d);
	assert_true(t.share < 0 && t.recently < 0 && t.preemptions_per_s < 0);
	assert_true(d.busy < 0 && d.preemptions_per_s < 0 && d.inversions_per_s < 0);
	gp_top_past_clear(&past);
}

TEST(a_share_is_what_it_ran_of_the_time)
{
	struct gp_top_past past = {0};
	struct gp_top_device d;
	struct gp_top_task t;

	look(&past, 5 * S, 4 * S, 100, &t, &d);
	look(&past, 7 * S, 4 * S + 500 * MS, 130, &t, &d);
	NEAR(t.share, 0.25);
	NEAR(t.preemptions_per_s, 15.0);
	NEAR(d.busy, 0.25);
	NEAR(d.inversions_per_s, 30.0);
	gp_top_past_clear(&past);
}

TEST(with_many_looks_a_second_it_is_still_the_last_second)
{
	struct gp_top_past past = {0};
	struct gp_top_device d;
	struct gp_top_task t = {0};
	uint64_t run_ns = 0;

	/* Idle for ten seconds, busy for the last half. */
	for (unsigned i = 0; i <= 105; i++) {
		run_ns += i > 100 ? 100 * MS : 0;
		look(&past, 100 * S + i * 100ull * MS, run_ns, 0, &t, &d);
	}
	NEAR(t.share, 0.5);
	assert_true(t.recently > 0.1 && t.recently < 0.2); /* of three */
	assert_true(past.n < GP_TOP_PAST);
	gp_top_past_clear(&past);
	assert_int_equal(past.n, 0);
}

TEST(with_rare_looks_it_is_that_of_the_time_between_them)
{
	struct gp_top_past past = {0};
	struct gp_top_device d;
	struct gp_top_task t;

	look(&past, 100 * S, 0, 0, &t, &d);
	look(&past, 110 * S, 10 * S, 0, &t, &d);
	look(&past, 120 * S, 13 * S, 0, &t, &d);
	NEAR(t.share, 0.3);
	NEAR(t.recently, 0.3);
	gp_top_past_clear(&past);
}

TEST(what_comes_late_is_never_more_than_all)
{
	struct gp_top_past past = {0};
	struct gp_top_device d;
	struct gp_top_task t;

	look(&past, 5 * S, 0, 0, &t, &d);
	look(&past, 6 * S, 1200 * MS, 0, &t, &d);
	NEAR(t.share, 1.0);
	gp_top_past_clear(&past);
}

TEST(a_counter_that_fell_says_nothing)
{
	struct gp_top_past past = {0};
	struct gp_top_device d;
	struct gp_top_task t;

	look(&past, 5 * S, 4 * S, 10, &t, &d);
	look(&past, 6 * S, 3 * S, 5, &t, &d);
	assert_true(t.share < 0 && t.preemptions_per_s < 0 && d.busy < 0);
	look(&past, 6 * S, 3 * S, 5, &t, &d); /* the same picture again */
	assert_true(t.share < 0);
	gp_top_past_clear(&past);
}

TEST(what_is_not_known_stays_so)
{
	struct gp_top_past past = {0};
	struct gp_top_snapshot first = made_up_snapshot(2, 5 * S),
			       second = made_up_snapshot(3, 6 * S);

	second.task[0].run_ns = 500 * MS;
	second.task[1].run_known = false;
	first.device[0].busy_known = second.device[0].inversions_known = false;
	gp_top_past_add(&past, &first, 5 * S);
	gp_top_past_add(&past, &second, 6 * S);
	NEAR(second.task[0].share, 0.5);
	assert_true(second.task[1].share < 0);
	NEAR(second.task[1].preemptions_per_s, 0.0);
	assert_true(second.task[2].share < 0); /* it has just come */
	assert_true(second.task[2].preemptions_per_s < 0);
	assert_true(second.device[0].busy < 0 && second.device[0].inversions_per_s < 0);
	gp_top_snapshot_clear(&first);
	gp_top_snapshot_clear(&second);
	gp_top_past_clear(&past);
}

TEST(tasks_of_two_devices_with_the_same_id_are_two)
{
	struct gp_top_past past = {0};
	struct gp_top_snapshot first = made_up_snapshot(2, 5 * S),
			       second = made_up_snapshot(2, 6 * S);

	first.task[1].id = second.task[1].id = 1;
	first.task[1].device = second.task[1].device = 1;
	second.task[0].run_ns = 100 * MS;
	second.task[1].run_ns = 700 * MS;
	gp_top_past_add(&past, &first, 5 * S);
	gp_top_past_add(&past, &second, 6 * S);
	NEAR(second.task[0].share, 0.1);
	NEAR(second.task[1].share, 0.7);
	gp_top_snapshot_clear(&first);
	gp_top_snapshot_clear(&second);
	gp_top_past_clear(&past);
}
