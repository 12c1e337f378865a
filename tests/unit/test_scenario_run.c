/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario under a policy: request marks of programs reach the policy, and only with them a gap
 * between two kernels is not the end of a request. Several devices multiply the scenario, each with
 * its own random numbers, and the results are their sum.
 */
#include "scenario_world.h"

/* Holds and releases take no time, and activity is known at once. */
static void begin_prompt(void)
{
	begin(1 * S);
	scenario.device.slices = false;
	scenario.device.activity = GP_ACTIVITY_EVENTS;
	scenario.device.hold_ns = scenario.device.release_ns = 20 * US;
}

/* A service with many kernels and gaps between them, beside long kernels without a pause. */
static uint64_t eager_p99(bool request_marks)
{
	begin_prompt();
	add(PERIODIC(20 * MS, 100 * US, .kernels = 10, .kernel_gap_ns = 200 * US,
		     .request_marks = request_marks),
	    ATTR(GP_LATENCY_CRITICAL));
	add(LOOP(13600 * US), ATTR(GP_BEST_EFFORT));
	finish("priority");
	assert_true(run.task[0].finished >= 45);
	return run.task[0].p99_ns;
}

TEST(request_marks_keep_the_device_through_the_gaps_of_a_request)
{
	uint64_t with_ns = eager_p99(true), without_ns = eager_p99(false);

	/* Alone a request takes 2.8 ms. */
	assert_in_range(with_ns, 2800 * US, 3500 * US);
	assert_true(without_ns > with_ns + 900 * US);
}

static struct gp_run run_on(uint32_t devices, const struct gp_run_options *options)
{
	struct gp_run result;

	begin_prompt();
	scenario.devices = devices;
	add(POISSON(10 * MS, 1 * MS), ATTR(GP_LATENCY_CRITICAL));
	add(LOOP(3 * MS), ATTR(GP_BEST_EFFORT));
	add(IDLE, ATTR(GP_BEST_EFFORT));
	result = run_scenario(&scenario, "priority", options);
	gp_scenario_free(&scenario);
	return result;
}

TEST(several_devices_are_summed_up)
{
	struct gp_run one = run_on(1, NULL), two = run_on(2, NULL), three = run_on(3, NULL);
	const struct gp_hist *response = three.task[0].response;

	assert_int_equal(one.duration_ns, GP_NS_PER_S);
	assert_int_equal(three.duration_ns, 3 * GP_NS_PER_S);
	assert_int_equal(response->count, three.task[0].finished);
	assert_int_equal(three.task[0].max_ns, response->max);
	assert_true(response->max >= two.task[0].max_ns &&
		    two.task[0].max_ns >= one.task[0].max_ns);
	/* The second and third device add about as much as the first, but not exactly the same. */
	assert_in_range(three.task[0].finished, 240, 360);
	assert_int_not_equal(two.task[0].finished, 2 * one.task[0].finished);
	assert_int_not_equal(three.task[0].work_ns - two.task[0].work_ns,
			     two.task[0].work_ns - one.task[0].work_ns);
	assert_in_range(three.device.busy_ns, 5 * one.device.busy_ns / 2,
			7 * one.device.busy_ns / 2);
	assert_true(three.inversions > 2 * one.inversions);
	/* A closed loop alone is the same on every device; random arrivals are not. */
	assert_int_equal(three.task[1].alone_ns, 3 * one.task[1].alone_ns);
	assert_int_not_equal(three.task[0].alone_ns, 3 * one.task[0].alone_ns);
	assert_in_range(three.task[0].work_ns, three.task[0].alone_ns / 100 * 99,
			three.task[0].alone_ns);
	assert_null(three.task[2].response);
	assert_false(three.task[2].has_response);
	gp_run_free(&one);
	gp_run_free(&two);
	gp_run_free(&three);
}

struct numbers {
	uint64_t events[3];
	unsigned permille;
};

static void count_event(void *arg, const struct gp_sim_event *event)
{
	struct numbers *n = arg;

	assert_in_range(event->device, 0, 2);
	n->events[event->device]++;
}

static void note_progress(void *arg, unsigned permille)
{
	struct numbers *n = arg;

	assert_true(permille > n->permille);
	n->permille = permille;
}

TEST(events_say_which_device_and_progress_goes_over_all)
{
	struct numbers n = {0};
	const struct gp_run_options options = {.watch = count_event,
					       .watch_arg = &n,
					       .progress = note_progress,
					       .progress_arg = &n};
	struct gp_run result = run_on(3, &options);

	for (unsigned i = 0; i < 3; i++)
		assert_true(n.events[i] > 100);
	assert_int_equal(n.permille, 1000);
	gp_run_free(&result);
}
