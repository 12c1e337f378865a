/* SPDX-License-Identifier: Apache-2.0 */
/* Queues that are destroyed while suspended, debuggers and targets that die. */
#include "kfd_world.h"

struct destroyer {
	int fd;
	uint32_t id;
	int result;
	bool done;
};

static void *destroy(void *arg)
{
	struct destroyer *d = arg;
	struct kfd_destroy_queue args = {.queue_id = d->id};

	d->result = call(d->fd, KFD_IOC_DESTROY_QUEUE, &args);
	__atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_done(struct destroyer *d)
{
	return __atomic_load_n(&d->done, __ATOMIC_ACQUIRE);
}

static void on_signal(int number)
{
	(void)number;
}

/* One queue of this process, suspended by itself. */
static struct load_queue suspend_own(const struct world *w)
{
	struct gpu gpu = load_gpu(w->fd, 0);
	struct load_queue q;
	uint32_t id = 0;

	load_runtime(w->fd, true);
	queue_open(w->fd, &gpu, &q, KFD_QUEUE_COMPUTE_AQL, 7);
	enable_self(w);
	clear_new(w, getpid());
	assert_int_equal(dbg_suspend(w, getpid(), 0, &id, 1), 1);
	return q;
}

WORLD_AND_MES_TEST(destroying_a_suspended_queue_waits_for_its_resume)
{
	struct load_queue q = suspend_own(w);
	struct destroyer first = {.fd = w->fd}, second = {.fd = w->fd};
	uint32_t id = 0;
	pthread_t thread;

	(void)q;
	assert_int_equal(pthread_create(&thread, NULL, destroy, &first), 0);
	wait_sum(w, getpid(), "being_destroyed", 1);
	destroy(&second);
	assert_int_equal(second.result, -EBUSY);
	assert_int_equal(dbg_suspend(w, getpid(), 0, &id, 1), 1); /* still suspended: counts */
	assert_false(is_done(&first));
	id = 0;
	assert_int_equal(dbg_resume(w, getpid(), &id, 1), 1);
	pthread_join(thread, NULL);
	assert_int_equal(first.result, 0);
	assert_int_equal(kfd_emu_queues(&w->emu, getpid()), 0);
}

/* The signal is handled without SA_RESTART. */
WORLD_TEST(a_signal_interrupts_a_destroy)
{
	struct load_queue q = suspend_own(w);
	struct destroyer destroyer = {.fd = w->fd};
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t thread;

	(void)q;
	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(pthread_create(&thread, NULL, destroy, &destroyer), 0);
	wait_sum(w, getpid(), "being_destroyed", 1);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	assert_int_equal(destroyer.result, -EINTR);
	assert_int_equal(kfd_emu_process_sum(&w->emu, getpid(), "being_destroyed"), 0);
	assert_int_equal(kfd_emu_process_sum(&w->emu, getpid(), "suspended"), 1);
}

/* With SA_RESTART it goes on waiting, as the kernel restarts the call. */
WORLD_TEST(a_destroy_is_restarted_where_signals_are)
{
	struct load_queue q = suspend_own(w);
	struct destroyer destroyer = {.fd = w->fd};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t thread;

	(void)q;
	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(pthread_create(&thread, NULL, destroy, &destroyer), 0);
	wait_sum(w, getpid(), "being_destroyed", 1);
	pthread_kill(thread, SIGUSR1);
	for (int i = 0; i < 4000 && kfd_emu_count(&w->emu, "destroy_queue") < 2; i++)
		emulator_sleep_ms(5);
	assert_int_equal(kfd_emu_count(&w->emu, "destroy_queue"), 2);
	assert_false(is_done(&destroyer));
	assert_int_equal(dbg_disable(w, getpid()), 0);
	pthread_join(thread, NULL);
	assert_int_equal(destroyer.result, 0);
}

/* Attaches to the target, suspends its queues, tells, and does what ends it. */
static void be_debugger(const struct world *w, pid_t target, int tell, bool execs)
{
	struct world own = *w;
	struct kfd_runtime_info info = {0};
	uint32_t ids[3] = {0, 1, 2};

	own.fd = open(w->emu.kfd, O_RDWR | O_CLOEXEC);
	seize(target);
	assert_int_equal(dbg_enable(&own, target, &info), 0);
	clear_new(&own, target);
	if (dbg_suspend(&own, target, 0, ids, 3) != 3 || write(tell, "x", 1) != 1)
		_exit(1);
	if (execs) {
		emulator_sleep_ms(300);
		execlp("sleep", "sleep", "60", NULL);
	}
	pause();
	_exit(1);
}

static pid_t start_debugger(const struct world *w, pid_t target, bool execs)
{
	int ends[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (!pid)
		be_debugger(w, target, ends[1], execs);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	return pid;
}

WORLD_AND_MES_TEST(queues_run_again_when_the_debugger_is_killed)
{
	pid_t debugger;

	assert_int_equal(kfd_load_start(&w->load, "--queues", "3", NULL), 0);
	for (int i = 0; i < 3; i++) {
		debugger = start_debugger(w, w->load.pid, false);
		assert_int_equal(kfd_emu_process_sum(&w->emu, w->load.pid, "suspended"), 3);
		assert_int_equal(kfd_emu_process_number(&w->emu, w->load.pid, "debugger"),
				 debugger);
		assert_stands_still(w, w->load.pid);
		kill(debugger, SIGKILL);
		waitpid(debugger, NULL, 0);
		wait_progress(w, w->load.pid);
		/* The driver resumes the queues first, and ends the session then. */
		TEST_WAIT(!kfd_emu_process_number(&w->emu, w->load.pid, "debugged"));
	}
	assert_int_equal(kfd_load_stop(&w->load), 0);
}

/* It is the program that has a session, not the process. */
WORLD_TEST(queues_run_again_when_the_debugger_execs)
{
	pid_t debugger;

	assert_int_equal(kfd_load_start(&w->load, "--queues", "3", NULL), 0);
	debugger = start_debugger(w, w->load.pid, true);
	wait_progress(w, w->load.pid);
	assert_false(has_ended(debugger));
	assert_int_equal(kfd_emu_process_number(&w->emu, debugger, "pasid"), UINT64_MAX);
	kill(debugger, SIGKILL);
	waitpid(debugger, NULL, 0);
	assert_int_equal(kfd_load_stop(&w->load), 0);
}

WORLD_TEST(closing_the_file_changes_nothing)
{
	pid_t pid = attach_seen_load(w, "2");
	uint32_t ids[2] = {0, 1};

	assert_int_equal(dbg_suspend(w, pid, 0, ids, 2), 2);
	close(w->fd);
	assert_stands_still(w, pid);
	assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "suspended"), 2);
	w->fd = open(w->emu.kfd, O_RDWR | O_CLOEXEC);
	assert_int_equal(dbg_resume(w, pid, ids, 2), 2);
	assert_int_equal(stop_load(w), 0);
}

static bool is_gone(const struct world *w)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/proc/%d", w->emu.sysfs, w->load.pid);
	return access(path, F_OK) != 0;
}

WORLD_TEST(a_dead_target_is_gone_at_once_for_calls_and_soon_from_sysfs)
{
	pid_t pid = attach_seen_load(w, "2");
	uint32_t ids[2] = {0, 1};

	assert_int_equal(dbg_suspend(w, pid, 0, ids, 2), 2);
	assert_false(is_gone(w));
	kill(pid, SIGKILL);
	while (!has_ended(pid))
		emulator_sleep_ms(1);
	assert_int_equal(dbg_resume(w, pid, ids, 2), -ESRCH);
	TEST_WAIT(is_gone(w));
	assert_int_equal(kfd_emu_queues(&w->emu, pid), 0);
	kfd_load_kill(&w->load);
}

WORLD_TEST(a_target_that_waits_in_a_destroy_can_be_killed)
{
	uint32_t id = 0;
	pid_t pid = start_load(w, "--idle");

	attach(w, pid);
	clear_new(w, pid);
	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), 1);
	kill(pid, SIGTERM);
	wait_sum(w, pid, "being_destroyed", 1);
	kill(pid, SIGKILL);
	while (!has_ended(pid))
		emulator_sleep_ms(1);
	TEST_WAIT(is_gone(w));
}
