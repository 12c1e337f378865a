/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A first-in, first-out queue of fixed-size records, used by one thread. It grows on demand and
 * frees its memory when it is empty.
 */
#ifndef GP_DAEMON_BACKLOG_H
#define GP_DAEMON_BACKLOG_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct gp_backlog {
	unsigned char *record;
	size_t size; /* of one record, in bytes */
	size_t first, n, capacity;
};

/* 0 or -ENOMEM. */
static inline int gp_backlog_add(struct gp_backlog *b, const void *record)
{
	if (b->first + b->n == b->capacity && b->first) {
		memmove(b->record, b->record + b->first * b->size, b->n * b->size);
		b->first = 0;
	}
	if (b->n == b->capacity) {
		size_t capacity = b->capacity ? 2 * b->capacity : 64;
		unsigned char *more = realloc(b->record, capacity * b->size);

		if (!more)
			return -ENOMEM;
		b->record = more;
		b->capacity = capacity;
	}
	memcpy(b->record + (b->first + b->n++) * b->size, record, b->size);
	return 0;
}

/* The oldest record; NULL: the queue is empty. */
static inline const void *gp_backlog_first(const struct gp_backlog *b)
{
	return b->n ? b->record + b->first * b->size : NULL;
}

static inline void gp_backlog_free(struct gp_backlog *b)
{
	free(b->record);
	*b = (struct gp_backlog){.size = b->size};
}

static inline void gp_backlog_drop_first(struct gp_backlog *b)
{
	b->first++;
	if (!--b->n)
		gp_backlog_free(b);
}

#endif
