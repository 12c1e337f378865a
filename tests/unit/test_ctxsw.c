/* SPDX-License-Identifier: Apache-2.0 */
/* Records of context switches, read from a ring that the test writes as the driver would. */
#include "support/test.h"

#include "gpu/nvidia/ctxsw.h"

#define COUNT 8u

struct made_up {
	struct nv_event_buffer_header header;
	struct nv_fecs_record record[COUNT];
	struct gp_ctxsw_ring ring;
	uint16_t seqno;
};

static void set_up(struct made_up *m)
{
	memset(m, 0, sizeof *m);
	m->header.record_count = COUNT;
	m->ring = (struct gp_ctxsw_ring){.header = &m->header, .record = m->record, .count = COUNT};
}

static void put(struct made_up *m, uint8_t tag, uint32_t context, uint64_t at_ns)
{
	m->record[m->header.record_put] = (struct nv_fecs_record){
		.tag = tag,
		.seqno = m->seqno++,
		.context_id = context,
		.pid = 100 + context,
		.timestamp_ns = at_ns,
	};
	m->header.record_put = (m->header.record_put + 1) % COUNT;
}

static void next_is(struct made_up *m, bool on, uint32_t context, uint64_t at_ns)
{
	struct gp_ctxsw_event e;

	assert_true(gp_ctxsw_next(&m->ring, &e));
	assert_int_equal(e.on, on);
	assert_int_equal(e.context_id, context);
	assert_int_equal(e.pid, 100 + context);
	assert_int_equal(e.at_ns, at_ns);
}

static void nothing_is_left(struct made_up *m)
{
	struct gp_ctxsw_event e;

	assert_false(gp_ctxsw_next(&m->ring, &e));
}

TEST(an_empty_ring_has_no_events)
{
	struct made_up m;

	set_up(&m);
	nothing_is_left(&m);
	assert_int_equal(m.ring.lost, 0);
}

TEST(events_come_in_the_order_they_were_written)
{
	struct made_up m;

	set_up(&m);
	put(&m, NV_FECS_TAG_SIMPLE_START, 1, 1000);
	put(&m, NV_FECS_TAG_SIMPLE_END, 1, 2000);
	next_is(&m, true, 1, 1000);
	put(&m, NV_FECS_TAG_SIMPLE_START, 2, 3000);
	next_is(&m, false, 1, 2000);
	next_is(&m, true, 2, 3000);
	nothing_is_left(&m);
	nothing_is_left(&m);
	assert_int_equal(m.ring.lost, 0);
}

TEST(the_ring_wraps)
{
	struct made_up m;

	set_up(&m);
	for (uint32_t i = 0; i < 5 * COUNT; i++) {
		put(&m, NV_FECS_TAG_SIMPLE_START, i, i);
		put(&m, NV_FECS_TAG_SIMPLE_END, i, i + 1);
		put(&m, NV_FECS_TAG_SIMPLE_START, i + 1, i + 2);
		next_is(&m, true, i, i);
		next_is(&m, false, i, i + 1);
		next_is(&m, true, i + 1, i + 2);
		nothing_is_left(&m);
	}
	assert_int_equal(m.ring.lost, 0);
}

TEST(a_ring_that_is_as_full_as_it_can_be_is_read_whole)
{
	struct made_up m;

	set_up(&m);
	for (uint32_t i = 0; i < COUNT - 1; i++)
		put(&m, NV_FECS_TAG_SIMPLE_START, i, i);
	for (uint32_t i = 0; i < COUNT - 1; i++)
		next_is(&m, true, i, i);
	nothing_is_left(&m);
	assert_int_equal(m.ring.lost, 0);
}

TEST(records_that_were_lost_are_counted)
{
	struct made_up m;

	set_up(&m);
	m.seqno = 77; /* where it begins means nothing */
	put(&m, NV_FECS_TAG_SIMPLE_START, 1, 1);
	m.seqno += 5;
	put(&m, NV_FECS_TAG_SIMPLE_START, 2, 2);
	put(&m, NV_FECS_TAG_SIMPLE_END, 2, 3);
	m.seqno += 2;
	put(&m, NV_FECS_TAG_SIMPLE_START, 3, 4);
	next_is(&m, true, 1, 1);
	next_is(&m, true, 2, 2);
	assert_int_equal(m.ring.lost, 5);
	next_is(&m, false, 2, 3);
	next_is(&m, true, 3, 4);
	assert_int_equal(m.ring.lost, 7);
}

TEST(sequence_numbers_wrap_without_a_loss)
{
	struct made_up m;

	set_up(&m);
	m.seqno = 0xfffe;
	for (uint32_t i = 0; i < 5; i++)
		put(&m, NV_FECS_TAG_SIMPLE_START, i, i);
	for (uint32_t i = 0; i < 5; i++)
		next_is(&m, true, i, i);
	assert_int_equal(m.ring.lost, 0);
}

TEST(other_records_are_skipped_and_not_taken_for_lost)
{
	static const uint8_t other[] = {0, 1, 2, 5, 8, 0xff};
	struct made_up m;

	set_up(&m);
	for (unsigned i = 0; i < sizeof other; i++)
		put(&m, other[i], 9, 9);
	put(&m, NV_FECS_TAG_SIMPLE_END, 1, 1);
	next_is(&m, false, 1, 1);
	nothing_is_left(&m);
	put(&m, other[0], 9, 9);
	nothing_is_left(&m);
	assert_int_equal(m.ring.lost, 0);
}

/* The header is the driver's memory: nothing of it is believed. */
TEST(a_put_out_of_range_is_not_followed)
{
	static const uint32_t bad[] = {COUNT, COUNT + 1, 0x7fffffff, UINT32_MAX};
	struct made_up m;

	set_up(&m);
	put(&m, NV_FECS_TAG_SIMPLE_START, 1, 1);
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint32_t was = m.header.record_put;

		m.header.record_put = bad[i];
		nothing_is_left(&m);
		m.header.record_put = was;
	}
	next_is(&m, true, 1, 1);
	nothing_is_left(&m);
}
