/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histogram: buckets cover every value once, quantiles agree with the sorted samples to 1/128
 * over several distributions, count, sum, min, max and mean are exact, merging equals recording
 * everything into one, and values beyond the last bucket do no harm.
 */
#include "support/test.h"
#include "support/by_value.h"

#include "base/hist.h"
#include "base/rng.h"

#define SAMPLES 20000

static const uint32_t asked[] = {0,      1,      49,     50,     1000,   10000,  250000, 333333,
				 500000, 900000, 990000, 999000, 999949, 999950, 999999, 1000000};
#define ASKED (sizeof(asked) / sizeof(asked[0]))

static uint64_t uniform(struct gp_rng *rng)
{
	return gp_rng_below(rng, 50000000);
}

static uint64_t exponential(struct gp_rng *rng)
{
	return gp_rng_exponential(rng, 800000);
}

/* A quick path and a slow one, as with and without a page fault. */
static uint64_t two_humps(struct gp_rng *rng)
{
	return gp_rng_below(rng, 10) ? 900 + gp_rng_below(rng, 200)
				     : 40000000 + gp_rng_below(rng, 1000000);
}

/* Every order of magnitude equally often. */
static uint64_t log_uniform(struct gp_rng *rng)
{
	unsigned bits = (unsigned)gp_rng_below(rng, 41);
	return gp_rng_below(rng, 2ull << bits);
}

/* Pareto with shape 1: the mean is all tail. */
static uint64_t heavy_tail(struct gp_rng *rng)
{
	return 1000000000 / (1 + gp_rng_below(rng, 1000000));
}

static uint64_t small_whole(struct gp_rng *rng)
{
	return gp_rng_below(rng, 128);
}

static uint64_t always_the_same(struct gp_rng *rng)
{
	(void)rng;
	return 123456789;
}

/* Nearest rank by its definition: the first sample with at least that share at or below it. */
static uint64_t exact_quantile(const uint64_t *sorted, uint64_t n, uint32_t per_million)
{
	uint64_t k = 0;
	while (k + 1 < n && (k + 1) * 1000000 < n * per_million)
		k++;
	return sorted[k];
}

static void assert_quantiles_agree(const struct gp_hist *h, const uint64_t *sorted, uint64_t n)
{
	for (size_t i = 0; i < ASKED; i++) {
		uint64_t exact = exact_quantile(sorted, n, asked[i]);
		uint64_t got = gp_hist_quantile(h, asked[i]);
		uint64_t off = got > exact ? got - exact : exact - got;
		if (off > exact / 128)
			fail_msg("quantile %u of %llu: %llu, not %llu", asked[i],
				 (unsigned long long)n, (unsigned long long)got,
				 (unsigned long long)exact);
		assert_true(got >= sorted[0] && got <= sorted[n - 1]);
	}
	assert_true(gp_hist_quantile(h, 0) == sorted[0]);
	assert_true(gp_hist_quantile(h, 1000000) == sorted[n - 1]);
}

static void assert_distribution(uint64_t (*draw)(struct gp_rng *), uint64_t n)
{
	static uint64_t sample[SAMPLES];
	static struct gp_hist h;
	struct gp_rng rng;
	uint64_t sum = 0;

	gp_rng_init(&rng, 99, n);
	gp_hist_init(&h);
	for (uint64_t i = 0; i < n; i++) {
		sample[i] = draw(&rng);
		sum += sample[i];
		gp_hist_add(&h, sample[i]);
	}
	qsort(sample, n, sizeof(sample[0]), by_value);
	assert_quantiles_agree(&h, sample, n);
	assert_true(h.count == n);
	assert_true(h.sum == sum);
	assert_true(h.min == sample[0]);
	assert_true(h.max == sample[n - 1]);
	assert_true(gp_hist_mean(&h) == sum / n);
}

TEST(quantiles_agree_with_the_sorted_samples)
{
	uint64_t (*const draws[])(struct gp_rng *) = {uniform,        exponential, two_humps,
						      log_uniform,    heavy_tail,  small_whole,
						      always_the_same};
	const uint64_t sizes[] = {1, 2, 3, 10, 101, 1000, SAMPLES};
	for (size_t d = 0; d < sizeof(draws) / sizeof(draws[0]); d++) {
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			assert_distribution(draws[d], sizes[s]);
	}
}

TEST(a_lone_small_value_is_exact)
{
	/* Between two far ends, so that min and max do not give it away. */
	for (uint64_t value = 0; value < 128; value++) {
		struct gp_hist h;
		gp_hist_init(&h);
		gp_hist_add(&h, 0);
		gp_hist_add(&h, value);
		gp_hist_add(&h, 1000000);
		assert_int_equal(gp_hist_quantile(&h, 500000), value);
	}
}

TEST(an_empty_histogram_says_0)
{
	struct gp_hist h;
	memset(&h, 0xff, sizeof(h));
	gp_hist_init(&h);
	assert_int_equal(h.count, 0);
	assert_true(h.min == UINT64_MAX);
	assert_int_equal(h.max, 0);
	assert_int_equal(gp_hist_mean(&h), 0);
	for (size_t i = 0; i < ASKED; i++)
		assert_int_equal(gp_hist_quantile(&h, asked[i]), 0);
}

TEST(more_than_a_million_per_million_is_the_maximum)
{
	struct gp_hist h;
	gp_hist_init(&h);
	for (uint64_t i = 1; i <= 1000; i++)
		gp_hist_add(&h, i * 1000);
	assert_int_equal(gp_hist_quantile(&h, UINT32_MAX), 1000000);
}

TEST(the_rank_is_right_for_counts_beyond_32_bits)
{
	struct gp_hist half, h;
	gp_hist_init(&half);
	gp_hist_add(&half, 10);
	gp_hist_add(&half, 20);
	gp_hist_init(&h);
	/* Doubling by merging with itself: 2^62 of each. */
	gp_hist_merge(&h, &half);
	for (int i = 0; i < 62; i++)
		gp_hist_merge(&h, &h);
	assert_true(h.count == 1ull << 63);
	assert_int_equal(gp_hist_quantile(&h, 499999), 10);
	assert_int_equal(gp_hist_quantile(&h, 500000), 10);
	assert_int_equal(gp_hist_quantile(&h, 500001), 20);
}

TEST(the_buckets_cover_every_value_once_and_in_order)
{
	uint64_t expected = 0, low, high;
	for (unsigned i = 0; i < GP_HIST_BUCKETS; i++) {
		gp_hist_bounds(i, &low, &high);
		assert_true(low == expected);
		assert_true(high >= low);
		/* 64 buckets per power of two: no wider than 1/64 of where it starts. */
		if (i != GP_HIST_BUCKETS - 1)
			assert_true(high - low <= low / 64);
		expected = high + 1;
	}
	assert_true(high == UINT64_MAX);
	assert_true(low < 1ull << 41 && low >= (1ull << 41) - (1ull << 34));
}

TEST(the_bounds_are_where_values_really_fall)
{
	static struct gp_hist h;
	for (unsigned i = 0; i < GP_HIST_BUCKETS; i++) {
		uint64_t low, high;
		gp_hist_bounds(i, &low, &high);
		gp_hist_init(&h);
		gp_hist_add(&h, low);
		gp_hist_add(&h, high);
		assert_int_equal(h.bucket[i], 2);
	}
}

TEST(merging_equals_recording_everything_into_one)
{
	static struct gp_hist part[3], merged, whole;
	struct gp_rng rng;
	gp_rng_init(&rng, 5, 0);
	gp_hist_init(&merged);
	gp_hist_init(&whole);
	for (int p = 0; p < 3; p++)
		gp_hist_init(&part[p]);
	for (int i = 0; i < 30000; i++) {
		uint64_t value = log_uniform(&rng);
		gp_hist_add(&part[gp_rng_below(&rng, 3)], value);
		gp_hist_add(&whole, value);
	}
	for (int p = 0; p < 3; p++)
		gp_hist_merge(&merged, &part[p]);
	assert_memory_equal(&merged, &whole, sizeof(whole));
}

TEST(merging_an_empty_histogram_changes_nothing)
{
	static struct gp_hist h, before, empty;
	gp_hist_init(&h);
	gp_hist_init(&empty);
	gp_hist_add(&h, 5000);
	before = h;
	gp_hist_merge(&h, &empty);
	assert_memory_equal(&h, &before, sizeof(h));
	gp_hist_merge(&empty, &h);
	assert_memory_equal(&empty, &before, sizeof(h));
}

TEST(a_copy_that_catches_up_is_equal)
{
	static struct gp_hist h, copy;
	struct gp_rng rng;
	gp_rng_init(&rng, 3, 0);
	gp_hist_init(&h);
	gp_hist_init(&copy);
	for (int round = 0; round < 200; round++) {
		uint64_t n = gp_rng_below(&rng, 4); /* 0: nothing was added */
		for (uint64_t i = 0; i < n; i++)
			gp_hist_add(&h, round == 150 ? UINT64_MAX : log_uniform(&rng));
		gp_hist_catch_up(&copy, &h);
		assert_memory_equal(&copy, &h, sizeof(h));
	}
	assert_true(h.max == UINT64_MAX);
}

TEST(values_too_large_share_the_last_bucket_and_read_as_its_end)
{
	static struct gp_hist h;
	gp_hist_init(&h);
	gp_hist_add(&h, 1);
	gp_hist_add(&h, 1ull << 41);
	gp_hist_add(&h, 1ull << 50);
	gp_hist_add(&h, UINT64_MAX);
	assert_int_equal(h.bucket[GP_HIST_BUCKETS - 1], 3);
	assert_true(h.max == UINT64_MAX);
	uint64_t p75 = gp_hist_quantile(&h, 750000);
	assert_true(p75 <= 1ull << 41 && p75 >= (1ull << 41) - (1ull << 34));
	assert_true(gp_hist_quantile(&h, 1000000) == UINT64_MAX);
}

TEST(the_sum_saturates)
{
	static struct gp_hist h, other;
	gp_hist_init(&h);
	gp_hist_add(&h, UINT64_MAX - 1);
	gp_hist_add(&h, 1);
	assert_true(h.sum == UINT64_MAX);
	gp_hist_add(&h, 1);
	assert_true(h.sum == UINT64_MAX);
	gp_hist_init(&other);
	gp_hist_add(&other, 1);
	gp_hist_merge(&other, &h);
	assert_true(other.sum == UINT64_MAX);
}
