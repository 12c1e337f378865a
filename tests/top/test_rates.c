/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of tasks and devices, from counters. */
#include "made_up.h"

#define NEAR(a, b) assert_true((a) > (b)-1e-6 && (a) < (b) + 1e-6)

static struct gp_top_history history;

/* The rates of the last snapshot_at. */
static struct gp_top_device d;
static struct gp_top_task t;

static int clear_history(void **state)
{
	(void)state;
	gp_top_history_clear(&history);
	return 0;
}

#define RATE_TEST(function) TEST_WITH(function, NULL, clear_history)

/* Adds a snapshot with one task that has run for run_ns. */
static void snapshot_at(uint64_t at_ns, uint64_t run_ns, uint64_t preemptions)
{
	struct gp_top_snapshot snapshot = made_up_snapshot(1, at_ns);

	snapshot.task[0].run_ns = snapshot.device[0].busy_ns = run_ns;
	snapshot.task[0].preemptions = snapshot.device[0].preemptions = preemptions;
	snapshot.device[0].inversions = 2 * preemptions;
	gp_top_history_add(&history, &snapshot, at_ns);
	t = snapshot.task[0];
	d = snapshot.device[0];
	gp_top_snapshot_clear(&snapshot);
}

RATE_TEST(the_first_snapshot_has_no_rates)
{
	snapshot_at(5 * S, 4 * S, 100);
	assert_true(t.share < 0 && t.recent_share < 0 && t.preemptions_per_s < 0);
	assert_true(d.busy < 0 && d.preemptions_per_s < 0 && d.inversions_per_s < 0);
}

RATE_TEST(a_share_is_run_time_over_time)
{
	snapshot_at(5 * S, 4 * S, 100);
	snapshot_at(7 * S, 4 * S + 500 * MS, 130);
	NEAR(t.share, 0.25);
	NEAR(t.preemptions_per_s, 15.0);
	NEAR(d.busy, 0.25);
	NEAR(d.inversions_per_s, 30.0);
}

RATE_TEST(with_many_snapshots_a_second_rates_are_of_the_last_second)
{
	uint64_t run_ns = 0;

	/* Idle for ten seconds, busy for the last half second. */
	for (unsigned i = 0; i <= 105; i++) {
		run_ns += i > 100 ? 100 * MS : 0;
		snapshot_at(100 * S + i * 100ull * MS, run_ns, 0);
	}
	NEAR(t.share, 0.5);
	assert_true(t.recent_share > 0.1 && t.recent_share < 0.2); /* of three seconds */
	assert_true(history.n < GP_TOP_HISTORY);
	gp_top_history_clear(&history);
	assert_int_equal(history.n, 0);
}

RATE_TEST(with_rare_snapshots_rates_are_of_the_time_between_them)
{
	snapshot_at(100 * S, 0, 0);
	snapshot_at(110 * S, 10 * S, 0);
	snapshot_at(120 * S, 13 * S, 0);
	NEAR(t.share, 0.3);
	NEAR(t.recent_share, 0.3);
}

RATE_TEST(run_time_counted_late_never_exceeds_all)
{
	snapshot_at(5 * S, 0, 0);
	snapshot_at(6 * S, 1200 * MS, 0);
	NEAR(t.share, 1.0);
}

RATE_TEST(a_counter_that_fell_gives_no_rate)
{
	snapshot_at(5 * S, 4 * S, 10);
	snapshot_at(6 * S, 3 * S, 5);
	assert_true(t.share < 0 && t.preemptions_per_s < 0 && d.busy < 0);
	snapshot_at(6 * S, 3 * S, 5); /* the same snapshot again */
	assert_true(t.share < 0);
}

RATE_TEST(unknown_counters_give_no_rates)
{
	struct gp_top_snapshot first = made_up_snapshot(2, 5 * S),
			       second = made_up_snapshot(3, 6 * S);

	second.task[0].run_ns = 500 * MS;
	second.task[1].run_known = false;
	first.device[0].busy_known = second.device[0].inversions_known = false;
	gp_top_history_add(&history, &first, 5 * S);
	gp_top_history_add(&history, &second, 6 * S);
	NEAR(second.task[0].share, 0.5);
	assert_true(second.task[1].share < 0);
	NEAR(second.task[1].preemptions_per_s, 0.0);
	assert_true(second.task[2].share < 0); /* a new task */
	assert_true(second.task[2].preemptions_per_s < 0);
	assert_true(second.device[0].busy < 0 && second.device[0].inversions_per_s < 0);
	gp_top_snapshot_clear(&first);
	gp_top_snapshot_clear(&second);
}

RATE_TEST(tasks_of_two_devices_with_the_same_id_are_two)
{
	struct gp_top_snapshot first = made_up_snapshot(2, 5 * S),
			       second = made_up_snapshot(2, 6 * S);

	first.task[1].id = second.task[1].id = 1;
	first.task[1].device = second.task[1].device = 1;
	second.task[0].run_ns = 100 * MS;
	second.task[1].run_ns = 700 * MS;
	gp_top_history_add(&history, &first, 5 * S);
	gp_top_history_add(&history, &second, 6 * S);
	NEAR(second.task[0].share, 0.1);
	NEAR(second.task[1].share, 0.7);
	gp_top_snapshot_clear(&first);
	gp_top_snapshot_clear(&second);
}
