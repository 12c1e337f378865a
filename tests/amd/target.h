/* SPDX-License-Identifier: Apache-2.0 */
/* Drives amd-target: a process that does what the test tells it. It dies with the test. */
#ifndef TESTS_AMD_TARGET_H
#define TESTS_AMD_TARGET_H

#include "support/process.h"

struct target {
	pid_t pid;
	FILE *to, *from;
};

/* The number it answers, or -errno; INT32_MIN: it is gone. */
long target_answer(struct target *t);

/* Tells it, and does not wait for the answer: the call may wait for us. */
__attribute__((format(printf, 2, 3))) void target_tell(struct target *t, const char *format, ...);

/* Tells it and returns its answer. */
#define target_ask(t, ...) (target_tell(t, __VA_ARGS__), target_answer(t))
#define target_do(t, ...)  assert_true(target_ask(t, __VA_ARGS__) >= 0)

/* Whether the answer is there. */
bool target_has_answered(struct target *t);

/* Starts it, as a child that `make` creates (see test_fork_by()); it has not opened the device yet.
 * Returns its own pid as it sees it; INT32_MIN: it could not be started. */
long target_start_by(struct target *t, pid_t (*make)(const void *arg), const void *arg);
void target_start(struct target *t);

/* As a ROCm program begins: opens the device, enables the runtime, creates queues. */
void target_become_rocm(struct target *t, unsigned queues);
void target_forget(struct target *t);

/* Its exit status; -1: a signal ended it. */
int target_wait(struct target *t);
void target_kill(struct target *t);

#endif
