/* SPDX-License-Identifier: Apache-2.0 */
/* Bucket layout: buckets 0 to 63 hold the values 0 to 63. Above that, each power of two has 64
 * buckets of equal width; the bits below the leading 1 select the bucket. */
#include "base/hist.h"

#include <stddef.h>
#include <string.h>

#define SUB_BUCKETS (1u << GP_HIST_SUB_BITS)
#define MILLION     1000000u

static unsigned bucket_of(uint64_t value)
{
	if (value < SUB_BUCKETS)
		return (unsigned)value;

	unsigned top_bit = 63u - (unsigned)__builtin_clzll(value);
	if (top_bit > GP_HIST_TOP_BIT)
		return GP_HIST_BUCKETS - 1;

	unsigned shift = top_bit - GP_HIST_SUB_BITS;
	unsigned sub = (unsigned)(value >> shift) & (SUB_BUCKETS - 1);
	return ((shift + 1) << GP_HIST_SUB_BITS) + sub;
}

/* As gp_hist_bounds, except that the last bucket has the same width as its neighbours. */
static void regular_bounds(unsigned index, uint64_t *low, uint64_t *high)
{
	if (index < SUB_BUCKETS) {
		*low = *high = index;
		return;
	}
	unsigned shift = (index >> GP_HIST_SUB_BITS) - 1;
	uint64_t leading = SUB_BUCKETS + (index & (SUB_BUCKETS - 1));
	*low = leading << shift;
	*high = ((leading + 1) << shift) - 1;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void gp_hist_init(struct gp_hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void gp_hist_add(struct gp_hist *h, uint64_t value)
{
	h->count++;
	h->sum = add_saturating(h->sum, value);
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->bucket[bucket_of(value)]++;
}

void gp_hist_merge(struct gp_hist *into, const struct gp_hist *from)
{
	into->count += from->count;
	into->sum = add_saturating(into->sum, from->sum);
	if (from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	for (unsigned i = 0; i < GP_HIST_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
}

void gp_hist_catch_up(struct gp_hist *copy, const struct gp_hist *h)
{
	unsigned first, last;

	if (copy->count == h->count)
		return;
	first = bucket_of(h->min);
	last = bucket_of(h->max);
	memcpy(copy, h, offsetof(struct gp_hist, bucket));
	memcpy(&copy->bucket[first], &h->bucket[first], (last - first + 1) * sizeof *h->bucket);
}

/* The count is split into millions and a rest, so that no product overflows. */
uint64_t gp_hist_rank(uint64_t count, uint32_t per_million)
{
	if (per_million >= MILLION)
		return count;
	uint64_t whole = count / MILLION * per_million;
	uint64_t rest = (count % MILLION * per_million + MILLION - 1) / MILLION;
	return whole + rest > 0 ? whole + rest : 1;
}

/* The middle of a bucket differs from its values by at most half the bucket's width. The width is
 * at most 1/64 of the values. Therefore the relative error is at most 1/128. */
static uint64_t middle(const struct gp_hist *h, unsigned index)
{
	uint64_t low, high;
	regular_bounds(index, &low, &high);
	uint64_t value = low + (high - low) / 2;
	if (value < h->min)
		return h->min;
	return value > h->max ? h->max : value;
}

uint64_t gp_hist_quantile(const struct gp_hist *h, uint32_t per_million)
{
	if (h->count == 0)
		return 0;

	uint64_t rank = gp_hist_rank(h->count, per_million);
	/* Minimum and maximum are stored exactly. */
	if (rank == h->count)
		return h->max;
	if (rank == 1)
		return h->min;

	uint64_t seen = 0;
	for (unsigned i = 0; i < GP_HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= rank)
			return middle(h, i);
	}
	return h->max;
}

uint64_t gp_hist_mean(const struct gp_hist *h)
{
	return h->count ? h->sum / h->count : 0;
}

void gp_hist_bounds(unsigned index, uint64_t *low, uint64_t *high)
{
	regular_bounds(index, low, high);
	if (index == GP_HIST_BUCKETS - 1)
		*high = UINT64_MAX;
}
