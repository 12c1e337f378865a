/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduler and keeper are killed in any order: held processes run again, others are not touched.
 */
#include "keeper_world.h"

KEEPER_TEST_EVERYWHERE(a_killed_scheduler_leaves_nothing_held)
{
	int held = kw_load(w), other = kw_load(w);
	uint64_t epoch;

	kw_start_keeper(w, NULL);
	kw_start_scheduler(w, held, -1);
	assert_true(kw_is_held(w, held));
	assert_false(kw_is_held(w, other));
	assert_int_equal(kw_holder(w, held), w->scheduler.pid);
	epoch = gp_undo_epoch(w->undo);
	kill(w->scheduler.pid, SIGKILL); /* not waited for: it is a zombie */
	KW_WITHIN(1000, !kw_is_held(w, held));
	TEST_WAIT(kw_records(w) == 0);
	TEST_WAIT(gp_undo_epoch(w->undo) != epoch);
	kw_wait_progress(w, held);
	kw_wait_progress(w, other);
}

KEEPER_TEST(slices_are_put_back_as_well)
{
	int held = kw_load(w), sliced = kw_load(w);
	uint64_t slice_us = kw_slice_us(w, sliced);

	kw_start_keeper(w, NULL);
	kw_start_scheduler(w, held, 100 + sliced);
	assert_true(kw_slice_us(w, sliced) != slice_us);
	assert_int_equal(kw_records(w), 2);
	kw_kill(&w->scheduler);
	TEST_WAIT(kw_records(w) == 0);
	assert_int_equal(kw_slice_us(w, sliced), slice_us);
	assert_false(kw_is_held(w, held));
}

KEEPER_TEST_EVERYWHERE(schedulers_are_followed_as_they_come_and_go)
{
	int a = kw_load(w), b = kw_load(w);

	kw_start_keeper(w, NULL);
	for (int i = 0; i < 4; i++) {
		int held = i % 2 ? a : b;

		kw_start_scheduler(w, held, -1);
		TEST_WAIT(kw_is_held(w, held));
		assert_false(kw_is_held(w, i % 2 ? b : a));
		kw_kill(&w->scheduler);
		if (i < 2) /* otherwise the next one comes in between */
			TEST_WAIT(kw_records(w) == 0);
	}
	KW_WITHIN(1000, !kw_is_held(w, a) && !kw_is_held(w, b));
}

KEEPER_TEST(an_orderly_end_is_not_a_death)
{
	int held = kw_held(w, NULL);
	struct gp_undo_scheduler guard;
	uint64_t epoch = gp_undo_epoch(w->undo);

	kill(w->scheduler.pid, SIGTERM);
	assert_int_equal(kw_wait_end(&w->scheduler), 0);
	assert_false(kw_is_held(w, held));
	assert_int_equal(kw_records(w), 0);
	gp_undo_scheduler(w->undo, &guard);
	assert_int_equal(guard.pid, 0);
	emulator_sleep_ms(1000);
	assert_int_equal(gp_undo_epoch(w->undo), epoch);
}

KEEPER_TEST_EVERYWHERE(a_keeper_that_was_killed_is_replaced_and_nobody_notices)
{
	int held = kw_held(w, NULL);
	uint64_t epoch = gp_undo_epoch(w->undo);

	kw_kill(&w->keeper);
	kw_start_keeper(w, NULL);
	emulator_sleep_ms(1000);
	assert_true(kw_is_held(w, held));
	assert_int_equal(gp_undo_epoch(w->undo), epoch);
	kw_kill(&w->scheduler);
	KW_WITHIN(1000, !kw_is_held(w, held));
	TEST_WAIT(kw_records(w) == 0);
}

KEEPER_TEST_EVERYWHERE(what_was_left_while_there_was_no_keeper_is_put_back_by_the_next)
{
	int held = kw_held(w, NULL);

	kw_kill(&w->keeper);
	kw_kill(&w->scheduler);
	assert_int_equal(kw_records(w), 1);
	kw_start_keeper(w, NULL);
	KW_WITHIN(1000, !kw_is_held(w, held));
	TEST_WAIT(kw_records(w) == 0);
	kw_wait_progress(w, held);
}

/* The next scheduler does it first. */
KEEPER_TEST_EVERYWHERE(both_killed_the_next_scheduler_puts_back)
{
	int held = kw_load(w), other = kw_load(w);

	kw_start_keeper(w, NULL);
	kw_start_scheduler(w, held, -1);
	kw_kill(&w->scheduler);
	kw_kill(&w->keeper);
	kw_start_scheduler(w, other, -1);
	assert_false(kw_is_held(w, held));
	assert_true(kw_is_held(w, other));
	assert_int_equal(kw_records(w), 1);
	kw_wait_progress(w, held);
}

/* The driver does nothing and confirms it, for longer than the first attempt takes. */
KEEPER_TEST(an_undo_without_work_is_made_once_more_later)
{
	int held = kw_held(w, NULL);

	emu_control(&w->emu, "skip 0xffffffff 1000000");
	emu_control(&w->emu, "read_channels enabled");
	kw_kill(&w->scheduler);
	emulator_sleep_ms(2000);
	assert_true(kw_is_held(w, held));
	assert_int_equal(kw_records(w), 1);
	emu_control(&w->emu, "clear_faults");
	TEST_WAIT(kw_records(w) == 0);
	assert_false(kw_is_held(w, held));
	kw_wait_progress(w, held);
}

/* The keeper puts back while the next one starts and wants the same: one of the two is first, and
 * in the end the living scheduler holds it. */
KEEPER_TEST_EVERYWHERE(the_same_task_wanted_again_at_once)
{
	int held = kw_held(w, NULL);

	for (int i = 0; i < 5; i++) {
		kw_kill(&w->scheduler);
		kw_start_scheduler(w, held, -1);
		TEST_WAIT(kw_is_held(w, held) && kw_holder(w, held) == w->scheduler.pid);
		assert_int_equal(kw_records(w), 1);
	}
	emulator_sleep_ms(500); /* and it stays so */
	assert_true(kw_is_held(w, held));
	kw_kill(&w->scheduler);
	KW_WITHIN(1000, !kw_is_held(w, held));
	TEST_WAIT(kw_records(w) == 0);
	if (!w->machine->rule) /* what it had before the first of them */
		assert_int_equal(kw_slice_us(w, held), 2048);
}

static void write_record_of(struct kw *w, const struct gp_undo *undo, const char *backend)
{
	pid_t pid = fork();

	if (!pid)
		_exit(gp_undo_put(w->undo, backend, undo) < 0);
	waitpid(pid, NULL, 0);
}

/* A dead scheduler's record names a number that belongs to another process by now. */
KEEPER_TEST_EVERYWHERE(a_process_that_has_the_number_of_a_dead_one_is_not_touched)
{
	int held = kw_load(w);
	struct gp_undo_entry e;
	unsigned slot = 0;

	kw_start_scheduler(w, held, -1);
	while (!gp_undo_get(w->undo, slot, &e))
		slot++;
	e.undo.start_time--;
	e.undo.key += 64;
	write_record_of(w, &e.undo, e.backend);
	assert_int_equal(kw_records(w), 2);
	kw_start_keeper(w, NULL);
	TEST_WAIT(kw_records(w) == 1);
	emulator_sleep_ms(300);
	assert_true(kw_is_held(w, held));
	assert_int_equal(kw_holder(w, held), w->scheduler.pid);
}

KEEPER_TEST(records_that_nobody_can_undo_stay_and_do_no_harm)
{
	int held = kw_load(w);
	struct gp_undo undo = {.key = 1, .pid = kw_pid(w, held), .size = 5};
	struct gp_undo_scheduler before, after;

	undo.start_time = gp_process_start_time(undo.pid);
	write_record_of(w, &undo, "unknown");
	undo.key = 2;
	write_record_of(w, &undo, "nvidia"); /* not one of its records */
	kw_start_keeper(w, NULL);
	kw_start_scheduler(w, held, -1);
	kw_kill(&w->scheduler);
	KW_WITHIN(1000, !kw_is_held(w, held));
	TEST_WAIT(kw_records(w) == 2);
	gp_undo_keeper(w->undo, &before);
	TEST_WAIT((gp_undo_keeper(w->undo, &after), after.heartbeats > before.heartbeats + 2));
}

/* The memory of a process is its GPU's until the last copy of its files is closed. */
KEEPER_TEST(the_memory_of_a_dead_target_is_not_kept)
{
	int held = kw_load(w), stopped = kw_load(w);

	kw_start_keeper(w, "1");
	assert_true(emu_memory(&w->emu) >= 2000000000);
	kw_start_scheduler(w, held, stopped);
	kw_kill(&w->scheduler);
	TEST_WAIT(kw_records(w) == 0);
	kw_kill_load(w, held);
	KW_WITHIN(1000, emu_memory(&w->emu) <= 1000000000);
	kw_start_scheduler(w, stopped, -1);
	kw_stop_scheduler(w);
	KW_WITHIN(2000, !kw_is_held(w, stopped));
	kw_kill(&w->scheduler); /* which has copies of its own */
	kw_kill_load(w, stopped);
	KW_WITHIN(1000, emu_memory(&w->emu) == 0);
	TEST_WAIT(kw_records(w) == 0);
	w->nloads = 0;
}

/* The driver does not say whether it has ended the session of the dead scheduler. */
TEST_EACH_IN(struct kw, a_record_stays_while_the_driver_does_not_answer, KEEPER_TEST_ADD, amd,
	     amd_old)
{
	int held = kw_held(w, NULL);

	assert_int_equal(kfd_emu_control(&w->kfd, "errno get_queue_snapshot 5 1000000"), 0);
	kw_kill(&w->scheduler);
	emulator_sleep_ms(1500);
	assert_int_equal(kw_records(w), 1);
	assert_int_equal(kfd_emu_control(&w->kfd, "clear_faults"), 0);
	TEST_WAIT(kw_records(w) == 0);
	kw_wait_progress(w, held);
}
