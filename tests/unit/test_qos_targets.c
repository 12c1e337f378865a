/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `qos` keeps a target or refuses it: on the simulated H200 up to rates at which requests wait for
 * each other, and on the AMD model, where it never leaves best-effort work less than `priority`
 * does. These runs take minutes and are accurate to a percent; test_qos_sweep.c covers a grid.
 */
#include "scenario_world.h"

/* A service with random requests, and a job that fills the device. */
static void begin_with(uint64_t duration_ns, unsigned rate, uint64_t kernel_ns, uint64_t target_ns,
		       bool request_marks)
{
	begin(duration_ns);
	add(POISSON(S / rate, kernel_ns, .request_marks = request_marks),
	    ATTR(GP_LATENCY_CRITICAL, .deadline_ns = target_ns, .budget_ns = kernel_ns));
	add(LOOP(13600 * US), ATTR(GP_BEST_EFFORT));
}

struct outcome {
	double p99_ms;
	double kept; /* of the job's work, in percent */
	bool refused;
};

static struct outcome run_under(const char *policy)
{
	struct gp_run result = run_scenario(&scenario, policy, NULL);
	const struct outcome o = {
		.p99_ms = (double)result.task[0].p99_ns / 1e6,
		.kept = kept(&result, 1),
		.refused = result.task[0].refused,
	};

	print_message("%-8s p99 %7.3f ms, job keeps %4.1f %%%s\n", policy, o.p99_ms, o.kept,
		      o.refused ? ", refused" : "");
	gp_run_free(&result);
	return o;
}

/* The first second, before the load is known, is among the 240. */
TEST(a_target_is_kept_where_requests_wait_for_each_other)
{
	static const struct {
		unsigned rate;
		double target_ms;
		bool request_marks;
		double job; /* minimum of its work, in percent */
	} c[] = {
		{3000, 2, true, 43},  {4000, 2, true, 33},  {5000, 2, true, 23},
		{5500, 2, true, 17},  {5000, 5, true, 30},  {3000, 2, false, 26},
		{4000, 2, false, 17}, {4000, 3, false, 22}, {1000, 1.2, true, 57},
		{6000, 2, true, 11},  {5300, 2, false, 6},
	};

	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct outcome o;

		begin_with(240 * S, c[i].rate, 100 * US, (uint64_t)(c[i].target_ms * 1e6),
			   c[i].request_marks);
		print_message("%u/s: ", c[i].rate);
		o = run_under("qos");
		assert_false(o.refused);
		assert_true(o.p99_ms <= c[i].target_ms);
		assert_true(o.kept > c[i].job);
		gp_scenario_free(&scenario);
	}
}

TEST(a_target_that_is_missed_is_refused)
{
	static const struct {
		unsigned rate;
		uint64_t target_ns;
		bool request_marks;
	} c[] = {
		{6500, 2 * MS, true},     {7000, 2 * MS, true},  {7500, 3 * MS, true},
		{6500, 2 * MS, false},    {7000, 2 * MS, false}, {4000, 1 * MS, true},
		{2000, 1 * MS, false},    {9000, 2 * MS, true},  {6200, 2 * MS, true},
		{1000, 1200 * US, false},
	};

	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct outcome o;

		begin_with(60 * S, c[i].rate, 100 * US, c[i].target_ns, c[i].request_marks);
		print_message("%u/s, %.1f ms: ", c[i].rate, (double)c[i].target_ns / 1e6);
		o = run_under("qos");
		assert_true(o.refused);
		assert_true(o.kept > 4);
		gp_scenario_free(&scenario);
	}
}

/* Hold and release cost as much there as they save, unless the hold is avoided. */
TEST(without_slices_no_target_costs_more_than_under_priority)
{
	static const struct {
		unsigned rate;
		uint64_t kernel_ns;
		uint32_t width_permille;
		bool request_marks;
	} c[] = {
		{20, 3 * MS, 1000, false},  {100, 3 * MS, 1000, false}, {20, 3 * MS, 1000, true},
		{200, 1 * MS, 1000, false}, {40, 3 * MS, 400, false},   {100, 3 * MS, 1000, true},
	};
	static const double target[] = {5, 6, 7, 8, 9, 10, 11, 12, 15, 20};

	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		double most = 0;

		for (size_t k = 0; k < sizeof target / sizeof *target; k++) {
			struct outcome priority, qos;

			begin_with(20 * S, c[i].rate, c[i].kernel_ns, (uint64_t)(target[k] * 1e6),
				   c[i].request_marks);
			scenario.device = gp_sim_mi300x;
			scenario.task[0].width_permille = c[i].width_permille;
			scenario.task[1].width_permille = 1000;
			print_message("%u/s, %.0f ms:\n", c[i].rate, target[k]);
			priority = run_under("priority");
			qos = run_under("qos");
			assert_true(qos.kept > priority.kept - 0.1);
			if (priority.p99_ms <= target[k])
				assert_true(qos.p99_ms <= target[k]);
			if (qos.kept - priority.kept > most)
				most = qos.kept - priority.kept;
			gp_scenario_free(&scenario);
		}
		assert_true(most > 1); /* if the target leaves time for it */
	}
}
