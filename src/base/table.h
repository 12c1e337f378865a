/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash table from a 64-bit key to a 64-bit value: open addressing, linear probing, deletion
 * without tombstones. Any key is allowed. Reserve first where allocation must not happen.
 */
#ifndef GP_BASE_TABLE_H
#define GP_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_table_slot {
	uint64_t key;
	uint64_t value;
	bool used;
};

struct gp_table {
	struct gp_table_slot *slot;
	size_t capacity; /* 0 or a power of two */
	size_t count;
};

void gp_table_init(struct gp_table *t);
void gp_table_free(struct gp_table *t);

/* Room for `count` entries without another allocation. 0 or -ENOMEM. */
int gp_table_reserve(struct gp_table *t, size_t count);

/* Adds or replaces. 0 or -ENOMEM (the table is then as it was). */
int gp_table_put(struct gp_table *t, uint64_t key, uint64_t value);

/* true and *value (if not NULL) when the key is there. */
bool gp_table_get(const struct gp_table *t, uint64_t key, uint64_t *value);

/* true when it was there. */
bool gp_table_remove(struct gp_table *t, uint64_t key);

/* Forgets all entries, keeps the memory. */
void gp_table_clear(struct gp_table *t);

#endif
