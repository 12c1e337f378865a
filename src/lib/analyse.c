/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of samples: how many queues there were, of which types, and how they changed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpreempt.h"
#include "hold/queue_counts.h"

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
