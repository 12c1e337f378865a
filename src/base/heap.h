/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binary min-heap of timers. The caller owns the timers. Each timer stores its index, so that
 * moving or cancelling it costs O(log n). Timers with equal times expire in the order in which they
 * were set, which keeps the simulator deterministic. The caller chooses the capacity; gp_heap_init
 * makes the only allocation.
 */
#ifndef GP_BASE_HEAP_H
#define GP_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_timer {
	uint64_t at_ns;
	uint64_t order;  /* set by the heap; orders timers with equal times */
	size_t position; /* 0: not in the heap; else index + 1 */
};

struct gp_heap {
	struct gp_timer **timer;
	size_t count;
	size_t capacity;
	uint64_t next_order;
};

/* Returns 0 or -ENOMEM. At most `capacity` timers can be set at the same time. */
int gp_heap_init(struct gp_heap *h, size_t capacity);
void gp_heap_free(struct gp_heap *h);

/* Sets or moves a timer. Returns -ENOSPC if `capacity` other timers are set. A zeroed timer is
 * valid and unset. */
int gp_heap_set(struct gp_heap *h, struct gp_timer *timer, uint64_t at_ns);

/* Does nothing when the timer is not set. */
void gp_heap_cancel(struct gp_heap *h, struct gp_timer *timer);

/* Returns the earliest timer, or NULL. */
struct gp_timer *gp_heap_first(const struct gp_heap *h);

static inline bool gp_timer_is_set(const struct gp_timer *timer)
{
	return timer->position != 0;
}

#endif
