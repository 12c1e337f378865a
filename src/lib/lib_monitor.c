/* SPDX-License-Identifier: Apache-2.0 */
/* Samples over time, and statistics of them: how many queues there were, of which types, and how
 * they changed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "gpreempt.h"
#include "hold/queue_counts.h"
#include "lib/lib.h"

struct monitor {
	struct gpreempt *g;
	gpreempt_sample_fn *each;
	void *arg;
	struct gpreempt_history *history; /* NULL: samples are not kept */
	unsigned capacity;
	int samples;
	bool stopped; /* by `each` */
};

/* Adds the sample to the history, or frees it. */
static int keep_sample(struct monitor *m, struct gpreempt_snapshot *snapshot)
{
	struct gpreempt_history *h = m->history;
	struct gpreempt_snapshot *list;
	unsigned capacity = 2 * (m->capacity + 8);

	if (h && h->n == m->capacity) {
		list = realloc(h->snapshot, capacity * sizeof *list);
		if (!list) {
			gpreempt_snapshot_free(snapshot);
			return -ENOMEM;
		}
		h->snapshot = list;
		m->capacity = capacity;
	}
	m->samples++;
	if (h)
		h->snapshot[h->n++] = *snapshot;
	else
		gpreempt_snapshot_free(snapshot);
	return 0;
}

/* `each` is called without the lock, so it may use the handle. */
static int sample(struct monitor *m)
{
	struct gpreempt_snapshot snapshot;
	int r = gpreempt_snapshot(m->g, &snapshot);

	if (r < 0)
		return r;
	m->stopped = m->each && m->each(m->arg, &snapshot);
	return keep_sample(m, &snapshot);
}

static void sleep_until(uint64_t ns)
{
	struct timespec at = gp_timespec(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static int monitor(struct monitor *m, uint64_t for_ns, uint64_t every_ns)
{
	uint64_t next_ns = gp_monotonic_ns(), end_ns = next_ns + for_ns;
	int r;

	for (;;) {
		uint64_t now_ns;

		r = sample(m);
		now_ns = gp_monotonic_ns();
		/* A late sample is skipped: two in a row would tell nothing new. */
		while (next_ns <= now_ns)
			next_ns += every_ns;
		if (r || m->stopped || next_ns > end_ns)
			return r;
		sleep_until(next_ns);
	}
}

int gpreempt_monitor(struct gpreempt *g, unsigned for_ms, unsigned every_ms,
		     gpreempt_sample_fn *each, void *arg, struct gpreempt_history *history)
{
	struct monitor m = {.g = g, .each = each, .arg = arg, .history = history};
	int saved = errno, r;

	if (history)
		*history = (struct gpreempt_history){0};
	if (!g || !every_ms)
		return -EINVAL;
	r = monitor(&m, for_ms * GP_NS_PER_MS, every_ms * GP_NS_PER_MS);
	if (r == -ESRCH && m.samples) {
		if (history)
			history->ended = true;
		g->err = (struct gp_error){0};
		r = 0;
	}
	errno = saved;
	return r ? r : m.samples;
}

void gpreempt_history_free(struct gpreempt_history *history)
{
	int saved = errno;

	if (!history)
		return;
	for (unsigned i = 0; i < history->n; i++)
		gpreempt_snapshot_free(&history->snapshot[i]);
	free(history->snapshot);
	*history = (struct gpreempt_history){0};
	errno = saved;
}

/* Statistics. */

/* Converts the members that identify the queue and those that are counted. */
static struct gp_queue translate(const struct gpreempt_queue *q)
{
	struct gp_queue out = {
		.id = q->id,
		.held = q->held,
		.copies = q->copies,
		.owner = q->owner,
		.object = q->object,
		.ring_address = q->ring_address,
		.serial = q->serial,
	};

	memcpy(out.type, q->type, sizeof out.type);
	return out;
}

static int count(struct gp_queue_counts *counts, const struct gpreempt_history *history)
{
	int r = 0;

	for (unsigned i = 0; i < history->n && !r; i++) {
		const struct gpreempt_snapshot *sample = &history->snapshot[i];

		for (unsigned j = 0; j < sample->n && !r; j++) {
			struct gp_queue queue = translate(&sample->queue[j]);

			r = gp_queue_counts_note(counts, sample->queue[j].device, &queue,
						 sample->time_ns);
		}
		gp_queue_counts_close(counts);
	}
	return r;
}

static struct gpreempt_count report_count(const struct gp_queue_counts *counts,
					  const struct gp_queue_counts_count *count)
{
	return (struct gpreempt_count){.min = count->min,
				       .max = count->max,
				       .came = count->came,
				       .went = count->went,
				       .average = gp_queue_counts_average(counts, count)};
}

static struct gpreempt_sighting report_sighting(const struct gp_queue_counts_queue *q)
{
	struct gpreempt_sighting out = {.device = q->device,
					.id = q->queue.id,
					.samples = q->samples,
					.held = q->held,
					.first_ns = q->first_ns,
					.last_ns = q->last_ns};

	memcpy(out.type, q->queue.type, sizeof out.type);
	return out;
}

static int report(const struct gp_queue_counts *counts, struct gpreempt_statistics *s)
{
	/* One more, so that an empty list is not NULL. */
	s->series = calloc(counts->nseries + 1, sizeof *s->series);
	s->sighting = calloc(counts->nqueues + 1, sizeof *s->sighting);
	if (!s->series || !s->sighting)
		return -ENOMEM;
	s->samples = counts->samples;
	s->stable = gp_queue_counts_is_stable(counts);
	s->all = report_count(counts, &counts->all);
	s->nseries = counts->nseries;
	for (unsigned i = 0; i < s->nseries; i++) {
		s->series[i] = (struct gpreempt_series){
			.device = counts->series[i].device,
			.count = report_count(counts, &counts->series[i].count)};
		memcpy(s->series[i].type, counts->series[i].type, sizeof s->series[i].type);
	}
	s->nsightings = counts->nqueues;
	for (unsigned i = 0; i < s->nsightings; i++)
		s->sighting[i] = report_sighting(&counts->queue[i]);
	return 0;
}

static int analyse(const struct gpreempt_history *history, struct gpreempt_statistics *s)
{
	struct gp_queue_counts counts = {0};
	int r = count(&counts, history);

	if (!r)
		r = report(&counts, s);
	s->ended = history->ended;
	gp_queue_counts_free(&counts);
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
