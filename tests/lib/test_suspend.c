/* SPDX-License-Identifier: Apache-2.0 */
/* Holding and releasing a process as a whole; several of them, from several threads. */
#include "lib_world.h"

LIB_TEST(a_held_process_stands_still_and_loses_nothing)
{
	struct lw_load *load = lw_load(w, "3"), *other = lw_load(w, "1");
	struct gpreempt *g = lw_open(load->pid);

	lw_must_run(w, load->pid);
	for (int i = 0; i < 3; i++) {
		LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 3);
		assert_int_equal(lw_held(w, load->pid), 3);
		assert_true(lw_queue(g, 2).held);
		lw_must_stand(w, load->pid, other->pid);
		LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 3);
		assert_int_equal(lw_held(w, load->pid), 0);
		lw_must_run(w, load->pid);
	}
}

LIB_TEST(asking_twice_changes_nothing)
{
	struct lw_load *load = lw_load(w, "2");
	struct gpreempt *g = lw_open(load->pid);

	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 0);
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 2);
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 0);
	lw_must_run(w, load->pid);
}

LIB_TEST(closing_releases)
{
	struct lw_load *load = lw_load(w, "2");

	/* Devices stay open for another handle, or are closed with this one. */
	for (int i = 0; i < 4; i++) {
		struct gpreempt *other = i & 1 ? lw_open(getpid()) : NULL;
		struct gpreempt *g = lw_open(load->pid);

		LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
		lw_close(g);
		assert_int_equal(lw_held(w, load->pid), 0);
		if (other) { /* and it can be held again at once */
			g = lw_open(load->pid);
			LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
			assert_int_equal(lw_held(w, load->pid), 2);
			lw_close(g);
		}
		lw_close(other);
		lw_must_run(w, load->pid);
	}
}

/* A program without work shows nothing; one that works shows that the driver lies. */
LIB_TEST_ON(the_evidence_for_a_hold_is_told, amd)
{
	struct lw_load *load = lw_load(w, "2"),
		       *idle = lw_load_with(w, "--queues", "2", "--idle", NULL);
	struct gpreempt *g = lw_open(load->pid), *other = lw_open(idle->pid);

	assert_int_equal(gpreempt_evidence(g), -ENOENT);
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	assert_int_equal(gpreempt_evidence(g), GPREEMPT_SEEN);
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 2);
	TEST_WAIT(gpreempt_evidence(g) == GPREEMPT_SEEN);
	assert_int_equal(kfd_emu_control(&w->amd, "ignore suspend_queues 2 1000"), 0);
	LW_CALL(other, gpreempt_suspend_queues(other, NULL, 0), 2);
	assert_int_equal(gpreempt_evidence(other), GPREEMPT_BY_DRIVER);
	assert_int_equal(kfd_emu_control(&w->amd, "clear_faults"), 0);
}

/* It shows nothing of a queue without packets: the caller that asks again gets it. */
LIB_TEST_ON(a_release_that_only_the_driver_confirms_is_made_again, amd)
{
	struct lw_load *idle = lw_load_with(w, "--queues", "2", "--idle", NULL);
	struct gpreempt *g = lw_open(idle->pid);

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	kfd_emu_control(&w->amd, "ignore resume_queues 2 1");
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 2);
	assert_int_equal(lw_held(w, idle->pid), 2);
	assert_int_equal(gpreempt_evidence(g), GPREEMPT_BY_DRIVER);
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 0);
	assert_int_equal(lw_held(w, idle->pid), 0);
}

/* The release of an evicted process cannot be seen before the driver restores it. */
LIB_TEST_ON(a_release_without_effect_is_noticed_when_the_driver_restores_the_process, amd)
{
	struct lw_load *load = lw_load(w, "1");
	struct gpreempt *g = lw_open(load->pid);
	char control[32];

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 1);
	snprintf(control, sizeof control, "evict %d", load->pid);
	kfd_emu_control(&w->amd, "%s", control);
	emulator_sleep_ms(200);
	kfd_emu_control(&w->amd, "ignore resume_queues 1 1");
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 1);
	assert_int_equal(lw_held(w, load->pid), 1);
	snprintf(control, sizeof control, "restore %d", load->pid);
	kfd_emu_control(&w->amd, "%s", control);
	TEST_WAIT(!lw_held(w, load->pid));
	lw_must_run(w, load->pid);
}

/* The session is begun, whatever the driver says, and this process ends it before it tries again.
 */
LIB_TEST_ON(a_session_that_the_driver_denies_is_not_left_behind, amd)
{
	struct lw_load *load = lw_load(w, "1");
	struct gpreempt *g = lw_open(load->pid);

	kfd_emu_control(&w->amd, "late_errno enable 114 1"); /* EALREADY */
	assert_true(gpreempt_suspend_queues(g, NULL, 0) < 0);
	assert_null(strstr(gpreempt_why(g), "another debugger"));
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 1);
	assert_int_equal(lw_held(w, load->pid), 1);
}

/* Every way to release fails: no queue is reported as one that runs for certain. The caller has to
 * ask again. */
LIB_TEST_ON(a_release_that_fails_leaves_queues_whose_state_is_not_known, amd)
{
	/* EIO; ESRCH, which is untrue of a process that lives */
	static const char *const fault[][2] = {
		{"errno resume_queues 5 1000000", "errno disable 5 1000000"},
		{"errno resume_queues 5 1000000", "errno disable 3 1000000"},
		{"errno resume_queues 3 1000000", "errno disable 3 1000000"},
		{"errno resume_queues 3 1000000", "errno disable 22 1000000"},
	};
	struct lw_load *load = lw_load(w, "2");
	struct gpreempt *g = lw_open(load->pid);

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	assert_false(lw_queue(g, 0).unsure);
	for (int i = 0; i < 4; i++) {
		kfd_emu_control(&w->amd, "%s", fault[i][0]);
		kfd_emu_control(&w->amd, "%s", fault[i][1]);
		assert_true(gpreempt_resume_queues(g, NULL, 0) < 0);
		assert_int_equal(lw_held(w, load->pid), 2);
		for (unsigned k = 0; k < 2; k++)
			assert_true(lw_queue(g, k).unsure);
	}
	kfd_emu_control(&w->amd, "clear_faults");
	TEST_WAIT(gpreempt_resume_queues(g, NULL, 0) >= 0);
	TEST_WAIT(!lw_queue(g, 0).unsure && !lw_queue(g, 0).held);
	assert_int_equal(lw_held(w, load->pid), 0);
	lw_must_run(w, load->pid);
}

/* The session that did not end is ended as soon as the driver does it, without another request. */
LIB_TEST_ON(a_process_whose_release_failed_is_not_held_again, amd)
{
	struct lw_load *load = lw_load(w, "2");
	struct gpreempt *g = lw_open(load->pid);

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	kfd_emu_control(&w->amd, "errno resume_queues 5 1000000");
	kfd_emu_control(&w->amd, "errno disable 5 1000000");
	assert_true(gpreempt_resume_queues(g, NULL, 0) < 0);
	kfd_emu_control(&w->amd, "clear_faults");
	TEST_WAIT(!lw_held(w, load->pid));
	for (int i = 0; i < 10; i++) { /* the handle is checked ten times a second */
		emulator_sleep_ms(50);
		assert_int_equal(lw_held(w, load->pid), 0);
	}
	lw_must_run(w, load->pid);
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 2);
}

LIB_TEST(handles_hold_different_processes)
{
	struct lw_load *one = lw_load(w, "1"), *two = lw_load(w, "2");
	struct gpreempt *a = lw_open(one->pid), *b = lw_open(two->pid);

	LW_CALL(a, gpreempt_suspend_queues(a, NULL, 0), 1);
	lw_must_run(w, two->pid);
	LW_CALL(b, gpreempt_suspend_queues(b, NULL, 0), 2);
	lw_close(a);
	assert_int_equal(lw_held(w, one->pid), 0);
	assert_int_equal(lw_held(w, two->pid), 2);
}

LIB_TEST(a_process_is_in_one_hand)
{
	struct lw_load *load = lw_load(w, "2");
	struct gpreempt *a = lw_open(load->pid), *b = lw_open(load->pid);

	LW_CALL(a, gpreempt_suspend_queues(a, NULL, 0), 2);
	LW_CALL(b, gpreempt_suspend_queues(b, NULL, 0), -EBUSY);
	assert_true(*gpreempt_why(b));
	LW_CALL(b, gpreempt_resume_queues(b, NULL, 0), 0);
	assert_true(gpreempt_get_all_queues(b, NULL, 0) >= 2);
	lw_close(b);
	assert_int_equal(lw_held(w, load->pid), 2);
	lw_close(a);
	assert_int_equal(lw_held(w, load->pid), 0);
}

static void *hold_and_release(void *arg)
{
	struct gpreempt *g = arg;
	intptr_t bad = 0;

	for (int i = 0; i < 4; i++) {
		bad += gpreempt_suspend_queues(g, NULL, 0) != 2;
		bad += gpreempt_get_all_queues(g, NULL, 0) < 2;
		bad += gpreempt_resume_queues(g, NULL, 0) != 2;
	}
	return (void *)bad;
}

LIB_TEST(threads_use_handles_of_their_own)
{
	struct lw_load *load[3];
	struct gpreempt *g[3];
	pthread_t thread[3];
	void *bad;

	for (unsigned i = 0; i < 3; i++) {
		load[i] = lw_load(w, "2");
		g[i] = lw_open(load[i]->pid);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hold_and_release, g[i]), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(thread[i], &bad), 0);
		lw_close(g[i]);
		assert_null(bad);
	}
}
