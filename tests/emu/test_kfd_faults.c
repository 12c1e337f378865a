/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong on purpose, through the file `control`. */
#include "kfd_world.h"

static uint64_t now_ms(void)
{
	return test_now_ns() / 1000000;
}

/* The queues are marked as suspended, and run: a resume puts that right. */
WORLD_TEST(a_preemption_that_fails_is_no_errno)
{
	pid_t pid = attach_seen_load(w, "2");
	uint32_t ids[2] = {0, 1};

	assert_int_equal(kfd_emu_control(&w->emu, "preempt_timeout 1"), 0);
	assert_int_equal(dbg_suspend(w, pid, 0, ids, 2), 0);
	assert_int_equal(ids[0], KFD_DBG_QUEUE_ERROR);
	assert_int_equal(ids[1], 1 | KFD_DBG_QUEUE_ERROR);
	assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "suspended"), 2);
	wait_progress(w, pid);
	ids[0] = 0, ids[1] = 1;
	assert_int_equal(dbg_resume(w, pid, ids, 2), 2);
	assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "suspended"), 0);
	assert_int_equal(stop_load(w), 0);
}

/* MES stops at the first that fails. */
MES_TEST(on_mes_a_failure_ends_the_walk)
{
	pid_t pid = attach_seen_load(w, "2");
	uint32_t ids[2] = {0, 1};

	assert_int_equal(kfd_emu_control(&w->emu, "preempt_timeout 1"), 0);
	assert_int_equal(dbg_suspend(w, pid, 0, ids, 2), 0);
	assert_int_equal(ids[1], 1 | KFD_DBG_QUEUE_ERROR | KFD_DBG_QUEUE_INVALID);
	assert_int_equal(ids[0], KFD_DBG_QUEUE_INVALID);
	assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "suspended"), 1);
	assert_int_equal(dbg_resume(w, pid, NULL, 0), 2);
	assert_int_equal(stop_load(w), 0);
}

WORLD_TEST(after_a_reset_everybody_stays_evicted)
{
	pid_t pid = attach_seen_load(w, "1");
	uint32_t id = 0;

	assert_int_equal(kfd_emu_control(&w->emu, "reset 0 begin"), 0);
	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), 0);
	assert_int_equal(id, KFD_DBG_QUEUE_ERROR);
	id = 0;
	assert_int_equal(dbg_resume(w, pid, &id, 1), 0);
	assert_int_equal(id, KFD_DBG_QUEUE_ERROR);
	assert_int_equal(kfd_load_start(&(struct kfd_load){0}, NULL), -ENODEV); /* EINVAL at open */
	assert_int_equal(kfd_emu_control(&w->emu, "reset 0 end"), 0);
	id = 0;
	assert_int_equal(dbg_resume(w, pid, &id, 1), 1);
	assert_stands_still(w, pid);
	assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "evicted"), 1);
}

WORLD_TEST(a_call_can_be_made_to_fail_or_wait)
{
	uint64_t start;

	enable_self(w);
	assert_int_equal(kfd_emu_control(&w->emu, "errno get_queue_snapshot 5 1 1"), 0);
	assert_int_equal(dbg_snapshot(w, getpid(), 0, NULL, 0), 0);
	assert_int_equal(dbg_snapshot(w, getpid(), 0, NULL, 0), -EIO);
	assert_int_equal(dbg_snapshot(w, getpid(), 0, NULL, 0), 0);
	assert_int_equal(kfd_emu_control(&w->emu, "delay get_queue_snapshot 100ms"), 0);
	start = now_ms();
	assert_int_equal(dbg_snapshot(w, getpid(), 0, NULL, 0), 0);
	assert_true(now_ms() - start >= 100);
	assert_int_equal(kfd_emu_control(&w->emu, "nonsense"), -EINVAL);
	assert_int_equal(kfd_emu_control(&w->emu, "delay any long"), -EINVAL);
	assert_int_equal(kfd_emu_control(&w->emu, "evict 1"), -ESRCH);
}

WORLD_TEST(a_process_whose_lock_is_held_is_waited_for)
{
	pid_t pid = attach_load(w, "1");
	uint64_t start;

	assert_int_equal(kfd_emu_control(&w->emu, "hold_mutex %d 200ms", pid), 0);
	start = now_ms();
	assert_int_equal(dbg_snapshot(w, pid, 0, NULL, 0), 1);
	assert_true(now_ms() - start >= 190);
}

WORLD_TEST(a_caller_can_be_killed_by_its_call)
{
	int status, fd;
	pid_t pid;

	assert_int_equal(kfd_emu_control(&w->emu, "kill_on get_version 0"), 0);
	pid = fork();
	if (!pid) {
		struct kfd_version version;

		fd = open(w->emu.kfd, O_RDWR | O_CLOEXEC);
		_exit(fd < 0 ? 2 : call(fd, KFD_IOC_GET_VERSION, &version));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

WORLD_TEST(a_runtime_state_can_be_made_bad)
{
	pid_t pid = attach_load(w, "1");
	uint32_t id = 0;

	assert_int_equal(kfd_emu_control(&w->emu, "runtime_state %d 3", pid), 0);
	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), -EPERM);
	assert_int_equal(dbg_disable(w, pid), 0);
	attach(w, pid); /* a new try finds it enabled */
}

MES_TEST(gws_keeps_a_debugger_out_on_gfx11)
{
	struct kfd_runtime_info info = {0};

	assert_int_equal(kfd_emu_control(&w->emu, "gws %d on", getpid()), 0);
	assert_int_equal(dbg_enable(w, getpid(), &info), -EBUSY);
	assert_int_equal(kfd_emu_control(&w->emu, "gws %d off", getpid()), 0);
	assert_int_equal(dbg_enable(w, getpid(), &info), 0);
}

static int set_up_old(void **state)
{
	return set_up_with(state, "mi250", "--version", "1.12");
}

WITH_TEST(an_older_interface_has_no_debugger, set_up_old)
{
	struct kfd_runtime_info info = {0};
	struct kfd_version version;

	assert_int_equal(call(w->fd, KFD_IOC_GET_VERSION, &version), 0);
	assert_int_equal(version.minor, 12);
	assert_int_equal(dbg_enable(w, getpid(), &info), -ENOTTY);
}

WORLD_TEST(queues_can_be_paused_and_unpaused)
{
	struct load_queue *q = own_queue(w);
	struct kfd_criu pause = {.op = 0}, unpause = {.op = 2};

	assert_int_equal(call(w->fd, KFD_IOC_CRIU_OP, &unpause), -EINVAL);
	assert_int_equal(call(w->fd, KFD_IOC_CRIU_OP, &pause), 0);
	assert_int_equal(pause.pid, getpid());
	assert_int_equal(pause.num_objects, 1);
	queue_submit(w->fd, q, 1);
	assert_stands_still(w, getpid());
	assert_int_equal(call(w->fd, KFD_IOC_CRIU_OP, &unpause), 0);
	wait_sum(w, getpid(), "executed", 1);
	assert_true(queue_is_right(q));
}
