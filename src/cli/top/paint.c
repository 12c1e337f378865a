/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the screen, and its first line. */
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/top/top.h"
#include "task/task.h"

const char *gp_top_rate_text(char *out, size_t size, double per_s)
{
	if (per_s < 0)
		snprintf(out, size, "?");
	else
		snprintf(out, size, "%.*f", per_s > 0 && per_s < 9.95 ? 1 : 0, per_s);
	return out;
}

const char *gp_top_percent_text(char *out, size_t size, const char *before, double share)
{
	if (share < 0)
		snprintf(out, size, "?");
	else
		snprintf(out, size, "%s%.0f%%", before, share * 100);
	return out;
}

const char *gp_top_class_name(uint8_t class)
{
	return gp_class_name(class);
}

/* "4 min", "3 h 12 min", "17 days": shows whether the daemon was restarted. */
static const char *age_text(char *out, size_t size, uint64_t ns)
{
	unsigned long long s = ns / GP_NS_PER_S;

	if (s < 120)
		snprintf(out, size, "%llu s", s);
	else if (s < 7200)
		snprintf(out, size, "%llu min", s / 60);
	else if (s < 172800)
		snprintf(out, size, "%llu h %llu min", s / 3600, s / 60 % 60);
	else
		snprintf(out, size, "%llu days", s / 86400);
	return out;
}

static void count_text(char *out, size_t size, const struct gp_top *top)
{
	const struct gp_top_snapshot *snapshot = &top->link.snapshot;

	if (*top->view.filter)
		snprintf(out, size, "%u of %u tasks match '%s'", top->view.n, snapshot->ntasks,
			 top->view.filter);
	else
		snprintf(out, size, "%u task%s on %u device%s", snapshot->ntasks,
			 snapshot->ntasks == 1 ? "" : "s", snapshot->ndevices,
			 snapshot->ndevices == 1 ? "" : "s");
}

static void paint_title(const struct gp_top *top, struct gp_cells *cells, unsigned row)
{
	const struct gp_top_snapshot *snapshot = &top->link.snapshot;
	char count[128], age[32], text[256];
	unsigned at;

	if (top->link.trouble.code) {
		gp_cells_fill(cells, row, 0, cells->cols, GP_STYLE_BAD);
		gp_cells_put(cells, row, 0, cells->cols, GP_STYLE_BAD, top->link.trouble.text);
		return;
	}
	count_text(count, sizeof count, top);
	at = gp_cells_put(cells, row, 0, cells->cols, GP_STYLE_TITLE,
			  top->link.had_snapshot ? count : "waiting for the daemon");
	if (!top->link.had_snapshot)
		return;
	if (snapshot->keeper_gone)
		at += gp_cells_put(cells, row, at, cells->cols - at, GP_STYLE_WARNING,
				   "  no keeper");
	snprintf(text, sizeof text, "%s, up %s", *snapshot->daemon ? snapshot->daemon : "gpreemptd",
		 age_text(age, sizeof age, snapshot->uptime_ns));
	if (at + 2 + gp_cells_width(cells, text) <= cells->cols)
		gp_cells_put_right(cells, row, at, cells->cols - at, GP_STYLE_FAINT, text);
}

void gp_top_paint(struct gp_top *top, struct gp_cells *cells, unsigned rows, unsigned cols)
{
	struct gp_top_rows r = gp_top_share_rows(rows, gp_top_device_rows(&top->link.snapshot));
	unsigned row = 0;

	if (gp_cells_begin(cells, rows, cols))
		return;
	if (top->task_rows != r.tasks) {
		top->task_rows = r.tasks;
		gp_top_view_update(&top->view, &top->link.snapshot, r.tasks);
	}
	if (r.title)
		paint_title(top, cells, row++);
	if (r.device_head)
		gp_top_paint_devices(top, cells, row, r.devices);
	row += r.device_head + r.devices;
	if (r.task_head)
		gp_top_paint_tasks(top, cells, row, r.tasks, true);
	gp_top_paint_panel(top, cells);
	if (r.status)
		gp_top_paint_status(top, cells, rows - 1);
}

void gp_top_paint_plain(struct gp_top *top, struct gp_cells *cells, unsigned cols)
{
	unsigned devices = gp_top_device_rows(&top->link.snapshot), tasks = top->view.n;

	if (gp_cells_begin(cells, 1 + (devices ? 1 + devices : 0) + 1 + tasks, cols))
		return;
	paint_title(top, cells, 0);
	if (devices)
		gp_top_paint_devices(top, cells, 1, devices);
	gp_top_paint_tasks(top, cells, cells->rows - tasks - 1, tasks, false);
}
