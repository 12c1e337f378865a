/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine with a back end that fails, delays, loses, lies or is blind: what is wanted is there
 * soon after it recovers, failures are repeated with backoff and counted, and two best-effort tasks
 * never run with tiny slices in the meantime.
 */
#include "fake_gpu.h"

#include "engine/engine_state.h"

/* Longest backoff, the time after which an action counts as lost, and a little. */
#define RECOVERY_NS (1 * S + 20 * MS + 10 * MS)

TEST(retries_back_off_from_1_ms_to_1_s_and_are_counted)
{
	for (enum fake_kind kind = 0; kind < FAKE_KINDS; kind++) {
		struct rig *r = rig_new();
		uint64_t backoff_ns = 1 * MS;

		rig_add(r, GP_BEST_EFFORT);
		rig_is(r, 0)->held = kind == FAKE_RELEASE;
		want(1, kind == FAKE_HOLD ? GP_HOLD : GP_RUN, kind == FAKE_SLICE ? 500 : 0);
		r->gpu.fault[kind].status = -EBUSY;
		rig_start(r, &scripted); /* does not watch: ticks only when a retry is due */
		rig_run(r, 10 * S);
		assert_in_range(r->gpu.nasked, 18, 20);
		for (unsigned i = 1; i < r->gpu.nasked; i++) {
			assert_int_equal(r->gpu.asked[i].now_ns - r->gpu.asked[i - 1].now_ns,
					 backoff_ns);
			backoff_ns = backoff_ns * 2 > 1 * S ? 1 * S : backoff_ns * 2;
		}
		assert_int_equal(rig_stats(r)->failures, r->gpu.nasked);
		assert_int_equal(rig_task(r, 0).failures, r->gpu.nasked);
		assert_int_equal(r->events[GP_EVENT_ACTION_FAILED], r->gpu.nasked);

		/* Success is remembered no longer than failure: the next one starts at 1 ms. */
		r->gpu.fault[kind].status = 0;
		rig_run(r, 1100 * MS);
		r->gpu.fault[kind].status = -EBUSY;
		r->gpu.nasked = 0;
		rig_is(r, 0)->held = kind == FAKE_RELEASE;
		rig_is(r, 0)->slice_us = 0;
		rig_run(r, 200 * MS);
		assert_int_equal(r->gpu.asked[1].now_ns - r->gpu.asked[0].now_ns, 1 * MS);
		assert_int_equal(r->gpu.asked[2].now_ns - r->gpu.asked[1].now_ns, 2 * MS);
		rig_free(r);
	}
}

/* The driver has confirmed a hold; the back end has not seen yet that the task stands still. */
RIG_TEST(an_unproven_hold_counts_when_it_is_proven)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->unproven = true;
	want(1, GP_HOLD, 0);
	r->gpu.fault[FAKE_HOLD].asks_to_wait = true;
	rig_start(r, &scripted);
	rig_run(r, 5 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_stats(r)->holds, 0);
	assert_int_equal(rig_task(r, 0).preemptions, 0);
	assert_int_equal(rig_task(r, 0).held_ns, 0);
	assert_int_equal(r->events[GP_EVENT_HELD], 0);
	assert_false(rig_task(r, 0).settled);

	rig_is(r, 0)->unproven = false;
	gp_engine_trigger(r->engine, false);
	rig_run(r, 5 * MS);
	assert_int_equal(rig_stats(r)->holds, 1);
	assert_int_equal(rig_task(r, 0).preemptions, 1);
	assert_in_range(rig_task(r, 0).held_ns, 1, 11 * MS);
	assert_int_equal(r->events[GP_EVENT_HELD], 1);
	assert_true(rig_task(r, 0).settled);
}

RIG_TEST(a_disproved_hold_is_a_failure_and_is_requested_again)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->unproven = true;
	want(1, GP_HOLD, 0);
	r->gpu.fault[FAKE_HOLD].asks_to_wait = true;
	rig_start(r, &scripted);
	rig_run(r, 5 * MS);
	rig_is(r, 0)->unproven = false;
	rig_is(r, 0)->unsure = true;
	rig_is(r, 0)->failed = -EREMOTEIO;
	gp_engine_trigger(r->engine, false);
	rig_run(r, 50 * MS);
	assert_int_equal(rig_stats(r)->holds, 0);
	assert_int_equal(rig_task(r, 0).preemptions, 0);
	assert_int_equal(rig_task(r, 0).held_ns, 0);
	assert_int_equal(r->events[GP_EVENT_HELD], 0);
	assert_true(rig_task(r, 0).failures >= 1);
	assert_true(r->events[GP_EVENT_ACTION_FAILED] >= 1);
	assert_true(fake_count(&r->gpu, FAKE_HOLD, 0, 1) >= 1);
	assert_false(rig_task(r, 0).held);

	/* Until a hold is proven, one that ends without a proof does not count. */
	rig_is(r, 0)->unsure = false;
	rig_is(r, 0)->unproven = true;
	rig_is(r, 0)->failed = 0;
	rig_run(r, 2 * S);
	want(1, GP_RUN, 0);
	gp_engine_trigger(r->engine, false);
	rig_run(r, 5 * MS);
	assert_int_equal(rig_stats(r)->holds, 0);
}

/* The driver confirms a release, and no work is seen before the next hold. */
RIG_TEST(a_release_that_nothing_proves_is_not_counted_nor_is_the_hold_after_it)
{
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.fault[FAKE_HOLD].asks_to_wait = r->gpu.fault[FAKE_RELEASE].asks_to_wait = true;
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	rig_run(r, 5 * MS);
	assert_int_equal(rig_stats(r)->holds, 1);
	for (int i = 0; i < 4; i++) {
		bool seen = i > 1; /* a part of its work */

		rig_is(r, 0)->unproven = true;
		rig_is(r, 0)->in_part = seen;
		want(1, GP_RUN, 0);
		gp_engine_trigger(r->engine, false);
		rig_run(r, 5 * MS);
		assert_false(rig_is(r, 0)->held);
		want(1, GP_HOLD, 0);
		gp_engine_trigger(r->engine, false);
		rig_run(r, 5 * MS);
		assert_true(rig_is(r, 0)->held);
		rig_is(r, 0)->unproven = false;
		gp_engine_trigger(r->engine, false);
		rig_run(r, 5 * MS);
		assert_int_equal(rig_stats(r)->releases, seen ? i - 1 : 0);
		assert_int_equal(rig_stats(r)->holds, seen ? i : 1);
		assert_int_equal(rig_task(r, 0).preemptions, seen ? i : 1);
	}
}

/* The hold of an unmanaged task was requested by the engine, so its release is verified too. */
RIG_TEST(a_disproved_release_is_requested_again_also_for_an_unmanaged_task)
{
	uint64_t unproven_ns;
	unsigned before;

	rig_add(r, GP_UNMANAGED);
	r->gpu.fault[FAKE_RELEASE].asks_to_wait = true;
	rig_start(r, &scripted);
	rig_run(r, 1 * MS);
	assert_int_equal(gp_engine_user_hold(r->engine, 1), 0);
	rig_run(r, 50 * MS);
	assert_true(rig_is(r, 0)->held);
	rig_is(r, 0)->unproven = true;
	assert_int_equal(gp_engine_user_release(r->engine, 1), 0);
	rig_run(r, 50 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(r->events[GP_EVENT_RELEASED], 0);
	assert_false(rig_task(r, 0).settled);
	assert_in_range(rig_task(r, 0).unproven_ns, 10 * MS, 50 * MS);
	unproven_ns = rig_task(r, 0).unproven_ns;
	rig_is(r, 0)->unproven = false;
	rig_is(r, 0)->unsure = true;
	rig_is(r, 0)->failed = -ETIME;
	before = r->gpu.nasked;
	gp_engine_trigger(r->engine, false);
	rig_run(r, 50 * MS);
	assert_true(rig_task(r, 0).unproven_ns > unproven_ns); /* unsure */
	assert_true(fake_count(&r->gpu, FAKE_RELEASE, 0, before) >= 1);
	rig_is(r, 0)->unsure = false;
	rig_is(r, 0)->failed = 0;
	rig_run(r, 2 * S);
	assert_true(rig_task(r, 0).settled);
	assert_true(rig_stats(r)->release_failures >= 1);
	assert_int_equal(rig_stats(r)->releases, 1);
	assert_int_equal(r->events[GP_EVENT_RELEASED], 1);
}

/* The back end sees work late, and no action is under way then. */
RIG_TEST(a_disproved_release_that_is_confirmed_later_is_counted_and_announced)
{
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	r->gpu.fault[FAKE_HOLD].asks_to_wait = r->gpu.fault[FAKE_RELEASE].asks_to_wait = true;
	rig_start(r, &scripted);
	rig_run(r, 50 * MS);
	rig_is(r, 0)->unproven = true;
	want(1, GP_RUN, 0);
	gp_engine_trigger(r->engine, false);
	rig_run(r, 50 * MS);
	rig_is(r, 0)->unproven = false;
	rig_is(r, 0)->unsure = true;
	rig_is(r, 0)->failed = -ETIME;
	r->gpu.fault[FAKE_RELEASE] = (struct fake_fault){.status = -ETIME};
	gp_engine_trigger(r->engine, false);
	rig_run(r, 3 * S);
	assert_int_equal(rig_stats(r)->releases, 0);
	assert_int_equal(r->events[GP_EVENT_RELEASED], 0);
	assert_true(rig_task(r, 0).unsure);

	rig_is(r, 0)->unsure = false;
	rig_is(r, 0)->failed = 0;
	gp_engine_trigger(r->engine, false);
	rig_run(r, 3 * S);
	assert_int_equal(rig_stats(r)->releases, 1);
	assert_int_equal(r->events[GP_EVENT_RELEASED], 1);
	assert_true(rig_task(r, 0).settled);
}

/* A keeper undid the last hold, and the engine requests it again: until then the device shows the
 * old hold, and then its end. The old hold is not taken for the new one, which is still the
 * engine's own. */
RIG_TEST(a_hold_that_was_undone_while_it_was_requested_again_is_released)
{
	rig_add(r, GP_UNMANAGED);
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 30 * MS};
	rig_start(r, &scripted);
	rig_run(r, 1 * MS);
	assert_int_equal(gp_engine_user_hold(r->engine, 1), 0);
	rig_run(r, 5 * MS);
	rig_is(r, 0)->held = true;
	rig_run(r, 5 * MS);
	assert_false(rig_task(r, 0).held);
	assert_int_equal(r->events[GP_EVENT_HELD], 0);
	rig_is(r, 0)->held = false;
	rig_run(r, 5 * MS);
	assert_false(rig_task(r, 0).held);
	assert_int_equal(gp_engine_user_release(r->engine, 1), 0);
	rig_run(r, 50 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(fake_count(&r->gpu, FAKE_HOLD, 0, 0), 1);
	assert_int_equal(fake_count(&r->gpu, FAKE_RELEASE, 0, 0), 1);
}

RIG_TEST(the_backoff_can_be_set)
{
	const uint64_t expected_ms[] = {3, 6, 12, 20, 20};

	r->config.backoff_min_ns = 3 * MS;
	r->config.backoff_max_ns = 20 * MS;
	r->gpu.fault[FAKE_HOLD].whole = -EIO;
	RIG_START(r, &scripted, HOLD);
	rig_run(r, 70 * MS);
	assert_int_equal(r->gpu.nasked, 6);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(r->gpu.asked[i + 1].now_ns - r->gpu.asked[i].now_ns,
				 expected_ms[i] * MS);
}

TEST(an_action_without_effect_counts_as_failed_and_is_repeated)
{
	for (int accepted = 0; accepted < 2; accepted++) {
		/* Accepted, it is given 20 ms to be seen; under way, its end says it all. */
		uint64_t seen_ns = accepted ? 20 * MS : 1 * MS, backoff_ns = 1 * MS;
		struct rig *r = rig_new();

		r->gpu.fault[FAKE_HOLD] =
			(struct fake_fault){.asks_to_wait = !accepted, .lost = true};
		RIG_START(r, &scripted, HOLD);
		rig_run(r, 2 * S);
		assert_true(r->gpu.nasked >= 9);
		for (unsigned i = 1; i < r->gpu.nasked; i++) {
			uint64_t after_ns = r->gpu.asked[i].now_ns - r->gpu.asked[i - 1].now_ns;

			assert_in_range(after_ns, backoff_ns + seen_ns,
					backoff_ns + seen_ns + 2 * MS);
			backoff_ns *= 2;
		}
		assert_in_range(rig_stats(r)->failures, r->gpu.nasked - 1, r->gpu.nasked);
		assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].code, accepted ? -ETIME : -EIO);
		assert_int_equal(r->events[GP_EVENT_HELD], 0);
		assert_int_equal(rig_stats(r)->hold_ns.count, 0);
		assert_false(rig_task(r, 0).held);
		r->gpu.fault[FAKE_HOLD].lost = false;
		rig_run(r, RECOVERY_NS);
		assert_true(rig_is(r, 0)->held);
		rig_free(r);
	}
}

RIG_TEST(an_accepted_action_is_not_lost_while_nobody_can_see)
{
	rig_add_many(r, 2);
	rig_is(r, 0)->slice_us = rig_is(r, 1)->slice_us = 1;
	rig_is(r, 0)->held = rig_is(r, 1)->held = true;
	WANT(HOLD, HOLD);
	rig_start(r, &scripted);
	want(1, GP_RUN, 1);
	rig_step(r); /* task 1 is released with its tiny slice */
	r->gpu.sees_nothing = true;
	rig_run(r, 50 * MS); /* no observation shows that */
	assert_int_equal(rig_stats(r)->failures, 0);
	WANT(HOLD, RUN(1));
	gp_engine_trigger(r->engine, false);
	rig_run(r, 50 * MS);
	assert_false(r->gpu.two_tiny);
	r->gpu.sees_nothing = false;
	rig_run(r, 50 * MS);
	assert_false(r->gpu.two_tiny);
	assert_true(rig_is(r, 0)->held);
	assert_false(rig_is(r, 1)->held);
}

RIG_TEST(an_expensive_action_is_given_more_time)
{
	r->gpu.base.info.hold_cost_ns = 1 * MS;
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.lost = true};
	RIG_START(r, &scripted, HOLD);
	rig_run(r, 27 * MS);
	assert_int_equal(rig_stats(r)->failures, 0);
	rig_run(r, 2 * MS);
	assert_int_equal(rig_stats(r)->failures, 1);
}

RIG_TEST(an_action_under_way_is_given_all_the_time_it_takes)
{
	for (uint64_t id = 1; id <= 60; id++) {
		rig_add(r, GP_BEST_EFFORT);
		want(id, GP_RUN, 3000);
	}
	r->gpu.fault[FAKE_SLICE] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 50 * MS};
	rig_start(r, &scripted);
	rig_run(r, 5 * S);
	assert_int_equal(r->gpu.nasked, 60); /* repeating would make the queue longer */
	assert_int_equal(rig_stats(r)->failures, 0);
	for (uint32_t h = 0; h < 60; h++)
		assert_int_equal(rig_is(r, h)->slice_us, 3000);
}

RIG_TEST(what_was_only_begun_and_can_never_be_seen_is_believed_at_its_end)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known = 0;
	want(1, GP_HOLD, 0);
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 30 * MS};
	rig_start(r, &scripted);
	r->gpu.observe_fails = -EIO; /* no answer is not the answer that it has ended */
	rig_run(r, 10 * MS);
	r->gpu.observe_fails = 0;
	rig_run(r, 19 * MS);
	assert_false(rig_task(r, 0).held);
	assert_int_equal(r->events[GP_EVENT_HELD], 0);
	rig_run(r, 3 * MS);
	assert_true(rig_task(r, 0).held);
	assert_int_equal(r->gpu.nasked, 1);
}

/* A back end that does the action later reports a failure, or none, and cannot read the state any
 * more. */
TEST(an_action_that_left_an_unknown_state_is_tried_again)
{
	static const int failed[] = {-EIO, 0};

	for (unsigned i = 0; i < 2; i++) {
		struct rig *r = rig_new();

		RIG_START(r, &scripted, HOLD);
		rig_run(r, 10 * MS);
		assert_true(rig_task(r, 0).held);
		r->gpu.fault[FAKE_RELEASE] =
			(struct fake_fault){.asks_to_wait = true, .lost = true};
		rig_is(r, 0)->known &= ~(uint32_t)GP_KNOWN_HELD;
		rig_is(r, 0)->failed = failed[i];
		WANT(RUN(0));
		gp_engine_trigger(r->engine, false);
		rig_run(r, failed[i] ? 20 * MS : 10 * S);
		assert_in_range(fake_count(&r->gpu, FAKE_RELEASE, 0, 0), 2, 20);
		assert_in_range(rig_stats(r)->failures, 1, 20);
		assert_int_equal(r->events[GP_EVENT_RELEASED], 0);
		r->gpu.fault[FAKE_RELEASE] = (struct fake_fault){.asks_to_wait = true};
		rig_is(r, 0)->known |= GP_KNOWN_HELD;
		rig_is(r, 0)->failed = 0;
		rig_run(r, RECOVERY_NS);
		assert_false(rig_is(r, 0)->held);
		assert_false(rig_task(r, 0).held);
		rig_free(r);
	}
}

RIG_TEST(one_failing_task_of_a_batch_does_not_hold_up_the_others)
{
	for (uint64_t id = 1; id <= 3; id++) {
		rig_add(r, GP_BEST_EFFORT);
		want(id, GP_HOLD, 0);
	}
	rig_make(r);
	rig_set_policy(r, &scripted);
	r->gpu.fault[FAKE_HOLD].whole = -EIO;
	rig_step(r);
	assert_int_equal(rig_stats(r)->failures, 3);
	r->gpu.fault[FAKE_HOLD].whole = 0;
	rig_run(r, 3 * MS);
	for (uint32_t h = 0; h < 3; h++)
		assert_true(rig_is(r, h)->held);
}

/* The worst cases for the tiny slice: two best-effort tasks that take turns with it. */

struct backend_case {
	const char *name;
	struct fake_fault fault;
	int observe_fails;
	bool sees_nothing;
	int scan_fails;
};

static const struct backend_case backend_cases[] = {
	{.name = "call busy", .fault = {.whole = -EBUSY}},
	{.name = "call fails", .fault = {.whole = -EIO}},
	{.name = "action busy", .fault = {.status = -EBUSY}},
	{.name = "action fails", .fault = {.status = -EIO}},
	{.name = "action lost", .fault = {.asks_to_wait = true, .lost = true}},
	{.name = "lie", .fault = {.lost = true}},
	{.name = "late", .fault = {.asks_to_wait = true, .delay_ns = 2 * MS}},
	{.name = "accepted, late", .fault = {.delay_ns = 2 * MS}},
	{.name = "very late", .fault = {.asks_to_wait = true, .delay_ns = 60 * MS}},
	{.name = "observe fails", .observe_fails = -EIO},
	{.name = "sees nothing", .sees_nothing = true},
	{.name = "scan fails", .scan_fails = -EIO},
};

static void break_backend(struct rig *r, const struct backend_case *c, unsigned kinds)
{
	for (enum fake_kind kind = 0; kind < FAKE_KINDS; kind++)
		if (kinds & 1u << kind)
			r->gpu.fault[kind] = c->fault;
	r->gpu.observe_fails = c->observe_fails;
	r->gpu.sees_nothing = c->sees_nothing;
	r->gpu.scan_fails = c->scan_fails;
}

static void mend_backend(struct rig *r)
{
	memset(r->gpu.fault, 0, sizeof r->gpu.fault);
	r->gpu.choose = NULL;
	r->gpu.observe_fails = r->gpu.scan_fails = 0;
	r->gpu.sees_nothing = false;
}

/* What is left over from the fault is finished, and then what is wanted is there soon. */
static void recover(struct rig *r)
{
	mend_backend(r);
	if (r->gpu.work_done_ns > r->now_ns)
		rig_run(r, r->gpu.work_done_ns - r->now_ns);
	rig_run(r, RECOVERY_NS);
}

static bool is_as_wanted(struct rig *r, uint32_t handle)
{
	const struct gp_task_plan *p = &script.want[handle + 1];
	const struct gp_observation *is = rig_is(r, handle);

	if (p->want == GP_LEAVE)
		return true;
	return p->want == GP_HOLD ? is->held : !is->held && is->slice_us == p->slice_us;
}

static void take_turns(int turn)
{
	want(1, GP_RUN, turn % 3 ? 1000000 : 2000);
	want(2, turn % 2 ? GP_RUN : GP_HOLD, 1);
	want(3, turn % 2 ? GP_HOLD : GP_RUN, turn % 5 ? 1 : 0);
}

static void check_backend_case(const struct backend_case *c, unsigned kinds)
{
	struct rig *r = rig_new();

	r->config.starve_limit_ns = 3600 * S;
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_add_many(r, 2);
	take_turns(1);
	rig_start(r, &watching);
	rig_run(r, 50 * MS);
	break_backend(r, c, kinds);
	for (int turn = 2; turn < 40; turn++) {
		take_turns(turn);
		gp_engine_trigger(r->engine, false);
		rig_run(r, (uint64_t)(turn % 7 * 20 + 3) * 1000000);
	}
	if (r->gpu.two_tiny)
		fail_msg("%s (kinds %u): two tiny slices met", c->name, kinds);
	recover(r);
	for (uint32_t h = 0; h < 3; h++)
		if (!is_as_wanted(r, h))
			fail_msg("%s (kinds %u): task %u is not as wanted", c->name, kinds, h + 1);
	if (r->gpu.two_tiny)
		fail_msg("%s (kinds %u): two tiny slices met in the end", c->name, kinds);
	assert_null(gp_engine_ejection(r->engine));
	assert_int_equal(gp_engine_tasks(r->engine), 3);
	rig_free(r);
}

TEST(after_any_fault_of_the_back_end_all_is_as_wanted_and_tiny_slices_never_met)
{
	for (unsigned c = 0; c < sizeof backend_cases / sizeof *backend_cases; c++)
		for (unsigned kinds = 1; kinds < 1u << FAKE_KINDS; kinds++)
			check_backend_case(&backend_cases[c], kinds);
}

RIG_TEST(a_tiny_slice_waits_while_a_release_is_on_its_way)
{
	RIG_START(r, &scripted, RUN(1), HOLD);
	rig_run(r, 10 * MS);
	r->gpu.fault[FAKE_RELEASE] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 5 * MS};
	r->gpu.fault[FAKE_HOLD].status = -EBUSY;
	want(2, GP_RUN, 0);
	gp_engine_trigger(r->engine, false);
	rig_run(r, 1 * MS);
	want(1, GP_HOLD, 0); /* fails: task 1 keeps running with its tiny slice */
	want(2, GP_RUN, 1);
	gp_engine_trigger(r->engine, false);
	rig_run(r, 100 * MS);
	assert_false(r->gpu.two_tiny);
}

RIG_TEST(a_release_that_comes_late_is_reckoned_with)
{
	rig_add_many(r, 2);
	rig_is(r, 0)->slice_us = rig_is(r, 1)->slice_us = 1;
	rig_is(r, 0)->held = rig_is(r, 1)->held = true;
	WANT(RUN(1), HOLD);
	/* The worker is stuck with it. */
	r->gpu.fault[FAKE_RELEASE] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 25 * MS};
	rig_start(r, &scripted);
	rig_run(r, 21 * MS);
	r->gpu.fault[FAKE_RELEASE].delay_ns = 0;
	want(1, GP_HOLD, 0); /* as it seems to be */
	want(2, GP_RUN, 1);
	gp_engine_trigger(r->engine, false);
	rig_run(r, 100 * MS);
	assert_false(r->gpu.two_tiny);
	assert_true(rig_is(r, 0)->held);
	assert_false(rig_is(r, 1)->held);
}

RIG_TEST(a_release_that_was_lost_out_of_sight_is_repeated)
{
	RIG_START(r, &watching, HOLD);
	rig_run(r, 10 * MS);
	assert_true(rig_is(r, 0)->held);
	r->gpu.fault[FAKE_RELEASE].lost = true; /* accepted without effect */
	want(1, GP_RUN, 0);
	gp_engine_trigger(r->engine, false);
	rig_step(r);
	r->gpu.sees_nothing = true; /* no observation shows that */
	want(1, GP_LEAVE, 0);
	rig_run(r, 3 * S);
	r->gpu.fault[FAKE_RELEASE].lost = false;
	r->gpu.sees_nothing = false;
	rig_run(r, RECOVERY_NS);
	assert_false(rig_is(r, 0)->held); /* it was our hold: it is not left behind */
}

RIG_TEST(a_blind_look_forgets_nothing_and_is_counted)
{
	RIG_START(r, &watching, HOLD, RUN(3000));
	rig_run(r, 10 * MS);
	r->gpu.nasked = 0;
	r->gpu.observe_fails = -EIO;
	rig_run(r, 100 * MS);
	assert_in_range(rig_stats(r)->blind, 20, 21);
	assert_int_equal(r->gpu.nasked, 0);
	assert_int_equal(gp_engine_view(r->engine)->task[1].known, 0);
	assert_true(rig_task(r, 0).held);
	assert_int_equal(rig_task(r, 1).slice_us, 3000);
	assert_int_equal(rig_stats(r)->undone, 0);
}

#define RANDOM_TASKS 7 /* one latency-critical, five best-effort, one unmanaged */

static void choose_fault(struct fake_gpu *g, enum fake_kind kind, struct fake_fault *fault)
{
	(void)kind;
	*fault = (struct fake_fault){.asks_to_wait = gp_rng_below(g->rng, 2)};
	switch (gp_rng_below(g->rng, 8)) {
	case 0: fault->status = -EBUSY; break;
	case 1: fault->status = -EIO; break;
	case 2: fault->lost = true; break;
	case 3: fault->delay_ns = gp_rng_below(g->rng, 400 * GP_NS_PER_US); break;
	case 4: fault->delay_ns = gp_rng_below(g->rng, fault->asks_to_wait ? 40 * MS : 1); break;
	default: break;
	}
}

/* Any plan that breaks no rule. */
static void want_at_random(struct gp_rng *rng)
{
	const uint32_t slices[] = {0, 51, 2000, 1000000};
	uint64_t tiny = 2 + gp_rng_below(rng, 7); /* 7 and 8: no task */

	want(1, GP_RUN, slices[gp_rng_below(rng, 4)]);
	for (uint64_t id = 2; id <= 6; id++) {
		if (id == tiny)
			want(id, GP_RUN, (uint32_t)(1 + gp_rng_below(rng, GP_TINY_SLICE_US)));
		else
			want(id,
			     gp_rng_below(rng, 8) ? gp_rng_below(rng, 2) ? GP_HOLD : GP_RUN
						  : GP_LEAVE,
			     slices[gp_rng_below(rng, 4)]);
	}
	want(7, GP_LEAVE, 0);
}

static void disturb_at_random(struct rig *r, struct gp_rng *rng)
{
	uint32_t handle = (uint32_t)gp_rng_below(rng, RANDOM_TASKS - 1);

	r->gpu.observe_fails = gp_rng_below(rng, 10) ? 0 : -EIO;
	r->gpu.sees_nothing = gp_rng_below(rng, 10) == 0;
	r->gpu.scan_fails = gp_rng_below(rng, 10) ? 0 : -EIO;
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		r->gpu.fault[k].whole = gp_rng_below(rng, 10) ? 0 : -EBUSY;
	if (gp_rng_below(rng, 10) == 0) /* another program interferes, harmlessly */
		rig_is(r, handle)->held = true;
	if (gp_rng_below(rng, 10) == 0)
		rig_is(r, handle)->slice_us = 3000;
	if (gp_rng_below(rng, 4) == 0)
		rig_is(r, handle)->active ^= true;
}

static const char *run_seed(uint64_t seed)
{
	struct rig *r = rig_new();
	const char *wrong = NULL;
	struct gp_rng rng;

	gp_rng_init(&rng, seed, 0);
	r->config.starve_limit_ns = 3600 * S;
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_add_many(r, 5);
	rig_add(r, GP_UNMANAGED);
	want_at_random(&rng);
	rig_start(r, gp_rng_below(&rng, 2) ? &watching : &scripted);
	r->gpu.rng = &rng;
	r->gpu.choose = choose_fault;
	for (int i = 0; i < 100; i++) {
		disturb_at_random(r, &rng);
		if (gp_rng_below(&rng, 2))
			want_at_random(&rng);
		if (gp_rng_below(&rng, 2))
			gp_engine_trigger(r->engine, gp_rng_below(&rng, 4) == 0);
		rig_run(r, gp_rng_below(&rng, gp_rng_below(&rng, 4) ? 3 * MS : 50 * MS));
	}
	want_at_random(&rng);
	for (uint64_t id = 2; id <= 6; id++) /* what it leaves alone may keep a tiny slice */
		if (script.want[id].want == GP_LEAVE)
			want(id, GP_RUN, 2000);
	gp_engine_trigger(r->engine, false);
	recover(r);
	for (uint32_t h = 0; h < RANDOM_TASKS && !wrong; h++)
		wrong = is_as_wanted(r, h) ? NULL : "is not as wanted in the end";
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		wrong = fake_count(&r->gpu, k, 6, 0) ? "touched an unmanaged task" : wrong;
	wrong = gp_engine_ejection(r->engine) ? "ejected the policy" : wrong;
	wrong = r->gpu.two_tiny ? "let two tiny slices meet" : wrong;
	rig_free(r);
	return wrong;
}

TEST(after_any_mix_of_faults_all_is_as_wanted_and_tiny_slices_never_met)
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		const char *wrong = run_seed(seed);

		if (wrong)
			fail_msg("seed %llu %s", (unsigned long long)seed, wrong);
	}
}
