/* SPDX-License-Identifier: Apache-2.0 */
#include "support/process.h"

#include <dirent.h>
#include <sys/prctl.h>

bool test_fork_by(struct test_child *child, pid_t (*make)(const void *arg), const void *arg)
{
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	child->pid = make ? make(arg) : fork();
	if (!child->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		close(to[1]);
		return true;
	}
	close(to[0]);
	close(from[1]);
	child->to = to[1];
	child->from = from[0];
	return false;
}

bool test_fork(struct test_child *child)
{
	return test_fork_by(child, NULL, NULL);
}

void test_spawn(struct test_child *child, const char *const *words)
{
	if (!test_fork(child))
		return;
	execv(words[0], (char *const *)(uintptr_t)words);
	_exit(127);
}

void test_child_end(struct test_child *child)
{
	if (child->pid <= 0)
		return;
	close(child->to);
	close(child->from);
	kill(child->pid, SIGKILL);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
	child->pid = 0;
}

char test_process_state(pid_t pid)
{
	char path[48], text[512] = "";
	const char *end;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(text, sizeof text, f))
		text[0] = 0;
	fclose(f);
	end = strrchr(text, ')');
	if (!end)
		return 0;
	return end[2];
}

long test_process_status(pid_t pid, const char *name)
{
	size_t length = strlen(name);
	char path[48], line[128];
	long value = -1;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, name, length) && line[length] == ':')
			value = strtol(line + length + 1, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

unsigned test_open_files(pid_t pid)
{
	char path[48];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

int test_exit_status(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void test_as_user(uid_t user, void (*function)(void *answer, const void *arg), const void *arg,
		  void *answer, size_t size)
{
	struct test_child child;

	if (test_fork(&child)) {
		if (setgid(user) || setuid(user))
			_exit(1);
		function(answer, arg);
		_exit(write(STDOUT_FILENO, answer, size) != (ssize_t)size);
	}
	close(child.to);
	assert_int_equal(read(child.from, answer, size), size);
	close(child.from);
	assert_int_equal(test_exit_status(child.pid), 0);
}
