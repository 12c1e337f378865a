/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lax: keeps the same promises as edf, lets a long request begin early, and does not alternate
 * between requests of the same laxity.
 */
#include "deadline_world.h"

/* Random sets. */

TEST(four_fifths_of_the_device_are_always_accepted)
{
	const struct draw any = {.sets = sets_of(300),
				 .most = 12,
				 .low = 100,
				 .high = 799,
				 .change_permille = 10,
				 .cost_permille = 1000};
	struct draw equal = any;

	assert_int_equal(run_sets("lax", &any), 0);
	equal.equal = true;
	equal.low = equal.high;
	assert_int_equal(run_sets("lax", &equal), 0);
}

TEST(more_than_the_device_is_never_promised)
{
	const struct draw draw = {.sets = sets_of(200),
				  .most = 10,
				  .low = 1003,
				  .high = 1500,
				  .change_permille = 10,
				  .cost_permille = 1000};

	assert_int_equal(run_sets("lax", &draw), draw.sets);
}

/* Few tasks with large budgets: they overtake each other as often as possible. */
TEST(what_is_accepted_is_not_late_whatever_the_hysteresis)
{
	static const char *const policies[] = {"lax:hysteresis=50", "lax:hysteresis=100", "lax",
					       "lax:hysteresis=1000"};
	const struct draw draw = {.sets = sets_of(150),
				  .most = 3,
				  .low = 500,
				  .high = 1100,
				  .change_permille = 3,
				  .cost_permille = 100};

	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
		assert_in_range(run_sets(policies[i], &draw), 1, draw.sets - 1);
}

TEST(what_is_accepted_is_not_late_when_requests_come_at_odd_times)
{
	const struct draw draw = {.sets = sets_of(200),
				  .most = 10,
				  .low = 100,
				  .high = 1500,
				  .change_permille = 30,
				  .cost_permille = 1000,
				  .sporadic = true};
	struct draw marked = draw, gangs = draw;

	assert_in_range(run_sets("lax", &draw), 1, draw.sets - 1);
	marked.request_marks = true;
	assert_in_range(run_sets("lax", &marked), 1, draw.sets - 1);
	marked.sampled = true;
	assert_in_range(run_sets("lax", &marked), 1, draw.sets - 1);
	gangs.gangs = true;
	gangs.most = 6;
	assert_in_range(run_sets("lax", &gangs), 1, draw.sets - 1);
}

/* Many tasks run at the same time, a hold stops all of them, and changes are noticed a millisecond
 * late. */
TEST(the_same_holds_on_an_amd_gpu)
{
	const struct draw fits = {.sets = sets_of(100),
				  .most = 5,
				  .low = 100,
				  .high = 799,
				  .change_permille = 10,
				  .cwsr = true};
	struct draw any = fits;

	assert_int_equal(run_sets("lax", &fits), 0);
	any.sporadic = true;
	any.change_permille = 50;
	any.high = 1500;
	assert_in_range(run_sets("lax", &any), 1, any.sets - 1);
	any.gangs = true;
	assert_in_range(run_sets("lax", &any), 1, any.sets - 1);
}

/* The worst case: three have a budget above the hysteresis, and deadlines of 6.4 ms have the
 * largest jitter. Returns how many were refused. */
static unsigned try_four_fifths(unsigned count, bool request_marks)
{
	uint64_t deadline_ns, budget_ns;
	struct world w;

	deadline_world_init(&w, 47);
	deadline_ns = world_change_ns(&w) * 100;
	budget_ns = deadline_ns * 266 / 1000;
	for (unsigned i = 0; i < count; i++) {
		uint64_t rest_ns = (deadline_ns * 8 / 10 - 3 * budget_ns) / (count - 3);
		uint32_t t = world_add_service(&w, deadline_ns, deadline_ns,
					       i < 3 ? budget_ns : rest_ns);

		if (request_marks)
			split_request(&w, t);
	}
	world_run(&w, "lax");
	world_check(&w, "lax");
	return world_refused(&w);
}

/* The numbers of the man page. */
TEST(twelve_tasks_fit_at_one_percent_a_change_and_one_more_does_not)
{
	assert_int_equal(try_four_fifths(12, false), 0);
	assert_int_equal(try_four_fifths(13, false), 1);
	assert_int_equal(try_four_fifths(10, true), 0);
	assert_int_equal(try_four_fifths(11, true), 1);
}

/* The order. */

/* Its laxity is 290 ms when the short one comes, which has 590 ms: so the short one waits. */
TEST(a_long_request_is_not_put_off_by_a_short_one_that_is_due_earlier)
{
	static const uint64_t first[] = {0}, second[] = {10 * MS};
	static const char *const policies[] = {"edf", "lax"};

	for (int lax = 0; lax < 2; lax++) {
		uint32_t large, small;
		struct world w;

		deadline_world_init(&w, 10);
		large = world_add_service(&w, 1000 * MS, 1000 * MS, 700 * MS);
		small = world_add_service(&w, 600 * MS, 600 * MS, 10 * MS);
		for (uint32_t i = 0; i < 2; i++) {
			w.task[i].load = GP_LOAD_TRACE;
			w.task[i].arrival_ns = i ? second : first;
			w.task[i].arrivals = 1;
		}
		w.duration_ns = 1 * S;
		world_run(&w, policies[lax]);
		assert_int_equal(world_refused(&w), 0);
		assert_int_equal(w.finished[large] + w.finished[small], 2);
		assert_int_equal(w.missed[large] + w.missed[small], 0);
		/* It waits until it has less laxity than the long one, and not a tick longer. */
		if (lax)
			assert_in_range(w.longest_ns[small], 300 * MS, 302 * MS);
		else
			assert_in_range(w.longest_ns[small], 10 * MS, 12 * MS);
	}
}

/* Each has 400 ms of work in a second, from the same time on. A waiting request overtakes when its
 * laxity is smaller by the hysteresis: at most once in that time for each. */
TEST(requests_of_the_same_laxity_do_not_alternate_at_every_tick)
{
	static const unsigned hysteresis[] = {50, 100, 250, 500};

	for (size_t i = 0; i < sizeof hysteresis / sizeof *hysteresis; i++) {
		uint64_t pairs = 10, turns = 2ull * (400 / hysteresis[i] + 1);
		uint64_t arrival_ns[10];
		char policy[40];
		struct world w;

		deadline_world_init(&w, 10);
		for (uint64_t k = 0; k < pairs; k++)
			arrival_ns[k] = k * 1000 * MS;
		for (uint32_t k = 0; k < 2; k++) {
			world_add_service(&w, 1000 * MS, 1000 * MS, 400 * MS);
			w.task[k].load = GP_LOAD_TRACE;
			w.task[k].arrival_ns = arrival_ns;
			w.task[k].arrivals = (uint32_t)pairs;
		}
		snprintf(policy, sizeof policy, "lax:hysteresis=%u", hysteresis[i]);
		world_run(&w, policy);
		world_check(&w, policy);
		assert_int_equal(world_refused(&w), 0);
		assert_int_equal(w.finished[0] + w.finished[1], 2 * pairs);
		/* It alternates as often as requested, and no more than that. */
		assert_in_range(w.engine_stats.preemptions, pairs, pairs * turns);
	}
}

TEST(the_tick_comes_when_the_order_changes)
{
	static const uint64_t at_once[] = {0};
	struct world w;

	deadline_world_init(&w, 0);
	for (uint32_t k = 0; k < 2; k++) {
		world_add_service(&w, 1000 * MS, 1000 * MS, 400 * MS);
		w.task[k].load = GP_LOAD_TRACE;
		w.task[k].arrival_ns = at_once;
		w.task[k].arrivals = 1;
	}
	w.config.check_quiet_ns = w.config.scan_every_ns =
		100 * S; /* only when the policy asks for it */
	w.duration_ns = 1 * S;
	world_run(&w, "lax");
	/* The second waits 250 ms, runs until the first has waited 500 ms; the rest depends on the
	 * phase. */
	assert_in_range(w.engine_stats.preemptions, 2, 4);
	assert_int_equal(w.missed[0] + w.missed[1], 0);
	assert_in_range(w.engine_stats.ticks, 4, 20);
}

TEST(an_overrun_harms_no_other_task_and_is_counted)
{
	for (unsigned permille = 1100; permille <= 4000; permille += 100) {
		struct world w;

		deadline_world_init(&w, 100);
		world_add_service(&w, 100 * MS, 100 * MS, 20 * MS);
		world_add_service(&w, 90 * MS, 90 * MS, 30 * MS);
		world_add_service(&w, 250 * MS, 250 * MS, 60 * MS);
		w.task[0].kernel_ns = 20 * MS * permille / 1000;
		world_run(&w, "lax");
		assert_int_equal(world_refused(&w), 0);
		assert_int_equal(w.missed[1] + w.missed[2], 0);
		assert_in_range(w.stats[0].overruns, w.finished[0], w.finished[0] + 1);
		assert_int_equal(w.stats[1].overruns + w.stats[2].overruns, 0);
	}
}

TEST_BEGIN
{
	gp_log_set_level(GP_LOG_ERROR);
}
