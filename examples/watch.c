/* SPDX-License-Identifier: Apache-2.0 */
/* Samples the GPU queues of a process and prints how they change:  ./watch PID [SECONDS]
 * Compile with:  cc watch.c -o watch $(pkg-config --cflags --libs gpreempt) */
#include <gpreempt.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct gpreempt_statistics *s;
	struct gpreempt_history history;
	struct gpreempt *g;
	char why[256];
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 5;

	if (argc < 2 || seconds <= 0)
		return fprintf(stderr, "usage: watch PID [SECONDS]\n"), 2;
	if (gpreempt_open((pid_t)strtol(argv[1], NULL, 10), 0, &g, why, sizeof why))
		return fprintf(stderr, "%s\n", why), 1;
	if (gpreempt_monitor(g, (unsigned)(seconds * 1000), 20, NULL, NULL, &history) < 0 ||
	    gpreempt_analyse(&history, &s) < 0) {
		fprintf(stderr, "%s\n", gpreempt_why(g));
		gpreempt_history_free(&history);
		gpreempt_close(g);
		return 1;
	}
	printf("%u samples, %u to %u queues (%.1f): %s\n", s->samples, s->all.min, s->all.max,
	       s->all.average, s->stable ? "stable" : "changing");
	for (unsigned i = 0; i < s->nseries; i++)
		printf("%s: %u to %u %s, %u came, %u went\n",
		       gpreempt_device_name(g, s->series[i].device), s->series[i].count.min,
		       s->series[i].count.max, s->series[i].type, s->series[i].count.came,
		       s->series[i].count.went);
	gpreempt_statistics_free(s);
	gpreempt_history_free(&history);
	gpreempt_close(g);
	return 0;
}
