/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that send request marks, and policies that cannot keep what is asked for. */
#include "fake_gpu.h"

static const struct gp_task_view *view_of(struct rig *r, uint32_t handle)
{
	return &gp_engine_view(r->engine)->task[handle];
}

static void request_marks(struct rig *r, uint32_t handle, bool begins)
{
	assert_int_equal(gp_engine_mark(r->engine, r->now_ns, handle + 1u, begins), 0);
	assert_int_equal(gp_engine_next_ns(r->engine), 0); /* a tick is due at once */
	rig_step(r);
}

RIG_TEST(a_gap_inside_a_request_is_not_its_end)
{
	uint32_t lc = rig_add(r, GP_LATENCY_CRITICAL), be = rig_add(r, GP_BEST_EFFORT);
	uint64_t began_ns;

	rig_start(r, &scripted);
	r->gpu.task[lc].is.active = false; /* between two kernels */
	request_marks(r, lc, true);
	began_ns = r->now_ns;
	assert_true(gp_seen_active(view_of(r, lc)));
	assert_true(view_of(r, lc)->in_request);
	r->now_ns += 3 * MS;
	request_marks(r, lc, true); /* marked twice: the begin stays the first one */
	assert_true(view_of(r, lc)->known & GP_KNOWN_ACTIVE_SINCE);
	assert_int_equal(view_of(r, lc)->active_since_ns, began_ns);
	request_marks(r, lc, false);
	assert_true(gp_seen_idle(view_of(r, lc)));
	assert_false(view_of(r, be)->known & GP_KNOWN_REQUEST);
}

RIG_TEST(work_that_is_seen_now_is_work_but_an_old_sample_is_not)
{
	uint32_t lc = rig_add(r, GP_LATENCY_CRITICAL);

	rig_start(r, &scripted);
	request_marks(r, lc, false);
	assert_true(gp_seen_active(view_of(r, lc)));
	r->gpu.base.info.sample_period_ns = 100 * MS;
	request_marks(r, lc, false);
	assert_true(gp_seen_idle(view_of(r, lc)));
}

RIG_TEST(announced_work_counts_until_it_is_there)
{
	uint32_t lc = rig_add(r, GP_LATENCY_CRITICAL);
	uint64_t hinted_ns;

	rig_start(r, &scripted);
	r->gpu.task[lc].is.active = false;
	rig_step(r);
	assert_true(gp_seen_idle(view_of(r, lc)));
	hinted_ns = r->now_ns;
	assert_int_equal(gp_engine_hint(r->engine, r->now_ns, lc + 1u, 10 * MS), 0);
	assert_int_equal(gp_engine_next_ns(r->engine), 0);
	rig_tick(r, 1 * MS);
	assert_true(gp_seen_active(view_of(r, lc)));
	assert_int_equal(view_of(r, lc)->active_since_ns, hinted_ns);
	r->gpu.task[lc].is.active = true; /* the work has come */
	rig_step(r);
	r->gpu.task[lc].is.active = false; /* and is done: the hint is used up */
	rig_step(r);
	assert_true(gp_seen_idle(view_of(r, lc)));
}

RIG_TEST(announced_work_that_does_not_come_is_forgotten_in_time)
{
	uint32_t lc = rig_add(r, GP_LATENCY_CRITICAL);

	rig_start(r, &scripted);
	r->gpu.task[lc].is.active = false;
	rig_step(r);
	assert_int_equal(gp_engine_hint(r->engine, r->now_ns, lc + 1u, 3 * MS), 0);
	rig_step(r);
	assert_true(gp_engine_next_ns(r->engine) <= r->now_ns + 3 * MS);
	rig_tick(r, 3 * MS);
	assert_true(gp_seen_idle(view_of(r, lc)));
	assert_int_equal(gp_engine_hint(r->engine, r->now_ns, 77, 3 * MS), -ESRCH);
}

RIG_TEST(a_request_mark_of_an_unknown_task_is_refused)
{
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_start(r, &scripted);
	assert_int_equal(gp_engine_mark(r->engine, r->now_ns, 7, true), -ESRCH);
}

static int load_prompt(struct rig *r)
{
	static const struct gp_policy_ops prompt = {.name = "prompt",
						    .needs_one =
							    GP_CAP_ACTIVITY | GP_CAP_REQUEST_MARKS,
						    .decide = script_decide};
	struct gp_policy_choice choice = {.ops = &prompt};
	struct gp_error err = {0};
	int code = gp_engine_set_policy(r->engine, r->now_ns, &choice, &err);

	assert_int_equal(!!code, !!strstr(err.text, "policy prompt must know when a request"));
	return code;
}

RIG_TEST(samples_are_not_enough_for_a_policy_that_must_know_when_a_request_begins)
{
	rig_start(r, &scripted);
	assert_int_equal(load_prompt(r), 0);
	r->gpu.base.info.sample_period_ns = 100 * MS;
	assert_int_equal(load_prompt(r), -ENOTSUP);
	r->gpu.base.info.caps |= GP_CAP_EVENTS; /* but they are signalled */
	assert_int_equal(load_prompt(r), 0);
	r->gpu.base.info.caps = FAKE_CAPS;
	r->gpu.base.info.sample_period_ns = 1 * MS; /* or are recent enough, as on AMD */
	assert_int_equal(load_prompt(r), 0);
	r->gpu.base.info.sample_period_ns = 100 * MS;
	gp_engine_free(r->engine);
	r->config.request_marks = true;
	rig_start(r, &scripted);
	assert_int_equal(load_prompt(r), 0);
	assert_true(gp_engine_view(r->engine)->caps & GP_CAP_REQUEST_MARKS);
}

RIG_TEST(a_refusal_is_told_once_and_stands_in_the_statistics)
{
	struct gp_task_stats stats;

	rig_add(r, GP_LATENCY_CRITICAL);
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_start(r, &scripted);
	script.want[2].refused = true;
	rig_step(r);
	rig_step(r);
	assert_int_equal(r->events[GP_EVENT_REFUSED], 1);
	assert_int_equal(r->last[GP_EVENT_REFUSED].task, 2);
	gp_engine_task_stats(r->engine, 1, &stats);
	assert_true(stats.refused);
	gp_engine_task_stats(r->engine, 0, &stats);
	assert_false(stats.refused);
	script.want[2].refused = false;
	rig_step(r);
	assert_int_equal(r->events[GP_EVENT_ADMITTED], 1);
}

RIG_TEST(what_an_action_costs_and_how_late_changes_are_seen_stands_in_the_view)
{
	r->gpu.base.info.hold_cost_ns = 3;
	r->gpu.base.info.release_cost_ns = 5;
	r->gpu.base.info.switch_cost_ns = 7;
	r->gpu.base.info.notice_ns = 9;
	rig_start(r, &scripted);
	assert_int_equal(gp_engine_view(r->engine)->hold_cost_ns, 3);
	assert_int_equal(gp_engine_view(r->engine)->release_cost_ns, 5);
	assert_int_equal(gp_engine_view(r->engine)->switch_cost_ns, 7);
	assert_int_equal(gp_engine_view(r->engine)->notice_ns, 9);
}

RIG_TEST(a_request_that_overran_is_counted_once)
{
	struct gp_task_stats stats;

	rig_add(r, GP_LATENCY_CRITICAL);
	rig_start(r, &scripted);
	for (int request = 1; request <= 2; request++) {
		script.want[1].overran = true;
		rig_step(r);
		rig_step(r);
		script.want[1].overran = false;
		rig_step(r);
		gp_engine_task_stats(r->engine, 0, &stats);
		assert_int_equal(stats.overruns, request);
	}
}
