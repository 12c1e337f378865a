/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/rates.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define SECOND_NS (950 * GP_NS_PER_MS) /* clocks and daemons are a little late now and then */
#define RECENT_NS (3 * GP_NS_PER_S)    /* what the order of tasks goes by */

static const struct gp_top_task *find_task(const struct gp_top_marks *m,
                                           const struct gp_top_task *t)
{
	if (!m || !m->ntasks)
		return NULL;
	return bsearch(t, m->task, m->ntasks, sizeof *m->task, gp_top_compare_tasks);
}

static const struct gp_top_device *find_device(const struct gp_top_marks *m, unsigned number)
{
	for (unsigned i = 0; m && i < m->ndevices; i++)
		if (m->device[i].number == number)
			return &m->device[i];
	return NULL;
}

/* Growth per second; a counter that fell was begun anew, and says nothing. */
static double rate(uint64_t was, uint64_t is, uint64_t over_ns)
{
	if (!over_ns || is < was)
		return GP_TOP_UNKNOWN;
	return (double)(is - was) * (double)GP_NS_PER_S / (double)over_ns;
}

/* Run time is sampled: it may come late, and then more than there was time for. */
static double share(uint64_t was, uint64_t is, uint64_t over_ns)
{
	double part = rate(was, is, over_ns) / (double)GP_NS_PER_S;

	return part < 0 ? GP_TOP_UNKNOWN : part > 1 ? 1 : part;
}

static uint64_t between(uint64_t was_ns, uint64_t is_ns)
{
	return is_ns > was_ns ? is_ns - was_ns : 0;
}

static double share_since(const struct gp_top_marks *m, const struct gp_top_task *t)
{
	const struct gp_top_task *was = find_task(m, t);

	if (!was || !was->run_known || !t->run_known)
		return GP_TOP_UNKNOWN;
	return share(was->run_ns, t->run_ns, between(was->at_ns, t->at_ns));
}

static void rate_task(struct gp_top_task *t, const struct gp_top_marks *second,
                      const struct gp_top_marks *recent)
{
	const struct gp_top_task *was = find_task(second, t);

	t->share = share_since(second, t);
	t->recently = share_since(recent, t);
	if (t->recently < 0) /* it came since */
		t->recently = t->share;
	if (was)
		t->preemptions_per_s =
			rate(was->preemptions, t->preemptions, between(was->at_ns, t->at_ns));
}

static void rate_device(struct gp_top_device *d, const struct gp_top_marks *second)
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

/* The youngest that is so old, else the oldest there is; NULL: none. */
static const struct gp_top_marks *marks_of(const struct gp_top_past *past, uint64_t now_ns,
                                           uint64_t age_ns)
{
	for (unsigned i = past->n; i-- > 0;)
		if (now_ns - past->marks[i].at_ns >= age_ns)
			return &past->marks[i];
	return past->n ? &past->marks[0] : NULL;
}

static void drop_oldest(struct gp_top_past *past)
{
	free(past->marks[0].task);
	free(past->marks[0].device);
	past->n--;
	memmove(&past->marks[0], &past->marks[1], past->n * sizeof past->marks[0]);
}

static void remember(struct gp_top_past *past, const struct gp_top_snapshot *snapshot,
                     uint64_t now_ns)
{
	struct gp_top_marks m = {.at_ns = now_ns};

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
	past->marks[past->n++] = m;
}

void gp_top_past_add(struct gp_top_past *past, struct gp_top_snapshot *snapshot, uint64_t now_ns)
{
	const struct gp_top_marks *second = marks_of(past, now_ns, SECOND_NS);
	const struct gp_top_marks *recent = marks_of(past, now_ns, RECENT_NS);

	for (unsigned i = 0; i < snapshot->ntasks; i++)
		rate_task(&snapshot->task[i], second, recent);
	for (unsigned i = 0; i < snapshot->ndevices; i++)
		rate_device(&snapshot->device[i], second);
	/* One that is old enough is enough. */
	while (past->n >= GP_TOP_PAST ||
	       (past->n > 1 && now_ns - past->marks[1].at_ns >= RECENT_NS))
		drop_oldest(past);
	remember(past, snapshot, now_ns);
}

void gp_top_past_clear(struct gp_top_past *past)
{
	while (past->n)
		drop_oldest(past);
}
