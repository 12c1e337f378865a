/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stddef.h>
#include <time.h>

/* clock_gettime cannot fail here: Linux always has both clocks. */
static uint64_t read_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * GP_NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t monotonic_now_ns(const struct gp_clock *clock)
{
	(void)clock;
	return read_ns(CLOCK_MONOTONIC);
}

static uint64_t thread_cpu_now_ns(const struct gp_clock *clock)
{
	(void)clock;
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

_Static_assert(offsetof(struct gp_virtual_clock, base) == 0, "the cast below relies on it");

static uint64_t virtual_now_ns(const struct gp_clock *clock)
{
	return ((const struct gp_virtual_clock *)clock)->at_ns;
}

void gp_virtual_clock_init(struct gp_virtual_clock *clock, uint64_t at_ns)
{
	clock->base.now_ns = virtual_now_ns;
	clock->at_ns = at_ns;
}

const struct gp_clock gp_clock_monotonic = {.now_ns = monotonic_now_ns};
const struct gp_clock gp_clock_thread_cpu = {.now_ns = thread_cpu_now_ns};
