/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of a benchmark that runs in real time. They end with it. */
#ifndef BENCH_CHILDREN_H
#define BENCH_CHILDREN_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static inline __attribute__((noreturn)) void give_up(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

static inline uint64_t now(void)
{
	return gp_monotonic_ns();
}

static inline pid_t start(void (*run)(void *arg), void *arg)
{
	pid_t pid = fork();

	if (pid < 0)
		give_up("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(arg);
		_exit(1);
	}
	return pid;
}

static inline void end(pid_t pid, int signal)
{
	kill(pid, signal);
	waitpid(pid, NULL, 0);
}

#endif
