/* SPDX-License-Identifier: Apache-2.0 */
/* A holder ends in any way, also while a second one waits: no process stays held. */
#include "lib_world.h"

LIB_TEST(exit_releases)
{
	struct lw_load *load = lw_load(w, "2");
	int in, status = 0;
	pid_t holder = lw_start_holder(load->pid, "exit", &in);

	assert_int_equal(waitpid(holder, &status, 0), holder);
	close(in);
	assert_int_equal(status, 0);
	assert_int_equal(lw_held(w, load->pid), 0);
	lw_must_run(w, load->pid);
}

LIB_TEST(a_killed_holder_is_repaired)
{
	struct lw_load *load = lw_load(w, "2");
	int in;
	pid_t holder = lw_start_holder(load->pid, "wait", &in);

	assert_int_equal(lw_held(w, load->pid), 2);
	kill(holder, SIGKILL);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	close(in);
	if (w->vendor == LW_NVIDIA) /* AMD's driver does it by itself */
		assert_int_equal(lw_held(w, load->pid), 2);
	assert_int_equal(lw_sh("%s resume --all >/dev/null", GPREEMPT), 0);
	TEST_WAIT(lw_held(w, load->pid) == 0);
	lw_must_run(w, load->pid);
}

LIB_TEST(the_next_holder_repairs_as_well)
{
	struct lw_load *load = lw_load(w, "2"), *other = lw_load(w, "1");
	struct gpreempt *g;
	int in;
	pid_t holder = lw_start_holder(load->pid, "wait", &in);

	kill(holder, SIGKILL);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	close(in);
	g = lw_open(other->pid);
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 1);
	TEST_WAIT(lw_held(w, load->pid) == 0);
}

LIB_TEST(another_program_must_wait)
{
	struct lw_load *load = lw_load(w, "1");
	struct gpreempt *g = lw_open(load->pid);
	int in;
	pid_t holder = lw_start_holder(load->pid, "wait", &in);

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), -EBUSY);
	if (!strstr(gpreempt_why(g), "lib-holder"))
		fail_msg("said: %s", gpreempt_why(g));
	close(in);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 1);
}

LIB_TEST(what_somebody_resumes_is_let_go)
{
	struct lw_load *load = lw_load(w, "2");
	struct gpreempt *g = lw_open(load->pid);

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	assert_int_equal(lw_sh("%s resume %d >/dev/null", GPREEMPT, load->pid), 0);
	TEST_WAIT(lw_held(w, load->pid) == 0);
	usleep(300000); /* it is not held again */
	assert_int_equal(lw_held(w, load->pid), 0);
	assert_false(lw_queue(g, 0).held);
	/* A new request holds them again. */
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	assert_int_equal(lw_held(w, load->pid), 2);
	lw_close(g);
	assert_int_equal(lw_held(w, load->pid), 0);
}

/* False: it had come before the hold. */
static bool holds_one_that_comes(struct lib_world *w, const char *after_ms)
{
	struct lw_load *load = lw_load_with(w, "--grow", after_ms, NULL, NULL);
	struct gpreempt *g = lw_open(load->pid);
	int held = gpreempt_suspend_queues(g, NULL, 0);

	assert_in_range(held, 1, 2);
	TEST_WAIT(emu_groups(&w->nvidia, load->pid) == 2);
	TEST_WAIT(lw_held(w, load->pid) == 2);
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 2);
	lw_close(g);
	LW_ENDS_RIGHT(w, load);
	return held == 1;
}

LIB_TEST_ON(queues_that_come_later_are_held_as_well, nvidia)
{
	assert_true(holds_one_that_comes(w, "500") || holds_one_that_comes(w, "3000") ||
		    holds_one_that_comes(w, "15000"));
}

LIB_TEST(a_held_process_may_end)
{
	struct lw_load *load = lw_load(w, "2"), *other = lw_load(w, "1");
	struct gpreempt *g = lw_open(load->pid), *next = lw_open(other->pid);

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	lw_kill_load(w, load);
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 0);
	LW_CALL(next, gpreempt_suspend_queues(next, NULL, 0), 1);
}
