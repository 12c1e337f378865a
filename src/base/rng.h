/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded random numbers, the same on every machine: xoshiro256** started by splitmix64. The
 * exponential distribution is computed with integer arithmetic only, so that results do not
 * depend on a libm.
 */
#ifndef GP_BASE_RNG_H
#define GP_BASE_RNG_H

#include <stdint.h>

struct gp_rng {
	uint64_t s[4];
};

/* Streams with different `stream` are independent for the same seed. */
void gp_rng_init(struct gp_rng *rng, uint64_t seed, uint64_t stream);

uint64_t gp_rng_next(struct gp_rng *rng);

/* Uniform in [0, bound), without bias; bound > 0. */
uint64_t gp_rng_below(struct gp_rng *rng, uint64_t bound);

/*
 * Exponentially distributed with that mean: relative error of the quantiles below 1e-6 before
 * rounding to the nearest whole number. Never more than 44.4 * mean, and UINT64_MAX at most.
 */
uint64_t gp_rng_exponential(struct gp_rng *rng, uint64_t mean);

#endif
