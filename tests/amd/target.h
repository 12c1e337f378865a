/* SPDX-License-Identifier: Apache-2.0 */
/* Drives amd-target: a process that does what the test tells it. It dies with the test. */
#ifndef TESTS_AMD_TARGET_H
#define TESTS_AMD_TARGET_H

#include <sys/prctl.h>

#include "amd_world.h"

struct target {
	pid_t pid;
	FILE *to, *from;
};

/* The number it answers, or -errno; INT32_MIN: it is gone. */
static inline long target_answer(struct target *t)
{
	char word[16];
	long value;

	if (fscanf(t->from, "%15s %ld", word, &value) != 2)
		return INT32_MIN;
	return !strcmp(word, "ok") ? value : -value;
}

/* Tells it, and does not wait for the answer: the call may wait for us. */
__attribute__((format(printf, 2, 3))) static inline void target_tell(struct target *t,
                                                                     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(t->to, format, args);
	va_end(args);
	fputc('\n', t->to);
	fflush(t->to);
}

/* Tells it and returns its answer. */
#define target_ask(t, ...) (target_tell(t, __VA_ARGS__), target_answer(t))
#define target_do(t, ...)  assert_true(target_ask(t, __VA_ARGS__) >= 0)

/* Whether the answer is there. */
static inline bool target_has_answered(struct target *t)
{
	struct pollfd p = {.fd = fileno(t->from), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static inline pid_t target_fork(const void *arg)
{
	(void)arg;
	return fork();
}

/* Starts it, as a child that `make` makes (as fork() does); it has not opened the device yet. The
 * number that it knows itself by; INT32_MIN: it could not be started. */
static inline long target_start_by(struct target *t, pid_t (*make)(const void *arg),
                                   const void *arg)
{
	char path[] = AMD_TARGET, *words[] = {path, NULL};
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	t->pid = make(arg);
	if (!t->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], 0);
		dup2(from[1], 1);
		execv(path, words);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	t->to = fdopen(to[1], "w");
	t->from = fdopen(from[0], "r");
	return target_answer(t);
}

static inline void target_start(struct target *t)
{
	long own = target_start_by(t, target_fork, NULL);

	assert_int_equal(own, t->pid);
}

/* As a ROCm program: opened, its runtime enabled, so many queues. */
static inline void target_start_with(struct target *t, unsigned queues)
{
	target_start(t);
	target_do(t, "open");
	target_do(t, "runtime 1");
	for (unsigned i = 0; i < queues; i++)
		target_do(t, "queue aql");
}

static inline void target_forget(struct target *t)
{
	fclose(t->to);
	fclose(t->from);
	*t = (struct target){0};
}

/* Its exit status; -1: a signal ended it. */
static inline int target_wait(struct target *t)
{
	int status = -1;

	AW_WAIT(aw_state_of(t->pid) == 'Z');
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	target_forget(t);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void target_kill(struct target *t)
{
	if (!t->pid)
		return;
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	target_forget(t);
}

#endif
