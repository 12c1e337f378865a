/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: the earliest comes out first, equal times in the order they were set, moved and
 * cancelled ones where they belong or not at all; the capacity is a limit on timers set at one
 * time; all of it against a model that searches an array.
 */
#include "support/test.h"
#include "support/failing_malloc.h"

#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"

static struct gp_heap h;

/* A test with a heap of that capacity. */
#define HEAP_TEST(function, capacity)                            \
	static void function##_in(void);                         \
	TEST(function)                                           \
	{                                                        \
		assert_int_equal(gp_heap_init(&h, capacity), 0); \
		function##_in();                                 \
		gp_heap_free(&h);                                \
	}                                                        \
	static void function##_in(void)

static struct gp_timer *take_first(void)
{
	struct gp_timer *first = gp_heap_first(&h);

	if (first)
		gp_heap_cancel(&h, first);
	return first;
}

HEAP_TEST(timers_come_out_by_time, 7)
{
	const uint64_t times[] = {50, 10, GP_NEVER, 40, 0, 30, 20};
	const size_t expected[] = {4, 1, 6, 5, 3, 0, 2};
	struct gp_timer timer[7] = {0};

	for (size_t i = 0; i < 7; i++)
		assert_int_equal(gp_heap_set(&h, &timer[i], times[i]), 0);
	for (size_t i = 0; i < 7; i++)
		assert_ptr_equal(take_first(), &timer[expected[i]]);
	assert_null(gp_heap_first(&h));
}

HEAP_TEST(equal_times_come_out_in_the_order_they_were_set, 100)
{
	struct gp_timer timer[100] = {0};

	for (size_t i = 0; i < 100; i++)
		assert_int_equal(gp_heap_set(&h, &timer[i], 5), 0);
	for (size_t i = 0; i < 100; i++)
		assert_ptr_equal(take_first(), &timer[i]);
}

HEAP_TEST(setting_a_timer_again_puts_it_behind_its_equals, 3)
{
	struct gp_timer a = {0}, b = {0}, c = {0};

	gp_heap_set(&h, &a, 5);
	gp_heap_set(&h, &b, 5);
	gp_heap_set(&h, &c, 1);
	gp_heap_set(&h, &a, 5); /* same time, set later */
	gp_heap_set(&h, &c, 5); /* moved to it */
	assert_ptr_equal(take_first(), &b);
	assert_ptr_equal(take_first(), &a);
	assert_ptr_equal(take_first(), &c);
}

TEST(a_cancelled_timer_never_comes_out)
{
	for (size_t gone = 0; gone < 15; gone++) {
		struct gp_timer timer[15] = {0};
		assert_int_equal(gp_heap_init(&h, 15), 0);
		for (size_t i = 0; i < 15; i++)
			gp_heap_set(&h, &timer[i], i * 4 % 15);
		gp_heap_cancel(&h, &timer[gone]);
		assert_false(gp_timer_is_set(&timer[gone]));
		for (uint64_t at = 0; at < 15; at++) {
			if (at == gone * 4 % 15)
				continue;
			const struct gp_timer *first = take_first();
			assert_non_null(first);
			assert_ptr_not_equal(first, &timer[gone]);
			assert_int_equal(first->at_ns, at);
		}
		assert_null(gp_heap_first(&h));
		gp_heap_free(&h);
	}
}

HEAP_TEST(cancelling_an_unset_timer_does_nothing, 2)
{
	struct gp_timer a = {0}, b = {0};

	gp_heap_cancel(&h, &a);
	gp_heap_set(&h, &a, 1);
	gp_heap_cancel(&h, &b);
	assert_ptr_equal(gp_heap_first(&h), &a);
	gp_heap_cancel(&h, &a);
	gp_heap_cancel(&h, &a);
	assert_null(gp_heap_first(&h));
	assert_int_equal(h.count, 0);
}

HEAP_TEST(a_full_heap_refuses_another_but_moves_its_own, 2)
{
	struct gp_timer a = {0}, b = {0}, c = {0};

	assert_int_equal(gp_heap_set(&h, &a, 10), 0);
	assert_int_equal(gp_heap_set(&h, &b, 20), 0);
	assert_int_equal(gp_heap_set(&h, &c, 5), -ENOSPC);
	assert_false(gp_timer_is_set(&c));
	assert_ptr_equal(gp_heap_first(&h), &a);
	assert_int_equal(gp_heap_set(&h, &b, 1), 0);
	assert_ptr_equal(gp_heap_first(&h), &b);
	gp_heap_cancel(&h, &a);
	assert_int_equal(gp_heap_set(&h, &c, 0), 0);
	assert_ptr_equal(gp_heap_first(&h), &c);
}

HEAP_TEST(a_heap_of_no_timers_is_always_full, 0)
{
	struct gp_timer a = {0};

	assert_int_equal(gp_heap_set(&h, &a, 1), -ENOSPC);
	assert_null(gp_heap_first(&h));
}

TEST(a_heap_too_large_for_memory_says_so_and_is_harmless)
{
	const size_t too_many[] = {SIZE_MAX, SIZE_MAX / 16};
	for (int i = 0; i < 2; i++) {
		struct gp_timer a = {0};
		memset(&h, 0xff, sizeof(h));
		assert_int_equal(gp_heap_init(&h, too_many[i]), -ENOMEM);
		assert_int_equal(gp_heap_set(&h, &a, 1), -ENOSPC);
		assert_null(gp_heap_first(&h));
		gp_heap_free(&h);
	}
}

#define TIMERS   64
#define CAPACITY 48

/* The model: for each timer whether and when it is set, and after how many other settings. */
struct model {
	struct gp_timer timer[TIMERS];
	bool set[TIMERS];
	uint64_t at_ns[TIMERS];
	uint64_t nth[TIMERS];
	uint64_t settings;
	size_t count;
};

static struct gp_timer *model_first(struct model *m)
{
	size_t best = TIMERS;
	for (size_t i = 0; i < TIMERS; i++) {
		if (!m->set[i])
			continue;
		if (best == TIMERS || m->at_ns[i] < m->at_ns[best] ||
		    (m->at_ns[i] == m->at_ns[best] && m->nth[i] < m->nth[best]))
			best = i;
	}
	return best == TIMERS ? NULL : &m->timer[best];
}

static void set_both(struct model *m, size_t i, uint64_t at_ns)
{
	int expected = !m->set[i] && m->count == CAPACITY ? -ENOSPC : 0;
	assert_int_equal(gp_heap_set(&h, &m->timer[i], at_ns), expected);
	if (expected)
		return;
	m->count += !m->set[i];
	m->set[i] = true;
	m->at_ns[i] = at_ns;
	m->nth[i] = m->settings++;
}

static void cancel_both(struct model *m, size_t i)
{
	gp_heap_cancel(&h, &m->timer[i]);
	m->count -= m->set[i];
	m->set[i] = false;
}

static void assert_agrees(struct model *m)
{
	assert_int_equal(h.count, m->count);
	assert_ptr_equal(gp_heap_first(&h), model_first(m));
	for (size_t i = 0; i < TIMERS; i++) {
		assert_int_equal(gp_timer_is_set(&m->timer[i]), m->set[i]);
		if (m->set[i])
			assert_true(m->timer[i].at_ns == m->at_ns[i]);
	}
}

/* `spread`: times are below it, so a small one makes ties. */
static void run_against_model(uint64_t seed, uint64_t spread)
{
	struct model m;
	struct gp_rng rng;
	memset(&m, 0, sizeof(m));
	gp_rng_init(&rng, seed, spread);
	assert_int_equal(gp_heap_init(&h, CAPACITY), 0);

	for (int step = 0; step < 100000; step++) {
		/* Swings between nearly empty and full. */
		unsigned sets = step / 500 % 2 ? 30 : 75;
		size_t i = (size_t)gp_rng_below(&rng, TIMERS);
		if (gp_rng_below(&rng, 100) < sets)
			set_both(&m, i, gp_rng_below(&rng, spread));
		else if (gp_rng_below(&rng, 2))
			cancel_both(&m, i);
		else if (m.count > 0)
			cancel_both(&m, (size_t)(gp_heap_first(&h) - m.timer));
		assert_agrees(&m);
	}
	while (m.count > 0) {
		cancel_both(&m, (size_t)(gp_heap_first(&h) - m.timer));
		assert_agrees(&m);
	}
	gp_heap_free(&h);
}

TEST(it_behaves_as_a_searched_array)
{
	run_against_model(1, UINT64_MAX);
	run_against_model(2, 1000);
}

TEST(it_does_so_when_nearly_all_times_are_equal)
{
	run_against_model(3, 4);
	run_against_model(4, 1);
}
