/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small histogram of durations: 520 bytes, so that each of thousands of tasks can have one. Four
 * buckets per power of two from 1 us on: a percentile is off by at most 1/8 of its value. Powers of
 * two of 1 us are bucket bounds. No allocation.
 *
 * Both this and gp_hist (base/hist.h) exist because gp_hist takes 18 KiB, too much for each task,
 * and an error of 1/8 is too much for benchmarks and simulations. The exporter needs a bucket bound
 * at 1 us. With 64 buckets per power of two of 1 ns, 1 us is a bound; with 4 it is not. Therefore
 * the layouts differ.
 */
#ifndef GP_BASE_LOG2_HIST_H
#define GP_BASE_LOG2_HIST_H

#include <stdint.h>

#define GP_LOG2_HIST_POWERS  30 /* durations from 2^30 us = 18 min on share the last bucket */
#define GP_LOG2_HIST_BUCKETS (4 * GP_LOG2_HIST_POWERS + 2)

struct gp_log2_hist {
	uint64_t count;
	uint64_t sum_ns;                       /* saturates at UINT64_MAX */
	uint64_t min_ns, max_ns;               /* exact; min_ns is UINT64_MAX if empty */
	uint32_t bucket[GP_LOG2_HIST_BUCKETS]; /* each saturates at UINT32_MAX */
};

void gp_log2_hist_init(struct gp_log2_hist *h);
void gp_log2_hist_add(struct gp_log2_hist *h, uint64_t ns);

/* As gp_hist_quantile: nearest rank, within [min_ns, max_ns]; 0 if empty. */
uint64_t gp_log2_hist_quantile(const struct gp_log2_hist *h, uint32_t per_million);

/* The first and last value of a bucket. */
void gp_log2_hist_bounds(unsigned index, uint64_t *low_ns, uint64_t *high_ns);

#endif
