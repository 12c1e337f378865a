/* SPDX-License-Identifier: Apache-2.0 */
/* A chart of counts over time: one step line for each of a few series. */
#ifndef GP_CLI_DRAW_PLOT_H
#define GP_CLI_DRAW_PLOT_H

#include <stdint.h>
#include <stdio.h>

struct gp_plot_step {
	uint64_t at_ns;
	unsigned value; /* from at_ns to the next step */
};

struct gp_plot_line {
	char label[96];
	unsigned n, capacity;
	struct gp_plot_step *step; /* owned by the caller */
};

/* Adds a step if the value differs from the last one. 0 or -ENOMEM. */
int gp_plot_add(struct gp_plot_line *line, uint64_t at_ns, unsigned value);

struct gp_plot {
	const char *title;
	const char *unit; /* of the values, as "queues" */
	uint64_t from_ns, to_ns;
	unsigned n;
	const struct gp_plot_line *line;
};

/* 0 or -errno. */
int gp_plot_svg(FILE *out, const struct gp_plot *plot);

#endif
