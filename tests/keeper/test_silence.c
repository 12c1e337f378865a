/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler that lives and does not answer: what it holds runs, and it begins anew later. */
#include "keeper_world.h"

KEEPER_TEST_EVERYWHERE(what_a_stopped_scheduler_holds_runs_and_is_held_again_later)
{
	int held = kw_held(w, "2");
	uint64_t epoch;

	for (int i = 0; i < 2; i++) {
		epoch = gp_undo_epoch(w->undo);
		kw_stop_scheduler(w);
		KW_WITHIN(3000, !kw_is_held(w, held));
		assert_true(gp_undo_epoch(w->undo) != epoch);
		kw_wait_progress(w, held);
		/* Its records stay its own: it may go on at any instruction. */
		assert_int_equal(kw_holder(w, held), w->scheduler.pid);
		kill(w->scheduler.pid, SIGCONT);
		TEST_WAIT(kw_is_held(w, held));
		assert_int_equal(kw_holder(w, held), w->scheduler.pid);
		emulator_sleep_ms(1500); /* it beats: it is left alone */
		assert_true(kw_is_held(w, held));
	}
	kw_kill(&w->scheduler);
	KW_WITHIN(1000, !kw_is_held(w, held));
	TEST_WAIT(kw_records(w) == 0);
}

KEEPER_TEST(slices_too_on_every_device_it_has)
{
	int held = kw_load(w), sliced = kw_load(w);
	uint64_t slice_us = kw_slice_us(w, sliced), changed_us;

	kw_start_keeper(w, "1");
	kw_start_scheduler(w, held, 100 + sliced);
	changed_us = kw_slice_us(w, sliced);
	assert_true(changed_us != slice_us);
	kw_stop_scheduler(w);
	KW_WITHIN(2000, kw_slice_us(w, sliced) == slice_us && !kw_is_held(w, held));
	kill(w->scheduler.pid, SIGCONT);
	TEST_WAIT(kw_slice_us(w, sliced) == changed_us && kw_is_held(w, held));
	assert_int_equal(kw_records(w), 2);
}

KEEPER_TEST_EVERYWHERE(one_that_is_killed_while_it_is_stopped_leaves_nothing)
{
	int held = kw_held(w, "1");

	kw_stop_scheduler(w);
	KW_WITHIN(2000, !kw_is_held(w, held));
	kw_kill(&w->scheduler);
	TEST_WAIT(kw_records(w) == 0);
	assert_false(kw_is_held(w, held));
	kw_wait_progress(w, held);
}

/* What was on its way into the driver when it was stopped comes into effect after the undo: it is
 * undone again while the silence lasts. The test itself holds the load once more instead. */
KEEPER_TEST(an_action_that_comes_late_is_undone_as_well)
{
	int held = kw_load(w);

	kw_start_keeper(w, "1");
	assert_int_equal(emu_control(&w->emu, "latency disable 3s"), 0);
	kw_spawn_scheduler(w, held, -1);
	TEST_WAIT(kw_holder(w, held) == w->scheduler.pid); /* the call is on its way, or will be */
	emulator_sleep_ms(300);
	kill(w->scheduler.pid, SIGSTOP);
	emulator_sleep_ms(3500); /* by now it is in effect, and the first undo was before that */
	KW_WITHIN(8000, !kw_is_held(w, held) && test_process_state(w->scheduler.pid) == 'T');
	kw_wait_progress(w, held);
}

/* Both are stopped, as by a suspended machine: no heartbeat was missed. */
KEEPER_TEST(time_in_which_the_keeper_did_not_run_does_not_count)
{
	int held = kw_held(w, "3");
	uint64_t epoch = gp_undo_epoch(w->undo);

	for (int i = 0; i < 2; i++) {
		kill(w->keeper.pid, SIGSTOP);
		kw_stop_scheduler(w);
		emulator_sleep_ms(4000);
		kill(w->keeper.pid, SIGCONT); /* the first to wake */
		emulator_sleep_ms(100);
		kill(w->scheduler.pid, SIGCONT);
		emulator_sleep_ms(400);
		assert_true(kw_is_held(w, held));
		assert_int_equal(gp_undo_epoch(w->undo), epoch);
	}
}
