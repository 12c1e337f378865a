/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers: the published sequences of splitmix64 and xoshiro256**, streams that differ,
 * bounded numbers in bounds and uniform, exponential numbers equal to -ln(u) as computed with
 * 60 digits elsewhere (Python's decimal), at the extremes too.
 */
#include "support/test.h"
#include "support/by_value.h"

#include "base/rng.h"

TEST(seeding_is_splitmix64)
{
	/* As on rosettacode.org for seed 1234567. */
	const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u,
				     9817491932198370423u, 4593380528125082431u};
	struct gp_rng rng;
	gp_rng_init(&rng, 1234567, 0);
	for (int i = 0; i < 4; i++)
		assert_true(rng.s[i] == expected[i]);
}

TEST(the_generator_is_xoshiro256starstar)
{
	/* The vector that other implementations test with, from state 1, 2, 3, 4. */
	const uint64_t expected[] = {11520u,
				     0u,
				     1509978240u,
				     1215971899390074240u,
				     1216172134540287360u,
				     607988272756665600u,
				     16172922978634559625u,
				     8476171486693032832u,
				     10595114339597558777u,
				     2904607092377533576u};
	struct gp_rng rng = {{1, 2, 3, 4}};
	for (int i = 0; i < 10; i++)
		assert_true(gp_rng_next(&rng) == expected[i]);
}

TEST(a_seed_and_stream_give_the_same_numbers_for_ever)
{
	const uint64_t stream0[] = {0x15780b2e0c2ec716, 0x6104d9866d113a7e, 0xae17533239e499a1,
				    0xecb8ad4703b360a1, 0xfde6dc7fe2ec5e64, 0xc50da53101795238};
	const uint64_t stream1[] = {0x651975049fe9c8f5, 0x3bcdf131397288c7, 0x8fb7530efe17205e,
				    0x2b04008f6d31518a, 0x48647a57b56860df, 0x72e40aa8c58b2267};
	struct gp_rng a, b;
	gp_rng_init(&a, 42, 0);
	gp_rng_init(&b, 42, 1);
	for (int i = 0; i < 6; i++) {
		assert_true(gp_rng_next(&a) == stream0[i]);
		assert_true(gp_rng_next(&b) == stream1[i]);
	}
}

static unsigned ones_of(uint64_t x)
{
	return (unsigned)__builtin_popcountll(x);
}

TEST(neighbouring_streams_have_nothing_in_common)
{
	/* Bits of two independent numbers differ 32 times of 64: 32000 +- 126 of 64000. */
	for (uint64_t stream = 0; stream < 50; stream++) {
		struct gp_rng a, b;
		unsigned differ = 0;
		gp_rng_init(&a, 7, stream);
		gp_rng_init(&b, 7, stream + 1);
		for (int i = 0; i < 1000; i++)
			differ += ones_of(gp_rng_next(&a) ^ gp_rng_next(&b));
		assert_in_range(differ, 31300, 32700);
	}
}

TEST(bounded_numbers_stay_below_the_bound_and_reach_both_ends)
{
	struct gp_rng rng;
	gp_rng_init(&rng, 3, 0);
	for (uint64_t bound = 1; bound <= 50; bound++) {
		uint64_t seen = 0;
		for (int i = 0; i < 2000; i++) {
			uint64_t x = gp_rng_below(&rng, bound);
			assert_true(x < bound);
			seen |= 1ull << x;
		}
		assert_true(seen == (1ull << bound) - 1);
	}
	const uint64_t huge[] = {(1ull << 63) - 1, 1ull << 63, (1ull << 63) + 1, UINT64_MAX};
	for (int b = 0; b < 4; b++) {
		for (int i = 0; i < 2000; i++)
			assert_true(gp_rng_below(&rng, huge[b]) < huge[b]);
	}
}

TEST(bounded_numbers_are_uniform)
{
	struct gp_rng rng;
	gp_rng_init(&rng, 4, 0);
	unsigned count[10] = {0};
	for (int i = 0; i < 100000; i++)
		count[gp_rng_below(&rng, 10)]++;
	/* 10000 each, standard deviation 95. */
	for (int i = 0; i < 10; i++)
		assert_in_range(count[i], 9500, 10500);
}

TEST(a_bound_near_the_top_is_not_biased)
{
	/*
	 * Of 3 * 2^62, each third should be as likely. Taking a remainder, or leaving out the
	 * rejection, would make one of them twice as likely as another.
	 */
	struct gp_rng rng;
	gp_rng_init(&rng, 5, 0);
	unsigned third[3] = {0}, residue[3] = {0};
	for (int i = 0; i < 90000; i++) {
		uint64_t x = gp_rng_below(&rng, 3ull << 62);
		third[x >> 62]++;
		residue[x % 3]++;
	}
	/* 30000 each, standard deviation 141. */
	for (int i = 0; i < 3; i++) {
		assert_in_range(third[i], 29300, 30700);
		assert_in_range(residue[i], 29300, 30700);
	}
}

TEST(exponential_numbers_are_minus_ln_u)
{
	/* round(1e15 * -ln((r + 1) / 2^64)) of the raw numbers r of seed 42, stream 7. */
	const uint64_t expected[] = {
		2673862703889079u, 207687984272717u,  741968679482052u,  1161756881777788u,
		2740217911389654u, 83809990475987u,   148495637261219u,  1107907759228643u,
		1827994257516222u, 1927278143273389u, 895132137274987u,  275493233809123u,
		1293719233267743u, 68969919774125u,   1554924394564095u, 1420856612864582u};
	struct gp_rng rng;
	gp_rng_init(&rng, 42, 7);
	for (int i = 0; i < 16; i++)
		assert_true(gp_rng_exponential(&rng, 1000000000000000u) == expected[i]);
}

/* A generator whose next raw number is the one wanted: its output function run backwards. */
static struct gp_rng rng_about_to_say(uint64_t raw)
{
	uint64_t x = raw * 0x8e38e38e38e38e39u;       /* 1 / 9 modulo 2^64 */
	x = (x >> 7 | x << 57) * 0xcccccccccccccccdu; /* 1 / 5 */
	struct gp_rng rng = {{1, x, 2, 3}}, copy = rng;
	assert_true(gp_rng_next(&copy) == raw);
	return rng;
}

static void assert_exponential(uint64_t raw, uint64_t mean, uint64_t expected)
{
	struct gp_rng rng = rng_about_to_say(raw);
	uint64_t got = gp_rng_exponential(&rng, mean);
	uint64_t off = got > expected ? got - expected : expected - got;
	if (off > expected / 1000000)
		fail_msg("%llx: %llu, not %llu", (unsigned long long)raw, (unsigned long long)got,
			 (unsigned long long)expected);
}

TEST(exponential_numbers_are_precise_at_the_extremes)
{
	const uint64_t e17 = 100000000000000000u;
	assert_exponential(UINT64_MAX, UINT64_MAX, 0);
	assert_exponential(0, e17, 4436141955583649980u);
	assert_exponential(1, e17, 4366827237527655449u);
	assert_exponential(2, e17, 4326280726716839011u);
	assert_exponential(1ull << 20, e17, 3049847499096373196u);
	assert_exponential((1ull << 63) - 1, e17, 69314718055994531u);
	assert_exponential(0x123456789abcdef0, e17, 264351167996463891u);
	assert_exponential(UINT64_MAX - (1ull << 40), e17, 5960464655u);
	assert_exponential(UINT64_MAX - (1ull << 30), e17, 5820766u);
}

__extension__ typedef unsigned __int128 u128;

/* -ln(u / 2^64) in 1/2^56 without a table: squaring a number doubles its logarithm, so each
 * squaring brings one more bit of it before the point. */
static uint64_t slow_minus_ln(uint64_t u)
{
	unsigned zeros = (unsigned)__builtin_clzll(u);
	uint64_t m = u << zeros, fraction = 0;

	for (int i = 0; i < 56; i++) {
		u128 square = (u128)m * m;
		unsigned bit = (unsigned)(square >> 127);

		m = (uint64_t)(square >> (63 + bit));
		fraction = fraction << 1 | bit;
	}
	return (uint64_t)(((u128)(((uint64_t)(zeros + 1) << 56) - fraction) *
			   0xb17217f7d1cf79acull) >>
			  64);
}

/* In every part of the table, at its ends and in between, at every power of two. */
TEST(exponential_numbers_agree_with_the_slow_way)
{
	struct gp_rng rng;

	gp_rng_init(&rng, 9, 0);
	for (unsigned part = 0; part < 128; part++)
		for (unsigned i = 0; i < 200; i++) {
			uint64_t low = i == 0   ? 0
				       : i == 1 ? (1ull << 56) - 1
						: gp_rng_next(&rng) >> 8;
			uint64_t u = (1ull << 63 | (uint64_t)part << 56 | low) >> i % 64;
			struct gp_rng next;
			uint64_t got, wanted;

			if (!u)
				continue;
			next = rng_about_to_say(u - 1);
			got = gp_rng_exponential(&next, 1ull << 56);
			wanted = slow_minus_ln(u);
			if (got > wanted + 2 || wanted > got + 2)
				fail_msg("%llx: %llu, not %llu", (unsigned long long)u,
					 (unsigned long long)got, (unsigned long long)wanted);
		}
}

TEST(exponential_numbers_saturate)
{
	assert_exponential(0, UINT64_MAX, UINT64_MAX);
	assert_exponential(0, UINT64_MAX / 44, UINT64_MAX);
	assert_exponential(0, UINT64_MAX / 45, 18184972295399332478u);
	assert_exponential(12345, 0, 0);
}

TEST(exponential_numbers_are_rounded_to_the_nearest)
{
	/* -ln(1/2) = 0.693 */
	assert_exponential((1ull << 63) - 1, 1, 1);
	assert_exponential((1ull << 63) - 1, 2, 1);
	assert_exponential((1ull << 63) - 1, 3, 2);
}

#define DRAWS 200000

TEST(exponential_numbers_have_the_mean_and_the_quantiles)
{
	static uint64_t draw[DRAWS];
	/* Per 1000, and 1e6 * -ln(1 - q), and how far off 200000 draws may be (5 sigma). */
	const struct {
		uint64_t per_1000, value, off;
	} quantile[] = {
		{10, 10050, 1200},      {100, 105361, 4000},   {250, 287682, 6500},
		{500, 693147, 11500},   {750, 1386294, 19500}, {900, 2302585, 33500},
		{990, 4605170, 112000},
	};
	struct gp_rng rng;
	uint64_t sum = 0;
	gp_rng_init(&rng, 6, 0);
	for (int i = 0; i < DRAWS; i++) {
		draw[i] = gp_rng_exponential(&rng, 1000000);
		sum += draw[i];
	}
	assert_in_range(sum / DRAWS, 1000000 - 11200, 1000000 + 11200);
	qsort(draw, DRAWS, sizeof(draw[0]), by_value);
	for (size_t i = 0; i < sizeof(quantile) / sizeof(quantile[0]); i++)
		assert_in_range(draw[quantile[i].per_1000 * DRAWS / 1000],
				quantile[i].value - quantile[i].off,
				quantile[i].value + quantile[i].off);
}
