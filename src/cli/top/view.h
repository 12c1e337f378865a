/* SPDX-License-Identifier: Apache-2.0 */
/* The view of the task table: sort order, filter, selection and scrolling. */
#ifndef GP_CLI_TOP_VIEW_H
#define GP_CLI_TOP_VIEW_H

#include "cli/top/columns.h"

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
