/* SPDX-License-Identifier: Apache-2.0 */
/* Processes to ask about, and a pool to ask. Times here are limits of patience, not claims. */
#ifndef TESTS_PROCINFO_FACTS_WORLD_H
#define TESTS_PROCINFO_FACTS_WORLD_H

#include "support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/process.h"
#include "procinfo/procinfo.h"

#define PATIENCE_MS 60000
#define NOBODY      65534u

struct target {
	pid_t pid;
	uint64_t start_time;
	int input; /* a byte lets a silent one answer */
};

/* argv[0] is short, so that the page that is taken away lies in the first 4096 bytes. */
#define PADDING_SIZE 12288

/* Skips the test where that cannot be. */
static inline struct target start_target(const char *mode, unsigned uid)
{
	static char padding[PADDING_SIZE], variable[PADDING_SIZE + 16];
	char user[16], kind[32], byte, program[] = PROCINFO_TARGET;
	char name[] = "t", colour[] = "COLOUR=red", last[] = "LAST=1";
	char *words[] = {name, kind, user, padding, NULL};
	char *environment[] = {colour, variable, last, NULL};
	int in[2], out[2], status;
	struct target t;

	memset(padding, 'w', sizeof padding - 1);
	snprintf(variable, sizeof variable, "PADDING=%s", padding);
	snprintf(user, sizeof user, "%u", uid);
	snprintf(kind, sizeof kind, "%s", mode);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	t.pid = fork();
	if (!t.pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execve(program, words, environment);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	t.input = in[1];
	if (read(out[0], &byte, 1) != 1) {
		assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
		close(out[0]);
		close(in[1]);
		assert_int_equal(WEXITSTATUS(status), 77);
		skip();
	}
	close(out[0]);
	t.start_time = gp_process_start_time(t.pid);
	return t;
}

static inline void stop_target(struct target *t)
{
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	close(t->input);
}

static inline struct gp_procinfo_pool *make_pool(struct gp_procinfo_limits limits, int *fd)
{
	struct gp_procinfo_pool *pool;

	assert_int_equal(gp_procinfo_new_limited(&limits, &pool, fd), 0);
	return pool;
}

/* For those whose deadline must not matter. */
static const struct gp_procinfo_limits patient = {.deadline_ns = PATIENCE_MS * GP_NS_PER_MS};

static inline bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

/* The next answer, which must come. */
static inline struct gp_procinfo *wait_for(struct gp_procinfo_pool *pool, int fd, uint64_t *token)
{
	struct gp_procinfo *info;
	uint64_t until = gp_monotonic_ns() + PATIENCE_MS * GP_NS_PER_MS;

	while (gp_monotonic_ns() < until) {
		is_readable(fd, PATIENCE_MS);
		if (!gp_procinfo_take(pool, &info, token))
			return info;
	}
	fail_msg("no answer");
	return NULL;
}

/* One question and its answer. */
static inline struct gp_procinfo *info_of(pid_t pid, uint64_t start_time, uint32_t want)
{
	struct gp_procinfo_pool *pool;
	struct gp_procinfo *info;
	uint64_t token = 0;
	int fd;

	pool = make_pool(patient, &fd);
	assert_int_equal(gp_procinfo_ask(pool, pid, start_time, want, 99), 0);
	info = wait_for(pool, fd, &token);
	assert_int_equal(token, 99);
	gp_procinfo_free(pool);
	return info;
}

/* A child that does `prepare`, then waits. */
static inline pid_t start_child(bool (*prepare)(void))
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		byte = prepare() ? 'r' : 'c';
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	if (byte != 'r') {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		skip();
	}
	return pid;
}

static inline struct gp_procinfo *info_of_child(pid_t pid)
{
	return info_of(pid, gp_process_start_time(pid), GP_PROCINFO_ALL);
}

static inline void stop_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
