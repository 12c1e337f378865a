/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small histogram: every duration falls into the one bucket whose bounds hold it, powers of two of
 * 1 us are bounds, quantiles are off by at most an eighth, the ends are exact, and it is small.
 */
#include "support/test.h"
#include "support/by_value.h"

#include "base/log2_hist.h"
#include "base/rng.h"

#define SAMPLES 20001

static unsigned bucket_of(uint64_t ns)
{
	struct gp_log2_hist h;
	unsigned i = 0;

	gp_log2_hist_init(&h);
	gp_log2_hist_add(&h, ns);
	while (!h.bucket[i])
		i++;
	return i;
}

TEST(a_thousand_tasks_can_afford_one)
{
	assert_true(sizeof(struct gp_log2_hist) <= 700);
}

TEST(the_buckets_cover_every_value_once)
{
	uint64_t next = 0;

	for (unsigned i = 0; i < GP_LOG2_HIST_BUCKETS; i++) {
		uint64_t low, high;

		gp_log2_hist_bounds(i, &low, &high);
		assert_int_equal(low, next);
		assert_true(high >= low);
		assert_int_equal(bucket_of(low), i);
		assert_int_equal(bucket_of(high), i);
		next = high + 1;
	}
	assert_int_equal(next, 0); /* after UINT64_MAX */
}

TEST(powers_of_two_of_a_microsecond_are_bounds)
{
	for (unsigned k = 0; k <= GP_LOG2_HIST_POWERS; k++) {
		uint64_t low, high, ns = 1000ull << k;

		gp_log2_hist_bounds(bucket_of(ns), &low, &high);
		assert_int_equal(low, ns);
		assert_int_equal(bucket_of(ns - 1) + 1, bucket_of(ns));
	}
}

TEST(quantiles_are_off_by_an_eighth_at_most)
{
	static uint64_t sample[SAMPLES];
	static const uint32_t asked[] = {0, 10000, 250000, 500000, 900000, 990000, 999000, 1000000};
	struct gp_rng rng;
	struct gp_log2_hist h;
	uint64_t sum = 0;

	gp_rng_init(&rng, 6, 0);
	gp_log2_hist_init(&h);
	for (unsigned i = 0; i < SAMPLES; i++) {
		sample[i] = 1000 + gp_rng_below(&rng, 2000ull << gp_rng_below(&rng, 30));
		sum += sample[i];
		gp_log2_hist_add(&h, sample[i]);
	}
	qsort(sample, SAMPLES, sizeof *sample, by_value);
	assert_int_equal(h.count, SAMPLES);
	assert_int_equal(h.sum_ns, sum);
	for (unsigned k = 0; k < sizeof asked / sizeof *asked; k++) {
		uint64_t rank = (SAMPLES * (uint64_t)asked[k] + 999999) / 1000000;
		uint64_t truth = sample[rank ? rank - 1 : 0];
		uint64_t told = gp_log2_hist_quantile(&h, asked[k]);

		assert_in_range(told, truth - truth / 8, truth + truth / 8);
	}
	assert_int_equal(gp_log2_hist_quantile(&h, 0), sample[0]);
	assert_int_equal(gp_log2_hist_quantile(&h, 1000000), sample[SAMPLES - 1]);
}

TEST(nothing_has_no_quantile_and_one_value_is_all_of_them)
{
	struct gp_log2_hist h;

	gp_log2_hist_init(&h);
	assert_int_equal(gp_log2_hist_quantile(&h, 500000), 0);
	gp_log2_hist_add(&h, 123456789);
	assert_int_equal(gp_log2_hist_quantile(&h, 1), 123456789);
	assert_int_equal(gp_log2_hist_quantile(&h, 990000), 123456789);
}

TEST(what_is_too_long_does_no_harm)
{
	struct gp_log2_hist h;

	gp_log2_hist_init(&h);
	for (unsigned i = 0; i < 3; i++)
		gp_log2_hist_add(&h, UINT64_MAX);
	assert_int_equal(h.sum_ns, UINT64_MAX);
	assert_int_equal(h.bucket[GP_LOG2_HIST_BUCKETS - 1], 3);
	assert_int_equal(gp_log2_hist_quantile(&h, 500000), UINT64_MAX);
	h.bucket[0] = UINT32_MAX;
	gp_log2_hist_add(&h, 1);
	assert_int_equal(h.bucket[0], UINT32_MAX);
}
