/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binary min-heap of timers. The timers belong to the caller and know their place, so that
 * moving or cancelling one is O(log n). Equal times come out in the order they were set,
 * which is what makes the simulator deterministic. The array is the caller's choice of size:
 * nothing is allocated after gp_heap_init.
 */
#ifndef GP_BASE_HEAP_H
#define GP_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_timer {
	uint64_t at_ns;
	uint64_t order; /* set by the heap: breaks ties */
	size_t place;   /* 0 = not in the heap, else index + 1 */
};

struct gp_heap {
	struct gp_timer **timer;
	size_t count;
	size_t capacity;
	uint64_t next_order;
};

/* 0 or -ENOMEM. At most `capacity` timers can be set at one time. */
int gp_heap_init(struct gp_heap *h, size_t capacity);
void gp_heap_free(struct gp_heap *h);

/* Sets or moves. -ENOSPC when `capacity` others are set. A zeroed timer is a valid unset one. */
int gp_heap_set(struct gp_heap *h, struct gp_timer *timer, uint64_t at_ns);

/* Does nothing when the timer is not set. */
void gp_heap_cancel(struct gp_heap *h, struct gp_timer *timer);

/* The earliest timer, or NULL. */
struct gp_timer *gp_heap_first(const struct gp_heap *h);

static inline bool gp_timer_is_set(const struct gp_timer *timer)
{
	return timer->place != 0;
}

#endif
