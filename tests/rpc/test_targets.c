/* SPDX-License-Identifier: Apache-2.0 */
/* Which process a client means: never another one, whatever it says and wherever it says it. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
/* after those it needs */
#include <cmocka.h>

#include "base/process.h"
#include "rpc_world.h"

#define NOBODY 65534

/* 0 or -errno, and the pid that the server took it for. */
static int ask_target(struct gp_client *client, struct json_object *target, const int *fd,
                      struct json_object **result, struct gp_error *err)
{
	struct json_object *params = json_object_new_object();

	*err = (struct gp_error){0};
	if (target)
		json_object_object_add(params, "target", target);
	return gp_client_call(client, "target", params, fd, fd ? 1 : 0, result, err);
}

static struct json_object *by_pid(pid_t pid, uint64_t start_time)
{
	struct json_object *target = json_object_new_object();

	json_object_object_add(target, "pid", json_object_new_int(pid));
	if (start_time)
		json_object_object_add(target, "start_time", json_object_new_uint64(start_time));
	return target;
}

static void assert_taken(struct gp_client *client, struct json_object *target, const int *fd,
                         pid_t pid)
{
	struct json_object *result;
	struct gp_error err;

	if (ask_target(client, target, fd, &result, &err))
		fail_msg("%s", err.text);
	assert_int_equal(number(result, "pid"), pid);
	assert_int_equal(number(result, "start_time"), gp_process_start_time(pid));
	json_object_put(result);
}

static void assert_refused(struct gp_client *client, struct json_object *target, const int *fd,
                           int code, const char *words)
{
	struct gp_error err;

	assert_int_equal(ask_target(client, target, fd, NULL, &err), code);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
}

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

/* ---- in our own pid namespace
 * -------------------------------------------------------------------- */

static void self_is_who_connected(void **state)
{
	struct gp_client *client = client_of(*state);

	assert_taken(client, NULL, NULL, getpid());
	assert_taken(client, object("{\"self\":true}"), NULL, getpid());
	gp_client_close(client);
}

static void a_pidfd_is_its_process(void **state)
{
	struct gp_client *client = client_of(*state);
	pid_t pid = start_child();
	int fd = gp_pidfd_open(pid);

	assert_return_code(fd, errno);
	assert_taken(client, object("{\"pidfd\":0}"), &fd, pid);
	kill(pid, SIGKILL);
	while (!gp_pidfd_ended(fd))
		usleep(1000);
	assert_refused(client, object("{\"pidfd\":0}"), &fd, -ESRCH, "has ended"); /* a zombie */
	assert_refused(client, by_pid(pid, 0), NULL, -ESRCH, "has ended");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_refused(client, object("{\"pidfd\":0}"), &fd, -ESRCH, "has ended");
	close(fd);
	gp_client_close(client);
}

static void a_pid_is_taken_with_the_right_start_time_or_none(void **state)
{
	struct gp_client *client = client_of(*state);
	pid_t pid = start_child();
	uint64_t start_time = gp_process_start_time(pid);

	assert_taken(client, by_pid(pid, start_time), NULL, pid);
	assert_taken(client, by_pid(pid, 0), NULL, pid);
	assert_refused(client, by_pid(pid, start_time + 1), NULL, -ESRCH, "another one by now");
	assert_refused(client, by_pid(pid, start_time - 1), NULL, -ESRCH, "another one by now");
	end(pid);
	assert_refused(client, by_pid(pid, start_time), NULL, -ESRCH, "has ended");
	assert_refused(client, by_pid(pid, 0), NULL, -ESRCH, "has ended");
	gp_client_close(client);
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

static void a_thread_is_not_a_process(void **state)
{
	struct gp_client *client = client_of(*state);
	struct idler thread;
	pthread_t id;
	int fd;

	pthread_barrier_init(&thread.turn, NULL, 2);
	assert_int_equal(pthread_create(&id, NULL, idle, &thread), 0);
	pthread_barrier_wait(&thread.turn);
	assert_refused(client, by_pid(thread.tid, 0), NULL, -ESRCH, "name its process");
	fd = (int)syscall(SYS_pidfd_open, thread.tid, O_EXCL /* PIDFD_THREAD, Linux 6.9 */);
	if (fd >= 0) {
		assert_refused(client, object("{\"pidfd\":0}"), &fd, -ESRCH, "name its process");
		close(fd);
	}
	pthread_barrier_wait(&thread.turn);
	pthread_join(id, NULL);
	pthread_barrier_destroy(&thread.turn);
	gp_client_close(client);
}

static void what_names_no_process_is_refused(void **state)
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
		"{\"pidfd\":0}", /* none came */
		"{\"pidfd\":4}",
		"{\"pidfd\":-1}",
		"{\"process\":1}",
	};
	struct gp_client *client = client_of(*state);
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_refused(client, object(bad[i]), NULL, -EINVAL, "");
	assert_refused(client, object("{\"pidfd\":0}"), &fd, -EINVAL, "is not a pidfd");
	assert_refused(client, object("{\"pidd\":1}"), NULL, -EINVAL, "perhaps 'pid");
	assert_refused(client, json_object_new_int(1), NULL, -EINVAL, "must be an object");
	close(fd);
	gp_client_close(client);
}

/* A child with a pid of our choice; -1: somebody else has it by now. */
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

static void a_pid_that_was_used_again_is_not_the_old_process(void **state)
{
	struct gp_client *client = client_of(*state);
	pid_t old, again = -1;
	uint64_t start_time;
	int fd = -1;

	if (geteuid())
		skip();
	for (unsigned i = 0; again < 0 && i < 20; i++) {
		if (fd >= 0)
			close(fd);
		old = start_child();
		start_time = gp_process_start_time(old);
		fd = gp_pidfd_open(old);
		end(old);
		usleep(50000); /* start times are in hundredths of a second */
		again = start_child_as(old);
	}
	if (again < 0)
		skip();
	assert_int_equal(again, old);
	assert_refused(client, by_pid(old, start_time), NULL, -ESRCH, "another one by now");
	assert_refused(client, object("{\"pidfd\":0}"), &fd, -ESRCH, "has ended");
	assert_taken(client, by_pid(again, 0), NULL, again);
	end(again);
	close(fd);
	gp_client_close(client);
}

/* ---- other users, other namespaces
 * --------------------------------------------------------------- */

/* In a child, where an assertion would go on with the next test. */
#define CHECK(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

static void assert_child_ends_well(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void the_kernel_says_who_asks(void **state)
{
	struct world *w = *state;
	gid_t groups[] = {4, 5, 6};
	pid_t pid;

	if (geteuid())
		skip();
	chmod(w->folder, 0755);
	chmod(w->path, 0666);
	pid = fork();
	if (!pid) {
		struct json_object *result;
		struct gp_client *client;
		struct gp_error err = {0};

		CHECK(!setgroups(3, groups) && !setgid(NOBODY) && !setuid(NOBODY));
		CHECK(!gp_client_connect(w->path, &client, &err));
		CHECK(!ask_target(client, NULL, NULL, &result, &err));
		CHECK(number(result, "uid") == NOBODY && number(result, "groups") == 3);
		CHECK(number(result, "pid") == (uint64_t)getpid());
		_exit(0);
	}
	assert_child_ends_well(pid);
}

/* Runs as process 1 of a new pid namespace; `w` serves outside. */
static void ask_from_inside(const struct world *w)
{
	struct json_object *result;
	struct gp_client *client;
	struct gp_error err = {0};
	int fd;

	CHECK(getpid() == 1);
	CHECK(!gp_client_connect(w->path, &client, &err));
	CHECK(ask_target(client, by_pid(1, 0), NULL, NULL, &err) == -EPERM);
	CHECK(strstr(err.text, "send a pidfd"));
	CHECK(ask_target(client, by_pid(1, gp_process_start_time(1)), NULL, NULL, &err) == -EPERM);
	CHECK(!ask_target(client, object("{\"self\":true}"), NULL, &result, &err));
	CHECK(number(result, "pid") > 1);
	fd = gp_pidfd_open(1);
	CHECK(fd >= 0);
	CHECK(!ask_target(client, object("{\"pidfd\":0}"), &fd, &result, &err));
	CHECK(number(result, "pid") > 1);
	_exit(0);
}

static void a_pid_from_another_namespace_is_refused(void **state)
{
	struct world *w = *state;
	pid_t pid = fork(), inside;
	int status;

	if (!pid) {
		if (unshare(CLONE_NEWPID))
			_exit(77);
		inside = fork();
		if (!inside)
			ask_from_inside(w);
		CHECK(waitpid(inside, &status, 0) == inside);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	assert_child_ends_well(pid);
}

/* A server that cannot see its client: as process 1 of a new pid namespace with its own /proc. */
static void serve_inside(struct world *w, int ready, int done)
{
	char byte = 0;

	CHECK(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK(!mount("proc", "/proc", "proc", 0, NULL));
	world_start(w);
	CHECK(write(ready, w->path, sizeof w->path) == sizeof w->path);
	(void)!read(done, &byte, 1); /* until the other end is closed */
	world_stop(w);
	_exit(0);
}

static void a_process_that_the_server_cannot_see_is_refused(void **state)
{
	int ready[2], done[2], self;
	struct world w = {0};
	struct gp_client *client;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		pid_t inside;
		int status;

		close(done[1]);
		if (unshare(CLONE_NEWPID | CLONE_NEWNS))
			_exit(77);
		inside = fork();
		if (!inside)
			serve_inside(&w, ready[1], done[0]);
		CHECK(waitpid(inside, &status, 0) == inside);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	close(ready[1]);
	close(done[0]);
	if (read(ready[0], w.path, sizeof w.path) == sizeof w.path) {
		client = client_of(&w);
		self = gp_pidfd_open(getpid());
		assert_refused(client, object("{\"self\":true}"), NULL, -EPERM, "send a pidfd");
		assert_refused(client, by_pid(1, 0), NULL, -EPERM, "send a pidfd");
		assert_refused(client, object("{\"pidfd\":0}"), &self, -EPERM, "cannot be seen");
		close(self);
		gp_client_close(client);
	}
	close(ready[0]);
	close(done[1]);
	assert_child_ends_well(pid);
}

/* The kernel says that it does not know SO_PEERPIDFD, as before Linux 6.5. */
static void forget_peer_pidfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 77 /* SO_PEERPIDFD */, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

static void an_older_kernel_knows_who_connected_too(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		struct json_object *result;
		struct gp_client *client;
		struct gp_error err = {0};
		struct world w = {0};

		forget_peer_pidfd();
		world_start(&w);
		CHECK(!gp_client_connect(w.path, &client, &err));
		CHECK(!ask_target(client, NULL, NULL, &result, &err));
		CHECK(number(result, "pid") == (uint64_t)getpid());
		CHECK(number(result, "start_time") == gp_process_start_time(getpid()));
		gp_client_close(client);
		world_stop(&w);
		_exit(0);
	}
	assert_child_ends_well(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(self_is_who_connected),
		WORLD_TEST(a_pidfd_is_its_process),
		WORLD_TEST(a_pid_is_taken_with_the_right_start_time_or_none),
		WORLD_TEST(a_thread_is_not_a_process),
		WORLD_TEST(what_names_no_process_is_refused),
		WORLD_TEST(a_pid_that_was_used_again_is_not_the_old_process),
		WORLD_TEST(the_kernel_says_who_asks),
		WORLD_TEST(a_pid_from_another_namespace_is_refused),
		cmocka_unit_test(an_older_kernel_knows_who_connected_too),
		cmocka_unit_test(a_process_that_the_server_cannot_see_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
