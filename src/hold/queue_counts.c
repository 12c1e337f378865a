/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/queue_counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Hardware ids are reused. A new queue differs from an old one in its serial number or, without
 * one, in the driver's names and the address of its ring. */
static bool is_same(const struct gp_queue *a, const struct gp_queue *b)
{
	if (a->id != b->id || strcmp(a->type, b->type) != 0)
		return false;
	if (a->serial && b->serial)
		return a->serial == b->serial;
	return a->owner == b->owner && a->object == b->object && a->ring_address == b->ring_address;
}

/* Makes room for one more item. NULL: no memory; the list is unchanged. */
static void *make_room(void *list, size_t size, unsigned n, unsigned *capacity)
{
	unsigned more = 2 * (*capacity + 8);
	void *p;

	if (n < *capacity)
		return list;
	p = realloc(list, more * size);
	if (p)
		*capacity = more;
	return p;
}

/* A type that appears in a later sample had 0 queues before. */
static struct gp_queue_counts_count begin_count(const struct gp_queue_counts *c)
{
	return (struct gp_queue_counts_count){.min = c->samples ? 0 : UINT32_MAX};
}

/* Returns the index of the series, or -ENOMEM. */
static int find_series(struct gp_queue_counts *c, unsigned device, const struct gp_queue *q)
{
	struct gp_queue_counts_series *s;

	for (unsigned i = 0; i < c->nseries; i++)
		if (c->series[i].device == device && !strcmp(c->series[i].type, q->type))
			return (int)i;
	s = make_room(c->series, sizeof *s, c->nseries, &c->series_capacity);
	if (!s)
		return -ENOMEM;
	c->series = s;
	s += c->nseries;
	*s = (struct gp_queue_counts_series){
		.device = device, .copies = q->copies, .count = begin_count(c)};
	memcpy(s->type, q->type, sizeof s->type);
	return (int)c->nseries++;
}

/* Returns NULL if there is no memory. */
static struct gp_queue_counts_queue *add_queue(struct gp_queue_counts *c, unsigned device,
					       const struct gp_queue *q, uint64_t now_ns)
{
	int series = find_series(c, device, q);
	struct gp_queue_counts_queue *k;

	if (series < 0)
		return NULL;
	k = make_room(c->queue, sizeof *k, c->nqueues, &c->queue_capacity);
	if (!k)
		return NULL;
	c->queue = k;
	k += c->nqueues++;
	*k = (struct gp_queue_counts_queue){
		.device = device, .queue = *q, .series = (unsigned)series, .first_ns = now_ns};
	return k;
}

/* Samples usually list queues in the same order, so the search starts behind the last hit. */
static struct gp_queue_counts_queue *find_queue(struct gp_queue_counts *c, unsigned device,
						const struct gp_queue *q)
{
	for (unsigned i = 0; i < c->nqueues; i++) {
		unsigned at = (c->guess + i) % c->nqueues;

		if (c->queue[at].device == device && is_same(&c->queue[at].queue, q)) {
			c->guess = at + 1;
			return &c->queue[at];
		}
	}
	return NULL;
}

static void note_slice(struct gp_queue_counts_series *s, uint32_t slice_us)
{
	for (unsigned i = 0; i < s->nslices; i++)
		if (s->slice_us[i] == slice_us)
			return;
	if (slice_us && s->nslices < GP_QUEUE_COUNTS_SLICES_MAX)
		s->slice_us[s->nslices++] = slice_us;
}

int gp_queue_counts_note(struct gp_queue_counts *c, unsigned device, const struct gp_queue *queue,
			 uint64_t now_ns)
{
	struct gp_queue_counts_queue *k = find_queue(c, device, queue);
	struct gp_queue_counts_series *s;
	bool came;

	if (!k)
		k = add_queue(c, device, queue, now_ns);
	if (!k)
		return -ENOMEM;
	if (k->here == c->samples + 1)
		return 0;
	s = &c->series[k->series];
	came = c->samples && k->here != c->samples;
	k->here = c->samples + 1;
	k->samples++;
	k->held += queue->held && !queue->unsure;
	k->last_ns = now_ns;
	note_slice(s, queue->slice_us);
	s->count.came += came;
	s->count.now++;
	c->all.came += came;
	c->all.now++;
	return 0;
}

static void close_count(struct gp_queue_counts_count *n)
{
	n->min = n->now < n->min ? n->now : n->min;
	n->max = n->now > n->max ? n->now : n->max;
	n->sum += n->now;
	n->last = n->now;
	n->now = 0;
}

void gp_queue_counts_close(struct gp_queue_counts *c)
{
	if (!c->samples)
		c->all.min = UINT32_MAX;
	for (unsigned i = 0; c->samples && i < c->nqueues; i++)
		if (c->queue[i].here == c->samples) { /* in the sample before and not in this one */
			c->series[c->queue[i].series].count.went++;
			c->all.went++;
		}
	close_count(&c->all);
	for (unsigned i = 0; i < c->nseries; i++)
		close_count(&c->series[i].count);
	c->samples++;
}

bool gp_queue_counts_is_stable(const struct gp_queue_counts *c)
{
	return !c->all.came && !c->all.went;
}

double gp_queue_counts_average(const struct gp_queue_counts *c,
			       const struct gp_queue_counts_count *count)
{
	return (double)count->sum / c->samples;
}

void gp_queue_counts_free(struct gp_queue_counts *c)
{
	free(c->series);
	free(c->queue);
	*c = (struct gp_queue_counts){0};
}
