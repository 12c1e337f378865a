/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>

#define SMALLEST_CAPACITY 8

/* At most three quarters full: probe sequences stay short, and every search finds an empty slot. */
static size_t limit_of(size_t capacity)
{
	return capacity - capacity / 4;
}

/* The finaliser of splitmix64. Keys are often counters or addresses with similar low bits. */
static uint64_t mix(uint64_t key)
{
	key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ull;
	key = (key ^ (key >> 27)) * 0x94d049bb133111ebull;
	return key ^ (key >> 31);
}

static size_t home_of(const struct gp_table *t, uint64_t key)
{
	return (size_t)mix(key) & (t->capacity - 1);
}

/* Returns the slot that holds the key, or the empty slot where it belongs. Requires capacity > 0.
 */
static struct gp_table_slot *find(const struct gp_table *t, uint64_t key)
{
	size_t i = home_of(t, key);
	while (t->slot[i].used && t->slot[i].key != key)
		i = (i + 1) & (t->capacity - 1);
	return &t->slot[i];
}

void gp_table_init(struct gp_table *t)
{
	*t = (struct gp_table){0};
}

void gp_table_free(struct gp_table *t)
{
	free(t->slot);
	gp_table_init(t);
}

int gp_table_reserve(struct gp_table *t, size_t count)
{
	struct gp_table larger = {.capacity = SMALLEST_CAPACITY, .count = t->count};
	if (count <= limit_of(t->capacity))
		return 0;

	while (limit_of(larger.capacity) < count) {
		if (larger.capacity > SIZE_MAX / 2)
			return -ENOMEM;
		larger.capacity *= 2;
	}
	larger.slot = calloc(larger.capacity, sizeof(*larger.slot));
	if (!larger.slot)
		return -ENOMEM;

	for (size_t i = 0; i < t->capacity; i++) {
		if (t->slot[i].used)
			*find(&larger, t->slot[i].key) = t->slot[i];
	}
	free(t->slot);
	*t = larger;
	return 0;
}

int gp_table_put(struct gp_table *t, uint64_t key, uint64_t value)
{
	struct gp_table_slot *slot = t->capacity ? find(t, key) : NULL;

	/* Replacing an entry never allocates. */
	if (!slot || !slot->used) {
		if (!slot || t->count >= limit_of(t->capacity)) {
			int rc = gp_table_reserve(t, t->count + 1);
			if (rc)
				return rc;
			slot = find(t, key);
		}
		t->count++;
	}
	*slot = (struct gp_table_slot){.key = key, .value = value, .used = true};
	return 0;
}

bool gp_table_get(const struct gp_table *t, uint64_t key, uint64_t *value)
{
	if (t->count == 0)
		return false;
	const struct gp_table_slot *slot = find(t, key);
	if (slot->used && value)
		*value = slot->value;
	return slot->used;
}

/* Closes the gap at `hole`. A later entry of the run moves into it, unless that would put the entry
 * before its home slot, where no search would find it. */
static void close_hole(struct gp_table *t, size_t hole)
{
	size_t mask = t->capacity - 1;
	for (size_t i = (hole + 1) & mask; t->slot[i].used; i = (i + 1) & mask) {
		size_t from_home = (i - home_of(t, t->slot[i].key)) & mask;
		size_t from_hole = (i - hole) & mask;
		if (from_home >= from_hole) {
			t->slot[hole] = t->slot[i];
			hole = i;
		}
	}
	t->slot[hole].used = false;
}

bool gp_table_remove(struct gp_table *t, uint64_t key)
{
	if (t->count == 0)
		return false;
	const struct gp_table_slot *slot = find(t, key);
	if (!slot->used)
		return false;
	close_hole(t, (size_t)(slot - t->slot));
	t->count--;
	return true;
}

void gp_table_clear(struct gp_table *t)
{
	for (size_t i = 0; i < t->capacity; i++)
		t->slot[i].used = false;
	t->count = 0;
}
