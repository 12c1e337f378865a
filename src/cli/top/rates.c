/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/rates.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define SECOND_NS (950 * GP_NS_PER_MS) /* less than 1 s, because snapshots may come late */
#define RECENT_NS (3 * GP_NS_PER_S)    /* the interval of recent_share */

static const struct gp_top_task *find_task(const struct gp_top_sample *m,
					   const struct gp_top_task *t)
{
	if (!m || !m->ntasks)
		return NULL;
	return bsearch(t, m->task, m->ntasks, sizeof *m->task, gp_top_compare_tasks);
}

static const struct gp_top_device *find_device(const struct gp_top_sample *m, unsigned number)
{
	for (unsigned i = 0; m && i < m->ndevices; i++)
		if (m->device[i].number == number)
			return &m->device[i];
	return NULL;
}

/* Increase per second. A counter that fell was reset: the rate is unknown. */
static double rate(uint64_t was, uint64_t is, uint64_t over_ns)
{
	if (!over_ns || is < was)
		return GP_TOP_UNKNOWN;
	return (double)(is - was) * (double)GP_NS_PER_S / (double)over_ns;
}

/* Run time is sampled and may be counted late, so that it exceeds the interval: limited to 1. */
static double share(uint64_t was, uint64_t is, uint64_t over_ns)
{
	double part = rate(was, is, over_ns) / (double)GP_NS_PER_S;

	return part < 0 ? GP_TOP_UNKNOWN : part > 1 ? 1 : part;
}

static uint64_t between(uint64_t was_ns, uint64_t is_ns)
{
	return is_ns > was_ns ? is_ns - was_ns : 0;
}

static double share_since(const struct gp_top_sample *m, const struct gp_top_task *t)
{
	const struct gp_top_task *was = find_task(m, t);

	if (!was || !was->run_known || !t->run_known)
		return GP_TOP_UNKNOWN;
	return share(was->run_ns, t->run_ns, between(was->at_ns, t->at_ns));
}

static void rate_task(struct gp_top_task *t, const struct gp_top_sample *second,
		      const struct gp_top_sample *recent)
{
	const struct gp_top_task *was = find_task(second, t);

	t->share = share_since(second, t);
	t->recent_share = share_since(recent, t);
	if (t->recent_share < 0) /* a new task */
		t->recent_share = t->share;
	if (was)
		t->preemptions_per_s =
			rate(was->preemptions, t->preemptions, between(was->at_ns, t->at_ns));
}

static void rate_device(struct gp_top_device *d, const struct gp_top_sample *second)
{
	const struct gp_top_device *was = find_device(second, d->number);
	uint64_t over_ns = was ? between(was->at_ns, d->at_ns) : 0;

	if (!was)
		return;
	if (was->busy_known && d->busy_known)
		d->busy = share(was->busy_ns, d->busy_ns, over_ns);
	d->preemptions_per_s = rate(was->preemptions, d->preemptions, over_ns);
	if (was->inversions_known && d->inversions_known)
		d->inversions_per_s = rate(was->inversions, d->inversions, over_ns);
}

/* The newest sample that is at least age_ns old, else the oldest; NULL: none. */
static const struct gp_top_sample *sample_before(const struct gp_top_history *history,
						 uint64_t now_ns, uint64_t age_ns)
{
	for (unsigned i = history->n; i-- > 0;)
		if (now_ns - history->sample[i].at_ns >= age_ns)
			return &history->sample[i];
	return history->n ? &history->sample[0] : NULL;
}

static void drop_oldest(struct gp_top_history *history)
{
	free(history->sample[0].task);
	free(history->sample[0].device);
	history->n--;
	memmove(&history->sample[0], &history->sample[1], history->n * sizeof history->sample[0]);
}

static void remember(struct gp_top_history *history, const struct gp_top_snapshot *snapshot,
		     uint64_t now_ns)
{
	struct gp_top_sample m = {.at_ns = now_ns};

	m.task = calloc(snapshot->ntasks + 1, sizeof *m.task);
	m.device = calloc(snapshot->ndevices + 1, sizeof *m.device);
	if (m.task && snapshot->ntasks) {
		memcpy(m.task, snapshot->task, snapshot->ntasks * sizeof *m.task);
		m.ntasks = snapshot->ntasks;
	}
	if (m.device && snapshot->ndevices) {
		memcpy(m.device, snapshot->device, snapshot->ndevices * sizeof *m.device);
		m.ndevices = snapshot->ndevices;
	}
	history->sample[history->n++] = m;
}

void gp_top_history_add(struct gp_top_history *history, struct gp_top_snapshot *snapshot,
			uint64_t now_ns)
{
	const struct gp_top_sample *second = sample_before(history, now_ns, SECOND_NS);
	const struct gp_top_sample *recent = sample_before(history, now_ns, RECENT_NS);

	for (unsigned i = 0; i < snapshot->ntasks; i++)
		rate_task(&snapshot->task[i], second, recent);
	for (unsigned i = 0; i < snapshot->ndevices; i++)
		rate_device(&snapshot->device[i], second);
	/* Keeps one sample that is at least RECENT_NS old. */
	while (history->n >= GP_TOP_HISTORY ||
	       (history->n > 1 && now_ns - history->sample[1].at_ns >= RECENT_NS))
		drop_oldest(history);
	remember(history, snapshot, now_ns);
}

void gp_top_history_clear(struct gp_top_history *history)
{
	while (history->n)
		drop_oldest(history);
}
