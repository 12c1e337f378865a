/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks are passed in: the daemon uses real time, the simulator and the tests use virtual time. */
#ifndef GP_BASE_CLOCK_H
#define GP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define GP_NS_PER_US 1000ull
#define GP_NS_PER_MS 1000000ull
#define GP_NS_PER_S  1000000000ull
#define GP_NEVER     UINT64_MAX /* a time that is never reached */

struct gp_clock {
	uint64_t (*now_ns)(const struct gp_clock *clock);
};

/* CLOCK_MONOTONIC, and the CPU time of the calling thread. */
extern const struct gp_clock gp_clock_monotonic;
extern const struct gp_clock gp_clock_thread_cpu;

/* A clock that advances only when its owner sets `at_ns`. */
struct gp_virtual_clock {
	struct gp_clock base;
	uint64_t at_ns;
};

void gp_virtual_clock_init(struct gp_virtual_clock *clock, uint64_t at_ns);

static inline uint64_t gp_now_ns(const struct gp_clock *clock)
{
	return clock->now_ns(clock);
}

static inline uint64_t gp_monotonic_ns(void)
{
	return gp_now_ns(&gp_clock_monotonic);
}

/* Returns a + b, or GP_NEVER if the sum would overflow. */
static inline uint64_t gp_time_add(uint64_t a, uint64_t b)
{
	return a > GP_NEVER - b ? GP_NEVER : a + b;
}

/* Converts a duration to the form that ppoll(2) takes. */
static inline struct timespec gp_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / GP_NS_PER_S),
				 .tv_nsec = (long)(ns % GP_NS_PER_S)};
}

#endif
