/* SPDX-License-Identifier: Apache-2.0 */
#include "base/heap.h"

#include <errno.h>
#include <stdlib.h>

static bool comes_before(const struct gp_timer *a, const struct gp_timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void put_at(struct gp_heap *h, size_t index, struct gp_timer *timer)
{
	h->timer[index] = timer;
	timer->position = index + 1;
}

/* Moves the hole up until its parent expires first, then puts the timer there. */
static void sift_up(struct gp_heap *h, size_t hole, struct gp_timer *timer)
{
	while (hole > 0) {
		size_t parent = (hole - 1) / 2;
		if (!comes_before(timer, h->timer[parent]))
			break;
		put_at(h, hole, h->timer[parent]);
		hole = parent;
	}
	put_at(h, hole, timer);
}

/* Moves the hole down until both children expire later, then puts the timer there. */
static void sift_down(struct gp_heap *h, size_t hole, struct gp_timer *timer)
{
	for (;;) {
		size_t child = 2 * hole + 1;
		if (child >= h->count)
			break;
		if (child + 1 < h->count && comes_before(h->timer[child + 1], h->timer[child]))
			child++;
		if (!comes_before(h->timer[child], timer))
			break;
		put_at(h, hole, h->timer[child]);
		hole = child;
	}
	put_at(h, hole, timer);
}

static void settle(struct gp_heap *h, size_t hole, struct gp_timer *timer)
{
	if (hole > 0 && comes_before(timer, h->timer[(hole - 1) / 2]))
		sift_up(h, hole, timer);
	else
		sift_down(h, hole, timer);
}

int gp_heap_init(struct gp_heap *h, size_t capacity)
{
	*h = (struct gp_heap){.capacity = capacity};
	if (capacity == 0)
		return 0;
	h->timer = calloc(capacity, sizeof(struct gp_timer *));
	if (!h->timer) {
		h->capacity = 0; /* so that gp_heap_set fails with -ENOSPC */
		return -ENOMEM;
	}
	return 0;
}

void gp_heap_free(struct gp_heap *h)
{
	/* Timers that are still set are not accessed: their owner may have freed them. */
	free(h->timer);
	*h = (struct gp_heap){0};
}

int gp_heap_set(struct gp_heap *h, struct gp_timer *timer, uint64_t at_ns)
{
	if (!gp_timer_is_set(timer)) {
		if (h->count == h->capacity)
			return -ENOSPC;
		put_at(h, h->count++, timer);
	}
	timer->at_ns = at_ns;
	timer->order = h->next_order++;
	settle(h, timer->position - 1, timer);
	return 0;
}

void gp_heap_cancel(struct gp_heap *h, struct gp_timer *timer)
{
	if (!gp_timer_is_set(timer))
		return;
	size_t hole = timer->position - 1;
	struct gp_timer *last = h->timer[--h->count];
	if (last != timer)
		settle(h, hole, last);
	timer->position = 0;
}

struct gp_timer *gp_heap_first(const struct gp_heap *h)
{
	return h->count ? h->timer[0] : NULL;
}
