/* SPDX-License-Identifier: Apache-2.0 */
/* Records go from one thread to another, whole, in their order, and a full ring says so. */
#include "support/test.h"

#include <pthread.h>
#include <sched.h>

#include "daemon/ring.h"

#define RECORDS 200000u

struct record {
	uint64_t number;
	uint64_t again[3]; /* the same, to see whether it came whole */
};

TEST(a_full_ring_says_so_and_keeps_what_it_has)
{
	struct gp_ring r;
	uint64_t value;

	assert_int_equal(gp_ring_init(&r, sizeof value, 4), 0);
	for (value = 0; value < 4; value++)
		assert_true(gp_ring_put(&r, &value));
	assert_false(gp_ring_put(&r, &value));
	for (uint64_t i = 0; i < 4; i++) {
		assert_true(gp_ring_take(&r, &value));
		assert_int_equal(value, i);
	}
	assert_false(gp_ring_take(&r, &value));
	gp_ring_free(&r);
}

static void *put_all(void *arg)
{
	for (uint64_t i = 0; i < RECORDS;) {
		struct record record = {.number = i, .again = {i, i, i}};

		if (gp_ring_put(arg, &record))
			i++;
		else
			sched_yield();
	}
	return NULL;
}

TEST(records_come_whole_and_in_order_from_another_thread)
{
	struct gp_ring r;
	pthread_t thread;

	assert_int_equal(gp_ring_init(&r, sizeof(struct record), 64), 0);
	assert_int_equal(pthread_create(&thread, NULL, put_all, &r), 0);
	for (uint64_t i = 0; i < RECORDS;) {
		struct record record;

		if (!gp_ring_take(&r, &record)) {
			sched_yield();
			continue;
		}
		assert_int_equal(record.number, i);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(record.again[k], i);
		i++;
	}
	pthread_join(thread, NULL);
	gp_ring_free(&r);
}
