/* SPDX-License-Identifier: Apache-2.0 */
/* The screen as a whole, and its first line. */
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/top/top.h"
#include "policy/policy.h"

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
	return class == GP_LATENCY_CRITICAL ? "lc" : class == GP_BEST_EFFORT ? "be" : "unmanaged";
}

/* "4 min", "3 h 12 min", "17 days": to see whether it was restarted. */
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
	const struct gp_top_shot *shot = &top->link.shot;

	if (*top->view.filter)
		snprintf(out, size, "%u of %u tasks have '%s'", top->view.n, shot->ntasks,
		         top->view.filter);
	else
		snprintf(out, size, "%u task%s on %u device%s", shot->ntasks,
		         shot->ntasks == 1 ? "" : "s", shot->ndevices,
		         shot->ndevices == 1 ? "" : "s");
}

static void paint_title(const struct gp_top *top, struct gp_sheet *sheet, unsigned row)
{
	const struct gp_top_shot *shot = &top->link.shot;
	char count[128], age[32], text[256];
	unsigned at;

	if (top->link.trouble.code) {
		gp_sheet_fill(sheet, row, 0, sheet->cols, GP_STYLE_BAD);
		gp_sheet_put(sheet, row, 0, sheet->cols, GP_STYLE_BAD, top->link.trouble.text);
		return;
	}
	count_text(count, sizeof count, top);
	at = gp_sheet_put(sheet, row, 0, sheet->cols, GP_STYLE_TITLE,
	                  top->link.was_there ? count : "asking the daemon");
	if (!top->link.was_there)
		return;
	if (shot->keeper_gone)
		at += gp_sheet_put(sheet, row, at, sheet->cols - at, GP_STYLE_WARNING,
		                   "  no keeper");
	snprintf(text, sizeof text, "%s, up %s", *shot->daemon ? shot->daemon : "gpreemptd",
	         age_text(age, sizeof age, shot->uptime_ns));
	if (at + 2 + gp_sheet_width(sheet, text) <= sheet->cols)
		gp_sheet_put_right(sheet, row, at, sheet->cols - at, GP_STYLE_FAINT, text);
}

void gp_top_paint(struct gp_top *top, struct gp_sheet *sheet, unsigned rows, unsigned cols)
{
	struct gp_top_rows r = gp_top_share_rows(rows, gp_top_device_rows(&top->link.shot));
	unsigned row = 0;

	if (gp_sheet_begin(sheet, rows, cols))
		return;
	if (top->task_rows != r.tasks) {
		top->task_rows = r.tasks;
		gp_top_view_update(&top->view, &top->link.shot, r.tasks);
	}
	if (r.title)
		paint_title(top, sheet, row++);
	if (r.device_head)
		gp_top_paint_devices(top, sheet, row, r.devices);
	row += r.device_head + r.devices;
	if (r.task_head)
		gp_top_paint_tasks(top, sheet, row, r.tasks, true);
	gp_top_paint_panel(top, sheet);
	if (r.status)
		gp_top_paint_status(top, sheet, rows - 1);
}

void gp_top_paint_plain(struct gp_top *top, struct gp_sheet *sheet, unsigned cols)
{
	unsigned devices = gp_top_device_rows(&top->link.shot), tasks = top->view.n;

	if (gp_sheet_begin(sheet, 1 + (devices ? 1 + devices : 0) + 1 + tasks, cols))
		return;
	paint_title(top, sheet, 0);
	if (devices)
		gp_top_paint_devices(top, sheet, 1, devices);
	gp_top_paint_tasks(top, sheet, sheet->rows - tasks - 1, tasks, false);
}
