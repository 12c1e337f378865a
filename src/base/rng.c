/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256** and splitmix64 are by David Blackman and Sebastiano Vigna. The authors placed them
 * in the public domain: https://prng.di.unimi.it/ */
#include "base/rng.h"

#include <stdint.h>

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

#define LN_BITS 56 /* bits of the fraction; the integer part, up to 44, fits above them */
#define ONE     (1ull << 63)
#define LN2     0x58b90bfbe8e7bcd6ull

/*
 * Table for the logarithm of m in [1, 2). Entry i belongs to part i of 16 equal parts. It holds the
 * reciprocal r of the middle of that part in units of 1/2^16, and -ln(r) in units of 1/2^63, both
 * rounded to nearest. test_rng.c computes the logarithm without the table and compares.
 */
static const struct {
	uint32_t reciprocal;
	uint64_t minus_ln;
} rng_log[16] = {
	{0xf83e, 0x03f05b61cf46600cull}, {0xea0f, 0x0b7835457d45a2f2ull},
	{0xdd68, 0x129532f823f522a1ull}, {0xd20d, 0x19526e9cf5e6b4a0ull},
	{0xc7ce, 0x1fb9206d5e7e2a90ull}, {0xbe83, 0x25d1c175c24a6138ull},
	{0xb60b, 0x2ba3bf7ec2239b07ull}, {0xae4c, 0x3134970d8b84b7abull},
	{0xa72f, 0x3689f2f7992ec51aull}, {0xa0a1, 0x3ba888099a19388full},
	{0x9a91, 0x4095369698d3faf1ull}, {0x94f2, 0x4553174bd397a6a9ull},
	{0x8fb8, 0x49e5984a2ac46c59ull}, {0x8ad9, 0x4e4f774d5938669eull},
	{0x864c, 0x52937176f1facf73ull}, {0x8208, 0x56b52130da7cb497ull},
};

/* The finaliser of splitmix64: a bijection that maps 0 to 0. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, unsigned by)
{
	return (x << by) | (x >> (64 - by));
}

void gp_rng_init(struct gp_rng *rng, uint64_t seed, uint64_t stream)
{
	/* The stream number is mixed because adjacent streams must not start in adjacent states.
	 * Stream 0 is the seeding that the authors recommend. */
	uint64_t state = seed ^ mix(stream);
	for (int i = 0; i < 4; i++) {
		state += 0x9e3779b97f4a7c15ull;
		rng->s[i] = mix(state);
	}
}

uint64_t gp_rng_next(struct gp_rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

/* Lemire's method: takes the high half of a product and rejects the few values that cause bias. */
uint64_t gp_rng_below(struct gp_rng *rng, uint64_t bound)
{
	u128 product = (u128)gp_rng_next(rng) * bound;
	if ((uint64_t)product < bound) {
		uint64_t reject_below = (0 - bound) % bound; /* 2^64 mod bound */
		while ((uint64_t)product < reject_below)
			product = (u128)gp_rng_next(rng) * bound;
	}
	return (uint64_t)(product >> 64);
}

/* Multiplies two numbers between -1 and 1, in units of 1/2^63. */
static int64_t product(int64_t a, int64_t b)
{
	return (int64_t)(((i128)a * b) >> 63);
}

/*
 * Returns ln(m / 2^63) in units of 1/2^63, where m / 2^63 is in [1, 2). Multiplied by the
 * reciprocal of the middle of its part, m becomes 1 + z with |z| < 2^-4.9. Then ln(1 + z) = z -
 * z^2/2 + z^3/3 - ...; the omitted terms sum to less than 2^-58.
 */
static int64_t ln(uint64_t m)
{
	unsigned part = (unsigned)(m >> 59) & 15;
	int64_t z = (int64_t)((uint64_t)(((u128)m * rng_log[part].reciprocal) >> 16) - ONE);
	int64_t sum = 0;

	for (unsigned n = 11; n > 1; n--)
		sum = product(z, (int64_t)(ONE / n) - sum);
	return (int64_t)rng_log[part].minus_ln + z - product(z, sum);
}

/* -ln(u / 2^64) * 2^LN_BITS, for u from 1 to 2^64 - 1. */
static uint64_t minus_ln(uint64_t u)
{
	unsigned zeros = (unsigned)__builtin_clzll(u);
	i128 whole = (i128)LN2 * (zeros + 1);

	return (uint64_t)((whole - ln(u << zeros)) >> (63 - LN_BITS));
}

uint64_t gp_rng_exponential(struct gp_rng *rng, uint64_t mean)
{
	/* u is uniform in (0, 1]. 0 has no logarithm; 1, which wraps to 0 here, has the logarithm
	 * 0. */
	uint64_t u = gp_rng_next(rng) + 1;
	if (u == 0)
		return 0;

	/* Rounded to nearest: truncation would lower the mean by half a unit. */
	u128 half = (u128)1 << (LN_BITS - 1);
	u128 value = ((u128)mean * minus_ln(u) + half) >> LN_BITS;
	return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}
