/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers over time as SVG: a line for each of a few things, which goes in steps. */
#ifndef GP_CLI_DRAW_PLOT_H
#define GP_CLI_DRAW_PLOT_H

#include <stdint.h>
#include <stdio.h>

struct gp_plot_step {
	uint64_t at_ns;
	unsigned value; /* from there to the next */
};

struct gp_plot_line {
	char label[96];
	unsigned n, capacity;
	struct gp_plot_step *step;
};

/* Adds a step where the value is another than before. 0 or -ENOMEM. */
int gp_plot_add(struct gp_plot_line *line, uint64_t at_ns, unsigned value);

struct gp_plot {
	const char *title;
	const char *unit; /* what is counted: "queues" */
	uint64_t from_ns, to_ns;
	unsigned n;
	const struct gp_plot_line *line;
};

/* 0 or -errno. */
int gp_plot_svg(FILE *out, const struct gp_plot *plot);

#endif
