/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine does about the difference between what is and what should be: desired state,
 * batches and their order, a device that is full, and the undo record before the first change.
 */
#include "fake_gpu.h"

#include <malloc.h>

RIG_TEST(a_hold_that_somebody_undoes_is_counted_and_applied_again)
{
	RIG_START(r, &watching, HOLD, RUN(5000));
	rig_run(r, 10 * MS);
	assert_int_equal(rig_stats(r)->undone, 0);
	for (unsigned i = 1; i <= 5; i++) {
		rig_is(r, 0)->held = false;
		rig_run(r, 10 * MS);
		assert_true(rig_is(r, 0)->held);
		assert_int_equal(rig_task(r, 0).undone, i);
	}
	assert_int_equal(rig_task(r, 1).undone, 0);
	rig_is(r, 1)->slice_us = 2;
	rig_run(r, 10 * MS);
	assert_int_equal(rig_is(r, 1)->slice_us, 5000);
	assert_int_equal(rig_task(r, 1).undone, 1);
	assert_int_equal(rig_stats(r)->undone, 6);
	assert_int_equal(r->events[GP_EVENT_UNDONE], 6);
	assert_int_equal(r->last[GP_EVENT_UNDONE].task, 2);
	assert_int_equal(rig_stats(r)->failures, 0);
}

RIG_TEST(an_action_on_its_way_that_is_late_is_not_called_undone)
{
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 10 * MS};
	RIG_START(r, &watching, HOLD);
	rig_run(r, 9 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(r->gpu.nasked, 1); /* and is not asked for twice */
	rig_run(r, 5 * MS);
	assert_true(rig_task(r, 0).held);
	assert_int_equal(r->gpu.nasked, 1);
	assert_int_equal(rig_stats(r)->undone, 0);
	assert_int_equal(rig_stats(r)->failures, 0);
	assert_int_equal(rig_stats(r)->hold_ns.count, 1);
	assert_in_range(rig_stats(r)->hold_ns.max, 10 * MS, 12 * MS);
}

RIG_TEST(what_others_do_while_an_action_is_under_way_is_not_called_undone)
{
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 10 * MS};
	r->gpu.fault[FAKE_SLICE] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 10 * MS};
	RIG_START(r, &watching, HOLD, RUN(3000));
	rig_run(r, 3 * MS);
	rig_is(r, 0)->held = true;
	rig_is(r, 1)->slice_us = 700;
	rig_run(r, 50 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 3000);
	assert_int_equal(rig_stats(r)->undone, 0);
}

RIG_TEST(an_order_that_is_reversed_on_its_way_is_not_called_undone)
{
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 4 * MS};
	r->gpu.fault[FAKE_RELEASE] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 4 * MS};
	RIG_START(r, &watching, HOLD);
	rig_run(r, 1 * MS);
	want(1, GP_RUN, 0); /* changes its mind before the hold is there */
	gp_engine_trigger(r->engine, false);
	rig_run(r, 50 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_false(rig_task(r, 0).held);
	assert_int_equal(rig_stats(r)->undone, 0);
}

RIG_TEST(nothing_is_asked_for_twice_while_all_is_as_it_should_be)
{
	RIG_START(r, &watching, HOLD, RUN(5000), RUN(0));
	rig_run(r, 1 * S);
	assert_int_equal(r->gpu.nasked, 2);
	assert_true(rig_stats(r)->ticks > 100);
}

RIG_TEST(what_can_never_be_seen_is_believed_when_accepted)
{
	rig_add_many(r, 2);
	rig_is(r, 0)->known = rig_is(r, 1)->known = 0;
	WANT(HOLD, RUN(10));
	rig_start(r, &watching);
	rig_run(r, 200 * MS);
	assert_int_equal(r->gpu.nasked, 2);
	assert_true(rig_task(r, 0).held);
	assert_int_equal(rig_task(r, 1).slice_us, 10);
	assert_int_equal(rig_stats(r)->failures, 0);
	assert_int_equal(rig_stats(r)->hold_ns.count, 1);
	WANT(RUN(0), RUN(0));
	rig_run(r, 200 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 0);
	assert_int_equal(rig_stats(r)->release_ns.count, 1);
}

RIG_TEST(tasks_to_hold_or_release_go_in_one_call)
{
	for (uint64_t id = 1; id <= 20; id++) {
		rig_add(r, GP_BEST_EFFORT);
		want(id, GP_HOLD, 0);
	}
	rig_start(r, &scripted);
	assert_int_equal(r->gpu.calls, 1);
	assert_int_equal(r->gpu.nasked, 20);
	assert_int_equal(rig_stats(r)->holds, 0); /* requested, not in force */
	rig_run(r, 10 * MS);
	assert_int_equal(rig_stats(r)->holds, 20);
	for (uint64_t id = 1; id <= 20; id++)
		want(id, GP_RUN, 4000);
	gp_engine_trigger(r->engine, false);
	rig_step(r);
	assert_int_equal(r->gpu.calls, 3);
	rig_run(r, 10 * MS);
	assert_int_equal(rig_stats(r)->slices, 20);
	assert_int_equal(rig_stats(r)->releases, 20);
}

RIG_TEST(longer_slices_come_first_then_holds_tiny_slices_and_releases)
{
	const struct fake_act expected[] = {
		{.kind = FAKE_SLICE, .handle = 1, .slice_us = 3000},
		{.kind = FAKE_SLICE, .handle = 4, .slice_us = 0},
		{.kind = FAKE_HOLD, .handle = 2},
		{.kind = FAKE_SLICE, .handle = 0, .slice_us = 1},
		{.kind = FAKE_RELEASE, .handle = 3},
	};

	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		r->gpu.fault[k].observed = true;
	RIG_START(r, &scripted, RUN(0), RUN(0), RUN(0), HOLD, RUN(9000));
	rig_step(r);
	r->gpu.nasked = 0;
	WANT(RUN(1), RUN(3000), HOLD, RUN(0), RUN(0));
	rig_step(r);
	assert_int_equal(r->gpu.nasked, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(r->gpu.asked[i].kind, expected[i].kind);
		assert_int_equal(r->gpu.asked[i].handle, expected[i].handle);
		assert_int_equal(r->gpu.asked[i].slice_us, expected[i].slice_us);
	}
}

RIG_TEST(the_slice_of_a_held_task_is_set_before_its_release)
{
	RIG_START(r, &scripted, HOLD);
	want(1, GP_HOLD, 3000); /* means nothing while it is held */
	rig_run(r, 200 * MS);
	assert_int_equal(r->gpu.nasked, 1);
	want(1, GP_RUN, 3000);
	rig_run(r, 200 * MS);
	assert_int_equal(r->gpu.nasked, 3);
	assert_int_equal(r->gpu.asked[1].kind, FAKE_SLICE);
	assert_int_equal(r->gpu.asked[2].kind, FAKE_RELEASE);
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 0)->slice_us, 3000);
}

RIG_TEST(the_tiny_slice_changes_hands_only_behind_the_hold)
{
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		r->gpu.fault[k] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 1 * MS};
	RIG_START(r, &watching, RUN(1), HOLD);
	for (int turn = 0; turn < 20; turn++) {
		rig_run(r, 20 * MS);
		want(1, turn % 2 ? GP_RUN : GP_HOLD, 1);
		want(2, turn % 2 ? GP_HOLD : GP_RUN, 1);
	}
	assert_false(r->gpu.two_tiny);
	assert_true(rig_stats(r)->deferred > 0);
	assert_int_equal(rig_stats(r)->failures, 0);
	assert_int_equal(rig_stats(r)->undone, 0);
}

RIG_TEST(a_tiny_slice_that_the_plan_leaves_alone_keeps_others_from_having_one)
{
	rig_add_many(r, 2);
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_is(r, 2)->slice_us = GP_TINY_SLICE_US; /* not best-effort: does not count */
	want(1, GP_RUN, GP_TINY_SLICE_US);
	rig_start(r, &watching);
	rig_run(r, 10 * MS);
	assert_int_equal(rig_is(r, 0)->slice_us, GP_TINY_SLICE_US);
	WANT(LEAVE, RUN(1));
	rig_run(r, 200 * MS);
	assert_int_equal(rig_is(r, 1)->slice_us, 0);
	assert_true(rig_stats(r)->deferred > 0);
	want(1, GP_RUN, GP_TINY_SLICE_US + 1);
	rig_run(r, 10 * MS);
	assert_int_equal(rig_is(r, 1)->slice_us, 1);
}

RIG_TEST(on_a_full_device_one_is_released_before_the_next_is_held)
{
	r->gpu.base.info.max_held = 1;
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		r->gpu.fault[k] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 1 * MS};
	RIG_START(r, &watching, RUN(1), HOLD);
	for (int turn = 0; turn < 20; turn++) { /* with the tiny slice, each has to go first */
		rig_run(r, 30 * MS);
		assert_int_equal(rig_is(r, 0)->held, turn && !((turn - 1) % 2));
		assert_int_equal(rig_is(r, 1)->held, !turn || (turn - 1) % 2);
		want(1, turn % 2 ? GP_RUN : GP_HOLD, 1);
		want(2, turn % 2 ? GP_HOLD : GP_RUN, 1);
	}
	assert_int_equal(r->gpu.most_held, 1);
	assert_false(r->gpu.two_tiny);
	assert_true(rig_stats(r)->deferred > 0);
	assert_int_equal(rig_stats(r)->failures, 0);
}

RIG_TEST(holds_of_one_batch_share_the_room_that_is_left)
{
	r->gpu.base.info.max_held = 2;
	RIG_START(r, &watching, HOLD, RUN(0), RUN(0));
	rig_run(r, 10 * MS);
	WANT(RUN(0), HOLD, HOLD);
	rig_run(r, 30 * MS);
	assert_true(rig_is(r, 1)->held && rig_is(r, 2)->held && !rig_is(r, 0)->held);
	assert_int_equal(r->gpu.most_held, 2);
}

RIG_TEST(a_step_allocates_nothing_once_the_tasks_are_there)
{
	struct gp_task_attr a = {.class = GP_BEST_EFFORT, .weight = 100};
	size_t before;

	for (uint64_t i = 1; i <= 200; i++)
		rig_add(r, i % 2 ? GP_BEST_EFFORT : GP_LATENCY_CRITICAL);
	rig_start(r, &gp_policy_priority);
	rig_run(r, 10 * MS);
	fake_reserve(&r->gpu, 100000); /* the test's own memory */
	before = mallinfo2().uordblks;
	for (uint64_t i = 1; i <= 200; i++) {
		a.gang = i;
		assert_int_equal(gp_engine_set_attr(r->engine, i, &a), 0);
		if (i % 5 == 0)
			gp_engine_user_hold(r->engine, i);
		rig_run(r, 2 * MS);
	}
	assert_int_equal(mallinfo2().uordblks, before);
	assert_true(r->gpu.nasked > 100);
}

RIG_TEST(a_device_without_slices_or_holds_is_not_asked_for_them)
{
	r->gpu.base.info.caps = 0;
	r->gpu.base.info.max_held = 0;
	RIG_START(r, &scripted, RUN(0));
	rig_is(r, 0)->held = true;
	rig_is(r, 0)->slice_us = 5;
	rig_run(r, 1 * S);
	assert_int_equal(r->gpu.nasked, 0);
}

struct undo_log {
	unsigned records;
	uint64_t key[16];
	int fails;
};

static struct undo_log undo_log;

static int keep_undo(void *arg, const struct gp_undo *undo)
{
	const struct rig *r = arg;
	uint32_t handle = (uint32_t)(undo->key - 1);

	assert_int_equal(undo->pid, 1000 + handle);
	assert_int_equal(undo->size, 1);
	assert_int_equal(undo->data[0], handle);
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++) /* before anything was changed */
		assert_int_equal(fake_count(&r->gpu, k, handle, 0), 0);
	if (undo_log.fails)
		return undo_log.fails;
	undo_log.key[undo_log.records++] = undo->key;
	return 0;
}

RIG_TEST(the_undo_record_is_kept_once_before_the_first_change)
{
	memset(&undo_log, 0, sizeof undo_log);
	rig_add_many(r, 3);
	r->config.before_change = keep_undo;
	WANT(HOLD, RUN(3000));
	rig_start(r, &watching);
	assert_int_equal(undo_log.records, 2);
	for (uint32_t turn = 0; turn < 10; turn++) {
		want(1, turn % 2 ? GP_HOLD : GP_RUN, 0);
		want(2, GP_RUN, 1000 + turn);
		rig_run(r, 20 * MS);
	}
	assert_int_equal(undo_log.records, 2);
	assert_int_equal(r->gpu.undo_records, 2);
	want(3, GP_HOLD, 0);
	rig_run(r, 20 * MS);
	assert_int_equal(undo_log.records, 3);
	assert_int_equal(undo_log.key[0] + undo_log.key[1], 1 + 2);
	assert_int_equal(undo_log.key[2], 3);
}

TEST(without_an_undo_record_there_is_no_change_at_all)
{
	for (int who = 0; who < 2; who++) {
		struct rig *r = rig_new();

		memset(&undo_log, 0, sizeof undo_log);
		r->config.before_change = keep_undo;
		undo_log.fails = who ? 0 : -ENOSPC;
		r->gpu.undo_fails = who ? -EIO : 0;
		RIG_START(r, &watching, HOLD, RUN(3000));
		rig_run(r, 300 * MS);
		assert_int_equal(r->gpu.nasked, 0);
		assert_true(rig_stats(r)->failures > 4);
		assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].code, who ? -EIO : -ENOSPC);
		undo_log.fails = r->gpu.undo_fails = 0;
		rig_run(r, 1100 * MS);
		assert_true(rig_is(r, 0)->held);
		assert_int_equal(rig_is(r, 1)->slice_us, 3000);
		rig_free(r);
	}
}

RIG_TEST(what_the_back_end_cannot_try_yet_is_postponed_and_no_failure)
{
	memset(&undo_log, 0, sizeof undo_log);
	r->config.before_change = keep_undo;
	r->gpu.undo_fails = -EAGAIN;
	RIG_START(r, &watching, HOLD, RUN(3000));
	rig_run(r, 300 * MS);
	assert_int_equal(r->gpu.nasked, 0);
	assert_int_equal(rig_stats(r)->failures, 0);
	assert_int_equal(r->events[GP_EVENT_ACTION_FAILED], 0);
	assert_true(rig_stats(r)->deferred > 4);
	r->gpu.undo_fails = 0;
	rig_run(r, 1100 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_stats(r)->failures, 0);
}

RIG_TEST(an_undo_record_that_could_not_be_kept_is_tried_again_when_it_is_due)
{
	memset(&undo_log, 0, sizeof undo_log);
	r->config.before_change = keep_undo;
	undo_log.fails = -ENOSPC;
	RIG_START(r, &scripted, HOLD); /* does not watch: nothing else makes the engine look */
	undo_log.fails = 0;
	rig_run(r, 5 * MS);
	assert_true(rig_is(r, 0)->held);
}
