/* SPDX-License-Identifier: Apache-2.0 */
/* Who had the GPU when: recorded from a run, drawn in the terminal and as SVG. */
#ifndef GP_CLI_DRAW_TIMELINE_H
#define GP_CLI_DRAW_TIMELINE_H

#include "sim/scenario/scenario.h"

#define GP_TIMELINE_SPANS 1024
#define GP_TIMELINE_MARKS 128

struct gp_timeline_span {
	uint64_t from_ns, to_ns;
	int32_t task; /* -1: switching */
};

/* A request that was answered inside the window. */
struct gp_timeline_mark {
	uint64_t arrival_ns, done_ns;
};

/* What happened between from_ns and to_ns; what does not fit into the arrays is left out. */
struct gp_timeline {
	const char *label;
	uint64_t from_ns, to_ns;
	uint32_t request_task; /* whose requests are marked */
	unsigned nspans, nmarks;
	struct gp_timeline_span span[GP_TIMELINE_SPANS];
	struct gp_timeline_mark mark[GP_TIMELINE_MARKS];
	struct gp_timeline_span open; /* under way; from_ns == GP_NEVER: none */
};

void gp_timeline_init(struct gp_timeline *t, const char *label, uint64_t from_ns, uint64_t to_ns,
                      uint32_t request_task);

/* A gp_sim_watch; arg is the timeline. */
void gp_timeline_watch(void *timeline, const struct gp_sim_event *event);

struct gp_timeline_style {
	unsigned columns;
	bool colour;
	bool utf8;
};

/* `lc` and `be` are names for the legend; task 0 is the former, all others the latter. */
void gp_timeline_print(FILE *out, const struct gp_timeline *t, unsigned n, const char *lc,
                       const char *be, const struct gp_timeline_style *style);

/* All timelines below each other on one time axis. 0 or -errno. */
int gp_timeline_svg(FILE *out, const struct gp_timeline *t, unsigned n, const char *title,
                    const char *lc, const char *be);

#endif
