/* SPDX-License-Identifier: Apache-2.0 */
/* What samples come to: how many queues there were, of which kinds, and how they changed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpreempt.h"
#include "hold/queue_counts.h"

/* As far as it says which queue it is, and what is counted of it. */
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

static int count(struct gp_census *census, const struct gpreempt_history *history)
{
	int r = 0;

	for (unsigned i = 0; i < history->n && !r; i++) {
		const struct gpreempt_snapshot *sample = &history->snapshot[i];

		for (unsigned j = 0; j < sample->n && !r; j++) {
			struct gp_queue queue = translate(&sample->queue[j]);

			r = gp_census_note(census, sample->queue[j].device, &queue,
			                   sample->time_ns);
		}
		gp_census_close(census);
	}
	return r;
}

static struct gpreempt_count report_count(const struct gp_census *census,
                                          const struct gp_census_count *count)
{
	return (struct gpreempt_count){.min = count->min,
	                               .max = count->max,
	                               .came = count->came,
	                               .went = count->went,
	                               .average = gp_census_average(census, count)};
}

static struct gpreempt_sighting report_sighting(const struct gp_census_queue *q)
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

static int report(const struct gp_census *census, struct gpreempt_statistics *s)
{
	/* One more, so that none is not NULL. */
	s->series = calloc(census->nseries + 1, sizeof *s->series);
	s->sighting = calloc(census->nqueues + 1, sizeof *s->sighting);
	if (!s->series || !s->sighting)
		return -ENOMEM;
	s->samples = census->samples;
	s->stable = gp_census_is_stable(census);
	s->all = report_count(census, &census->all);
	s->nseries = census->nseries;
	for (unsigned i = 0; i < s->nseries; i++) {
		s->series[i] = (struct gpreempt_series){
			.device = census->series[i].device,
			.count = report_count(census, &census->series[i].count)};
		memcpy(s->series[i].type, census->series[i].type, sizeof s->series[i].type);
	}
	s->nsightings = census->nqueues;
	for (unsigned i = 0; i < s->nsightings; i++)
		s->sighting[i] = report_sighting(&census->queue[i]);
	return 0;
}

static int analyse(const struct gpreempt_history *history, struct gpreempt_statistics *s)
{
	struct gp_census census = {0};
	int r = count(&census, history);

	if (!r)
		r = report(&census, s);
	s->ended = history->ended;
	gp_census_free(&census);
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
