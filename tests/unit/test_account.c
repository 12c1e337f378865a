/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's accounting: waits that have ended, how late work is noticed, how the device's time
 * was used, and the last known state of a task. Unknown is never 0.
 */
#include "fake_gpu.h"

/* A device that shows which task runs: one task that is busy and on the hardware. */
static void start_one(struct rig *r, enum gp_class class)
{
	rig_add(r, class);
	r->gpu.base.info.caps &= ~(uint32_t)GP_CAP_SLICE;
	rig_start(r, &scripted);
}

static int set_up_one(void **state)
{
	rig_set_up(state);
	start_one(*state, GP_BEST_EFFORT);
	return 0;
}

#define ONE_TASK_TEST(function) RIG_TEST_WITH(function, set_up_one)

RIG_TEST(a_wait_is_recorded_when_it_ends)
{
	start_one(r, GP_LATENCY_CRITICAL);
	rig_is(r, 0)->running = false;
	rig_tick(r, 30 * MS);
	rig_tick(r, 10 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.count, 0); /* it stands */
	assert_int_equal(rig_task(r, 0).waits, 0);
	assert_int_equal(rig_task(r, 0).waited_ns, 40 * MS);
	rig_is(r, 0)->running = true;
	rig_tick(r, 10 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.count, 1);
	assert_int_equal(rig_stats(r)->wait_ns.max, 50 * MS);
	assert_int_equal(rig_stats(r)->class_waits[GP_LATENCY_CRITICAL].count, 1);
	assert_int_equal(rig_stats(r)->class_waits[GP_LATENCY_CRITICAL].max_ns, 50 * MS);
	assert_int_equal(rig_stats(r)->class_waits[GP_BEST_EFFORT].count, 0);
	rig_tick(r, 10 * MS); /* and only once */
	assert_int_equal(rig_stats(r)->wait_ns.count, 1);
}

ONE_TASK_TEST(a_task_that_has_the_device_whenever_it_is_seen_never_waits)
{
	for (unsigned i = 0; i < 20; i++) {
		rig_is(r, 0)->active = rig_is(r, 0)->running = i % 2;
		rig_tick(r, 1 * MS);
	}
	assert_int_equal(rig_stats(r)->wait_ns.count, 0);
}

ONE_TASK_TEST(the_percentiles_of_a_tasks_waits_are_its_own)
{
	struct gp_task_stats s;

	rig_add(r, GP_BEST_EFFORT); /* always on the hardware */
	for (unsigned i = 0; i < 100; i++) {
		rig_is(r, 0)->running = false;
		rig_tick(r, i < 98 ? 4 * MS : 200 * MS);
		rig_is(r, 0)->running = true;
		rig_tick(r, 1 * MS);
	}
	s = rig_task(r, 0);
	assert_int_equal(s.waits, 100);
	assert_in_range(s.wait_p50_ns, 5 * MS * 7 / 8, 5 * MS * 9 / 8);
	assert_in_range(s.wait_p99_ns, 201 * MS * 7 / 8, 201 * MS * 9 / 8);
	assert_int_equal(s.wait_max_ns, 201 * MS);
	assert_int_equal(s.wait_sum_ns, 892 * MS); /* 98 of 5, 2 of 201 */
	s = rig_task(r, 1);
	assert_int_equal(s.waits, 0);
	assert_int_equal(s.wait_p50_ns, 0);
}

ONE_TASK_TEST(a_tasks_waits_stay_with_it_when_others_leave)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_tick(r, 100 * MS);
	rig_is(r, 1)->running = false;
	rig_tick(r, 7 * MS);
	rig_is(r, 1)->running = true;
	rig_tick(r, 1 * MS);
	assert_int_equal(rig_task(r, 1).waits, 1);
	r->gpu.task[0].present = false;
	rig_add(r, GP_BEST_EFFORT);
	rig_tick(r, 100 * MS);
	assert_int_equal(gp_engine_tasks(r->engine), 2);
	assert_int_equal(rig_task(r, 0).id, 2);
	assert_int_equal(rig_task(r, 0).waits, 1);
	assert_int_equal(rig_task(r, 0).wait_p50_ns, 8 * MS); /* the only one: exactly */
	assert_int_equal(rig_task(r, 0).wait_max_ns, 8 * MS);
	assert_int_equal(rig_task(r, 1).waits, 0); /* a newcomer inherits nothing */
}

ONE_TASK_TEST(a_wait_that_a_users_hold_cuts_short_is_not_recorded)
{
	rig_is(r, 0)->running = false;
	rig_tick(r, 30 * MS);
	assert_int_equal(gp_engine_user_hold(r->engine, 1), 0);
	rig_tick(r, 1 * MS);
	rig_tick(r, 5 * S);
	assert_int_equal(gp_engine_user_release(r->engine, 1), 0);
	rig_tick(r, 1 * MS);
	rig_is(r, 0)->running = true;
	rig_tick(r, 2 * MS);
	assert_true(rig_stats(r)->wait_ns.max <= 4 * MS); /* what it waited after that */
}

ONE_TASK_TEST(a_wait_of_which_nothing_is_known_any_more_is_not_recorded)
{
	rig_is(r, 0)->running = false;
	rig_tick(r, 30 * MS);
	rig_is(r, 0)->known = 0;
	rig_tick(r, 30 * MS);
	rig_is(r, 0)->known = GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING;
	rig_is(r, 0)->running = true;
	rig_tick(r, 30 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.count, 0);
}

/* As on AMD: what a task does is seen, not whether it is on the hardware. */
RIG_TEST(a_held_task_has_waited_until_it_is_released)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known = GP_KNOWN_HELD | GP_KNOWN_ACTIVE;
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	rig_tick(r, 1 * MS); /* it is seen to be held */
	rig_tick(r, 40 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.count, 0);
	want(1, GP_RUN, 0);
	rig_step(r);
	rig_tick(r, 1 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.count, 1);
	assert_in_range(rig_stats(r)->wait_ns.max, 40 * MS, 42 * MS);
}

RIG_TEST(a_task_that_is_held_and_wants_nothing_does_not_wait)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known = GP_KNOWN_HELD | GP_KNOWN_ACTIVE;
	rig_is(r, 0)->active = false;
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	rig_tick(r, 1 * MS);
	rig_tick(r, 40 * MS);
	want(1, GP_RUN, 0);
	rig_step(r);
	rig_tick(r, 1 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.count, 0);
}

/* As on NVIDIA: run times as samples, and no more. Doing nothing may be wanting nothing. */
RIG_TEST(a_task_not_seen_to_want_the_device_does_not_wait)
{
	struct gp_observation *is;

	rig_add(r, GP_BEST_EFFORT);
	is = rig_is(r, 0);
	is->known = GP_KNOWN_RUN;
	is->run_source = GP_RUN_MEASURED;
	rig_start(r, &scripted);
	rig_tick(r, 50 * MS);
	is->run_ns += 1 * MS;
	rig_tick(r, 50 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.count, 0);
	is->known |= GP_KNOWN_ACTIVE; /* it is, and gets nothing */
	rig_tick(r, 50 * MS);
	is->run_ns += 1 * MS;
	rig_tick(r, 50 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.count, 1);
}

ONE_TASK_TEST(a_wait_ends_when_the_task_came_on_where_that_is_told)
{
	rig_is(r, 0)->running = false;
	rig_tick(r, 10 * MS);
	rig_is(r, 0)->running = true;
	rig_is(r, 0)->on_at_ns = r->now_ns + 3 * MS;
	rig_tick(r, 10 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.max, 13 * MS);
}

ONE_TASK_TEST(what_a_task_has_run_it_has_not_waited)
{
	struct gp_observation *is = rig_is(r, 0);

	is->known |= GP_KNOWN_RUN;
	is->run_source = GP_RUN_MEASURED;
	rig_tick(r, 1 * MS);
	is->running = false;
	rig_tick(r, 10 * MS);
	is->active = false; /* done: it ran 4 of these 10 ms */
	is->run_ns += 4 * MS;
	rig_tick(r, 10 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.count, 1);
	assert_int_equal(rig_stats(r)->wait_ns.max, 16 * MS);
}

ONE_TASK_TEST(a_wait_begins_when_the_task_became_active_where_that_is_told)
{
	struct gp_observation *is = rig_is(r, 0);

	is->active = is->running = false;
	rig_tick(r, 10 * MS);
	is->known |= GP_KNOWN_ACTIVE_SINCE;
	is->active = true;
	is->active_since_ns = r->now_ns + 8 * MS;
	rig_tick(r, 10 * MS);
	is->running = true;
	rig_tick(r, 1 * MS);
	assert_int_equal(rig_stats(r)->wait_ns.max, 3 * MS);
}

ONE_TASK_TEST(noticing_work_is_timed_from_its_start_and_once)
{
	struct gp_observation *is = rig_is(r, 0);

	assert_int_equal(rig_stats(r)->detect_ns.count, 0); /* no start is told */
	is->known |= GP_KNOWN_ACTIVE_SINCE;
	is->active_since_ns = r->now_ns + 2 * MS;
	rig_tick(r, 5 * MS);
	rig_tick(r, 5 * MS);
	assert_int_equal(rig_stats(r)->detect_ns.count, 1);
	assert_int_equal(rig_stats(r)->detect_ns.max, 3 * MS);
	is->active_since_ns = r->now_ns + 1 * MS; /* the next burst */
	rig_tick(r, 2 * MS);
	assert_int_equal(rig_stats(r)->detect_ns.count, 2);
	assert_int_equal(rig_stats(r)->detect_ns.min, 1 * MS);
}

RIG_TEST(work_older_than_the_task_says_nothing_of_noticing_it)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known |= GP_KNOWN_ACTIVE_SINCE;
	rig_is(r, 0)->active_since_ns = 17; /* long before the first tick */
	rig_start(r, &scripted);
	rig_tick(r, 5 * MS);
	assert_int_equal(rig_stats(r)->detect_ns.count, 0);
	rig_is(r, 0)->active_since_ns = r->now_ns + 1 * S; /* nor does the future */
	rig_tick(r, 5 * MS);
	assert_int_equal(rig_stats(r)->detect_ns.count, 0);
}

ONE_TASK_TEST(a_bracket_is_noticed_at_the_look_it_asks_for)
{
	r->now_ns += 1 * MS;
	assert_int_equal(gp_engine_mark(r->engine, r->now_ns, 1, true), 0);
	rig_tick(r, 40 * GP_NS_PER_US);
	assert_int_equal(rig_stats(r)->detect_ns.count, 1);
	assert_int_equal(rig_stats(r)->detect_ns.max, 40 * GP_NS_PER_US);
}

ONE_TASK_TEST(busy_time_is_what_its_tasks_are_measured_to_have_run)
{
	rig_add(r, GP_UNMANAGED);
	rig_is(r, 1)->known |= GP_KNOWN_RUN;
	rig_is(r, 1)->run_source = GP_RUN_GRANTED;
	rig_is(r, 1)->run_ns = 500 * MS;
	rig_tick(r, 100 * MS);
	assert_false(rig_stats(r)->busy_seen); /* what was granted may not have been used */
	rig_is(r, 0)->known |= GP_KNOWN_RUN;
	rig_is(r, 0)->run_source = GP_RUN_MEASURED;
	rig_is(r, 0)->run_ns = 30 * MS;
	rig_tick(r, 100 * MS);
	rig_is(r, 0)->run_ns += 5 * MS;
	rig_is(r, 1)->run_ns += 50 * MS;
	rig_tick(r, 100 * MS);
	rig_tick(r, 100 * MS);
	assert_true(rig_stats(r)->busy_seen);
	assert_int_equal(rig_stats(r)->busy_ns, 35 * MS);
}

ONE_TASK_TEST(idle_time_is_when_no_task_had_work_less_what_ran)
{
	rig_tick(r, 10 * MS);
	assert_true(rig_stats(r)->idle_seen);
	assert_int_equal(rig_stats(r)->idle_ns, 0);
	rig_is(r, 0)->active = rig_is(r, 0)->running = false;
	rig_tick(r, 10 * MS); /* when it fell idle is not known */
	assert_int_equal(rig_stats(r)->idle_ns, 0);
	rig_tick(r, 10 * MS);
	assert_int_equal(rig_stats(r)->idle_ns, 10 * MS);
	rig_is(r, 0)->known |= GP_KNOWN_RUN;
	rig_is(r, 0)->run_source = GP_RUN_MEASURED;
	rig_is(r, 0)->run_ns = 3 * MS; /* a burst between two looks */
	rig_tick(r, 10 * MS);
	assert_int_equal(rig_stats(r)->idle_ns, 17 * MS);
	r->gpu.task[0].present = false; /* no task is left, so no task has work */
	rig_tick(r, 100 * MS);
	rig_tick(r, 100 * MS);
	assert_int_equal(rig_stats(r)->idle_ns, 217 * MS);
}

RIG_TEST(an_empty_device_that_shows_activity_is_idle)
{
	rig_start(r, &scripted);
	rig_tick(r, 10 * MS);
	assert_true(rig_stats(r)->idle_seen);
	assert_int_equal(rig_stats(r)->idle_ns, 10 * MS);
}

RIG_TEST(idle_time_is_unknown_while_one_tasks_activity_is)
{
	r->gpu.base.info.caps &= ~(uint32_t)GP_CAP_ACTIVITY;
	rig_start(r, &scripted);
	assert_false(rig_stats(r)->idle_seen); /* no task reports activity */
	rig_add_many(r, 2);
	rig_is(r, 0)->active = false;
	rig_is(r, 1)->known = GP_KNOWN_HELD;
	gp_engine_trigger(r->engine, true);
	rig_step(r);
	rig_tick(r, 10 * MS);
	rig_tick(r, 10 * MS);
	assert_false(rig_stats(r)->idle_seen);
	assert_int_equal(rig_stats(r)->idle_ns, 0);
}

ONE_TASK_TEST(a_blind_look_is_not_an_idle_device)
{
	rig_is(r, 0)->active = false;
	r->gpu.observe_fails = -EIO;
	rig_tick(r, 10 * MS);
	rig_tick(r, 10 * MS);
	assert_int_equal(rig_stats(r)->idle_ns, 0);
}

ONE_TASK_TEST(switches_are_those_that_the_back_end_tells_of)
{
	r->gpu.base.info.switch_cost_ns = 100 * GP_NS_PER_US;
	rig_tick(r, 10 * MS);
	assert_false(rig_stats(r)->switches_seen);
	rig_is(r, 0)->scheduled = 5;
	rig_tick(r, 10 * MS);
	rig_is(r, 0)->scheduled = 7;
	rig_tick(r, 10 * MS);
	assert_true(rig_stats(r)->switches_seen);
	assert_int_equal(rig_stats(r)->switches, 7);
	assert_int_equal(rig_stats(r)->switch_ns, 700 * GP_NS_PER_US);
}

RIG_TEST(how_long_the_policy_starves_somebody_is_told)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->running = false;
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	rig_run(r, 3 * S);
	assert_in_range(rig_stats(r)->starved_ns, 1900 * MS, 3000 * MS);
	want(1, GP_RUN, 0);
	rig_run(r, 3 * S);
	assert_int_equal(rig_stats(r)->starved_ns, 0);
}

/* What is last known of a task. */

RIG_TEST(a_task_is_described_as_the_last_scan_found_it)
{
	struct gp_task_stats s;

	rig_add(r, GP_BEST_EFFORT);
	r->gpu.task[0].seen.start_time = 4711;
	r->gpu.task[0].seen.memory = 1 << 20;
	strcpy(r->gpu.task[0].seen.name, "bash");
	rig_start(r, &scripted);
	s = rig_task(r, 0);
	assert_int_equal(s.start_time, 4711);
	assert_int_equal(s.memory, 1 << 20);
	r->gpu.task[0].seen.memory = 3 << 20;
	strcpy(r->gpu.task[0].seen.name, "train"); /* after an exec */
	rig_run(r, 1 * S);
	s = rig_task(r, 0);
	assert_int_equal(s.id, 1);
	assert_int_equal(s.memory, 3 << 20);
	assert_string_equal(s.name, "train");
}

ONE_TASK_TEST(activity_is_told_only_where_it_is_known)
{
	struct gp_task_stats s = rig_task(r, 0);

	assert_int_equal(s.known, GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING);
	assert_true(s.active && s.running);
	rig_is(r, 0)->known = GP_KNOWN_HELD | GP_KNOWN_ACTIVE;
	rig_tick(r, 1 * MS);
	s = rig_task(r, 0);
	assert_int_equal(s.known, GP_KNOWN_ACTIVE);
	assert_true(s.active);
	assert_false(s.running);
	rig_is(r, 0)->known = GP_KNOWN_HELD;
	rig_tick(r, 1 * MS);
	s = rig_task(r, 0);
	assert_int_equal(s.known, 0);
	assert_false(s.active);
}
