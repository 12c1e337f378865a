/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of the task table: its columns, the layout of columns and rows on the screen, sort
 * order, filter, selection and scrolling.
 */
#ifndef GP_CLI_TOP_VIEW_H
#define GP_CLI_TOP_VIEW_H

#include <stdbool.h>

#include "cli/top/top_snapshot.h"

/* From left to right. */
enum gp_top_column {
	GP_COL_PID,
	GP_COL_USER,
	GP_COL_DEVICE,
	GP_COL_CLASS,
	GP_COL_PRIORITY,
	GP_COL_STATE,
	GP_COL_BAR,
	GP_COL_SHARE,
	GP_COL_P50,
	GP_COL_P99,
	GP_COL_PREEMPTIONS,
	GP_COL_NAME,
	GP_COLS,
};

struct gp_top_column_info {
	const char *head;
	bool right;     /* numbers: heading and values are aligned to the right */
	unsigned width; /* the minimum */
};

extern const struct gp_top_column_info gp_top_columns[GP_COLS];

struct gp_top_layout {
	struct {
		unsigned at, width; /* width 0: no room, the column is not shown */
	} col[GP_COLS];
};

/* Widths that depend on the tasks. */
struct gp_top_needs {
	unsigned pid, user, class;
	bool devices; /* there are several devices */
};

struct gp_top_needs gp_top_needs_of(const struct gp_top_snapshot *snapshot);

/* Gives room to the most important columns first. Bar and name get the width that is left. */
void gp_top_lay_out(struct gp_top_layout *layout, const struct gp_top_needs *needs, unsigned width);

/* Number of screen rows for each part, from top to bottom; 0: the part is not shown. */
struct gp_top_rows {
	unsigned title, device_head, devices, task_head, tasks, status;
};

/* `devices` is the number of rows that devices need. They get at most half of the rows that the
 * fixed parts leave; tasks get the rest. */
struct gp_top_rows gp_top_share_rows(unsigned rows, unsigned devices);

struct gp_top_view {
	enum gp_top_column sort; /* GP_COL_SHARE sorts by recent_share */
	char filter[64];         /* part of a name or user, case-insensitive; "": all tasks */

	/* The selected task. It stays selected when the order changes. */
	bool selected;
	unsigned device;
	uint64_t id;
	unsigned place; /* index in `order`; the next task there is selected when the task ends */

	unsigned first;  /* index in `order` of the first task on the screen */
	unsigned n;      /* tasks that pass the filter */
	unsigned *order; /* owned: indices in the snapshot */
	unsigned capacity;
};

/* The column to sort by after `sort`; the first one follows the last one. */
enum gp_top_column gp_top_next_sort(enum gp_top_column sort);

/* Call it after the snapshot, filter, sort order or screen size changed. Without memory no task is
 * shown. */
void gp_top_view_update(struct gp_top_view *view, const struct gp_top_snapshot *snapshot,
			unsigned rows);

/* Moves the selection `by` tasks down, at most to the first or last task. */
void gp_top_view_move(struct gp_top_view *view, const struct gp_top_snapshot *snapshot, long by,
		      unsigned rows);

/* NULL: no task is selected. */
const struct gp_top_task *gp_top_view_selected(const struct gp_top_view *view,
					       const struct gp_top_snapshot *snapshot);

void gp_top_view_free(struct gp_top_view *view);

#endif
