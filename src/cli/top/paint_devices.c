/* SPDX-License-Identifier: Apache-2.0 */
/* The devices: one line each, and a second line after an ejected policy. */
#include <string.h>

#include "cli/top/top.h"

enum { NUMBER = 3, POLICY = 8, BUSY = 5, RATE = 6, SPARK_LEAST = 8 };

/* Columns; 0: no room, not shown. */
struct widths {
	unsigned name, policy, spark, preemptions, inversions;
};

unsigned gp_top_device_rows(const struct gp_top_snapshot *snapshot)
{
	unsigned n = snapshot->ndevices;

	for (unsigned i = 0; i < snapshot->ndevices; i++)
		n += snapshot->device[i].ejected;
	return n;
}

static bool take(unsigned *left, unsigned *width, unsigned wants)
{
	if (*left < wants + 1)
		return false;
	*left -= wants + 1;
	*width = wants;
	return true;
}

static struct widths lay_out(const struct gp_top_snapshot *snapshot, const struct gp_cells *cells)
{
	unsigned left = cells->cols, longest = 6,
		 most = cells->cols / 4 > 12 ? cells->cols / 4 : 12;
	struct widths w = {0};

	for (unsigned i = 0; i < snapshot->ndevices; i++) {
		unsigned width = gp_cells_width(cells, snapshot->device[i].name);

		longest = width > longest ? width : longest;
	}
	left = left > NUMBER + 1 + BUSY + 1 ? left - NUMBER - 1 - BUSY - 1 : 0;
	w.name = longest < most ? longest : most;
	w.name = w.name < left ? w.name : left;
	left -= w.name;
	/* The sparkline of the last minute gets its minimum before the other columns. */
	if (left > SPARK_LEAST) {
		left -= SPARK_LEAST + 1;
		w.spark = SPARK_LEAST;
	}
	if (take(&left, &w.policy, POLICY) && take(&left, &w.preemptions, RATE))
		take(&left, &w.inversions, RATE);
	if (w.spark)
		w.spark += left;
	if (w.spark > GP_MINUTE)
		w.spark = GP_MINUTE;
	return w;
}

static void paint_headings(struct gp_cells *cells, unsigned row, const struct widths *w)
{
	unsigned at = NUMBER + 1;

	gp_cells_fill(cells, row, 0, cells->cols, GP_STYLE_HEAD);
	gp_cells_put(cells, row, 0, NUMBER, GP_STYLE_HEAD, "DEV");
	gp_cells_put(cells, row, at, w->name, GP_STYLE_HEAD, "NAME");
	at += w->name + 1;
	if (w->policy) {
		gp_cells_put(cells, row, at, w->policy, GP_STYLE_HEAD, "POLICY");
		at += w->policy + 1;
	}
	gp_cells_put_right(cells, row, at, BUSY, GP_STYLE_HEAD, "BUSY");
	at += BUSY + 1;
	if (w->spark) {
		gp_cells_put(cells, row, at, w->spark, GP_STYLE_HEAD,
			     w->spark >= 11 ? "LAST MINUTE" : "MINUTE");
		at += w->spark + 1;
	}
	if (w->preemptions)
		gp_cells_put_right(cells, row, at, RATE, GP_STYLE_HEAD, "PRE/S");
	at += w->preemptions ? RATE + 1 : 0;
	if (w->inversions)
		gp_cells_put_right(cells, row, at, RATE, GP_STYLE_HEAD, "INV/S");
}

static void paint_policy(struct gp_cells *cells, unsigned row, unsigned at,
			 const struct gp_top_device *d)
{
	if (strcmp(d->state, "ok") != 0)
		gp_cells_put(cells, row, at, POLICY, GP_STYLE_BAD, *d->state ? d->state : "?");
	else
		gp_cells_put(cells, row, at, POLICY, d->ejected ? GP_STYLE_BAD : GP_STYLE_PLAIN,
			     *d->policy ? d->policy : "?");
}

static void paint_device(const struct gp_top *top, struct gp_cells *cells, unsigned row,
			 const struct gp_top_device *d, const struct widths *w)
{
	char text[4 * GP_MINUTE + 1];
	unsigned at = NUMBER + 1;

	snprintf(text, sizeof text, "%u", d->number);
	gp_cells_put_right(cells, row, 0, NUMBER, GP_STYLE_PLAIN, text);
	gp_cells_put(cells, row, at, w->name, GP_STYLE_TITLE, d->name);
	at += w->name + 1;
	if (w->policy) {
		paint_policy(cells, row, at, d);
		at += w->policy + 1;
	}
	gp_cells_put_right(cells, row, at, BUSY, GP_STYLE_PLAIN,
			   gp_top_percent_text(text, sizeof text, "", d->busy));
	at += BUSY + 1;
	if (w->spark && d->number < GP_DEVICES_MAX)
		gp_cells_put(cells, row, at, w->spark, GP_STYLE_BAR,
			     gp_spark(text, sizeof text, &top->minute[d->number], w->spark,
				      cells->utf8));
	at += w->spark ? w->spark + 1 : 0;
	if (w->preemptions)
		gp_cells_put_right(cells, row, at, RATE, GP_STYLE_PLAIN,
				   gp_top_rate_text(text, sizeof text, d->preemptions_per_s));
	at += w->preemptions ? RATE + 1 : 0;
	if (w->inversions)
		gp_cells_put_right(cells, row, at, RATE,
				   d->inversions_per_s > 0 ? GP_STYLE_WARNING : GP_STYLE_PLAIN,
				   gp_top_rate_text(text, sizeof text, d->inversions_per_s));
}

static void paint_rest(struct gp_cells *cells, unsigned row, unsigned left)
{
	char text[64];

	snprintf(text, sizeof text, "    %u more devices: gpreempt top --device N shows one", left);
	gp_cells_fill(cells, row, 0, cells->cols, GP_STYLE_PLAIN);
	gp_cells_put(cells, row, 0, cells->cols, GP_STYLE_FAINT, text);
}

void gp_top_paint_devices(const struct gp_top *top, struct gp_cells *cells, unsigned row,
			  unsigned rows)
{
	const struct gp_top_snapshot *snapshot = &top->link.snapshot;
	struct widths w = lay_out(snapshot, cells);
	unsigned used = 0;

	paint_headings(cells, row++, &w);
	for (unsigned i = 0; i < snapshot->ndevices && used < rows; i++) {
		const struct gp_top_device *d = &snapshot->device[i];

		if (used == rows - 1 && i + 1 < snapshot->ndevices) {
			paint_rest(cells, row + used, snapshot->ndevices - i);
			return;
		}
		paint_device(top, cells, row + used++, d, &w);
		if (d->ejected && used < rows)
			gp_cells_put(cells, row + used++, NUMBER + 1, cells->cols - NUMBER - 1,
				     GP_STYLE_BAD, d->why);
	}
}
