/* SPDX-License-Identifier: Apache-2.0 */
/* Small charts of characters: a sparkline of the last minute, and a bar for a share. */
#ifndef GP_CLI_TOP_SPARK_H
#define GP_CLI_TOP_SPARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_MINUTE 60

/* One value per second, 0 to 1; negative: not known. Begin with gp_minute_init. */
struct gp_minute {
	uint64_t last_s; /* time of the newest value; 0: none yet */
	float value[GP_MINUTE];
};

void gp_minute_init(struct gp_minute *minute);

/* `value` is the mean since the last call; all seconds in between get it. Negative: not known. */
void gp_minute_add(struct gp_minute *minute, uint64_t now_ns, double value);

/*
 * The minute in `cells` columns, at most 60, the newest at the right. Each column is the mean of
 * the known values of its seconds, and blank without any. Returns `out`.
 */
const char *gp_spark(char *out, size_t size, const struct gp_minute *minute, unsigned cells,
		     bool utf8);

/* A bar of at most `cells` columns. A share above 0 always shows. Returns `out`. */
const char *gp_share_bar(char *out, size_t size, double share, unsigned cells, bool utf8);

#endif
