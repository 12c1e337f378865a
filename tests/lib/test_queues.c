/* SPDX-License-Identifier: Apache-2.0 */
/* The list of queues: all of them, as the driver has them, unknown where it does not say. */
#include "lib_world.h"

static unsigned count_computing(const struct gpreempt_queue *queue, int n)
{
	unsigned computing = 0;

	for (int i = 0; i < n; i++)
		computing += !queue[i].copies;
	return computing;
}

LIB_TEST(all_queues_are_listed)
{
	struct lw_load *load = lw_load(w, "3");
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_queue queue[64], first;
	int n = gpreempt_get_all_queues(g, queue, 64);

	assert_in_range(n, 3, 64);
	assert_int_equal(count_computing(queue, n), 3);
	for (int i = 0; i < n; i++) {
		assert_false(queue[i].held);
		assert_non_null(gpreempt_device_name(g, queue[i].device));
		for (int k = 0; k < i; k++)
			assert_true(queue[k].id != queue[i].id ||
				    queue[k].device != queue[i].device);
	}
	/* Also where there is no room for all. */
	LW_CALL(g, gpreempt_get_all_queues(g, &first, 1), n);
	assert_int_equal(first.id, queue[0].id);
	LW_CALL(g, gpreempt_get_all_queues(g, NULL, 0), n);
	LW_CALL(g, gpreempt_get_all_queues(g, NULL, 1), -EINVAL);
}

LIB_TEST_ON(nvidia_tells_slices_and_channels, nvidia)
{
	struct lw_load *load = lw_load(w, "1");
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_queue q = lw_queue(g, 0);

	assert_string_equal(q.type, "compute");
	assert_int_not_equal(q.slice_us, GPREEMPT_UNKNOWN32);
	assert_true(q.channels > 0);
	assert_true(q.owner && q.object);
	assert_int_equal(q.priority, GPREEMPT_UNKNOWN32);
	assert_true(q.pending == GPREEMPT_UNKNOWN64);
}

LIB_TEST_ON(amd_tells_addresses_and_pending_work, amd)
{
	struct lw_load *load = lw_load(w, "1");
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_queue q;

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 1);
	TEST_WAIT(lw_queue(g, 0).pending > 0);
	q = lw_queue(g, 0);
	assert_string_equal(q.type, "aql");
	assert_true(q.held);
	assert_true(q.pending != GPREEMPT_UNKNOWN64);
	assert_true(q.ring_address && q.ring_bytes && q.save_address && q.save_bytes);
	assert_int_equal(q.slice_us, GPREEMPT_UNKNOWN32);
}

LIB_TEST_ON(amd_lists_a_program_that_only_copies, amd)
{
	struct lw_load *load = lw_load_with(w, "--type", "sdma", NULL, NULL);
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_queue queue[4];

	LW_CALL(g, gpreempt_get_all_queues(g, queue, 4), 1);
	assert_true(queue[0].copies);
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), -ENODEV);
}

static int tracer_of(pid_t pid)
{
	return lw_sh("grep -q '^TracerPid:.*[1-9]' /proc/%d/status", pid) == 0;
}

LIB_TEST_ON(amd_looks_from_afar_change_nothing, amd)
{
	struct lw_load *load = lw_load(w, "2");
	struct gpreempt *g = lw_open_with(load->pid, GPREEMPT_FROM_AFAR);
	struct gpreempt_queue q = lw_queue(g, 1);

	assert_false(tracer_of(load->pid));
	assert_int_equal(kfd_emu_count(&w->amd, "enable"), 0);
	assert_true(q.ring_bytes > 0);
	assert_true(q.ring_address == 0 && q.save_address == 0);
	assert_true(q.pending == GPREEMPT_UNKNOWN64);
	/* A hold attaches to the process. */
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	assert_int_equal(lw_held(w, load->pid), 2);
	assert_true(lw_queue(g, 0).held && lw_queue(g, 1).held);
	assert_int_equal(kfd_emu_count(&w->amd, "enable"), 1);
	lw_close(g);
	assert_int_equal(lw_held(w, load->pid), 0);
	assert_false(tracer_of(load->pid));
}

LIB_TEST(a_process_that_ended_is_no_other)
{
	struct lw_load *load = lw_load(w, "1");
	struct gpreempt *g = lw_open(load->pid);

	assert_true(gpreempt_get_all_queues(g, NULL, 0) > 0);
	lw_kill_load(w, load);
	LW_CALL(g, gpreempt_get_all_queues(g, NULL, 0), -ESRCH);
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), -ESRCH);
	assert_non_null(strstr(gpreempt_why(g), "has ended"));
}
