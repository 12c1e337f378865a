/* SPDX-License-Identifier: Apache-2.0 */
/* The request ring and the question between a device thread and a driver thread. */
#include "support/test.h"

#include "gpu/requests.h"

static bool put(struct gp_requests *r, uint32_t handle)
{
	return gp_requests_put(r, (struct gp_request){.kind = 1, .handle = handle});
}

static uint32_t take(struct gp_requests *r)
{
	const struct gp_request *first = gp_requests_first(r);
	uint32_t handle;

	assert_non_null(first);
	handle = first->handle;
	gp_requests_drop_first(r);
	return handle;
}

TEST(a_full_ring_refuses_a_request)
{
	struct gp_requests r = {0};

	assert_int_equal(gp_requests_open(&r), 0);
	assert_false(put(&r, 0)); /* no room was reserved */
	assert_int_equal(gp_requests_reserve(&r, 2), 0);
	assert_true(put(&r, 1));
	assert_true(put(&r, 2));
	assert_false(put(&r, 3));
	assert_int_equal(take(&r), 1);
	assert_true(put(&r, 3));
	gp_requests_close(&r);
}

TEST(requests_keep_their_order_when_the_ring_grows)
{
	struct gp_requests r = {0};

	assert_int_equal(gp_requests_open(&r), 0);
	assert_int_equal(gp_requests_reserve(&r, 3), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(put(&r, i));
	assert_int_equal(take(&r), 0);
	assert_true(put(&r, 3)); /* wraps around the end */
	assert_int_equal(gp_requests_reserve(&r, 8), 0);
	assert_int_equal(gp_requests_reserve(&r, 4), 0); /* never shrinks */
	assert_true(put(&r, 4));
	for (uint32_t i = 1; i < 5; i++)
		assert_int_equal(take(&r), i);
	assert_null(gp_requests_first(&r));
	gp_requests_close(&r);
}

static void *answer_until_quit(void *arg)
{
	struct gp_requests *r = arg;

	for (;;) {
		struct gp_question *q = gp_requests_question(r);

		if (q) {
			q->result = 42;
			gp_requests_answered(r);
		} else if (gp_requests_must_quit(r)) {
			return NULL;
		} else {
			usleep(100);
		}
	}
}

TEST(a_question_waits_for_its_answer)
{
	struct gp_requests r = {0};
	pthread_t thread;

	assert_int_equal(gp_requests_open(&r), 0);
	assert_int_equal(pthread_create(&thread, NULL, answer_until_quit, &r), 0);
	for (int i = 0; i < 100; i++) {
		struct gp_question q = {0};

		assert_int_equal(gp_requests_ask(&r, &q), 42);
		assert_true(q.done);
	}
	gp_requests_quit(&r);
	pthread_join(thread, NULL);
	gp_requests_close(&r);
}
