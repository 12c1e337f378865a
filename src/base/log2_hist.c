/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bucket layout: one bucket below 1 us, four of equal width for each power of two of 1 us, and one
 * for all longer durations. Internally, time is counted in units of 125/128 ns. 1 us is 1,024 of
 * these units, so that the leading bits select the bucket.
 */
#include "base/log2_hist.h"

#include <string.h>

#include "base/hist.h"

#define US_BITS 10 /* log2 of the units in 1 us */

static unsigned bucket_of(uint64_t ns)
{
	uint64_t units;
	unsigned top_bit;

	if (ns >= 1000ull << GP_LOG2_HIST_POWERS)
		return GP_LOG2_HIST_BUCKETS - 1;
	if (ns < 1000)
		return 0;
	units = (ns << 7) / 125;
	top_bit = 63u - (unsigned)__builtin_clzll(units);
	return 1 + 4 * (top_bit - US_BITS) + (unsigned)(units >> (top_bit - 2) & 3);
}

void gp_log2_hist_init(struct gp_log2_hist *h)
{
	memset(h, 0, sizeof *h);
	h->min_ns = UINT64_MAX;
}

void gp_log2_hist_add(struct gp_log2_hist *h, uint64_t ns)
{
	uint32_t *bucket = &h->bucket[bucket_of(ns)];

	h->count++;
	h->sum_ns = h->sum_ns > UINT64_MAX - ns ? UINT64_MAX : h->sum_ns + ns;
	if (ns < h->min_ns)
		h->min_ns = ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
	*bucket += *bucket != UINT32_MAX;
}

void gp_log2_hist_bounds(unsigned index, uint64_t *low_ns, uint64_t *high_ns)
{
	unsigned power = (index - 1) / 4, quarter = (index - 1) % 4;

	*low_ns = index ? (250ull * (4 + quarter)) << power : 0;
	if (index == GP_LOG2_HIST_BUCKETS - 1)
		*high_ns = UINT64_MAX;
	else
		*high_ns = index ? ((250ull * (5 + quarter)) << power) - 1 : 999;
}

static uint64_t middle(const struct gp_log2_hist *h, unsigned index)
{
	uint64_t low_ns, high_ns, ns;

	gp_log2_hist_bounds(index, &low_ns, &high_ns);
	if (index == GP_LOG2_HIST_BUCKETS - 1)
		high_ns = low_ns;
	ns = low_ns + (high_ns - low_ns) / 2;
	if (ns < h->min_ns)
		return h->min_ns;
	return ns > h->max_ns ? h->max_ns : ns;
}

uint64_t gp_log2_hist_quantile(const struct gp_log2_hist *h, uint32_t per_million)
{
	uint64_t rank = gp_hist_rank(h->count, per_million), seen = 0;

	if (!h->count)
		return 0;
	if (rank == 1) /* minimum and maximum are stored exactly */
		return h->min_ns;
	for (unsigned i = 0; i < GP_LOG2_HIST_BUCKETS && rank < h->count; i++) {
		seen += h->bucket[i];
		if (seen >= rank)
			return middle(h, i);
	}
	return h->max_ns;
}
