/* SPDX-License-Identifier: Apache-2.0 */
/* Queues over time: what is counted, which queues are the same, and what is kept. */
#include "support/test.h"

#include "hold/queue_counts.h"

static struct gp_queue queue(uint32_t id, const char *type, uint32_t slice_us)
{
	struct gp_queue q = {.id = id, .slice_us = slice_us};

	snprintf(q.type, sizeof q.type, "%s", type);
	return q;
}

static void note(struct gp_queue_counts *c, unsigned device, struct gp_queue q)
{
	assert_int_equal(gp_queue_counts_note(c, device, &q, 1000 + c->samples), 0);
}

static void expect(const struct gp_queue_counts_count *n, uint32_t min, uint32_t max, uint32_t came,
		   uint32_t went, uint64_t sum)
{
	assert_int_equal(n->min, min);
	assert_int_equal(n->max, max);
	assert_int_equal(n->came, came);
	assert_int_equal(n->went, went);
	assert_int_equal(n->sum, sum);
}

TEST(each_type_on_each_device_is_counted)
{
	struct gp_queue_counts c = {0};

	note(&c, 0, queue(1, "compute", 0));
	note(&c, 1, queue(1, "compute", 0));
	gp_queue_counts_close(&c);
	assert_int_equal(c.all.last, 2);
	note(&c, 0, queue(1, "compute", 0));
	note(&c, 0, queue(7, "copy", 0));
	note(&c, 0, queue(8, "copy", 0));
	gp_queue_counts_close(&c);
	assert_int_equal(c.nseries, 3);
	expect(&c.all, 2, 3, 2, 1, 5);
	expect(&c.series[0].count, 1, 1, 0, 0, 2);
	expect(&c.series[1].count, 0, 1, 0, 1, 1);
	expect(&c.series[2].count, 0, 2, 2, 0, 2); /* it was not there at first */
	assert_false(gp_queue_counts_is_stable(&c));
	gp_queue_counts_free(&c);
}

TEST(a_sample_without_queues_counts)
{
	struct gp_queue_counts c = {0};

	gp_queue_counts_close(&c);
	note(&c, 0, queue(1, "compute", 0));
	gp_queue_counts_close(&c);
	gp_queue_counts_close(&c);
	expect(&c.all, 0, 1, 1, 1, 1);
	assert_int_equal(c.samples, 3);
	assert_int_equal(c.queue[0].samples, 1);
	gp_queue_counts_free(&c);
}

TEST(a_queue_that_is_told_twice_counts_once)
{
	struct gp_queue_counts c = {0};

	for (unsigned i = 0; i < 2; i++) {
		note(&c, 0, queue(1, "compute", 0));
		note(&c, 0, queue(1, "compute", 0));
		gp_queue_counts_close(&c);
	}
	expect(&c.all, 1, 1, 0, 0, 2);
	expect(&c.series[0].count, 1, 1, 0, 0, 2);
	assert_int_equal(c.queue[0].samples, 2);
	assert_true(gp_queue_counts_is_stable(&c));
	gp_queue_counts_free(&c);
}

TEST(another_serial_number_is_another_queue)
{
	struct gp_queue first = queue(1, "compute", 0), second = first;
	struct gp_queue_counts c = {0};

	first.serial = 10;
	second.serial = 11;
	note(&c, 0, first);
	gp_queue_counts_close(&c);
	note(&c, 0, second);
	gp_queue_counts_close(&c);
	expect(&c.all, 1, 1, 1, 1, 2);
	assert_int_equal(c.nqueues, 2);
	gp_queue_counts_free(&c);
}

TEST(slices_are_kept_once_each_and_not_without_end)
{
	struct gp_queue_counts c = {0};

	note(&c, 0, queue(1, "compute", 2048));
	note(&c, 0, queue(2, "compute", 2048));
	note(&c, 0, queue(3, "compute", 0)); /* not known */
	for (uint32_t i = 0; i < 100; i++)
		note(&c, 0, queue(100 + i, "compute", 1 + i));
	gp_queue_counts_close(&c);
	assert_int_equal(c.series[0].nslices, GP_QUEUE_COUNTS_SLICES_MAX);
	assert_int_equal(c.series[0].slice_us[0], 2048);
	assert_int_equal(c.series[0].slice_us[1], 1);
	gp_queue_counts_free(&c);
}

TEST(nothing_grows_with_the_number_of_samples)
{
	struct gp_queue_counts c = {0};
	unsigned series = 0, queues = 0;

	for (unsigned sample = 0; sample < 1000; sample++) {
		for (uint32_t id = 0; id < 100; id++)
			note(&c, id % 3, queue(id, id % 2 ? "compute" : "copy", 0));
		gp_queue_counts_close(&c);
		if (!sample) {
			series = c.series_capacity;
			queues = c.queue_capacity;
		}
	}
	assert_int_equal(c.nseries, 6);
	assert_int_equal(c.nqueues, 100);
	assert_int_equal(c.series_capacity, series);
	assert_int_equal(c.queue_capacity, queues);
	expect(&c.all, 100, 100, 0, 0, 100000);
	gp_queue_counts_free(&c);
}
