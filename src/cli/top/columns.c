/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/columns.h"

#include <stdio.h>
#include <string.h>

#include "policy/policy.h"

#define BAR_MOST  20
#define USER_MOST 12

const struct gp_top_column_info gp_top_columns[GP_COLS] = {
	[GP_COL_PID] = {"PID", true, 5},
	[GP_COL_USER] = {"USER", false, 4},
	[GP_COL_DEVICE] = {"DEV", true, 3},
	[GP_COL_CLASS] = {"CLASS", false, 5},
	[GP_COL_PRIORITY] = {"PRI", true, 3},
	[GP_COL_STATE] = {"STATE", false, 11},
	[GP_COL_BAR] = {"", false, 4},
	[GP_COL_SHARE] = {"GPU", true, 5},
	[GP_COL_P50] = {"P50", true, 6},
	[GP_COL_P99] = {"P99", true, 6},
	[GP_COL_PREEMPTIONS] = {"PRE/S", true, 5},
	[GP_COL_NAME] = {"NAME", false, 8},
};

/* The most important column first; the last ones are left out on a narrow screen. */
static const enum gp_top_column importance[] = {
	GP_COL_NAME, GP_COL_SHARE, GP_COL_STATE,    GP_COL_PID,  GP_COL_CLASS,       GP_COL_DEVICE,
	GP_COL_P99,  GP_COL_BAR,   GP_COL_PRIORITY, GP_COL_USER, GP_COL_PREEMPTIONS, GP_COL_P50,
};

static void need(unsigned *width, size_t length, unsigned most)
{
	if (length > most)
		length = most;
	if (length > *width)
		*width = (unsigned)length;
}

struct gp_top_needs gp_top_needs_of(const struct gp_top_snapshot *snapshot)
{
	struct gp_top_needs n = {.pid = gp_top_columns[GP_COL_PID].width,
				 .user = gp_top_columns[GP_COL_USER].width,
				 .class = gp_top_columns[GP_COL_CLASS].width,
				 .devices = snapshot->ndevices > 1};

	for (unsigned i = 0; i < snapshot->ntasks; i++) {
		const struct gp_top_task *t = &snapshot->task[i];

		need(&n.pid, (size_t)snprintf(NULL, 0, "%d", (int)t->pid), 10);
		need(&n.user, strlen(t->user), USER_MOST);
		if (t->class == GP_UNMANAGED)
			need(&n.class, strlen("unmanaged"), 9);
	}
	return n;
}

static unsigned width_of(enum gp_top_column c, const struct gp_top_needs *needs)
{
	switch (c) {
	case GP_COL_PID: return needs->pid;
	case GP_COL_USER: return needs->user;
	case GP_COL_CLASS: return needs->class;
	case GP_COL_DEVICE: return needs->devices ? gp_top_columns[c].width : 0;
	default: return gp_top_columns[c].width;
	}
}

void gp_top_lay_out(struct gp_top_layout *layout, const struct gp_top_needs *needs, unsigned width)
{
	unsigned used = 0, at = 0;

	*layout = (struct gp_top_layout){0};
	for (unsigned i = 0; i < GP_COLS; i++) {
		unsigned wants = width_of(importance[i], needs), gap = used ? 1 : 0;

		if (!used && wants > width) /* a very narrow screen: the name alone, cut */
			wants = width;
		if (used + gap + wants > width)
			break;
		if (!wants)
			continue;
		layout->col[importance[i]].width = wants;
		used += gap + wants;
	}
	while (used < width && layout->col[GP_COL_BAR].width &&
	       layout->col[GP_COL_BAR].width < BAR_MOST) {
		layout->col[GP_COL_BAR].width++;
		used++;
		if (used < width) {
			layout->col[GP_COL_NAME].width++;
			used++;
		}
	}
	layout->col[GP_COL_NAME].width += width - used;
	for (unsigned c = 0; c < GP_COLS; c++) {
		layout->col[c].at = at;
		at += layout->col[c].width ? layout->col[c].width + 1 : 0;
	}
}

struct gp_top_rows gp_top_share_rows(unsigned rows, unsigned devices)
{
	struct gp_top_rows r = {0};

	if (rows) {
		r.status = 1;
		rows--;
	}
	if (rows >= 2) {
		r.task_head = 1;
		rows--;
	}
	if (rows >= 2) {
		r.title = 1;
		rows--;
	}
	if (rows >= 4 && devices) { /* a heading, one device, two tasks */
		r.device_head = 1;
		r.devices = devices < (rows - 1) / 2 ? devices : (rows - 1) / 2;
		rows -= 1 + r.devices;
	}
	r.tasks = rows;
	return r;
}
