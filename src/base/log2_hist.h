/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A coarse histogram of durations: half a kilobyte, so that each of thousands of tasks can have
 * one. Four buckets per power of two from 1 us on: a percentile is off by at most an eighth of its
 * value. Powers of two of 1 us are bounds of buckets. No allocation.
 */
#ifndef GP_BASE_LOG2_HIST_H
#define GP_BASE_LOG2_HIST_H

#include <stdint.h>

#define GP_COARSE_POWERS  30 /* 2^30 us = 18 min and more share the last bucket */
#define GP_COARSE_BUCKETS (4 * GP_COARSE_POWERS + 2)

struct gp_log2_hist {
	uint64_t count;
	uint64_t sum_ns;                    /* saturates */
	uint64_t min_ns, max_ns;            /* exact; min is UINT64_MAX when empty */
	uint32_t bucket[GP_COARSE_BUCKETS]; /* each saturates */
};

void gp_log2_hist_init(struct gp_log2_hist *h);
void gp_log2_hist_add(struct gp_log2_hist *h, uint64_t ns);

/* As gp_hist_quantile: by nearest rank, never outside [min, max]; 0 when empty. */
uint64_t gp_log2_hist_quantile(const struct gp_log2_hist *h, uint32_t per_million);

/* First and last value of a bucket. */
void gp_log2_hist_bounds(unsigned index, uint64_t *low_ns, uint64_t *high_ns);

#endif
