/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario under a policy: request marks of programs reach the policy, and only with them a gap
 * between two kernels is not the end of a request. Several devices multiply the scenario, each with
 * its own random numbers, and the results are their sum.
 */
#include "support/test.h"

#include "sim/scenario/scenario.h"

#define US GP_NS_PER_US
#define MS GP_NS_PER_MS

static const struct gp_task_attr lc = {.class = GP_LATENCY_CRITICAL, .weight = 100};
static const struct gp_task_attr be = {.class = GP_BEST_EFFORT, .weight = 100};

/* Holds and releases take no time, and activity is known at once. */
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

/* A service with many kernels and gaps between them, beside long kernels without a pause. */
static uint64_t eager_p99(bool request_marks)
{
	struct gp_scenario s = new_scenario();
	struct gp_sim_task service = {.load = GP_LOAD_PERIODIC,
				      .every_ns = 20 * MS,
				      .kernels = 10,
				      .kernel_ns = 100 * US,
				      .kernel_gap_ns = 200 * US,
				      .request_marks = request_marks,
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

TEST(request_marks_keep_the_device_through_the_gaps_of_a_request)
{
	uint64_t with_ns = eager_p99(true), without_ns = eager_p99(false);

	/* Alone a request takes 2.8 ms. */
	assert_in_range(with_ns, 2800 * US, 3500 * US);
	assert_true(without_ns > with_ns + 900 * US);
}

static void add_mix(struct gp_scenario *s)
{
	struct gp_sim_task service = {.load = GP_LOAD_POISSON,
				      .every_ns = 10 * MS,
				      .kernel_ns = 1 * MS,
				      .stop_ns = GP_NEVER};
	struct gp_sim_task job = {.load = GP_LOAD_CLOSED, .kernel_ns = 3 * MS, .stop_ns = GP_NEVER};
	struct gp_sim_task idle = {.load = GP_LOAD_IDLE, .stop_ns = GP_NEVER};

	assert_int_equal(gp_scenario_add(s, &service, &lc), 0);
	assert_int_equal(gp_scenario_add(s, &job, &be), 0);
	assert_int_equal(gp_scenario_add(s, &idle, &be), 0);
}

static struct gp_run run_on(uint32_t devices)
{
	struct gp_scenario s = new_scenario();
	struct gp_run r;

	s.devices = devices;
	add_mix(&s);
	r = run(&s, &gp_policy_priority);
	gp_scenario_free(&s);
	return r;
}

TEST(several_devices_are_summed_up)
{
	struct gp_run one = run_on(1), two = run_on(2), three = run_on(3);
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
	struct gp_scenario s = new_scenario();
	struct numbers n = {0};
	const struct gp_run_options options = {.watch = count_event,
					       .watch_arg = &n,
					       .progress = note_progress,
					       .progress_arg = &n};
	struct gp_policy_choice choice;
	struct gp_error err = {0};
	struct gp_run r;

	s.devices = 3;
	add_mix(&s);
	gp_policy_defaults(&gp_policy_priority, &choice);
	assert_int_equal(gp_scenario_run(&s, &choice, &options, &r, &err), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_true(n.events[i] > 100);
	assert_int_equal(n.permille, 1000);
	gp_run_free(&r);
	gp_scenario_free(&s);
}
