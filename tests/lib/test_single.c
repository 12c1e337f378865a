/* SPDX-License-Identifier: Apache-2.0 */
/* Holding and releasing single queues of a process. */
#include "lib_world.h"

LIB_TEST(a_single_queue_can_be_held)
{
	struct lw_load *load = lw_load(w, "3");
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_queue two[2] = {lw_queue(g, 1), lw_queue(g, 2)}, twice[2];

	LW_CALL(g, gpreempt_suspend_queues(g, two, 1), 1);
	assert_int_equal(lw_held(w, load->pid), 1);
	assert_true(lw_queue(g, 1).held);
	assert_false(lw_queue(g, 0).held);
	lw_must_run(w, load->pid); /* the others */
	LW_CALL(g, gpreempt_suspend_queues(g, two, 2), 2);
	assert_int_equal(lw_held(w, load->pid), 2);
	twice[0] = twice[1] = two[0];
	LW_CALL(g, gpreempt_resume_queues(g, twice, 2), 1);
	assert_int_equal(lw_held(w, load->pid), 1);
	/* All are all, also those that were meant by themselves. */
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 3);
	assert_int_equal(lw_held(w, load->pid), 3);
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 3);
	assert_int_equal(lw_held(w, load->pid), 0);
}

LIB_TEST(a_queue_can_be_released_from_the_whole)
{
	struct lw_load *load = lw_load(w, "3");
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_queue one = lw_queue(g, 0);

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 3);
	LW_CALL(g, gpreempt_resume_queues(g, &one, 1), 1);
	assert_int_equal(lw_held(w, load->pid), 2);
	assert_false(lw_queue(g, 0).held);
	lw_must_run(w, load->pid);
	usleep(300000); /* nor does the library hold it again */
	assert_int_equal(lw_held(w, load->pid), 2);
	LW_CALL(g, gpreempt_suspend_queues(g, &one, 1), 1);
	assert_int_equal(lw_held(w, load->pid), 3);
	lw_close(g);
	assert_int_equal(lw_held(w, load->pid), 0);
}

LIB_TEST(every_queue_can_be_a_task)
{
	struct lw_load *load = lw_load(w, "2");
	struct gpreempt *g = lw_open(load->pid), *later;
	struct gpreempt_queue both[2] = {lw_queue(g, 0), lw_queue(g, 1)};

	LW_CALL(g, gpreempt_suspend_queues(g, both, 2), 2);
	assert_int_equal(lw_held(w, load->pid), 2);
	assert_true(lw_queue(g, 1).held);
	LW_CALL(g, gpreempt_resume_queues(g, both, 2), 2);
	/* Another handle finds them all the same. */
	later = lw_open(load->pid);
	lw_close(g);
	LW_CALL(later, gpreempt_suspend_queues(later, NULL, 0), 2);
	assert_int_equal(lw_held(w, load->pid), 2);
	lw_close(later);
	assert_int_equal(lw_held(w, load->pid), 0);
}

/* On AMD's GPUs each call may stop the whole device. */
LIB_TEST(many_queues_are_one_call)
{
	struct lw_load *load = lw_load(w, "8");
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_queue some[6];
	unsigned long calls = 0;

	for (unsigned i = 0; i < 6; i++)
		some[i] = lw_queue(g, i);
	if (w->vendor == LW_AMD)
		calls = kfd_emu_count(&w->amd, "suspend_queues");
	LW_CALL(g, gpreempt_suspend_queues(g, some, 6), 6);
	assert_int_equal(lw_held(w, load->pid), 6);
	if (w->vendor == LW_AMD)
		assert_int_equal(kfd_emu_count(&w->amd, "suspend_queues"), calls + 1);
	if (w->vendor == LW_AMD)
		calls = kfd_emu_count(&w->amd, "resume_queues");
	LW_CALL(g, gpreempt_resume_queues(g, some, 5), 5);
	assert_int_equal(lw_held(w, load->pid), 1);
	if (w->vendor == LW_AMD)
		assert_int_equal(kfd_emu_count(&w->amd, "resume_queues"), calls + 1);
	lw_close(g);
	assert_int_equal(lw_held(w, load->pid), 0);
}

LIB_TEST(all_or_none)
{
	struct lw_load *load = lw_load(w, "2");
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_queue two[2] = {lw_queue(g, 0), {.id = 4711}};

	LW_CALL(g, gpreempt_suspend_queues(g, two, 2), -ENOENT);
	assert_non_null(strstr(gpreempt_why(g), "no queue 4711"));
	assert_int_equal(lw_held(w, load->pid), 0);
	two[1] = (struct gpreempt_queue){.id = two[0].id, .device = 99};
	LW_CALL(g, gpreempt_suspend_queues(g, two, 2), -ENOENT);
	assert_int_equal(lw_held(w, load->pid), 0);
}

LIB_TEST_ON(queues_that_copy_are_never_held, nvidia)
{
	struct lw_load *load = lw_load(w, "1");
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_queue queue[64];
	int n = gpreempt_get_all_queues(g, queue, 64), copies = 0;

	for (int i = 0; i < n; i++)
		if (queue[i].copies) {
			LW_CALL(g, gpreempt_suspend_queues(g, &queue[i], 1), -EINVAL);
			copies++;
		}
	assert_true(copies > 0);
}

LIB_TEST_ON(a_process_that_only_copies_cannot_be_held, amd)
{
	struct lw_load *load = lw_load_with(w, "--type", "sdma", NULL, NULL);
	struct gpreempt *g = lw_open(load->pid);

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), -ENODEV);
}
