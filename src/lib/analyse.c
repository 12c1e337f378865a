/* SPDX-License-Identifier: Apache-2.0 */
/* What samples come to: how many queues there were, of which kinds, and how they changed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpreempt.h"

/* What is kept beside a sighting, and beside a series. */
struct seen {
	const struct gpreempt_queue *queue; /* as it was first seen */
	unsigned series;
	unsigned last; /* the sample in which it was last seen */
};

struct sum {
	unsigned now; /* in the sample at hand */
	uint64_t all;
};

struct analysis {
	struct gpreempt_statistics *out;
	struct seen *seen;
	struct sum *sum;
	unsigned seen_capacity, series_capacity;
	unsigned guess; /* which sighting the next queue is, if their order stays */
};

/* ---- who is who ---------------------------------------------------------------------------------
 */

/* Ids are used again; the serial number, or else the driver's names and the memory tell a new queue
 * from an old one. */
static bool is_same(const struct gpreempt_queue *a, const struct gpreempt_queue *b)
{
	if (a->id != b->id || a->device != b->device || strcmp(a->type, b->type) != 0)
		return false;
	if (a->serial && b->serial)
		return a->serial == b->serial;
	return a->owner == b->owner && a->object == b->object && a->ring_address == b->ring_address;
}

/* Makes room for one more in two lists that grow together. */
static int make_room(void **a, size_t a_size, void **b, size_t b_size, unsigned n,
                     unsigned *capacity)
{
	unsigned more = 2 * (*capacity + 8);
	void *p;

	if (n < *capacity)
		return 0;
	p = realloc(*a, more * a_size);
	if (!p)
		return -ENOMEM;
	*a = p;
	p = realloc(*b, more * b_size);
	if (!p)
		return -ENOMEM;
	*b = p;
	*capacity = more;
	return 0;
}

/* Its number, or -ENOMEM. A kind that appears later was not there before: its least is 0. */
static int find_series(struct analysis *a, const struct gpreempt_queue *q, unsigned sample)
{
	struct gpreempt_statistics *s = a->out;
	void *series = s->series, *sum = a->sum;
	int r;

	for (unsigned i = 0; i < s->nseries; i++)
		if (s->series[i].device == q->device && !strcmp(s->series[i].type, q->type))
			return (int)i;
	r = make_room(&series, sizeof *s->series, &sum, sizeof *a->sum, s->nseries,
	              &a->series_capacity);
	s->series = series;
	a->sum = sum;
	if (r)
		return r;
	s->series[s->nseries] =
		(struct gpreempt_series){.device = q->device, .count.min = sample ? 0 : UINT32_MAX};
	memcpy(s->series[s->nseries].type, q->type, sizeof q->type);
	a->sum[s->nseries] = (struct sum){0};
	return (int)s->nseries++;
}

static int add_sighting(struct analysis *a, const struct gpreempt_queue *q, unsigned sample)
{
	struct gpreempt_statistics *s = a->out;
	void *sighting = s->sighting, *seen = a->seen;
	int series = find_series(a, q, sample), r;

	if (series < 0)
		return series;
	r = make_room(&sighting, sizeof *s->sighting, &seen, sizeof *a->seen, s->nsightings,
	              &a->seen_capacity);
	s->sighting = sighting;
	a->seen = seen;
	if (r)
		return r;
	s->sighting[s->nsightings] = (struct gpreempt_sighting){.device = q->device, .id = q->id};
	memcpy(s->sighting[s->nsightings].type, q->type, sizeof q->type);
	a->seen[s->nsightings] =
		(struct seen){.queue = q, .series = (unsigned)series, .last = UINT32_MAX};
	return (int)s->nsightings++;
}

/* Its number, or -ENOMEM. Samples list queues in the same order, as a rule: the search begins
 * behind the one that was found last. */
static int find_sighting(struct analysis *a, const struct gpreempt_queue *q, unsigned sample)
{
	unsigned n = a->out->nsightings;

	for (unsigned i = 0; i < n; i++) {
		unsigned k = (a->guess + i) % n;

		if (is_same(a->seen[k].queue, q)) {
			a->guess = k + 1;
			return (int)k;
		}
	}
	return add_sighting(a, q, sample);
}

/* ---- counting -----------------------------------------------------------------------------------
 */

static int note_queue(struct analysis *a, const struct gpreempt_snapshot *snapshot,
                      const struct gpreempt_queue *q, unsigned sample)
{
	int k = find_sighting(a, q, sample);
	struct gpreempt_sighting *sighting;
	struct seen *seen;

	if (k < 0)
		return k;
	sighting = &a->out->sighting[k];
	seen = &a->seen[k];
	if (sample && seen->last != sample - 1) {
		a->out->series[seen->series].count.came++;
		a->out->all.came++;
	}
	if (!sighting->samples)
		sighting->first_ns = snapshot->time_ns;
	sighting->samples++;
	sighting->held += q->held;
	sighting->last_ns = snapshot->time_ns;
	seen->last = sample;
	a->sum[seen->series].now++;
	return 0;
}

static void note_number(struct gpreempt_count *count, unsigned number)
{
	count->min = number < count->min ? number : count->min;
	count->max = number > count->max ? number : count->max;
}

static int note_sample(struct analysis *a, const struct gpreempt_snapshot *snapshot,
                       unsigned sample)
{
	struct gpreempt_statistics *s = a->out;
	int r = 0;

	for (unsigned i = 0; i < snapshot->n && !r; i++)
		r = note_queue(a, snapshot, &snapshot->queue[i], sample);
	for (unsigned i = 0; sample && i < s->nsightings; i++)
		if (a->seen[i].last == sample - 1) {
			s->series[a->seen[i].series].count.went++;
			s->all.went++;
		}
	for (unsigned i = 0; i < s->nseries; i++) {
		note_number(&s->series[i].count, a->sum[i].now);
		a->sum[i].all += a->sum[i].now;
		a->sum[i].now = 0;
	}
	note_number(&s->all, snapshot->n);
	return r;
}

static int analyse(const struct gpreempt_history *history, struct gpreempt_statistics *s)
{
	struct analysis a = {.out = s};
	uint64_t all = 0;
	int r = 0;

	s->samples = history->n;
	s->ended = history->ended;
	s->all.min = UINT32_MAX;
	for (unsigned i = 0; i < history->n && !r; i++)
		r = note_sample(&a, &history->snapshot[i], i);
	for (unsigned i = 0; i < s->nseries; i++) {
		s->series[i].count.average = (double)a.sum[i].all / s->samples;
		all += a.sum[i].all;
	}
	s->all.average = (double)all / s->samples;
	s->stable = !s->all.came && !s->all.went;
	free(a.seen);
	free(a.sum);
	return r;
}

int gpreempt_analyse(const struct gpreempt_history *history,
                     struct gpreempt_statistics **statistics)
{
	int saved = errno, r;

	if (!statistics)
		return -EINVAL;
	*statistics = NULL;
	if (!history || !history->n)
		return history ? -ENODATA : -EINVAL;
	*statistics = calloc(1, sizeof **statistics);
	r = *statistics ? analyse(history, *statistics) : -ENOMEM;
	if (r) {
		gpreempt_statistics_free(*statistics);
		*statistics = NULL;
	}
	errno = saved;
	return r;
}

void gpreempt_statistics_free(struct gpreempt_statistics *statistics)
{
	int saved = errno;

	if (!statistics)
		return;
	free(statistics->series);
	free(statistics->sighting);
	free(statistics);
	errno = saved;
}
