/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded random numbers that are the same on every machine: xoshiro256** seeded by splitmix64. The
 * exponential distribution uses integer arithmetic only, so that results do not depend on libm.
 */
#ifndef GP_BASE_RNG_H
#define GP_BASE_RNG_H

#include <stdint.h>

struct gp_rng {
	uint64_t s[4];
};

/* Streams with different numbers are independent for the same seed. */
void gp_rng_init(struct gp_rng *rng, uint64_t seed, uint64_t stream);

uint64_t gp_rng_next(struct gp_rng *rng);

/* Uniform in [0, bound), without bias; bound > 0. */
uint64_t gp_rng_below(struct gp_rng *rng, uint64_t bound);

/*
 * Exponentially distributed with the given mean. The quantiles have a relative error below 1e-6
 * before rounding to the nearest integer. At most 44.4 * mean, and at most UINT64_MAX.
 */
uint64_t gp_rng_exponential(struct gp_rng *rng, uint64_t mean);

#endif
