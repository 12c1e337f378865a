/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that tests start, and what /proc says of a process. */
#ifndef TESTS_SUPPORT_PROCESS_H
#define TESTS_SUPPORT_PROCESS_H

#include "support/test.h"

#define TEST_NOBODY 65534 /* a user without rights */

/* A child process with a pipe to its standard input and one from its standard output. */
struct test_child {
	pid_t pid;
	int to, from;
};

/*
 * Forks. Returns true in the child, which has the pipes as its standard input and output and dies
 * with the test. test_fork_by() creates the process with `make`, which returns as fork() does.
 */
bool test_fork(struct test_child *child);
bool test_fork_by(struct test_child *child, pid_t (*make)(const void *arg), const void *arg);

/* Starts a program as such a child. The words end with NULL; the first is the path. */
void test_spawn(struct test_child *child, const char *const *words);

/* Closes the pipes, kills the child if it still runs, and waits for its end. */
void test_child_end(struct test_child *child);

/* As /proc has it: R, S, T (stopped), t (stopped by its tracer), Z; 0: there is no such process. */
char test_process_state(pid_t pid);

/* The number after `name:` in /proc/PID/status; -1: there is none. */
long test_process_status(pid_t pid, const char *name);

/* Open files of the process, by the number of entries of its folder in /proc. */
unsigned test_open_files(pid_t pid);

/* Waits for the end of the child. Its exit status; -1: a signal ended it. */
int test_exit_status(pid_t pid);

/* Runs the function as the user in a child, and copies its answer of this size from there. */
void test_as_user(uid_t user, void (*function)(void *answer, const void *arg), const void *arg,
		  void *answer, size_t size);

#endif
