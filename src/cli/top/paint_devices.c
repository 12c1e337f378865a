/* SPDX-License-Identifier: Apache-2.0 */
/* The devices: a line each, and one more where a policy was thrown out. */
#include <string.h>

#include "cli/top/top.h"

enum { NUMBER = 3, POLICY = 8, BUSY = 5, RATE = 6, SPARK_LEAST = 8 };

/* 0: there is no room for it. */
struct widths {
	unsigned name, policy, spark, preemptions, inversions;
};

unsigned gp_top_device_rows(const struct gp_top_shot *shot)
{
	unsigned n = shot->ndevices;

	for (unsigned i = 0; i < shot->ndevices; i++)
		n += shot->device[i].ejected;
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

static struct widths lay_out(const struct gp_top_shot *shot, const struct gp_sheet *sheet)
{
	unsigned left = sheet->cols, longest = 6,
		 most = sheet->cols / 4 > 12 ? sheet->cols / 4 : 12;
	struct widths w = {0};

	for (unsigned i = 0; i < shot->ndevices; i++) {
		unsigned width = gp_sheet_width(sheet, shot->device[i].name);

		longest = width > longest ? width : longest;
	}
	left = left > NUMBER + 1 + BUSY + 1 ? left - NUMBER - 1 - BUSY - 1 : 0;
	w.name = longest < most ? longest : most;
	w.name = w.name < left ? w.name : left;
	left -= w.name;
	/* The minute is what people look at: the rest must leave it room. */
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

static void paint_heads(struct gp_sheet *sheet, unsigned row, const struct widths *w)
{
	unsigned at = NUMBER + 1;

	gp_sheet_fill(sheet, row, 0, sheet->cols, GP_STYLE_HEAD);
	gp_sheet_put(sheet, row, 0, NUMBER, GP_STYLE_HEAD, "DEV");
	gp_sheet_put(sheet, row, at, w->name, GP_STYLE_HEAD, "NAME");
	at += w->name + 1;
	if (w->policy) {
		gp_sheet_put(sheet, row, at, w->policy, GP_STYLE_HEAD, "POLICY");
		at += w->policy + 1;
	}
	gp_sheet_put_right(sheet, row, at, BUSY, GP_STYLE_HEAD, "BUSY");
	at += BUSY + 1;
	if (w->spark) {
		gp_sheet_put(sheet, row, at, w->spark, GP_STYLE_HEAD,
		             w->spark >= 11 ? "LAST MINUTE" : "MINUTE");
		at += w->spark + 1;
	}
	if (w->preemptions)
		gp_sheet_put_right(sheet, row, at, RATE, GP_STYLE_HEAD, "PRE/S");
	at += w->preemptions ? RATE + 1 : 0;
	if (w->inversions)
		gp_sheet_put_right(sheet, row, at, RATE, GP_STYLE_HEAD, "INV/S");
}

static void paint_policy(struct gp_sheet *sheet, unsigned row, unsigned at,
                         const struct gp_top_device *d)
{
	if (strcmp(d->state, "ok") != 0)
		gp_sheet_put(sheet, row, at, POLICY, GP_STYLE_BAD, *d->state ? d->state : "?");
	else
		gp_sheet_put(sheet, row, at, POLICY, d->ejected ? GP_STYLE_BAD : GP_STYLE_PLAIN,
		             *d->policy ? d->policy : "?");
}

static void paint_device(const struct gp_top *top, struct gp_sheet *sheet, unsigned row,
                         const struct gp_top_device *d, const struct widths *w)
{
	char text[4 * GP_MINUTE + 1];
	unsigned at = NUMBER + 1;

	snprintf(text, sizeof text, "%u", d->number);
	gp_sheet_put_right(sheet, row, 0, NUMBER, GP_STYLE_PLAIN, text);
	gp_sheet_put(sheet, row, at, w->name, GP_STYLE_TITLE, d->name);
	at += w->name + 1;
	if (w->policy) {
		paint_policy(sheet, row, at, d);
		at += w->policy + 1;
	}
	gp_sheet_put_right(sheet, row, at, BUSY, GP_STYLE_PLAIN,
	                   gp_top_percent_text(text, sizeof text, "", d->busy));
	at += BUSY + 1;
	if (w->spark && d->number < GP_DEVICES_MAX)
		gp_sheet_put(sheet, row, at, w->spark, GP_STYLE_BAR,
		             gp_spark(text, sizeof text, &top->minute[d->number], w->spark,
		                      sheet->utf8));
	at += w->spark ? w->spark + 1 : 0;
	if (w->preemptions)
		gp_sheet_put_right(sheet, row, at, RATE, GP_STYLE_PLAIN,
		                   gp_top_rate_text(text, sizeof text, d->preemptions_per_s));
	at += w->preemptions ? RATE + 1 : 0;
	if (w->inversions)
		gp_sheet_put_right(sheet, row, at, RATE,
		                   d->inversions_per_s > 0 ? GP_STYLE_WARNING : GP_STYLE_PLAIN,
		                   gp_top_rate_text(text, sizeof text, d->inversions_per_s));
}

static void paint_rest(struct gp_sheet *sheet, unsigned row, unsigned left)
{
	char text[64];

	snprintf(text, sizeof text, "    and %u more: gpreempt top --device N shows one", left);
	gp_sheet_fill(sheet, row, 0, sheet->cols, GP_STYLE_PLAIN);
	gp_sheet_put(sheet, row, 0, sheet->cols, GP_STYLE_FAINT, text);
}

void gp_top_paint_devices(const struct gp_top *top, struct gp_sheet *sheet, unsigned row,
                          unsigned rows)
{
	const struct gp_top_shot *shot = &top->link.shot;
	struct widths w = lay_out(shot, sheet);
	unsigned used = 0;

	paint_heads(sheet, row++, &w);
	for (unsigned i = 0; i < shot->ndevices && used < rows; i++) {
		const struct gp_top_device *d = &shot->device[i];

		if (used == rows - 1 && i + 1 < shot->ndevices) {
			paint_rest(sheet, row + used, shot->ndevices - i);
			return;
		}
		paint_device(top, sheet, row + used++, d, &w);
		if (d->ejected && used < rows)
			gp_sheet_put(sheet, row + used++, NUMBER + 1, sheet->cols - NUMBER - 1,
			             GP_STYLE_BAD, d->why);
	}
}
