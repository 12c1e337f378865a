/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what a helper (base/inquiry.h) adds to a question about another process: its start time,
 * and a file of it that comes back. The helper is compared, within this run, with the direct call
 * plus a bare exchange of one byte with a child process. It may cost four times as much. Exits
 * with 1 if it costs more. Needs root.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/inquiry.h"
#include "base/process.h"

#define NOBODY 65534
#define EACH   200
#define ROUNDS 20
#define LIMIT  4

static int echo_fd; /* to a child that sends each byte back */

static void ask_start_time(pid_t pid)
{
	if (!gp_process_start_time(pid))
		exit(1);
}

static void ask_file(pid_t pid)
{
	int fd = gp_process_open(pid, "fd/0", O_PATH);

	if (fd < 0)
		exit(1);
	close(fd);
}

static void exchange(pid_t pid)
{
	char byte = 0;

	(void)pid;
	if (send(echo_fd, &byte, 1, 0) != 1 || recv(echo_fd, &byte, 1, 0) != 1)
		exit(1);
}

/* Per call, the best of all rounds. */
static uint64_t measure(void (*call)(pid_t pid), pid_t pid)
{
	uint64_t least_ns = UINT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin_ns = gp_monotonic_ns(), ns;

		for (int i = 0; i < EACH; i++)
			call(pid);
		ns = (gp_monotonic_ns() - begin_ns) / EACH;
		least_ns = ns < least_ns ? ns : least_ns;
	}
	return least_ns;
}

static pid_t start_child(void)
{
	int pair[2];
	pid_t pid;
	char byte;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) || (pid = fork()) < 0)
		exit(1);
	if (!pid) {
		if (setgid(NOBODY) || setuid(NOBODY)) /* root's processes need no helper */
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (recv(pair[1], &byte, 1, 0) == 1 && send(pair[1], &byte, 1, 0) == 1)
			;
		_exit(0);
	}
	close(pair[1]);
	echo_fd = pair[0];
	return pid;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*call)(pid_t pid);
	} call[] = {{"start time", ask_start_time}, {"a file", ask_file}};
	uint64_t direct_ns[2], exchange_ns;
	pid_t child;
	int result = 0;

	if (geteuid()) {
		puts("inquiries: skipped, needs root");
		return 0;
	}
	child = start_child();
	exchange_ns = measure(exchange, child);
	for (int i = 0; i < 2; i++)
		direct_ns[i] = measure(call[i].call, child);
	gp_inquiry_use_helpers();
	for (int i = 0; i < 2; i++) {
		uint64_t helper_ns = measure(call[i].call, child);
		double ratio = (double)helper_ns / (double)(direct_ns[i] + exchange_ns);

		printf("%-10s direct %.1f us, exchange %.1f us, by a helper %.1f us: ratio %.2f\n",
		       call[i].name, (double)direct_ns[i] / 1000, (double)exchange_ns / 1000,
		       (double)helper_ns / 1000, ratio);
		if (ratio > LIMIT)
			result = 1;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return result;
}
