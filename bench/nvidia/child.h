/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of ours: started, spoken to over its stdin and stdout, waited for with a deadline,
 * ended. Only processes started here are ever signalled, and none outlives the runner.
 * Deadlines are CLOCK_MONOTONIC nanoseconds. Calls return 0 or -errno: -ETIMEDOUT, -EINTR when
 * the runner was told to stop, -ECHILD when a child ended before its time.
 */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define CHILD_ENV_MAX 8

struct child_spec {
	const char *name; /* for messages; outlives the child */
	const char *const *argv;
	const char *env[CHILD_ENV_MAX]; /* NAME=VALUE, up to the first NULL */
	const char *stderr_path;        /* outlives the child */
	const char *stdout_path;        /* a copy of what it says; may be NULL */
	int death_signal;               /* what it gets when the runner dies */
};

struct child {
	const char *name, *stderr_path;
	pid_t pid; /* 0: none */
	int pidfd, in, out;
	int copy;   /* of its stdout, -1: none */
	bool ended; /* and reaped; `status` is waitpid's */
	int status;
	char text[512]; /* of stdout, not yet looked at */
	size_t length;
};

int child_start(struct child *c, const struct child_spec *spec, struct gp_error *err);

/* Waits for that line on its stdout; skips others. */
int child_expect(struct child *c, const char *line, uint64_t deadline_ns, struct gp_error *err);

/* Writes a line to its stdin. A child that is gone is no error here. */
void child_tell(struct child *c, const char *line);

/*
 * Waits until `awaited` has ended by itself, or, if NULL, until the deadline has passed. Any
 * other of the children ending meanwhile is an error. `child` may hold ones never started.
 */
int child_watch(struct child *const *child, unsigned n, const struct child *awaited,
                uint64_t deadline_ns, struct gp_error *err);

/*
 * Closes its stdin, and if that was asked for sends SIGTERM; gives it that long; then SIGKILL.
 * 0, or -ETIMEDOUT when it had to be killed. Works after the runner was told to stop. Does
 * nothing to a child that was never started or has ended.
 */
int child_end(struct child *c, bool terminate, unsigned grace_ms, struct gp_error *err);

/* Exit status; 128 + signal. Only after it has ended. */
int child_exit(const struct child *c);

/* Its last words on stderr, "" if none. Returns `out`. */
const char *child_last_words(const struct child *c, char *out, size_t size);

/* What our children left behind has become ours (we are a subreaper): ends it. */
void child_end_orphans(void);

/* Once, at the start. */
void child_adopt_orphans(void);

#endif
