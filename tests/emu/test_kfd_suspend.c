/* SPDX-License-Identifier: Apache-2.0 */
/* SUSPEND_QUEUES and RESUME_QUEUES: counts, bits, queues that run. */
#include "kfd_world.h"

#define INVALID(id) ((id) | KFD_DBG_QUEUE_INVALID)

static uint64_t queue(const struct world *w, pid_t pid, uint32_t id, const char *field)
{
	return kfd_emu_queue_number(&w->emu, pid, id, field);
}

static int set_up_mi300x(void **state)
{
	return set_up_with(state, "mi300x", NULL, NULL);
}

WORLD_AND_MES_TEST(suspended_queues_stop_and_go_on_with_right_results)
{
	pid_t pid;

	/* 2 ms each: there is always one under way */
	assert_int_equal(kfd_load_start(&w->load, "--queues", "3", "--steps", "20", NULL), 0);
	pid = w->load.pid;
	attach(w, pid);
	clear_new(w, pid);
	for (int i = 0; i < 10; i++) {
		uint32_t ids[3] = {0, 1, 2};

		wait_progress(w, pid);
		assert_int_equal(dbg_suspend(w, pid, 0, ids, 3), 3);
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(ids[k], k);
		assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "suspended"), 3);
		assert_stands_still(w, pid);
		assert_int_equal(dbg_resume(w, pid, ids, 3), 3);
	}
	wait_progress(w, pid);
	assert_true(kfd_emu_process_sum(&w->emu, pid, "saved") > 0);
	assert_int_equal(stop_load(w), 0);
}

/* What the driver leaves in the save area of a queue that was in the middle of something. */
WITH_TEST(a_saved_queue_has_a_header_for_each_xcc, set_up_mi300x)
{
	struct gpu gpu = load_gpu(w->fd, 0);
	struct load_queue q;
	uint32_t id = 0;

	load_runtime(w->fd, true);
	queue_open(w->fd, &gpu, &q, KFD_QUEUE_COMPUTE_AQL, 7);
	enable_self(w);
	clear_new(w, getpid());
	queue_submit(w->fd, &q, 100000); /* 10 s */
	assert_int_equal(dbg_suspend(w, getpid(), 0, &id, 1), 1);
	assert_int_equal(gpu.xccs, 8);
	for (uint32_t xcc = 0; xcc < gpu.xccs; xcc++) {
		const struct kfd_save_area_header *header =
			(const void *)((const char *)q.save_area + (size_t)xcc * gpu.cwsr_size);

		assert_true(header->wave_state_size > 0);
		assert_true(header->control_stack_size > 0);
		assert_int_equal(header->control_stack_offset + header->control_stack_size,
				 gpu.ctl_stack_size);
	}
	assert_int_equal(q.results->completed, 0);
	assert_true(queue(w, getpid(), 0, "left_ns") > 0);
	assert_int_equal(dbg_disable(w, getpid()), 0);
	queue_close(w->fd, &q);
}

WORLD_AND_MES_TEST(a_new_queue_is_skipped_until_somebody_has_seen_it)
{
	pid_t pid = attach_load(w, "1");
	uint32_t id = 0;

	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), 0);
	assert_int_equal(id, INVALID(0));
	assert_int_equal(dbg_snapshot(w, pid, KFD_EC_QUEUE_NEW, NULL, 0), 1); /* sees none */
	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), 0);
	clear_new(w, pid);
	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), 1); /* a stale INVALID is no harm */
	assert_int_equal(id, 0);
}

/* HWS clears the exceptions of all in the array, if one could be suspended. */
WORLD_TEST(a_suspend_clears_exceptions)
{
	struct kfd_queue_snapshot_entry newest = {0};
	pid_t pid = attach_load(w, "3");
	uint32_t ids[3] = {0, 1, 2}, again[3] = {0, 1, 2};

	assert_int_equal(dbg_suspend(w, pid, KFD_EC_QUEUE_NEW, ids, 3), 0);
	assert_int_equal(dbg_suspend(w, pid, KFD_EC_QUEUE_NEW, ids, 3), 0); /* none: not cleared */
	assert_int_equal(dbg_snapshot(w, pid, KFD_EC_QUEUE_NEW, &newest, 1), 3);
	assert_int_equal(newest.queue_id, 2);
	assert_int_equal(dbg_suspend(w, pid, KFD_EC_QUEUE_NEW, ids, 3), 1);
	assert_int_equal(ids[0], INVALID(0));
	assert_int_equal(ids[2], 2);
	assert_int_equal(dbg_suspend(w, pid, 0, again, 3), 3);
}

MES_TEST(mes_clears_exceptions_of_suspended_queues_only)
{
	struct kfd_queue_snapshot_entry newest = {0};
	pid_t pid = attach_load(w, "3");
	uint32_t ids[3] = {0, 1, 2}, again[3] = {0, 1, 2};

	assert_int_equal(dbg_snapshot(w, pid, KFD_EC_QUEUE_NEW, &newest, 1), 3);
	assert_int_equal(dbg_suspend(w, pid, KFD_EC_QUEUE_NEW, ids, 3), 1);
	assert_int_equal(dbg_suspend(w, pid, 0, again, 3), 1);
	assert_int_equal(again[1], INVALID(1));
}

WORLD_TEST(what_is_suspended_already_counts_again)
{
	pid_t pid = attach_seen_load(w, "2");
	uint32_t ids[2] = {0, 1};
	uint64_t cycles;

	assert_int_equal(dbg_suspend(w, pid, 0, ids, 1), 1);
	assert_int_equal(dbg_suspend(w, pid, 0, ids, 2), 2);
	cycles = kfd_emu_count(&w->emu, "cycles");
	assert_int_equal(dbg_resume(w, pid, ids, 2), 2);
	assert_int_equal(dbg_resume(w, pid, ids, 2), 2);                /* so does what runs */
	assert_int_equal(kfd_emu_count(&w->emu, "cycles"), cycles + 1); /* nothing was mapped before
									   the first */
}

WORLD_AND_MES_TEST(a_second_mention_and_a_stale_error_match_nothing)
{
	pid_t pid = attach_seen_load(w, "2");
	uint32_t ids[4] = {1, 1, 0 | KFD_DBG_QUEUE_ERROR, 77};

	assert_int_equal(dbg_suspend(w, pid, 0, ids, 4), 1);
	assert_int_equal(ids[0], 1);
	assert_int_equal(ids[1], INVALID(1));
	assert_int_equal(ids[2], INVALID(KFD_DBG_QUEUE_ERROR));
	assert_int_equal(ids[3], INVALID(77));
	assert_int_equal(queue(w, pid, 0, "suspended"), 0);
}

WORLD_TEST(arrays_that_are_refused)
{
	pid_t pid = attach_load(w, "1");
	uint32_t *ids = calloc(1025, sizeof(*ids));

	assert_int_equal(dbg_suspend(w, pid, 0, NULL, 1), -EINVAL);
	assert_int_equal(dbg_suspend(w, pid, 0, NULL, 0), 0);
	assert_int_equal(dbg_suspend(w, pid, 0, ids, 1025), -EINVAL);
	assert_int_equal(dbg_resume(w, pid, ids, 1025), -EINVAL);
	assert_int_equal(dbg_suspend(w, pid, 0, (uint32_t *)(uintptr_t)8, 1), -EFAULT);
	assert_int_equal(dbg_suspend(w, pid, 0, ids, 0), 0);
	free(ids);
}

WORLD_AND_MES_TEST(a_resume_without_an_array_resumes_all)
{
	pid_t pid = attach_seen_load(w, "3");
	uint32_t ids[3] = {0, 1, 2};

	assert_int_equal(dbg_suspend(w, pid, 0, ids, 3), 3);
	assert_int_equal(dbg_resume(w, pid, ids, 0), 0); /* an empty array is one */
	assert_int_equal(dbg_resume(w, pid, NULL, 4711), 3);
	assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "suspended"), 0);
	wait_progress(w, pid);
}

/* What else can end it, or comes between. */

WORLD_AND_MES_TEST(disable_resumes_and_forgets_what_is_new)
{
	pid_t pid = attach_seen_load(w, "2");
	uint32_t ids[2] = {0, 1};

	assert_int_equal(dbg_suspend(w, pid, 0, ids, 1), 1);
	assert_int_equal(dbg_disable(w, pid), 0);
	assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "suspended"), 0);
	assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "exceptions"), 0);
	wait_progress(w, pid);
	assert_int_equal(kfd_load_stop(&w->load), 0);
}

WORLD_TEST(a_queue_that_comes_later_runs)
{
	struct gpu gpu = load_gpu(w->fd, 0);
	struct load_queue old, young;
	uint32_t id = 0;

	load_runtime(w->fd, true);
	queue_open(w->fd, &gpu, &old, KFD_QUEUE_COMPUTE_AQL, 7);
	enable_self(w);
	clear_new(w, getpid());
	assert_int_equal(dbg_suspend(w, getpid(), 0, &id, 1), 1);
	queue_open(w->fd, &gpu, &young, KFD_QUEUE_COMPUTE_AQL, 7);
	queue_submit(w->fd, &old, 1);
	queue_submit(w->fd, &young, 1);
	for (int i = 0; i < 4000 && !queue_is_done(&young); i++)
		emulator_sleep_ms(5);
	assert_true(queue_is_right(&young));
	assert_false(queue_is_done(&old));
	assert_int_equal(dbg_query(w, getpid(), 0), KFD_EC_QUEUE_NEW);
	assert_int_equal(dbg_disable(w, getpid()), 0);
	queue_close(w->fd, &old);
	queue_close(w->fd, &young);
}

/* Memory pressure and the debugger each have their say. */
WORLD_AND_MES_TEST(an_evicted_queue_is_resumed_but_does_not_run)
{
	pid_t pid = attach_seen_load(w, "1");
	uint32_t id = 0;

	assert_int_equal(kfd_emu_control(&w->emu, "evict %d", pid), 0);
	assert_stands_still(w, pid);
	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), 1);
	assert_int_equal(kfd_emu_control(&w->emu, "restore %d", pid), 0);
	assert_stands_still(w, pid);
	assert_int_equal(kfd_emu_control(&w->emu, "evict %d", pid), 0);
	assert_int_equal(dbg_resume(w, pid, &id, 1), 1);
	assert_stands_still(w, pid);
	assert_int_equal(kfd_emu_control(&w->emu, "restore %d", pid), 0);
	wait_progress(w, pid);
	assert_int_equal(stop_load(w), 0);
}
