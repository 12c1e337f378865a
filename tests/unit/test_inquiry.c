/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inquiries about processes. Here the work itself waits in the kernel, in state D until SIGKILL, as
 * it does for a process in execve; daemon.stuck_exec has the real attack.
 */
#include "support/test.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/inquiry.h"
#include "base/process.h"

#define USER_A 59011
#define USER_B 59012
#define USER_C 59013
#define USER_D 59014

struct work {
	pid_t worker; /* out */
	int number;
};

static pid_t start(uid_t uid)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		if (uid && (setgid(uid) || setuid(uid))) /* not root */
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		skip(); /* only root can start processes of others */
	close(ready[0]);
	gp_inquiry_use_helpers();
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int answer(void *data, struct gp_inquiry_files *files)
{
	struct work *w = data;

	(void)files;
	w->worker = getpid();
	return ++w->number;
}

/* The parent in vfork(2) waits for the child, in state D; SIGKILL ends it. */
static int wait_in_kernel(void *data, struct gp_inquiry_files *files)
{
	pid_t child = (pid_t)syscall(SYS_vfork);

	(void)data;
	(void)files;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return 0;
}

static int be_busy(void *data, struct gp_inquiry_files *files)
{
	uint64_t until_ns = gp_monotonic_ns() + 300 * GP_NS_PER_MS;

	while (gp_monotonic_ns() < until_ns)
		;
	return answer(data, files);
}

static int end_helper(void *data, struct gp_inquiry_files *files)
{
	(void)data;
	(void)files;
	_exit(1);
}

static int open_pipe(void *data, struct gp_inquiry_files *files)
{
	(void)data;
	files->n = 2;
	return pipe(files->fd);
}

static int ask(pid_t pid, gp_inquiry_work *work, struct work *w)
{
	*w = (struct work){.number = 41};
	return gp_inquire(pid, work, w, sizeof *w, NULL);
}

/* Milliseconds of an inquiry that is not answered. */
static uint64_t time_of_silence(pid_t pid, gp_inquiry_work *work)
{
	uint64_t begin_ns = gp_monotonic_ns();
	struct work w;

	assert_int_equal(ask(pid, work, &w), -ETIMEDOUT);
	assert_int_equal(w.number, 41);
	return (gp_monotonic_ns() - begin_ns) / GP_NS_PER_MS;
}

TEST(a_helper_does_the_work)
{
	pid_t pid = start(USER_D);
	uint64_t start_time;
	struct work w, own;

	assert_int_equal(ask(pid, answer, &w), 42);
	assert_int_equal(w.number, 42);
	assert_int_not_equal(w.worker, getpid());
	assert_int_equal(ask(getpid(), answer, &own), 42); /* needs no helper */
	assert_int_equal(own.worker, getpid());
	assert_int_equal(gp_process_read_start_time(pid, &start_time), 0);
	assert_true(start_time);
	end(pid);
	assert_int_equal(gp_process_read_start_time(pid, &start_time), -ESRCH);
}

TEST(a_file_comes_back_and_the_helper_has_no_copy_left)
{
	struct gp_inquiry_files files = {0};
	struct work none = {0};
	pid_t pid = start(USER_D);
	char byte;

	assert_int_equal(gp_inquire(pid, open_pipe, &none, sizeof none, &files), 0);
	assert_int_equal(files.n, 2);
	close(files.fd[1]);
	assert_int_equal(read(files.fd[0], &byte, 1), 0); /* else it would wait for the copy */
	close(files.fd[0]);
	end(pid);
}

TEST(a_silent_process_costs_its_account_and_no_other)
{
	pid_t silent = start(USER_A), other = start(USER_A), third = start(USER_A),
	      stranger = start(USER_B);
	struct work w;

	assert_in_range(time_of_silence(silent, wait_in_kernel), 50, 1000);
	assert_in_range(time_of_silence(silent, answer), 0, 40); /* it is not asked */
	assert_int_equal(ask(other, answer, &w), 42);
	assert_in_range(time_of_silence(other, wait_in_kernel), 50, 1000);
	assert_in_range(time_of_silence(third, answer), 0, 40); /* the account has used its time */
	assert_int_equal(ask(stranger, answer, &w), 42);
	assert_false(gp_process_gone(third, 1));
	assert_true(gp_process_lives(third, 1));
	assert_true(gp_process_can_run(third, 1));
	assert_int_equal(gp_process_start_time(third), 0);
	end(silent);
	end(other);
	end(third);
	end(stranger);
}

TEST(a_silent_process_is_asked_again_after_a_second)
{
	pid_t silent = start(USER_C);
	struct work w;

	time_of_silence(silent, wait_in_kernel);
	usleep(1100000);
	assert_int_equal(ask(silent, answer, &w), 42);
	end(silent);
}

TEST(a_helper_that_works_or_gets_no_cpu_is_waited_for)
{
	pid_t pid = start(USER_D);
	struct work w;

	assert_int_equal(ask(pid, be_busy, &w), 42);
	end(pid);
}

TEST(a_helper_that_ends_is_replaced)
{
	pid_t pid = start(USER_D);
	struct work w;

	time_of_silence(pid, end_helper);
	assert_int_equal(ask(pid, answer, &w), 42); /* the process was not to blame */
	end(pid);
}

TEST(a_forked_process_has_its_own_helper)
{
	pid_t pid = start(USER_D), child;
	struct work w;
	int status;

	assert_int_equal(ask(pid, answer, &w), 42);
	child = fork();
	if (!child) {
		pid_t helper = w.worker;

		_exit(ask(pid, answer, &w) != 42 || w.worker == helper || w.worker == getpid());
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(ask(pid, answer, &w), 42);
	end(pid);
}
