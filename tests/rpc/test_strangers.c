/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that are other users, or in other pid namespaces, and older kernels. */
#include "support/process.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "targets.h"

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

WORLD_TEST(the_kernel_says_who_asks)
{
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

		CHECK(!setgroups(3, groups) && !setgid(TEST_NOBODY) && !setuid(TEST_NOBODY));
		CHECK(!gp_client_connect(w->path, &client, &err));
		CHECK(!ask_target(client, NULL, &result, &err));
		CHECK(number(result, "uid") == TEST_NOBODY && number(result, "groups") == 3);
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
	uint64_t self;

	CHECK(getpid() == 1);
	CHECK(!gp_client_connect(w->path, &client, &err));
	CHECK(ask_target(client, by_pid(4000000, 0), NULL, &err) == -ESRCH);
	CHECK(ask_target(client, by_pid(1, 1), NULL, &err) == -ESRCH);
	CHECK(strstr(err.text, "process 1 has ended and its pid was reused"));
	CHECK(!ask_target(client, object("{\"self\":true}"), &result, &err));
	CHECK(number(result, "pid") > 1);
	self = number(result, "pid");
	CHECK(!ask_target(client, by_pid(1, 0), &result, &err));
	CHECK(number(result, "pid") == self);
	CHECK(!ask_target(client, by_pid(1, number(result, "start_time")), &result, &err));
	CHECK(number(result, "pid") == self);
	_exit(0);
}

WORLD_TEST(a_pid_from_another_namespace_is_translated)
{
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

TEST(a_process_that_the_server_cannot_see_is_refused)
{
	int ready[2], done[2];
	struct world w = {0};
	struct gp_client *client;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		pid_t inside;
		int status;

		raw_close(done[1]);
		if (unshare(CLONE_NEWPID | CLONE_NEWNS))
			_exit(77);
		inside = fork();
		if (!inside)
			serve_inside(&w, ready[1], done[0]);
		CHECK(waitpid(inside, &status, 0) == inside);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	raw_close(ready[1]);
	raw_close(done[0]);
	if (read(ready[0], w.path, sizeof w.path) == sizeof w.path) {
		client = client_of(&w);
		assert_refused(client, object("{\"self\":true}"), -EPERM, "cannot be identified");
		assert_refused(client, by_pid(1, 0), -EPERM, "cannot be identified");
		client_close(client);
	}
	raw_close(ready[0]);
	raw_close(done[1]);
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

TEST(an_older_kernel_knows_who_connected_too)
{
	pid_t pid = fork();

	if (!pid) {
		struct json_object *result;
		struct gp_client *client;
		struct gp_error err = {0};
		struct world w = {0};

		forget_peer_pidfd();
		world_start(&w);
		CHECK(!gp_client_connect(w.path, &client, &err));
		CHECK(!ask_target(client, NULL, &result, &err));
		CHECK(number(result, "pid") == (uint64_t)getpid());
		CHECK(number(result, "start_time") == gp_process_start_time(getpid()));
		client_close(client);
		world_stop(&w);
		_exit(0);
	}
	assert_child_ends_well(pid);
}
