/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock-free ring of fixed-size records from one producer thread to one consumer thread. Neither
 * waits: gp_ring_put fails if the ring is full. The order is kept. The producer wakes the consumer
 * by other means.
 */
#ifndef GP_DAEMON_RING_H
#define GP_DAEMON_RING_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct gp_ring {
	unsigned char *record;
	size_t size;
	uint32_t capacity;                        /* a power of two */
	_Alignas(64) _Atomic uint32_t put_count;  /* written by the producer */
	_Alignas(64) _Atomic uint32_t take_count; /* written by the consumer */
};

/* `capacity` is a power of two. 0 or -ENOMEM. */
static inline int gp_ring_init(struct gp_ring *r, size_t size, uint32_t capacity)
{
	r->record = calloc(capacity, size);
	r->size = size;
	r->capacity = capacity;
	atomic_init(&r->put_count, 0);
	atomic_init(&r->take_count, 0);
	return r->record ? 0 : -ENOMEM;
}

static inline void gp_ring_free(struct gp_ring *r)
{
	free(r->record);
	r->record = NULL;
}

/* false: the ring is full. */
static inline bool gp_ring_put(struct gp_ring *r, const void *record)
{
	uint32_t put = atomic_load_explicit(&r->put_count, memory_order_relaxed);

	if (put - atomic_load_explicit(&r->take_count, memory_order_acquire) == r->capacity)
		return false;
	memcpy(r->record + (put & (r->capacity - 1)) * r->size, record, r->size);
	atomic_store_explicit(&r->put_count, put + 1, memory_order_release);
	return true;
}

/* false: the ring is empty. */
static inline bool gp_ring_take(struct gp_ring *r, void *record)
{
	uint32_t take = atomic_load_explicit(&r->take_count, memory_order_relaxed);

	if (take == atomic_load_explicit(&r->put_count, memory_order_acquire))
		return false;
	memcpy(record, r->record + (take & (r->capacity - 1)) * r->size, r->size);
	atomic_store_explicit(&r->take_count, take + 1, memory_order_release);
	return true;
}

#endif
