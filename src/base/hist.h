/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log-scale histogram of durations in nanoseconds (any unit will do). 64 buckets per power of
 * two: a percentile is off by at most 1/128 of its value. No allocation; recording is a few
 * instructions. Two histograms of the same kind merge by addition.
 */
#ifndef GP_BASE_HIST_H
#define GP_BASE_HIST_H

#include <stdint.h>

#define GP_HIST_SUB_BITS 6
#define GP_HIST_TOP_BIT  40 /* 2^41 ns = 37 min and more share the last bucket, read as that */
#define GP_HIST_BUCKETS  ((GP_HIST_TOP_BIT - GP_HIST_SUB_BITS + 2) << GP_HIST_SUB_BITS)

struct gp_hist {
	uint64_t count;
	uint64_t sum; /* saturates */
	uint64_t min; /* exact; UINT64_MAX when empty */
	uint64_t max; /* exact */
	uint64_t bucket[GP_HIST_BUCKETS];
};

void gp_hist_init(struct gp_hist *h);
void gp_hist_add(struct gp_hist *h, uint64_t value);
void gp_hist_merge(struct gp_hist *into, const struct gp_hist *from);

/* Makes `copy` equal to `h`, of which it is an earlier state (an empty one is): costs what h's
 * range of values does, and nothing when nothing was added. */
void gp_hist_catch_up(struct gp_hist *copy, const struct gp_hist *h);

/*
 * The value below or at which `per_million` of the samples lie (500000 = median), by nearest
 * rank, never outside [min, max]. 0 when empty: look at `count` first.
 */
uint64_t gp_hist_quantile(const struct gp_hist *h, uint32_t per_million);

/* 0 when empty. */
uint64_t gp_hist_mean(const struct gp_hist *h);

/* First and last value that fall into bucket `index`: for printing and exporting. */
void gp_hist_bounds(unsigned index, uint64_t *low, uint64_t *high);

#endif
