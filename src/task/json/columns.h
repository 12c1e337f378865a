/* SPDX-License-Identifier: Apache-2.0 */
/* The table columns of a task, by the key of its JSON. cli/lib/grid.h prints them. */
#ifndef GP_TASK_JSON_COLUMNS_H
#define GP_TASK_JSON_COLUMNS_H

#include <stdbool.h>

/* How a value is written for people. */
enum gp_task_cell {
	GP_CELL_PLAIN,
	GP_CELL_FLAG,  /* the key itself, if its value is true */
	GP_CELL_WORDS, /* an array, with commas */
	GP_CELL_YES_NO,
	GP_CELL_US,
	GP_CELL_NS,
	GP_CELL_BYTES,
	GP_CELL_SHARE,  /* gpu_pct, with "<= " if run_source is "granted" */
	GP_CELL_SLICE,  /* slice_us, or slice_min_us to slice_max_us */
	GP_CELL_MEAN,   /* ran_ns / scheduled */
	GP_CELL_SOURCE, /* "switches" if `scheduled` is known, else run_source */
	GP_CELL_NAME,   /* name, and whether it is a server */
};

struct gp_task_column {
	const char *head;
	const char *key; /* "waits.p50_ns" is p50_ns of the object waits */
	enum gp_task_cell cell;
	bool left; /* aligned to the left, as words are */
};

/* Ended by a head of NULL. A column without a known value is not shown. */
extern const struct gp_task_column gp_ps_columns[];
extern const struct gp_task_column gp_stats_columns[];

#endif
