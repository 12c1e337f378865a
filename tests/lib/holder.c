/* SPDX-License-Identifier: Apache-2.0 */
/* lib-holder PID wait|exit: holds a process, says `held N`, and waits for its end (or that of its
 * input), or calls exit() without having closed anything. */
#include <gpreempt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct gpreempt *g;
	char why[256], ignored;
	int held;

	if (argc != 3)
		return 2;
	if (gpreempt_open((pid_t)strtol(argv[1], NULL, 10), 0, &g, why, sizeof why)) {
		printf("not opened: %s\n", why);
		return 1;
	}
	held = gpreempt_suspend_queues(g, NULL, 0);
	if (held < 0) {
		printf("not held: %s\n", gpreempt_why(g));
		return 1;
	}
	printf("held %d\n", held);
	fflush(stdout);
	if (!strcmp(argv[2], "wait") && read(STDIN_FILENO, &ignored, 1) < 0)
		return 1;
	exit(0);
}
