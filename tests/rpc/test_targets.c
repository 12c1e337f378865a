/* SPDX-License-Identifier: Apache-2.0 */
/* The process that a client names: never a different one. */
#include "support/test.h"

#include <linux/sched.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "targets.h"

/* A child that does nothing; ended and forgotten by `end`. */
static pid_t start_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

WORLD_TEST(self_is_who_connected)
{
	struct gp_client *client = client_of(w);

	assert_taken(client, NULL, getpid());
	assert_taken(client, object("{\"self\":true}"), getpid());
}

WORLD_TEST(a_process_that_has_ended_is_refused)
{
	struct gp_client *client = client_of(w);
	pid_t pid = start_child();
	int fd = gp_pidfd_open(pid);

	assert_return_code(fd, errno);
	kill(pid, SIGKILL);
	while (!gp_pidfd_ended(fd))
		usleep(1000);
	assert_refused(client, by_pid(pid, 0), -ESRCH, "has ended"); /* a zombie */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_refused(client, by_pid(pid, 0), -ESRCH, "has ended");
}

WORLD_TEST(a_pid_is_taken_with_the_right_start_time_or_none)
{
	struct gp_client *client = client_of(w);
	pid_t pid = start_child();
	uint64_t start_time = gp_process_start_time(pid);

	assert_taken(client, by_pid(pid, start_time), pid);
	assert_taken(client, by_pid(pid, 0), pid);
	assert_refused(client, by_pid(pid, start_time + 1), -ESRCH, "its pid was reused");
	assert_refused(client, by_pid(pid, start_time - 1), -ESRCH, "its pid was reused");
	end(pid);
	assert_refused(client, by_pid(pid, start_time), -ESRCH, "has ended");
	assert_refused(client, by_pid(pid, 0), -ESRCH, "has ended");
}

struct idler {
	pthread_barrier_t turn;
	pid_t tid;
};

static void *idle(void *arg)
{
	struct idler *i = arg;

	i->tid = gettid();
	pthread_barrier_wait(&i->turn);
	pthread_barrier_wait(&i->turn);
	return NULL;
}

WORLD_TEST(a_thread_is_not_a_process)
{
	struct gp_client *client = client_of(w);
	struct idler thread;
	pthread_t id;

	pthread_barrier_init(&thread.turn, NULL, 2);
	assert_int_equal(pthread_create(&id, NULL, idle, &thread), 0);
	pthread_barrier_wait(&thread.turn);
	assert_refused(client, by_pid(thread.tid, 0), -ESRCH, "use the pid of its process");
	pthread_barrier_wait(&thread.turn);
	pthread_join(id, NULL);
	pthread_barrier_destroy(&thread.turn);
}

WORLD_TEST(what_names_no_process_is_refused)
{
	static const char *const bad[] = {
		"{}",
		"{\"self\":false}",
		"{\"self\":1}",
		"{\"self\":true,\"pid\":1}",
		"{\"pid\":0}",
		"{\"pid\":-1}",
		"{\"pid\":4294967297}",
		"{\"pid\":1.5}",
		"{\"pid\":\"1\"}",
		"{\"pid\":1,\"start_time\":0}",
		"{\"pid\":1,\"pidfd\":0}",
		"{\"start_time\":1}",
		"{\"self\":true,\"start_time\":1}",
		"{\"pidfd\":0}",
		"{\"process\":1}",
	};
	struct gp_client *client = client_of(w);

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_refused(client, object(bad[i]), -EINVAL, "");
	assert_refused(client, object("{\"pidd\":1}"), -EINVAL, "perhaps 'pid");
	assert_refused(client, json_object_new_int(1), -EINVAL, "must be a JSON object");
}

/* A child with a pid of our choice; -1: the pid is in use. */
static pid_t start_child_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
	long got = syscall(SYS_clone3, &args, sizeof args);

	if (!got) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return got < 0 ? -1 : (pid_t)got;
}

WORLD_TEST(a_pid_that_was_used_again_is_not_the_old_process)
{
	struct gp_client *client = client_of(w);
	pid_t old, again = -1;
	uint64_t start_time;

	if (geteuid())
		skip();
	for (unsigned i = 0; again < 0 && i < 20; i++) {
		old = start_child();
		start_time = gp_process_start_time(old);
		end(old);
		usleep(50000); /* start times are in hundredths of a second */
		again = start_child_as(old);
	}
	if (again < 0)
		skip();
	assert_int_equal(again, old);
	assert_refused(client, by_pid(old, start_time), -ESRCH, "its pid was reused");
	assert_taken(client, by_pid(again, 0), again);
	end(again);
}
