/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lax: keeps the same promises as edf, lets a long request begin early, and does not alternate
 * between requests of the same laxity.
 */
#include "deadline_world.h"

/* Random sets. */

TEST(four_fifths_of_the_device_are_always_accepted)
{
	four_fifths_are_accepted("lax", 12);
}

TEST(more_than_the_device_is_never_promised)
{
	all_are_refused("lax",
			DRAW(200, .most = 10, .low = 1003, .high = 1500, .change_permille = 10));
}

/* Few tasks with large budgets: they overtake each other as often as possible. */
TEST(what_is_accepted_is_not_late_whatever_the_hysteresis)
{
	static const char *const policies[] = {"lax:hysteresis=50", "lax:hysteresis=100", "lax",
					       "lax:hysteresis=1000"};

	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
		some_are_refused(policies[i], DRAW(150, .most = 3, .low = 500, .high = 1100,
						   .change_permille = 3, .cost_permille = 100));
}

TEST(what_is_accepted_is_not_late_when_requests_come_at_odd_times)
{
	const struct draw draw = DRAW(200, .most = 10, .low = 100, .high = 1500,
				      .change_permille = 30, .sporadic = true);
	struct draw marked = draw, gangs = draw;

	some_are_refused("lax", draw);
	marked.request_marks = true;
	some_are_refused("lax", marked);
	marked.sampled = true;
	some_are_refused("lax", marked);
	gangs.gangs = true;
	gangs.most = 6;
	some_are_refused("lax", gangs);
}

TEST(the_same_holds_on_an_amd_gpu)
{
	amd_keeps_promises("lax", 5);
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
			world_set_trace(&w, i, i ? second : first, 1);
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
			world_set_trace(&w, k, arrival_ns, (uint32_t)pairs);
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

DEADLINE_TEST(the_tick_comes_when_the_order_changes, 0)
{
	static const uint64_t at_once[] = {0};

	for (uint32_t k = 0; k < 2; k++) {
		world_add_service(w, 1000 * MS, 1000 * MS, 400 * MS);
		world_set_trace(w, k, at_once, 1);
	}
	w->config.check_quiet_ns = w->config.scan_every_ns =
		100 * S; /* only when the policy asks for it */
	w->duration_ns = 1 * S;
	world_run(w, "lax");
	/* The second waits 250 ms, runs until the first has waited 500 ms; the rest depends on the
	 * phase. */
	assert_in_range(w->engine_stats.preemptions, 2, 4);
	assert_int_equal(w->missed[0] + w->missed[1], 0);
	assert_in_range(w->engine_stats.ticks, 4, 20);
}

TEST(an_overrun_harms_no_other_task_and_is_counted)
{
	overruns_harm_no_other_task("lax");
}
