/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table: behaves as a plain array of pairs over 200 000 random operations, with keys that
 * collide and runs that wrap around the end; reserves as promised; fails without a trace.
 */
#include "support/test.h"
#include "support/failing_malloc.h"

#include "base/rng.h"
#include "base/table.h"

static struct gp_table t;

static int new_table(void **state)
{
	(void)state;
	gp_table_init(&t);
	return 0;
}

static int free_table(void **state)
{
	(void)state;
	gp_table_free(&t);
	return 0;
}

#define TABLE_TEST(function) TEST_WITH(function, new_table, free_table)

/* The model: every key that a test uses, and what the table should say about it. */
struct entry {
	uint64_t key;
	uint64_t value;
	bool there;
};

struct model {
	struct entry entry[256];
	size_t keys;
	size_t count;
};

static void model_add_key(struct model *m, uint64_t key)
{
	for (size_t i = 0; i < m->keys; i++)
		assert_true(m->entry[i].key != key);
	m->entry[m->keys++] = (struct entry){.key = key};
}

static void assert_agrees(const struct entry *e)
{
	uint64_t value = 0xdead;
	assert_int_equal(gp_table_get(&t, e->key, &value), e->there);
	assert_true(value == (e->there ? e->value : 0xdead));
	assert_int_equal(gp_table_get(&t, e->key, NULL), e->there);
}

static void assert_all_agree(const struct model *m)
{
	size_t used = 0;
	assert_int_equal(t.count, m->count);
	for (size_t i = 0; i < m->keys; i++)
		assert_agrees(&m->entry[i]);
	for (size_t i = 0; i < t.capacity; i++)
		used += t.slot[i].used;
	assert_int_equal(used, m->count);
}

static void step(struct model *m, struct gp_rng *rng, unsigned puts_of_100)
{
	struct entry *e = &m->entry[gp_rng_below(rng, m->keys)];
	if (gp_rng_below(rng, 100) < puts_of_100) {
		m->count += !e->there;
		e->there = true;
		e->value = gp_rng_next(rng);
		assert_int_equal(gp_table_put(&t, e->key, e->value), 0);
	} else {
		assert_int_equal(gp_table_remove(&t, e->key), e->there);
		m->count -= e->there;
		e->there = false;
	}
}

static void run_against_model(struct model *m, uint64_t seed)
{
	struct gp_rng rng;
	gp_rng_init(&rng, seed, 0);
	for (unsigned i = 0; i < 200000; i++) {
		/* Alternately filling and emptying, so that both extremes are visited. */
		step(m, &rng, i / 1000 % 2 ? 35 : 65);
		assert_int_equal(t.count, m->count);
		assert_agrees(&m->entry[gp_rng_below(&rng, m->keys)]);
		if (i % 16 == 0)
			assert_all_agree(m);
		if (i % 50000 == 49999) {
			gp_table_clear(&t);
			m->count = 0;
			for (size_t k = 0; k < m->keys; k++)
				m->entry[k].there = false;
			assert_all_agree(m);
		}
	}
}

/* Which slot a key would like, found by putting it into an empty table. */
static size_t home_of(uint64_t key)
{
	size_t home = 0;
	assert_int_equal(gp_table_put(&t, key, 0), 0);
	while (!t.slot[home].used)
		home++;
	assert_true(gp_table_remove(&t, key));
	return home;
}

TABLE_TEST(it_behaves_as_an_array_of_pairs)
{
	struct model m = {0};
	model_add_key(&m, 0);
	model_add_key(&m, UINT64_MAX);
	for (uint64_t i = 1; i <= 100; i++) {
		model_add_key(&m, i);
		model_add_key(&m, i << 40);
	}
	run_against_model(&m, 1);
}

TABLE_TEST(it_does_so_when_keys_collide_across_the_end)
{
	struct model m = {0};
	size_t taken[64] = {0};

	assert_int_equal(gp_table_reserve(&t, 48), 0);
	assert_int_equal(t.capacity, 64);
	/* 48 keys, 12 for each of four homes: three at the seam, one in the run they make. */
	for (uint64_t key = 0; m.keys < 48; key++) {
		size_t home = home_of(key);
		bool wanted = home == 62 || home == 63 || home == 0 || home == 5;
		if (wanted && taken[home] < 12) {
			taken[home]++;
			model_add_key(&m, key);
		}
	}
	run_against_model(&m, 2);
	assert_int_equal(t.capacity, 64);
}

TABLE_TEST(removing_any_entry_of_a_run_keeps_the_others)
{
	/* Every way to take three entries, one after another, out of a full run of six. */
	assert_int_equal(gp_table_reserve(&t, 6), 0);
	assert_int_equal(t.capacity, 8);
	for (unsigned first = 0; first < 6 * 6 * 6; first++) {
		const unsigned order[] = {first % 6, first / 6 % 6, first / 36};
		struct model m = {0};
		gp_table_clear(&t);
		for (uint64_t key = 0; key < 6; key++) {
			model_add_key(&m, key * 77);
			m.entry[key].value = key;
			m.entry[key].there = true;
			m.count++;
			assert_int_equal(gp_table_put(&t, key * 77, key), 0);
		}
		for (int i = 0; i < 3; i++) {
			struct entry *e = &m.entry[order[i]];
			assert_int_equal(gp_table_remove(&t, e->key), e->there);
			m.count -= e->there;
			e->there = false;
			assert_all_agree(&m);
		}
	}
}

TEST(growing_loses_nothing)
{
	const uint64_t strides[] = {1, 4096, 1ull << 32, 0x9e3779b97f4a7c15ull};
	for (int s = 0; s < 4; s++) {
		gp_table_init(&t);
		for (uint64_t i = 0; i < 50000; i++)
			assert_int_equal(gp_table_put(&t, i * strides[s], i), 0);
		assert_int_equal(t.count, 50000);
		for (uint64_t i = 0; i < 50000; i++) {
			uint64_t value;
			assert_true(gp_table_get(&t, i * strides[s], &value));
			assert_int_equal(value, i);
		}
		assert_false(gp_table_get(&t, 50000 * strides[s], NULL));
		gp_table_free(&t);
	}
}

TEST(what_was_reserved_fits_without_another_allocation)
{
	for (size_t count = 1; count <= 300; count++) {
		gp_table_init(&t);
		assert_int_equal(gp_table_reserve(&t, count), 0);
		const struct gp_table_slot *slot = t.slot;
		size_t capacity = t.capacity;
		assert_non_null(slot);
		assert_int_equal(capacity & (capacity - 1), 0);
		for (uint64_t key = 0; key < count; key++)
			assert_int_equal(gp_table_put(&t, key, key), 0);
		for (uint64_t key = 0; key < count; key++)
			assert_int_equal(gp_table_put(&t, key, key + 1), 0);
		assert_int_equal(gp_table_reserve(&t, count), 0);
		assert_int_equal(gp_table_reserve(&t, 0), 0);
		assert_ptr_equal(t.slot, slot);
		assert_int_equal(t.capacity, capacity);
		assert_int_equal(t.count, count);
		gp_table_free(&t);
	}
}

TABLE_TEST(reserving_more_keeps_the_entries)
{
	uint64_t value;
	for (uint64_t key = 0; key < 20; key++)
		assert_int_equal(gp_table_put(&t, key, key * key), 0);
	assert_int_equal(gp_table_reserve(&t, 5000), 0);
	assert_int_equal(t.count, 20);
	for (uint64_t key = 0; key < 20; key++) {
		assert_true(gp_table_get(&t, key, &value));
		assert_int_equal(value, key * key);
	}
}

TABLE_TEST(a_table_that_cannot_grow_is_as_it_was)
{
	const size_t too_many[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 100};
	uint64_t value;
	assert_int_equal(gp_table_put(&t, 1, 11), 0);
	struct gp_table before = t;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gp_table_reserve(&t, too_many[i]), -ENOMEM);
		assert_memory_equal(&t, &before, sizeof(t));
	}
	assert_true(gp_table_get(&t, 1, &value));
	assert_int_equal(value, 11);
}

TEST(an_empty_table_holds_nothing_and_owns_nothing)
{
	memset(&t, 0xff, sizeof(t));
	gp_table_init(&t);
	assert_false(gp_table_get(&t, 0, NULL));
	assert_false(gp_table_remove(&t, 0));
	gp_table_clear(&t);
	assert_null(t.slot);
	assert_int_equal(t.capacity, 0);
	gp_table_free(&t);

	assert_int_equal(gp_table_put(&t, 0, 1), 0);
	gp_table_free(&t);
	assert_false(gp_table_get(&t, 0, NULL));
	gp_table_free(&t); /* twice does no harm */
}

TABLE_TEST(clearing_keeps_the_memory)
{
	for (uint64_t key = 0; key < 100; key++)
		assert_int_equal(gp_table_put(&t, key, 1), 0);
	const struct gp_table_slot *slot = t.slot;
	gp_table_clear(&t);
	assert_int_equal(t.count, 0);
	for (uint64_t key = 0; key < 100; key++)
		assert_false(gp_table_get(&t, key, NULL));
	for (uint64_t key = 100; key < 200; key++)
		assert_int_equal(gp_table_put(&t, key, 1), 0);
	assert_ptr_equal(t.slot, slot);
	assert_false(gp_table_get(&t, 0, NULL));
}
