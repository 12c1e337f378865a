/* SPDX-License-Identifier: Apache-2.0 */
/* Information about other processes, which the test starts. */
#include "support/test.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/process.h"

#define NOBODY 65534

static bool dumpable = true, in_own_namespace;

/* A child that does nothing, named so, as user `uid` (0: as the test). */
static pid_t start(const char *name, uid_t uid)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (name)
			prctl(PR_SET_NAME, name);
		if (uid && (setgid(uid) || setuid(uid)))
			_exit(1);
		if (in_own_namespace && unshare(CLONE_NEWUSER))
			_exit(1);
		prctl(PR_SET_DUMPABLE, dumpable);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(a_start_time_stays_and_is_0_for_nobody)
{
	pid_t pid = start(NULL, 0);
	uint64_t time = gp_process_start_time(pid);

	assert_true(time > 0);
	assert_true(time >= gp_process_start_time(getpid()));
	assert_true(gp_process_start_time(pid) == time);
	stop(pid);
	assert_int_equal(gp_process_start_time(pid), 0);
	assert_int_equal(gp_process_start_time(-1), 0);
	assert_int_equal(gp_process_start_time(0x3fffff), 0);
}

/* The name stands before the start time in the same line, and it is the process's to choose. */
TEST(who_has_ended_does_not_live_though_nobody_waited_for_it)
{
	pid_t pid = fork();
	uint64_t time;
	siginfo_t info;

	if (!pid)
		for (;;)
			pause();
	time = gp_process_start_time(pid);
	assert_true(gp_process_lives(pid, time));
	assert_false(gp_process_lives(pid, time + 1));
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(gp_process_start_time(pid), time); /* it is there yet */
	assert_false(gp_process_lives(pid, time));
	waitpid(pid, NULL, 0);
	assert_false(gp_process_lives(pid, time));
}

/* A full file table says nothing about other processes. */
TEST(who_cannot_be_looked_at_is_not_gone)
{
	pid_t pid = start(NULL, 0);
	uint64_t start_time = gp_process_start_time(pid);
	struct rlimit before, none;
	int next = dup(STDIN_FILENO);
	bool gone[3], lives[2];

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
	assert_false(gp_process_gone(pid, start_time));
	assert_true(gp_process_gone(pid, start_time + 1));
	assert_true(gp_process_gone(-1, 1) && gp_process_gone(0, 1));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	gone[0] = gp_process_start_time(pid) || gp_process_gone(pid, start_time);
	lives[0] = gp_process_lives(pid, start_time);
	stop(pid);
	gone[1] = gp_process_gone(pid, start_time);
	lives[1] = gp_process_lives(pid, start_time);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	gone[2] = gp_process_gone(pid, start_time);
	assert_false(gone[0]);
	assert_true(lives[0]);
	assert_true(gone[1] && gone[2]);
	assert_false(lives[1]);
}

TEST(a_name_with_brackets_and_blanks_does_not_hide_the_start_time)
{
	static const char *const name[] = {") 1 2 3 4", "a) S 1 (b", "((((", "\n) R 9 9"};
	static const char *const shown[] = {") 1 2 3 4", "a) S 1 (b", "((((", "\\x0a) R 9 9"};
	char text[64];

	for (unsigned i = 0; i < sizeof name / sizeof *name; i++) {
		pid_t pid = start(name[i], 0);

		assert_true(gp_process_start_time(pid) >= gp_process_start_time(getpid()));
		assert_string_equal(gp_process_name(pid, text, sizeof text), shown[i]);
		stop(pid);
	}
}

TEST(a_name_is_cut_to_fit_and_empty_for_nobody)
{
	pid_t pid = start("fifteen-letters", 0);
	char text[16], small[4];

	assert_string_equal(gp_process_name(pid, text, sizeof text), "fifteen-letters");
	assert_string_equal(gp_process_name(pid, small, sizeof small), "fif");
	stop(pid);
	assert_string_equal(gp_process_name(pid, text, sizeof text), "");
}

TEST(a_user_is_told)
{
	uid_t uid = 12345;
	pid_t pid;

	assert_true(gp_process_uid(getpid(), &uid));
	assert_int_equal(uid, geteuid());
	if (geteuid())
		skip();
	pid = start(NULL, NOBODY);
	assert_true(gp_process_uid(pid, &uid));
	assert_int_equal(uid, NOBODY);
	stop(pid);
	assert_false(gp_process_uid(pid, &uid));
	dumpable = false; /* as a process that gave up root's rights; any process can set it */
	pid = start(NULL, NOBODY);
	dumpable = true;
	assert_true(gp_process_uid(pid, &uid));
	assert_int_equal(uid, NOBODY);
	stop(pid);
}

TEST(a_pidfd_tells_the_end_also_of_a_process_that_nobody_waited_for)
{
	pid_t pid = start(NULL, 0);
	int fd = gp_pidfd_open(pid);

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_false(gp_pidfd_ended(fd));
	kill(pid, SIGKILL);
	for (int i = 0; i < 5000 && !gp_pidfd_ended(fd); i++)
		usleep(1000);
	assert_true(gp_pidfd_ended(fd));
	waitpid(pid, NULL, 0);
	assert_true(gp_pidfd_ended(fd));
	close(fd);
	assert_int_equal(gp_pidfd_open(pid), -ESRCH);
	assert_true(gp_pidfd_open(-1) < 0);
}

TEST(a_file_of_another_process_is_duplicated)
{
	char text[8] = "";
	pid_t pid;
	int fd, copy, file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	assert_true(file >= 0);
	pid = start(NULL, 0);
	assert_int_equal(pwrite(file, "hello", 5, 0), 5);
	fd = gp_pidfd_open(pid);
	copy = gp_pidfd_getfd(fd, file);
	if (copy == -EPERM)
		skip(); /* no ptrace here */
	assert_true(copy >= 0);
	assert_true(fcntl(copy, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(pread(copy, text, 5, 0), 5);
	assert_string_equal(text, "hello");
	assert_int_equal(gp_pidfd_getfd(fd, 1000), -EBADF);
	stop(pid);
	assert_int_equal(gp_pidfd_getfd(fd, file), -ESRCH);
	close(copy);
	close(file);
	close(fd);
}

/* Runs `f` in a process of user NOBODY; its exit status. */
static int as_nobody(int (*f)(pid_t pid), pid_t pid)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(99);
		_exit(f(pid));
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static int sentence_names_the_user(pid_t pid)
{
	struct gp_error err = {0};

	if (gp_have_ptrace())
		return 1;
	if (gp_process_denied(&err, pid, -EPERM) != -EPERM || err.code != -EPERM)
		return 2;
	return strstr(err.text, "belongs to user 0") && strstr(err.text, "root") ? 0 : 3;
}

static int sentence_says_that_it_has_ended(pid_t pid)
{
	struct gp_error err = {0};

	return gp_process_denied(&err, pid, -EPERM) != -ESRCH || !strstr(err.text, "ended");
}

static int sentence_is_about_my_own(pid_t pid)
{
	struct gp_error err = {0};

	if (gp_process_denied(&err, pid, -EACCES) != -EACCES)
		return 1;
	return strstr(err.text, "belongs to user") || !strstr(err.text, "root");
}

TEST(a_denial_says_what_stands_in_the_way)
{
	pid_t root, own;

	if (geteuid())
		skip();
	root = start(NULL, 0);
	own = start(NULL, NOBODY);
	assert_int_equal(as_nobody(sentence_names_the_user, root), 0);
	assert_int_equal(as_nobody(sentence_is_about_my_own, own), 0);
	stop(root);
	stop(own);
	assert_int_equal(as_nobody(sentence_says_that_it_has_ended, root), 0);
}

/* With all rights in a user namespace of its own, and without rights on processes outside. */
static int sentence_names_the_namespace(pid_t pid)
{
	struct gp_error err = {0};

	if (gp_process_denied(&err, pid, -EPERM) != -EPERM)
		return 2;
	return strstr(err.text, "user namespace") ? 0 : 3;
}

/* Exit status 0: the sentence names the cause. */
static int in_a_user_namespace(pid_t pid)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (unshare(CLONE_NEWUSER))
			_exit(77);
		_exit(sentence_names_the_namespace(pid));
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

TEST(a_denial_names_a_user_namespace_only_where_that_can_be_the_cause)
{
	struct gp_error err = {0};
	char name[64] = "";
	pid_t pid;
	int r;

	if (geteuid())
		skip();
	pid = start(NULL, 0);
	r = in_a_user_namespace(pid);
	stop(pid);
	if (r == 77 || readlink("/proc/self/ns/user", name, sizeof name - 1) < 0 ||
	    strcmp(name, "user:[4026531837]") != 0)
		skip(); /* no user namespaces, or in a container */
	assert_int_equal(r, 0);
	in_own_namespace = true;
	pid = start(NULL, 0);
	in_own_namespace = false;
	assert_int_equal(gp_process_denied(&err, pid, -EPERM), -EPERM);
	assert_null(strstr(err.text, "namespace"));
	assert_non_null(strstr(err.text, "security module"));
	stop(pid);
}

TEST(root_may_look_into_others)
{
	if (geteuid())
		skip();
	assert_true(gp_have_ptrace());
}

struct search {
	pid_t pid;
	unsigned found, all;
};

static int note(void *arg, pid_t pid)
{
	struct search *s = arg;

	s->all++;
	s->found += pid == s->pid;
	return 0;
}

static int stop_there(void *arg, pid_t pid)
{
	return pid == *(pid_t *)arg ? 42 : 0;
}

TEST(every_process_is_visited_once_and_a_visit_can_end_it)
{
	pid_t pid = start(NULL, 0);
	struct search s = {.pid = pid};

	assert_int_equal(gp_process_each(note, &s), 0);
	assert_int_equal(s.found, 1);
	assert_true(s.all >= 2);
	assert_int_equal(gp_process_each(stop_there, &pid), 42);
	stop(pid);
	assert_int_equal(gp_process_each(stop_there, &pid), 0);
}

TEST(a_container_that_is_not_there_is_said_so)
{
	struct gp_error err = {0};
	pid_t found = 0;

	assert_int_equal(gp_process_in_container("no-such-container", 1, &found, &err), -ESRCH);
	assert_true(err.text[0]);
	err = (struct gp_error){0};
	assert_int_equal(gp_process_in_container("ab", 1, &found, &err), -EINVAL);
	assert_int_equal(gp_process_in_container("", 1, &found, NULL), -EINVAL);
	assert_int_equal(found, 0);
}
