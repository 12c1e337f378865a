/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a process off the GPU while a command runs:  ./hold PID COMMAND...
 * Compile with:  cc hold.c -o hold $(pkg-config --cflags --libs gpreempt) */
#include <gpreempt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct gpreempt *g;
	char why[256];
	int held, status = 0;
	pid_t pid;

	if (argc < 3)
		return fprintf(stderr, "usage: hold PID COMMAND...\n"), 2;
	if (gpreempt_open((pid_t)strtol(argv[1], NULL, 10), 0, &g, why, sizeof why))
		return fprintf(stderr, "%s\n", why), 1;
	held = gpreempt_suspend_queues(g, NULL, 0);
	if (held < 0)
		fprintf(stderr, "%s\n", gpreempt_why(g));
	else
		fprintf(stderr, "%d queues are held\n", held);
	pid = held < 0 ? -1 : fork();
	if (!pid) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0) /* not -1: see "AMD" in gpreempt.h */
		status = -1;
	gpreempt_close(g); /* releases the queues */
	return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
