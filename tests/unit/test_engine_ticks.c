/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When ticks are due, and what they observe and count: polling, scans, triggers, views with unknown
 * fields, waiting, statistics and events.
 */
#include "fake_gpu.h"

#include <malloc.h>

static uint64_t wait_of(struct rig *r)
{
	return rig_step(r) - r->now_ns;
}

/* The next scan is far away. */
static int set_up_without_scans(void **state)
{
	struct rig *r = rig_new();

	r->config.scan_every_ns = 3600 * S;
	*state = r;
	return 0;
}

#define UNSCANNED_TEST(function) RIG_TEST_WITH(function, set_up_without_scans)

UNSCANNED_TEST(it_polls_every_5_ms_where_nothing_announces_changes)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_UNMANAGED);
	rig_start(r, &watching);
	assert_int_equal(wait_of(r), 5 * MS);
	rig_set_policy(r, &scripted); /* does not watch */
	assert_int_equal(wait_of(r), 1 * S);
	rig_set_policy(r, &watching);
	r->gpu.base.info.caps |= GP_CAP_EVENTS;
	assert_int_equal(wait_of(r), 1 * S);
}

UNSCANNED_TEST(it_does_not_poll_where_there_is_nothing_to_share)
{
	struct gp_task_attr a = {.class = GP_BEST_EFFORT, .weight = 100};

	rig_start(r, &watching);
	assert_int_equal(wait_of(r), 1 * S);
	rig_add(r, GP_UNMANAGED);
	rig_add(r, GP_UNMANAGED);
	gp_engine_trigger(r->engine, true);
	assert_int_equal(wait_of(r), 1 * S);
	gp_engine_set_attr(r->engine, 1, &a);
	assert_int_equal(wait_of(r), 5 * MS);
	r->gpu.task[1].present = false;
	gp_engine_trigger(r->engine, true);
	assert_int_equal(wait_of(r), 1 * S);
}

UNSCANNED_TEST(rr_does_not_poll_where_the_hardware_takes_turns)
{
	rig_add_many(r, 2);
	rig_start(r, &gp_policy_rr);
	rig_run(r, 50 * MS);
	assert_int_equal(wait_of(r), 1 * S);
}

UNSCANNED_TEST(it_polls_every_millisecond_with_a_latency_critical_task)
{
	struct gp_task_attr a = {.class = GP_LATENCY_CRITICAL, .weight = 100};

	rig_add_many(r, 3);
	rig_start(r, &watching);
	gp_engine_set_attr(r->engine, 2, &a);
	assert_int_equal(wait_of(r), 1 * MS);
	r->gpu.task[1].present = false;
	gp_engine_trigger(r->engine, true);
	assert_int_equal(wait_of(r), 5 * MS);
}

UNSCANNED_TEST(it_never_polls_more_often_than_there_is_news)
{
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.sample_period_ns = 167 * MS;
	rig_start(r, &watching);
	assert_int_equal(wait_of(r), 167 * MS);
	script.next_ns = r->now_ns + 3 * MS; /* the policy itself may ask for more */
	assert_int_equal(wait_of(r), 3 * MS);
}

UNSCANNED_TEST(the_intervals_can_be_set)
{
	rig_add_many(r, 2);
	r->config.check_ns = 7 * MS;
	r->config.check_lc_ns = 2 * MS;
	r->config.check_quiet_ns = 3 * S;
	rig_start(r, &watching);
	assert_int_equal(wait_of(r), 7 * MS);
	rig_set_policy(r, &scripted);
	assert_int_equal(wait_of(r), 3 * S);
	rig_add(r, GP_LATENCY_CRITICAL);
	gp_engine_trigger(r->engine, true);
	rig_set_policy(r, &watching);
	assert_int_equal(wait_of(r), 2 * MS);
}

UNSCANNED_TEST(the_plan_can_ask_for_an_earlier_look_but_not_for_a_later_one)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &scripted);
	script.next_ns = r->now_ns + 1;
	assert_int_equal(wait_of(r), 1);
	script.next_ns = r->now_ns + 12345;
	assert_int_equal(wait_of(r), 12345);
	script.next_ns = r->now_ns + 2 * S;
	assert_int_equal(wait_of(r), 1 * S);
	script.next_ns = GP_NEVER;
	assert_int_equal(wait_of(r), 1 * S);
}

UNSCANNED_TEST(an_action_on_its_way_is_looked_at_soon)
{
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 2500000};
	RIG_START(r, &scripted, HOLD);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gp_engine_next_ns(r->engine), r->now_ns + 1 * MS);
		rig_tick(r, 1 * MS);
	}
	assert_true(rig_task(r, 0).held);
	assert_int_equal(gp_engine_next_ns(r->engine), r->now_ns + 1 * S);
}

RIG_TEST(a_trigger_wants_a_look_at_once)
{
	unsigned scans;

	rig_make(r);
	assert_int_equal(gp_engine_next_ns(r->engine), 0); /* nothing was seen yet */
	rig_step(r);
	scans = r->gpu.scans;
	gp_engine_trigger(r->engine, false);
	assert_int_equal(gp_engine_next_ns(r->engine), 0);
	rig_step(r);
	assert_int_equal(r->gpu.scans, scans);
	gp_engine_trigger(r->engine, true);
	assert_int_equal(gp_engine_next_ns(r->engine), 0);
	gp_engine_trigger(r->engine, false); /* does not take the wish for a scan back */
	rig_step(r);
	assert_int_equal(r->gpu.scans, scans + 1);
}

RIG_TEST(it_scans_every_100_ms)
{
	uint64_t begin_ns = r->now_ns;

	rig_start(r, &scripted);
	assert_int_equal(r->gpu.scans, 1);
	assert_int_equal(gp_engine_next_ns(r->engine), begin_ns + 100 * MS);
	rig_run(r, 99 * MS);
	assert_int_equal(r->gpu.scans, 1);
	rig_run(r, 901 * MS);
	assert_int_equal(r->gpu.scans, 11);
	rig_set_policy(r, &watching); /* more ticks are not more scans */
	rig_run(r, 1 * S);
	assert_int_equal(r->gpu.scans, 21);
}

RIG_TEST(a_scan_that_fails_changes_nothing)
{
	RIG_START(r, &scripted, HOLD);
	r->gpu.scan_fails = -EIO;
	rig_add(r, GP_BEST_EFFORT);
	rig_run(r, 1 * S);
	assert_int_equal(gp_engine_tasks(r->engine), 1);
	assert_int_equal(rig_task(r, 0).id, 1);
	assert_true(rig_is(r, 0)->held);
	assert_in_range(r->gpu.scans, 10, 12);
	r->gpu.scan_fails = 0;
	rig_run(r, 100 * MS);
	assert_int_equal(gp_engine_tasks(r->engine), 2);
}

RIG_TEST(what_is_not_known_is_not_in_the_view)
{
	const struct gp_task_view *v;

	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known = GP_KNOWN_WAITED | GP_KNOWN_PENDING; /* WAITED is the engine's own */
	rig_is(r, 0)->pending = 3;
	rig_start(r, &scripted);
	v = gp_engine_view(r->engine)->task;
	assert_int_equal(v->known, GP_KNOWN_PENDING);
	assert_int_equal(v->pending, 3);
	assert_false(rig_task(r, 0).waited_known);
	assert_int_equal(rig_task(r, 0).run_source, GP_RUN_UNKNOWN);
	rig_is(r, 0)->known = GP_KNOWN_RUN | GP_KNOWN_ACTIVE_SINCE;
	rig_is(r, 0)->run_source = GP_RUN_MEASURED;
	rig_is(r, 0)->run_ns = 123;
	rig_is(r, 0)->active_since_ns = 456;
	rig_step(r);
	assert_int_equal(v->known, GP_KNOWN_RUN | GP_KNOWN_ACTIVE_SINCE | GP_KNOWN_WAITED);
	assert_int_equal(v->run_ns, 123);
	assert_int_equal(v->active_since_ns, 456);
	assert_int_equal(rig_task(r, 0).run_ns, 123);
	assert_int_equal(rig_task(r, 0).run_source, GP_RUN_MEASURED);
}

RIG_TEST(the_view_carries_the_devices_properties)
{
	const struct gp_view *v;

	r->gpu.base.info = (struct gp_gpu_info){.caps = GP_CAP_HOLD | GP_CAP_REQUEST_MARKS,
						.max_held = 3,
						.slice_default_us = 11,
						.slice_min_us = 12,
						.slice_max_us = 13,
						.switch_cost_ns = 14,
						.hold_cost_ns = 17,
						.release_cost_ns = 18,
						.sample_period_ns = 15};
	r->config.starve_limit_ns = 16;
	rig_start(r, &scripted);
	v = gp_engine_view(r->engine);
	assert_int_equal(v->now_ns, r->now_ns);
	assert_int_equal(v->caps, GP_CAP_HOLD | GP_CAP_REQUEST_MARKS);
	assert_int_equal(v->max_held, 3);
	assert_int_equal(v->slice_default_us, 11);
	assert_int_equal(v->slice_min_us, 12);
	assert_int_equal(v->slice_max_us, 13);
	assert_int_equal(v->switch_cost_ns, 14);
	assert_int_equal(v->hold_cost_ns, 17);
	assert_int_equal(v->release_cost_ns, 18);
	assert_int_equal(v->sample_period_ns, 15);
	assert_int_equal(v->starve_limit_ns, 16);
	assert_int_equal(v->n, 0);
}

static uint64_t waited(const struct rig *r, unsigned i)
{
	const struct gp_task_view *v = &gp_engine_view(r->engine)->task[i];

	assert_true(v->known & GP_KNOWN_WAITED);
	return v->waited_ns;
}

RIG_TEST(waiting_is_counted_while_a_busy_task_is_seen_off_the_hardware)
{
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.caps &= ~(uint32_t)GP_CAP_SLICE;
	rig_start(r, &scripted);
	rig_run(r, 50 * MS);
	rig_step(r);
	assert_int_equal(waited(r, 0), 0);
	rig_is(r, 0)->running = false;
	rig_tick(r, 30 * MS);
	assert_int_equal(waited(r, 0), 30 * MS);
	rig_is(r, 0)->active = false; /* wants nothing any more */
	rig_tick(r, 30 * MS);
	rig_is(r, 0)->active = true;
	rig_tick(r, 20 * MS);
	assert_int_equal(waited(r, 0), 20 * MS);
	rig_is(r, 0)->known = 0; /* nothing is known: neither is this */
	rig_tick(r, 10 * MS);
	assert_false(gp_engine_view(r->engine)->task[0].known & GP_KNOWN_WAITED);
	assert_false(rig_task(r, 0).waited_known);
	assert_int_equal(rig_task(r, 0).waited_max_ns, 30 * MS);
	rig_is(r, 0)->known = GP_KNOWN_RUNNING; /* off the hardware, and perhaps idle */
	rig_tick(r, 10 * MS);
	assert_false(gp_engine_view(r->engine)->task[0].known & GP_KNOWN_WAITED);
	rig_is(r, 0)->known = GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING; /* counting starts again */
	rig_tick(r, 5 * MS);
	assert_int_equal(waited(r, 0), 5 * MS);
}

RIG_TEST(being_off_the_hardware_says_nothing_where_it_takes_turns_by_itself)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &scripted);
	rig_is(r, 0)->running = false;
	rig_tick(r, 30 * MS);
	assert_false(gp_engine_view(r->engine)->task[0].known & GP_KNOWN_WAITED);
}

RIG_TEST(what_a_user_held_is_not_waited)
{
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.caps &= ~(uint32_t)GP_CAP_SLICE;
	rig_is(r, 0)->running = false;
	rig_start(r, &watching);
	gp_engine_user_hold(r->engine, 1);
	rig_run(r, 20 * S);
	gp_engine_user_release(r->engine, 1);
	rig_run(r, 5 * S);
	assert_false(rig_is(r, 0)->held);
	assert_in_range(waited(r, 0), 4990 * MS, 5000 * MS);
	assert_null(gp_engine_ejection(r->engine));
}

RIG_TEST(waiting_is_counted_up_to_the_last_sample_of_the_run_time)
{
	struct gp_observation *is;

	rig_add(r, GP_BEST_EFFORT);
	is = rig_is(r, 0);
	is->known = GP_KNOWN_RUN;
	is->run_source = GP_RUN_MEASURED;
	is->run_ns = 5;
	is->run_at_ns = r->now_ns;
	rig_start(r, &scripted);
	is->run_at_ns = r->now_ns + 40 * MS; /* the sample says it got nothing */
	rig_tick(r, 60 * MS);
	assert_int_equal(waited(r, 0), 40 * MS);
	is->run_ns +=
		1 * GP_NS_PER_US; /* a crumb counts: whether it was enough, the policy knows */
	is->run_at_ns = r->now_ns + 10 * MS;
	rig_tick(r, 15 * MS);
	assert_int_equal(waited(r, 0), 0);
	/* A fiftieth of the time, in small parts, is progress. */
	is->run_at_ns = r->now_ns;
	for (int i = 0; i < 10; i++) {
		is->run_ns += 20 * GP_NS_PER_US;
		is->run_at_ns += 1 * MS;
		rig_tick(r, 1 * MS);
	}
	assert_int_equal(waited(r, 0), 0);
	is->known |= GP_KNOWN_ACTIVE; /* doing nothing is not waiting */
	is->active = false;
	is->run_at_ns += 50 * MS;
	rig_tick(r, 50 * MS);
	is->active = true;
	is->run_at_ns += 7 * MS;
	rig_tick(r, 7 * MS);
	assert_int_equal(waited(r, 0), 7 * MS);
}

RIG_TEST(a_held_task_waits_even_if_its_activity_is_not_known)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known = GP_KNOWN_HELD;
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	rig_tick(r, 1 * MS);
	rig_tick(r, 40 * MS);
	assert_in_range(waited(r, 0), 40 * MS, 41 * MS);
	want(1, GP_RUN, 0); /* released, it is taken to have the device */
	rig_step(r);
	rig_step(r);
	assert_false(gp_engine_view(r->engine)->task[0].known & GP_KNOWN_WAITED);
}

RIG_TEST(a_released_task_is_taken_to_have_the_device_unless_it_can_be_seen)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known = GP_KNOWN_HELD | GP_KNOWN_RUN;
	rig_is(r, 0)->run_source = GP_RUN_MEASURED;
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	rig_tick(r, 1 * MS);
	rig_tick(r, 40 * MS);
	assert_in_range(waited(r, 0), 40 * MS, 41 * MS);
	want(1, GP_RUN, 0);
	rig_is(r, 0)->run_at_ns = r->now_ns;
	rig_step(r);
	rig_tick(r, 1 * MS); /* the last sample is from before that: it says nothing */
	assert_false(gp_engine_view(r->engine)->task[0].known & GP_KNOWN_WAITED);
	assert_true(rig_task(r, 0).waited_max_ns < 50 * MS);
	rig_is(r, 0)->run_at_ns = r->now_ns + 2 * MS;
	rig_tick(r, 3 * MS);
	assert_int_equal(waited(r, 0), 2 * MS);
}

RIG_TEST(time_held_and_preemptions_are_counted)
{
	rig_add_many(r, 2);
	rig_is(r, 1)->active = false; /* holding an idle task is no preemption */
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		r->gpu.fault[k].observed = true;
	rig_start(r, &watching);
	for (int i = 0; i < 3; i++) {
		WANT(HOLD, HOLD);
		rig_step(r);
		rig_run(r, 50 * MS);
		WANT(RUN(0), RUN(0));
		rig_step(r);
		rig_run(r, 50 * MS);
	}
	assert_int_equal(rig_task(r, 0).preemptions, 3);
	assert_int_equal(rig_task(r, 1).preemptions, 0);
	assert_int_equal(rig_stats(r)->preemptions, 3);
	assert_int_equal(rig_task(r, 0).held_ns, 150 * MS);
	assert_int_equal(rig_stats(r)->holds, 6);
	assert_int_equal(rig_stats(r)->releases, 6);
	assert_int_equal(rig_stats(r)->slices, 0);
	assert_int_equal(rig_stats(r)->hold_ns.count, 6);
	assert_int_equal(rig_stats(r)->hold_ns.max, 0); /* the back end saw the effect */
	assert_int_equal(rig_stats(r)->release_ns.count, 6);
	assert_int_equal(rig_stats(r)->decide_ns.count, 0); /* there is no clock */
	assert_int_equal(rig_stats(r)->ticks, rig_stats(r)->decisions);
}

RIG_TEST(events_say_what_happened_when_and_to_whom)
{
	uint64_t begin_ns = r->now_ns;

	rig_add_many(r, 2);
	want(2, GP_HOLD, 0);
	rig_start(r, &watching);
	assert_int_equal(r->events[GP_EVENT_POLICY], 1);
	assert_int_equal(r->last[GP_EVENT_POLICY].now_ns, begin_ns);
	assert_int_equal(r->events[GP_EVENT_TASK_IN], 2);
	assert_int_equal(r->last[GP_EVENT_TASK_IN].task, 2);
	assert_int_equal(r->events[GP_EVENT_HELD], 0); /* asked for, not seen yet */
	rig_run(r, 5 * MS);
	assert_int_equal(r->events[GP_EVENT_HELD], 1);
	assert_int_equal(r->last[GP_EVENT_HELD].task, 2);
	assert_int_equal(r->last[GP_EVENT_HELD].now_ns, begin_ns + 1 * MS);
	want(2, GP_RUN, 0);
	rig_run(r, 10 * MS);
	assert_int_equal(r->events[GP_EVENT_RELEASED], 1);
	assert_int_equal(r->last[GP_EVENT_RELEASED].task, 2);
	r->gpu.fault[FAKE_HOLD].status = -EPERM;
	want(1, GP_HOLD, 0);
	gp_engine_trigger(r->engine, false);
	rig_step(r);
	assert_int_equal(r->events[GP_EVENT_ACTION_FAILED], 1);
	assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].task, 1);
	assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].code, -EPERM);
	assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].driver_code, 0xbad);
	assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].now_ns, r->now_ns);
}

RIG_TEST(it_works_with_nobody_interested_in_events)
{
	r->config.on_event = NULL;
	RIG_START(r, &watching, HOLD);
	rig_run(r, 10 * MS);
	assert_true(rig_is(r, 0)->held);
}

RIG_TEST(decisions_are_timed_where_there_is_a_clock)
{
	r->config.decide_clock = &r->decide_clock.base;
	script.clock = &r->decide_clock;
	script.takes_ns = 250;
	rig_start(r, &scripted);
	rig_step(r);
	assert_int_equal(rig_stats(r)->decide_ns.count, 2);
	assert_int_equal(rig_stats(r)->decide_ns.min, 250);
	assert_int_equal(rig_stats(r)->decide_ns.max, 250);
	assert_null(gp_engine_ejection(r->engine));
}
