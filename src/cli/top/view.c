/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/view.h"

#include <stdio.h>
#include <stdlib.h>
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

static int compare(double a, double b)
{
	return a < b ? -1 : a > b;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* The order of states: running tasks first, unknown ones last. */
static const unsigned state_order[] = {
	[GP_TASK_RUNNING] = 0, [GP_TASK_ACTIVE] = 1,  [GP_TASK_WAITING] = 2,
	[GP_TASK_HELD] = 3,    [GP_TASK_IDLE] = 6,    [GP_TASK_SUSPENDED] = 4,
	[GP_TASK_EVICTED] = 5, [GP_TASK_UNKNOWN] = 7,
};

/* Negative: `s` comes before `t`. Larger numbers come first, unknown ones last. */
static int order_by(enum gp_top_column sort, const struct gp_top_task *s,
		    const struct gp_top_task *t)
{
	switch (sort) {
	case GP_COL_PID: return compare(s->pid, t->pid);
	case GP_COL_USER: return strcmp(s->user, t->user);
	case GP_COL_DEVICE: return compare(s->device, t->device);
	case GP_COL_CLASS: return compare(t->class, s->class);
	case GP_COL_PRIORITY: return compare(t->priority, s->priority);
	case GP_COL_STATE: return compare(state_order[s->state], state_order[t->state]);
	case GP_COL_P50:
		return compare_u64(t->waits_known ? t->wait_p50_ns + 1 : 0,
				   s->waits_known ? s->wait_p50_ns + 1 : 0);
	case GP_COL_P99:
		return compare_u64(t->waits_known ? t->wait_p99_ns + 1 : 0,
				   s->waits_known ? s->wait_p99_ns + 1 : 0);
	case GP_COL_PREEMPTIONS: return compare(t->preemptions_per_s, s->preemptions_per_s);
	case GP_COL_NAME: return strcmp(s->name, t->name);
	default: return compare(t->recent_share, s->recent_share);
	}
}

struct sorting {
	const struct gp_top_view *view;
	const struct gp_top_snapshot *snapshot;
};

static int compare_places(const void *a, const void *b, void *arg)
{
	const struct sorting *by = arg;
	const struct gp_top_task *s = &by->snapshot->task[*(const unsigned *)a];
	const struct gp_top_task *t = &by->snapshot->task[*(const unsigned *)b];
	int r = order_by(by->view->sort, s, t);

	if (!r && by->view->sort != GP_COL_SHARE)
		r = order_by(GP_COL_SHARE, s, t);
	return r ? r : gp_top_compare_tasks(s, t);
}

static bool passes(const struct gp_top_view *view, const struct gp_top_task *t)
{
	return !*view->filter || strcasestr(t->name, view->filter) ||
	       strcasestr(t->user, view->filter);
}

static bool is_selected(const struct gp_top_view *view, const struct gp_top_task *t)
{
	return view->selected && view->device == t->device && view->id == t->id;
}

static void select_place(struct gp_top_view *view, const struct gp_top_snapshot *snapshot,
			 unsigned place)
{
	view->selected = view->n > 0;
	if (!view->n)
		return;
	view->place = place < view->n ? place : view->n - 1;
	view->device = snapshot->task[view->order[view->place]].device;
	view->id = snapshot->task[view->order[view->place]].id;
}

static void scroll(struct gp_top_view *view, unsigned rows)
{
	if (!rows || view->n <= rows)
		view->first = 0;
	else if (view->first > view->n - rows)
		view->first = view->n - rows;
	if (!rows || !view->selected)
		return;
	if (view->place < view->first)
		view->first = view->place;
	else if (view->place >= view->first + rows)
		view->first = view->place - rows + 1;
}

void gp_top_view_update(struct gp_top_view *view, const struct gp_top_snapshot *snapshot,
			unsigned rows)
{
	struct sorting by = {view, snapshot};
	bool there = false;

	if (snapshot->ntasks > view->capacity) {
		unsigned *order = reallocarray(view->order, 2ul * snapshot->ntasks, sizeof *order);

		view->n = 0;
		if (!order)
			return;
		view->order = order;
		view->capacity = 2 * snapshot->ntasks;
	}
	view->n = 0;
	for (unsigned i = 0; i < snapshot->ntasks; i++)
		if (passes(view, &snapshot->task[i]))
			view->order[view->n++] = i;
	if (view->n)
		qsort_r(view->order, view->n, sizeof *view->order, compare_places, &by);
	for (unsigned i = 0; i < view->n && !there; i++)
		if (is_selected(view, &snapshot->task[view->order[i]])) {
			view->place = i;
			there = true;
		}
	if (!there)
		select_place(view, snapshot, view->selected ? view->place : 0);
	scroll(view, rows);
}

void gp_top_view_move(struct gp_top_view *view, const struct gp_top_snapshot *snapshot, long by,
		      unsigned rows)
{
	long to = (long)view->place + by;

	select_place(view, snapshot, to < 0 ? 0 : (unsigned)(to < (long)view->n ? to : view->n));
	scroll(view, rows);
}

const struct gp_top_task *gp_top_view_selected(const struct gp_top_view *view,
					       const struct gp_top_snapshot *snapshot)
{
	return view->selected && view->place < view->n ? &snapshot->task[view->order[view->place]]
						       : NULL;
}

enum gp_top_column gp_top_next_sort(enum gp_top_column sort)
{
	do
		sort = sort + 1 < GP_COLS ? sort + 1 : GP_COL_PID;
	while (sort == GP_COL_BAR);
	return sort;
}

void gp_top_view_free(struct gp_top_view *view)
{
	free(view->order);
	*view = (struct gp_top_view){0};
}
