/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash table from a 64-bit key to a 64-bit value: open addressing, linear probing, deletion without
 * tombstones. Every key is allowed. Call gp_table_reserve first where allocation is not allowed.
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

/* Makes room for `count` entries without further allocation. Returns 0 or -ENOMEM. */
int gp_table_reserve(struct gp_table *t, size_t count);

/* Adds or replaces an entry. Returns 0 or -ENOMEM; after -ENOMEM the table is unchanged. */
int gp_table_put(struct gp_table *t, uint64_t key, uint64_t value);

/* Returns true and sets *value (if not NULL) if the key exists. */
bool gp_table_get(const struct gp_table *t, uint64_t key, uint64_t *value);

/* Returns true if the key existed. */
bool gp_table_remove(struct gp_table *t, uint64_t key);

/* Removes all entries and keeps the memory. */
void gp_table_clear(struct gp_table *t);

#endif
