/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An owner of records that its cgroup has frozen looks like a process that sleeps. The keeper sees
 * that its heartbeat stops, and releases what it holds; where only the owner can, the keeper kills
 * it.
 */
#include "keeper_world.h"

#include <sys/ptrace.h>

#include "freezer.h"

static void freeze(struct kw *w, pid_t pid)
{
	(void)w;
	if (freezer_freeze(pid))
		return;
	freezer_remove();
	print_message("skipped: no cgroup v2 can be made and frozen here\n");
	skip();
}

/* Frozen processes do not end by themselves. */
static void end(struct kw *w)
{
	freezer_thaw();
	kw_kill(&w->scheduler);
	freezer_remove();
}

KEEPER_TEST_EVERYWHERE(what_a_frozen_scheduler_holds_runs_and_is_held_again_later)
{
	int held = kw_held(w, "1");

	freeze(w, w->scheduler.pid);
	TEST_WAIT(!kw_is_held(w, held));
	kw_wait_progress(w, held);
	assert_int_equal(kw_holder(w, held), w->scheduler.pid);
	freezer_thaw();
	TEST_WAIT(kw_is_held(w, held));
	end(w);
}

/* gpreempt bench, too: it goes through a hold of 3 s, and is stopped in the next. */
KEEPER_TEST_EVERYWHERE(what_a_stopped_bench_holds_runs)
{
	int held = kw_load(w);
	char program[] = GPREEMPT, verb[] = "bench", count[] = "--count=2",
	     length[] = "--hold-ms=3000", pid[16];
	char *words[] = {program, verb, count, length, pid, NULL};

	snprintf(pid, sizeof pid, "%d", kw_pid(w, held));
	kw_start_keeper(w, "1");
	kw_spawn(&w->scheduler, words);
	TEST_WAIT(kw_is_held(w, held));
	emulator_sleep_ms(2500); /* it runs: it is left alone */
	assert_true(kw_is_held(w, held));
	kill(w->scheduler.pid, SIGSTOP);
	TEST_WAIT(!kw_is_held(w, held));
	kw_wait_progress(w, held);
	kill(w->scheduler.pid, SIGCONT);
	kw_kill(&w->scheduler);
}

/* gpreempt suspend sends heartbeats for its own record. */
KEEPER_TEST_EVERYWHERE(what_a_frozen_command_holds_runs_and_is_held_again_later)
{
	int held = kw_load(w);
	char program[] = GPREEMPT, verb[] = "suspend", option[] = "--no-daemon", pid[16];
	char *words[] = {program, verb, option, pid, NULL};

	snprintf(pid, sizeof pid, "%d", kw_pid(w, held));
	kw_start_keeper(w, "1");
	kw_spawn(&w->scheduler, words);
	TEST_WAIT(kw_is_held(w, held));
	emulator_sleep_ms(2500); /* it runs: it is left alone */
	assert_true(kw_is_held(w, held));
	freeze(w, w->scheduler.pid);
	TEST_WAIT(!kw_is_held(w, held));
	kw_wait_progress(w, held);
	assert_int_equal(kw_holder(w, held), w->scheduler.pid);
	freezer_thaw();
	TEST_WAIT(kw_is_held(w, held));
	end(w);
	TEST_WAIT(!kw_is_held(w, held) && kw_records(w) == 0);
}

static void end_tracing(pid_t pid)
{
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
}

/* A debugger traces the program, so the keeper cannot end the owner's session, and cannot see that
 * the owner's end has ended it: the record stays until the debugger has gone. */
TEST_EACH_IN(struct kw, a_frozen_owner_is_killed_if_a_debugger_is_in_the_way, KEEPER_TEST_ADD, amd)
{
	int held = kw_held(w, "1");

	assert_int_equal(ptrace(PTRACE_SEIZE, kw_pid(w, held), NULL, NULL), 0);
	freeze(w, w->scheduler.pid);
	assert_true(kw_is_held(w, held));
	TEST_WAIT(test_process_state(w->scheduler.pid) == 'Z');
	TEST_WAIT(!kw_is_held(w, held));
	kw_wait_progress(w, held);
	emulator_sleep_ms(1500); /* the keeper tries again each second */
	assert_int_equal(kw_records(w), 1);
	end_tracing(kw_pid(w, held));
	TEST_WAIT(kw_records(w) == 0);
	end(w);
}

/* Before Linux 6.12.103 the owner is the tracer, and the program stops at its next signal. */
TEST_EACH_IN(struct kw, a_frozen_owner_is_killed_if_its_program_stays_stopped, KEEPER_TEST_ADD,
	     amd_old)
{
	int held = kw_held(w, "1");

	freeze(w, w->scheduler.pid);
	kill(kw_pid(w, held), SIGWINCH);
	TEST_WAIT(test_process_state(kw_pid(w, held)) == 't');
	TEST_WAIT(test_process_state(w->scheduler.pid) == 'Z');
	TEST_WAIT(!kw_is_held(w, held) && kw_records(w) == 0);
	kw_wait_progress(w, held);
	assert_true(test_process_state(kw_pid(w, held)) != 't');
	end(w);
}
