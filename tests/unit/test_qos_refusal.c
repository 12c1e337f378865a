/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `qos` refuses, and its reaction to misleading run times: the test makes the views, and lets
 * run times grow as it likes.
 */
#include "support/test.h"

#include "base/clock.h"
#include "policy/registry.h"

#define US GP_NS_PER_US
#define MS GP_NS_PER_MS
#define S  GP_NS_PER_S

/* A service and a best-effort task. */
struct desk {
	struct gp_policy_choice policy;
	union {
		unsigned char bytes[2048];
		uint64_t align;
	} device, task;
	struct gp_policy_state state;
	struct gp_task_view seen[2];
	struct gp_view view;
	struct gp_task_plan plan_task[2];
	struct gp_plan plan;
};

static void desk_init(struct desk *d, uint64_t target_ns)
{
	*d = (struct desk){0};
	gp_policy_defaults(&gp_policy_qos, &d->policy);
	assert_in_range(gp_policy_qos.device_state, 1, sizeof d->device);
	assert_in_range(gp_policy_qos.task_state, 1, sizeof d->task / 2);
	d->state = (struct gp_policy_state){
		.param = d->policy.param,
		.device = d->device.bytes,
		.task = d->task.bytes,
		.task_stride = sizeof d->task / 2,
	};
	for (uint32_t i = 0; i < 2; i++)
		d->seen[i] = (struct gp_task_view){
			.id = i + 1,
			.gang = i,
			.class = i ? GP_BEST_EFFORT : GP_LATENCY_CRITICAL,
			.known = GP_KNOWN_RUN | GP_KNOWN_HELD | GP_KNOWN_SLICE,
			.run_source = GP_RUN_MEASURED,
			.weight = 100,
			.deadline_ns = i ? 0 : target_ns,
			.budget_ns = i ? 0 : 100 * US,
		};
	d->view = (struct gp_view){
		.state = &d->state,
		.now_ns = S,
		.caps = GP_CAP_HOLD | GP_CAP_SLICE | GP_CAP_ACTIVITY,
		.max_held = 8,
		.slice_default_us = 2048,
		.slice_min_us = 1,
		.slice_max_us = 10000000,
		.hold_cost_ns = 578 * US,
		.release_cost_ns = 352 * US,
		.switch_cost_ns = 168 * US,
		.sample_period_ns = 20 * MS,
		.starve_limit_ns = 10 * S,
		.n = 2,
		.task = d->seen,
	};
}

static void desk_decide(struct desk *d)
{
	bool hold;

	d->plan = (struct gp_plan){.next_ns = UINT64_MAX, .task = d->plan_task};
	for (unsigned i = 0; i < 2; i++)
		d->plan_task[i] = (struct gp_task_plan){0};
	assert_int_equal(gp_policy_qos.decide(&d->view, &d->plan), 0);
	hold = d->plan_task[1].want == GP_HOLD;
	d->seen[1].held = hold;
	d->seen[1].held_by = hold ? GP_HELD_BY_POLICY : 0;
}

/* Ticks every 0.1 ms. With slices both run for a part of the time, in ppm. In windows (if the plan
 * has them) best-effort work runs while it is released, and the service for a part of the rest. */
static void desk_run(struct desk *d, uint64_t for_ns, uint64_t lc_ppm, uint64_t be_ppm,
		     uint64_t lc_shut_ppm)
{
	for (uint64_t end_ns = d->view.now_ns + for_ns; d->view.now_ns < end_ns;) {
		bool windows = d->plan_task[1].slice_us > 50 || d->seen[1].held;

		if (windows) {
			d->seen[0].run_ns += d->seen[1].held ? lc_shut_ppm / 10 : 0;
			d->seen[1].run_ns += d->seen[1].held ? 0 : 100 * US;
		} else {
			d->seen[0].run_ns += lc_ppm / 10;
			d->seen[1].run_ns += be_ppm / 10;
		}
		d->view.now_ns += 100 * US;
		desk_decide(d);
	}
}

TEST(a_target_shorter_than_request_and_switch_is_refused_at_once)
{
	struct desk d;

	desk_init(&d, 260 * US);
	desk_decide(&d);
	assert_true(d.plan_task[0].refused);
	assert_false(d.plan_task[1].refused);
	desk_init(&d, 300 * US);
	desk_decide(&d);
	assert_false(d.plan_task[0].refused);
}

TEST(shares_of_more_than_the_device_are_refused)
{
	struct desk d;

	desk_init(&d, 0);
	d.seen[1].share_permille = 900;
	desk_decide(&d);
	assert_false(d.plan_task[1].refused);
	d.seen[1].share_permille = 950;
	desk_decide(&d);
	assert_true(d.plan_task[1].refused);
	d.seen[1].share_permille = 300;
	d.view.caps = GP_CAP_SLICE;
	desk_decide(&d);
	assert_true(d.plan_task[1].refused);
}

TEST(a_target_that_the_load_forbids_is_refused_and_later_admitted)
{
	struct desk d;

	desk_init(&d, 900 * US);
	desk_run(&d, 1 * S, 30000, 870000, 400000);
	assert_false(d.plan_task[0].refused);
	desk_run(&d, 5 * S, 220000, 80000, 400000); /* overloaded, and windows would be too long */
	assert_true(d.plan_task[0].refused);
	desk_run(&d, 10 * S, 30000, 870000, 5000);
	assert_false(d.plan_task[0].refused);
}

/* As NVIDIA's records of context switches do; see docs/nvidia.md. */
TEST(run_times_that_hold_idle_time_do_not_starve_best_effort_work)
{
	uint64_t before_ns;
	struct desk d;

	desk_init(&d, 2 * MS);
	desk_run(&d, 30 * S, 128000, 470000, GP_NS_PER_MS);
	before_ns = d.seen[1].run_ns;
	desk_run(&d, 30 * S, 128000, 470000, GP_NS_PER_MS);
	print_message("best-effort work has %llu permille of the time\n",
		      (unsigned long long)((d.seen[1].run_ns - before_ns) / (30 * MS)));
	assert_true(d.seen[1].run_ns - before_ns > 14 * S);
}

TEST(a_task_that_was_far_over_its_ceiling_is_back_before_it_starves)
{
	struct desk d;

	desk_init(&d, 0);
	d.seen[1].ceiling_permille = 10;
	desk_run(&d, 100 * MS, 0, 0, 0);
	d.seen[1].run_ns += 5 * S; /* this was not reported before */
	desk_run(&d, 100 * MS, 0, 0, 0);
	assert_int_equal(d.plan_task[1].want, GP_HOLD);
	desk_run(&d, 2 * S, 0, 0, 0);
	assert_int_equal(d.plan_task[1].want, GP_RUN);
}

/* Windows and their costs have length 0 then: there must be no division by it. */
TEST(a_short_target_on_a_device_that_costs_nothing_is_decided_about)
{
	struct desk d;

	for (unsigned seen_at_once = 0; seen_at_once < 2; seen_at_once++) {
		desk_init(&d, 10 * US);
		d.seen[0].budget_ns = 0;
		d.seen[0].known |= seen_at_once ? GP_KNOWN_REQUEST : 0;
		d.view.hold_cost_ns = d.view.release_cost_ns = d.view.switch_cost_ns = 0;
		desk_run(&d, 3 * S, 300000, 600000, 0);
		assert_int_not_equal(d.plan_task[0].want, GP_HOLD);
	}
}
