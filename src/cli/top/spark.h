/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as pictures: the last minute as a line of small columns, a share as a bar. */
#ifndef GP_CLI_TOP_SPARK_H
#define GP_CLI_TOP_SPARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_MINUTE 60

/* One value a second, 0 to 1; negative = not known. Begin with gp_minute_init. */
struct gp_minute {
	uint64_t last_s; /* of the newest; 0 = there is none yet */
	float value[GP_MINUTE];
};

void gp_minute_init(struct gp_minute *minute);

/* `value` is that of the time since the last one: seconds in between get it, too; negative says
 * that it is not known. */
void gp_minute_add(struct gp_minute *minute, uint64_t now_ns, double value);

/*
 * The minute in `cells` columns of the terminal, up to 60, the newest to the right; each is the
 * mean of what is known of its time, and blank where nothing is. Returns `out`.
 */
const char *gp_spark(char *out, size_t size, const struct gp_minute *minute, unsigned cells,
                     bool utf8);

/* A share of `cells` columns: at least a trace of what is more than 0. Returns `out`. */
const char *gp_share_bar(char *out, size_t size, double share, unsigned cells, bool utf8);

#endif
