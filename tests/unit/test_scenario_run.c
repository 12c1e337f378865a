/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario under a policy: what programs say in brackets reaches the policy, and only then is a
 * gap between two kernels not the end of a request.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "scenario/scenario.h"

#define US GP_NS_PER_US
#define MS GP_NS_PER_MS

static const struct gp_task_attr lc = {.class = GP_LATENCY_CRITICAL, .weight = 100};
static const struct gp_task_attr be = {.class = GP_BEST_EFFORT, .weight = 100};

/* Holds and releases at once, and sees at once who works. */
static struct gp_scenario new_scenario(void)
{
	struct gp_scenario s;

	gp_scenario_init(&s);
	s.duration_ns = GP_NS_PER_S;
	s.device.slices = false;
	s.device.activity = GP_ACTIVITY_EVENTS;
	s.device.hold_ns = s.device.release_ns = 20 * US;
	return s;
}

static struct gp_run run(struct gp_scenario *s, const struct gp_policy_ops *ops)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};
	struct gp_run r;

	gp_policy_defaults(ops, &choice);
	if (gp_scenario_run(s, &choice, NULL, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

/* A service of many kernels with gaps between them beside one long kernel after the other. */
static uint64_t eager_p99(bool bracket)
{
	struct gp_scenario s = new_scenario();
	struct gp_sim_task service = {.load = GP_LOAD_PERIODIC,
	                              .every_ns = 20 * MS,
	                              .kernels = 10,
	                              .kernel_ns = 100 * US,
	                              .kernel_gap_ns = 200 * US,
	                              .bracket = bracket,
	                              .stop_ns = GP_NEVER};
	struct gp_sim_task job = {
		.load = GP_LOAD_CLOSED, .kernel_ns = 13600 * US, .stop_ns = GP_NEVER};
	struct gp_run r;
	uint64_t p99_ns;

	assert_int_equal(gp_scenario_add(&s, &service, &lc), 0);
	assert_int_equal(gp_scenario_add(&s, &job, &be), 0);
	r = run(&s, &gp_policy_priority);
	assert_int_equal(r.ejections, 0);
	assert_true(r.task[0].finished >= 45);
	p99_ns = r.task[0].p99_ns;
	gp_run_free(&r);
	gp_scenario_free(&s);
	return p99_ns;
}

static void a_bracket_keeps_the_device_through_the_gaps_of_a_request(void **state)
{
	(void)state;
	uint64_t with_ns = eager_p99(true), without_ns = eager_p99(false);

	/* By itself a request takes 2.8 ms. */
	assert_in_range(with_ns, 2800 * US, 3500 * US);
	assert_true(without_ns > with_ns + 9 * 100 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bracket_keeps_the_device_through_the_gaps_of_a_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
