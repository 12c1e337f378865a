/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks: the real ones are the kernel's, a virtual one stands still until it is set, a thread's
 * CPU time is its own, and adding times never wraps around.
 */
#include "support/test.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"

static uint64_t kernel_ns(clockid_t id)
{
	struct timespec t;
	assert_int_equal(clock_gettime(id, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void assert_reads_kernel_clock(const struct gp_clock *clock, clockid_t id)
{
	for (int i = 0; i < 1000; i++) {
		uint64_t before = kernel_ns(id);
		uint64_t now = gp_now_ns(clock);
		uint64_t after = kernel_ns(id);
		assert_in_range(now, before, after);
	}
}

TEST(the_monotonic_clock_is_the_kernels)
{
	assert_reads_kernel_clock(&gp_clock_monotonic, CLOCK_MONOTONIC);
}

TEST(the_thread_clock_is_the_kernels)
{
	assert_reads_kernel_clock(&gp_clock_thread_cpu, CLOCK_THREAD_CPUTIME_ID);
}

static void *read_thread_clock(void *arg)
{
	*(uint64_t *)arg = gp_now_ns(&gp_clock_thread_cpu);
	return NULL;
}

TEST(a_new_thread_has_not_used_the_time_of_the_old_one)
{
	while (gp_now_ns(&gp_clock_thread_cpu) < 20 * GP_NS_PER_MS)
		;
	uint64_t before = gp_now_ns(&gp_clock_thread_cpu), of_thread = GP_NEVER;
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, read_thread_clock, &of_thread), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(of_thread < before);
}

TEST(a_virtual_clock_stands_still_until_it_is_set)
{
	struct gp_virtual_clock clock;
	gp_virtual_clock_init(&clock, 7);
	assert_int_equal(gp_now_ns(&clock.base), 7);
	assert_int_equal(gp_now_ns(&clock.base), 7);
	clock.at_ns = GP_NEVER;
	assert_true(gp_now_ns(&clock.base) == GP_NEVER);
	clock.at_ns = 3; /* even backwards: it is the owner's business */
	assert_int_equal(gp_now_ns(&clock.base), 3);
}

TEST(two_virtual_clocks_do_not_share_their_time)
{
	struct gp_virtual_clock a, b;
	gp_virtual_clock_init(&a, 1);
	gp_virtual_clock_init(&b, 2);
	a.at_ns = 10;
	assert_int_equal(gp_now_ns(&a.base), 10);
	assert_int_equal(gp_now_ns(&b.base), 2);
}

TEST(a_sum_of_times_is_never_rather_than_wrapped)
{
	assert_true(gp_time_add(2, 3) == 5);
	assert_true(gp_time_add(0, 0) == 0);
	assert_true(gp_time_add(GP_NEVER - 5, 4) == GP_NEVER - 1);
	assert_true(gp_time_add(GP_NEVER - 5, 5) == GP_NEVER);
	assert_true(gp_time_add(GP_NEVER - 5, 6) == GP_NEVER);
	assert_true(gp_time_add(GP_NEVER, GP_NEVER) == GP_NEVER);
	assert_true(gp_time_add(GP_NEVER, 0) == GP_NEVER);
	assert_true(gp_time_add(1, GP_NEVER) == GP_NEVER);
}
