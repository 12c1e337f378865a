/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logarithmic histogram of durations in nanoseconds (or any other unit). 64 buckets per power of
 * two: a percentile is off by at most 1/128 of its value. No allocation; recording takes a few
 * instructions. Two histograms merge by addition.
 *
 * It takes 18 KiB, so it serves devices and simulations. gp_log2_hist (base/log2_hist.h) is the
 * small, less precise form for each task, because thousands of tasks may exist.
 */
#ifndef GP_BASE_HIST_H
#define GP_BASE_HIST_H

#include <stdint.h>

/* Values from 2^41 ns = 37 min on share the last bucket. */
#define GP_HIST_SUB_BITS 6
#define GP_HIST_TOP_BIT  40
#define GP_HIST_BUCKETS  ((GP_HIST_TOP_BIT - GP_HIST_SUB_BITS + 2) << GP_HIST_SUB_BITS)

struct gp_hist {
	uint64_t count;
	uint64_t sum; /* saturates at UINT64_MAX */
	uint64_t min; /* exact; UINT64_MAX if empty */
	uint64_t max; /* exact */
	uint64_t bucket[GP_HIST_BUCKETS];
};

void gp_hist_init(struct gp_hist *h);
void gp_hist_add(struct gp_hist *h, uint64_t value);
void gp_hist_merge(struct gp_hist *into, const struct gp_hist *from);

/*
 * Makes `copy` equal to `h`. `copy` must be empty or an earlier state of `h`. The cost grows with
 * the range of values in `h`, and is almost zero if no value was added.
 */
void gp_hist_catch_up(struct gp_hist *copy, const struct gp_hist *h);

/*
 * The quantile by nearest rank, within [min, max]: at least `per_million` millionths of the samples
 * are not larger. 500000 selects the median. Returns 0 if empty; check `count` first.
 */
uint64_t gp_hist_quantile(const struct gp_hist *h, uint32_t per_million);

/*
 * The nearest rank of a quantile among `count` samples: ceil(count * per_million / 1e6), at least 1
 * and at most `count`.
 */
uint64_t gp_hist_rank(uint64_t count, uint32_t per_million);

/* Returns 0 if empty. */
uint64_t gp_hist_mean(const struct gp_hist *h);

/* The first and last value that fall into bucket `index`, for printing and exporting. */
void gp_hist_bounds(unsigned index, uint64_t *low, uint64_t *high);

#endif
