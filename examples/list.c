/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the GPU queues of a process:  ./list PID
 * Compile with:  cc list.c -o list $(pkg-config --cflags --libs gpreempt) */
#include <gpreempt.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct gpreempt_snapshot now;
	struct gpreempt *g;
	char why[256];

	if (argc != 2)
		return fprintf(stderr, "usage: list PID\n"), 2;
	if (gpreempt_open((pid_t)strtol(argv[1], NULL, 10), 0, &g, why, sizeof why))
		return fprintf(stderr, "%s\n", why), 1;
	if (gpreempt_snapshot(g, &now) < 0) {
		fprintf(stderr, "%s\n", gpreempt_why(g));
		gpreempt_close(g);
		return 1;
	}
	for (unsigned i = 0; i < now.n; i++) {
		const struct gpreempt_queue *q = &now.queue[i];

		printf("queue %u on %s: %s%s", q->id, gpreempt_device_name(g, q->device), q->type,
		       q->held ? ", held" : "");
		if (q->pending != GPREEMPT_UNKNOWN64)
			printf(", %llu pending", (unsigned long long)q->pending);
		putchar('\n');
	}
	gpreempt_snapshot_free(&now);
	gpreempt_close(g);
	return 0;
}
