/* SPDX-License-Identifier: Apache-2.0 */
/* Which columns there is room for, and where they stand. */
#ifndef GP_CLI_TOP_COLUMNS_H
#define GP_CLI_TOP_COLUMNS_H

#include <stdbool.h>

#include "cli/top/top_snapshot.h"

/* As they stand from left to right. */
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

/* Its heading; of those with numbers the heading stands to the right, too. */
struct gp_top_column_info {
	const char *head;
	bool right;
	unsigned width; /* that it needs at least */
};

extern const struct gp_top_column_info gp_top_columns[GP_COLS];

/* width 0: there is no room for it. */
struct gp_top_layout {
	struct {
		unsigned at, width;
	} col[GP_COLS];
};

/* What is to be shown decides how wide some are. */
struct gp_top_needs {
	unsigned pid, user, class; /* columns */
	bool devices;              /* there are several */
};

struct gp_top_needs gp_top_needs_of(const struct gp_top_snapshot *snapshot);

/* The most important ones first, until the width is used up; then bar and name grow. */
void gp_top_lay_out(struct gp_top_layout *layout, const struct gp_top_needs *needs, unsigned width);

/* How the rows of the screen are used, from top to bottom; 0 = not at all. */
struct gp_top_rows {
	unsigned title, device_head, devices, task_head, tasks, status;
};

/* `devices`: rows that they would like to have. Tasks come first, and get half of the rest. */
struct gp_top_rows gp_top_share_rows(unsigned rows, unsigned devices);

#endif
