/* SPDX-License-Identifier: Apache-2.0 */
/* RUNTIME_ENABLE, and how a debugged program waits for its debugger. */
#include "kfd_world.h"

static int runtime(int fd, bool enable)
{
	struct kfd_runtime_enable args = {.mode_mask = enable};

	return call(fd, KFD_IOC_RUNTIME_ENABLE, &args);
}

static uint64_t runtime_state(const struct world *w, pid_t pid)
{
	return kfd_emu_process_number(&w->emu, pid, "runtime_state");
}

WORLD_TEST(a_runtime_is_enabled_once_and_before_queues)
{
	struct gpu gpu = load_gpu(w->fd, 0);
	struct load_queue q;

	queue_open(w->fd, &gpu, &q, KFD_QUEUE_COMPUTE_AQL, 7);
	assert_int_equal(runtime(w->fd, true), -EEXIST);
	queue_close(w->fd, &q);
	assert_int_equal(runtime(w->fd, true), 0);
	assert_int_equal(runtime(w->fd, true), -EBUSY);
	assert_int_equal(runtime(w->fd, false), 0);
	assert_int_equal(runtime_state(w, getpid()), KFD_RUNTIME_DISABLED);
}

/* A load that was attached to before it opened the device; its RUNTIME_ENABLE waits. */
static pid_t attach_early(struct world *w)
{
	struct kfd_runtime_info info = {.runtime_state = 9};
	int status;
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		load_runtime(load_open(), true);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(dbg_enable(w, pid, &info), 0);
	assert_int_equal(info.runtime_state, KFD_RUNTIME_DISABLED);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	return pid;
}

static void wait_notified(const struct world *w)
{
	struct pollfd pipe = {.fd = w->pipe[0], .events = POLLIN};
	char byte;

	assert_int_equal(poll(&pipe, 1, 20000), 1);
	assert_int_equal(read(w->pipe[0], &byte, 1), 1);
	assert_int_equal(byte, '.');
}

static int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

WORLD_TEST(a_debugged_program_waits_for_the_answer)
{
	struct kfd_runtime_info info = {0};
	struct kfd_dbg_trap args = {.query_exception_info = {.info_ptr = (uint64_t)(uintptr_t)&info,
							     .info_size = sizeof(info),
							     .exception_code = 48}};
	pid_t pid = attach_early(w);

	wait_notified(w);
	assert_int_equal(runtime_state(w, pid), KFD_RUNTIME_ENABLED);
	assert_int_equal(dbg(w->fd, pid, KFD_DBG_QUERY_EXCEPTION_INFO, &args), 0);
	assert_int_equal(info.runtime_state, KFD_RUNTIME_ENABLED);
	assert_int_equal(args.query_exception_info.info_size, 16);
	assert_int_equal(dbg_query(w, pid, KFD_EC_PROCESS_RUNTIME), KFD_EC_PROCESS_RUNTIME);
	assert_int_equal(dbg_query(w, pid, 0), -EAGAIN);
	emulator_sleep_ms(20);
	assert_false(has_ended(pid));
	assert_int_equal(dbg_answer(w, pid), 0);
	assert_int_equal(end_of(pid), 0);
}

/* The call that is tried again neither asks nor enables again. */
WORLD_TEST(a_signal_interrupts_the_wait_and_the_program_waits_again)
{
	uint64_t calls;
	pid_t pid = attach_early(w);

	wait_notified(w);
	calls = kfd_emu_count(&w->emu, "runtime_enable");
	seize(pid);
	detach(pid); /* stops it: that interrupts, and no handler is needed */
	for (int i = 0; i < 2000 && kfd_emu_count(&w->emu, "runtime_enable") == calls; i++)
		emulator_sleep_ms(5);
	assert_true(kfd_emu_count(&w->emu, "runtime_enable") > calls);
	assert_true(kfd_emu_count(&w->emu, "refused_EINTR") > 0);
	assert_int_equal(kfd_emu_count(&w->emu, "notifications"), 1);
	assert_int_equal(dbg_answer(w, pid), 0);
	assert_int_equal(end_of(pid), 0);
}

WORLD_TEST(a_debugger_that_leaves_leaves_it_waiting)
{
	pid_t pid = attach_early(w);

	wait_notified(w);
	assert_int_equal(dbg_disable(w, pid), 0);
	emulator_sleep_ms(20);
	assert_false(has_ended(pid));
	seize(pid); /* interrupted, it tries again, and is not debugged any more */
	detach(pid);
	assert_int_equal(end_of(pid), 0);
}

WORLD_TEST(an_answer_nobody_asked_for_is_kept)
{
	enable_self(w);
	assert_int_equal(dbg_answer(w, getpid()), 0);
	assert_int_equal(runtime(w->fd, true), 0); /* would wait for ever otherwise */
	assert_int_equal(kfd_emu_process_number(&w->emu, getpid(), "waiting_answers"), 0);
}

WORLD_TEST(the_end_of_a_runtime_is_told_too_and_resumes)
{
	struct kfd_runtime_info info = {0};
	uint32_t id = 0;

	assert_int_equal(runtime(w->fd, true), 0);
	own_queue(w);
	assert_int_equal(dbg_enable(w, getpid(), &info), 0);
	assert_int_equal(info.runtime_state, KFD_RUNTIME_ENABLED);
	clear_new(w, getpid());
	assert_int_equal(dbg_suspend(w, getpid(), 0, &id, 1), 1);
	assert_int_equal(dbg_answer(w, getpid()), 0);
	assert_int_equal(runtime(w->fd, false), 0);
	assert_int_equal(runtime_state(w, getpid()), KFD_RUNTIME_DISABLED);
	assert_int_equal(kfd_emu_queue_number(&w->emu, getpid(), 0, "suspended"), 0);
	assert_int_equal(dbg_suspend(w, getpid(), 0, &id, 1), -EPERM);
	assert_int_equal(dbg_query(w, getpid(), KFD_EC_PROCESS_RUNTIME), KFD_EC_PROCESS_RUNTIME);
}

/* A target that waits does not keep others, nor its debugger, from the driver. */
WORLD_TEST(others_go_on_while_one_waits)
{
	pid_t pid = attach_early(w);

	wait_notified(w);
	assert_int_equal(kfd_load_start(&w->load, "--packets", "20", NULL), 0);
	assert_int_equal(kfd_load_wait(&w->load), 0);
	assert_int_equal(dbg_snapshot(w, pid, 0, NULL, 0), 0);
	kill(pid, SIGKILL);
	assert_int_equal(end_of(pid), -1);
}
