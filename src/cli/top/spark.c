/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/spark.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void gp_minute_init(struct gp_minute *minute)
{
	minute->last_s = 0;
	for (unsigned i = 0; i < GP_MINUTE; i++)
		minute->value[i] = -1;
}

void gp_minute_add(struct gp_minute *minute, uint64_t now_ns, double value)
{
	uint64_t now_s = now_ns / GP_NS_PER_S, passed;

	if (minute->last_s && now_s - minute->last_s > GP_MINUTE)
		gp_minute_init(minute);
	passed = minute->last_s ? now_s - minute->last_s : 1; /* earlier seconds are not known */
	memmove(minute->value, minute->value + passed,
		(GP_MINUTE - passed) * sizeof minute->value[0]);
	for (uint64_t i = GP_MINUTE - (passed ? passed : 1); i < GP_MINUTE; i++)
		minute->value[i] = (float)value;
	minute->last_s = now_s;
}

/* The mean of the known values from `from` to `to`; negative: none is known. */
static double mean(const struct gp_minute *minute, unsigned from, unsigned to)
{
	double sum = 0;
	unsigned n = 0;

	for (unsigned i = from; i < to; i++)
		if (minute->value[i] >= 0) {
			sum += (double)minute->value[i];
			n++;
		}
	return n ? sum / n : -1;
}

static const char *column(double value, bool utf8)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	unsigned level;

	if (value < 0)
		return " ";
	level = value >= 1 ? 7 : (unsigned)(value * 8);
	return (utf8 ? blocks : ascii)[level];
}

const char *gp_spark(char *out, size_t size, const struct gp_minute *minute, unsigned cells,
		     bool utf8)
{
	size_t used = 0;

	*out = 0;
	if (cells > GP_MINUTE)
		cells = GP_MINUTE;
	for (unsigned i = 0; i < cells && used < size; i++)
		used += (size_t)snprintf(
			out + used, size - used, "%s",
			column(mean(minute, i * GP_MINUTE / cells, (i + 1) * GP_MINUTE / cells),
			       utf8));
	return out;
}

const char *gp_share_bar(char *out, size_t size, double share, unsigned cells, bool utf8)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	unsigned steps = utf8 ? 8 : 1, filled;
	size_t used = 0;

	*out = 0;
	share = share < 0 ? 0 : share > 1 ? 1 : share;
	filled = (unsigned)(share * cells * steps + 0.5);
	if (!filled && share > 0)
		filled = 1;
	for (unsigned i = 0; i < filled / steps && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s", utf8 ? "█" : "#");
	if (utf8 && used < size)
		snprintf(out + used, size - used, "%s", eighths[filled % 8]);
	return out;
}
