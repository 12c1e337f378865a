/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/snapshot.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void gp_snapshots_init(struct gp_snapshots *s)
{
	memset(s, 0, sizeof *s);
	for (unsigned i = 0; i < 3; i++) {
		gp_hist_init(&s->snapshot[i].lag_ns);
		gp_hist_init(&s->snapshot[i].stats.hold_ns);
		gp_hist_init(&s->snapshot[i].stats.release_ns);
		gp_hist_init(&s->snapshot[i].stats.decide_ns);
		gp_hist_init(&s->snapshot[i].stats.wait_ns);
		gp_hist_init(&s->snapshot[i].stats.detect_ns);
	}
	s->mine = 0;
	s->theirs = 1;
	atomic_init(&s->newest, 2);
}

void gp_snapshots_free(struct gp_snapshots *s)
{
	for (unsigned i = 0; i < 3; i++)
		free(s->snapshot[i].task);
	memset(s, 0, sizeof *s);
}

static void copy_tasks(struct gp_snapshot *snapshot, const struct gp_engine *e)
{
	unsigned n = gp_engine_tasks(e);

	if (n > snapshot->capacity) {
		struct gp_task_stats *task = realloc(snapshot->task, (size_t)2 * n * sizeof *task);

		if (task) {
			snapshot->task = task;
			snapshot->capacity = 2 * n;
		}
	}
	snapshot->ntasks = n < snapshot->capacity ? n : snapshot->capacity;
	for (unsigned i = 0; i < snapshot->ntasks; i++)
		gp_engine_task_stats(e, i, &snapshot->task[i]);
}

static void copy_ejection(struct gp_ejection_note *note, const struct gp_ejection *ejection)
{
	if (!ejection)
		return;
	note->policy = ejection->policy;
	note->reason = ejection->reason;
	note->now_ns = ejection->now_ns;
	memcpy(note->text, ejection->text, sizeof note->text);
}

/* Each buffer was the newest once, so its histograms are an earlier state of the engine's. */
static void copy_stats(struct gp_engine_stats *copy, const struct gp_engine_stats *stats)
{
	static_assert(offsetof(struct gp_engine_stats, wait_ns) + 5 * sizeof(struct gp_hist) ==
			      sizeof(struct gp_engine_stats),
		      "a histogram is missing");
	memcpy(copy, stats, offsetof(struct gp_engine_stats, wait_ns));
	gp_hist_catch_up(&copy->wait_ns, &stats->wait_ns);
	gp_hist_catch_up(&copy->hold_ns, &stats->hold_ns);
	gp_hist_catch_up(&copy->release_ns, &stats->release_ns);
	gp_hist_catch_up(&copy->decide_ns, &stats->decide_ns);
	gp_hist_catch_up(&copy->detect_ns, &stats->detect_ns);
}

void gp_snapshots_take(struct gp_snapshots *s, const struct gp_engine *e, uint64_t now_ns,
		       uint64_t since_ns, const struct gp_hist *lag_ns)
{
	struct gp_snapshot *snapshot = &s->snapshot[s->mine];

	snapshot->now_ns = now_ns;
	snapshot->since_ns = since_ns;
	snapshot->policy = gp_engine_policy(e);
	copy_tasks(snapshot, e);
	copy_ejection(&snapshot->ejection, gp_engine_ejection(e));
	copy_stats(&snapshot->stats, gp_engine_stats(e));
	gp_hist_catch_up(&snapshot->lag_ns, lag_ns);
	s->mine = atomic_exchange_explicit(&s->newest, s->mine | GP_SNAPSHOT_FRESH,
					   memory_order_acq_rel) &
		  ~GP_SNAPSHOT_FRESH;
}

const struct gp_snapshot *gp_snapshots_newest(struct gp_snapshots *s)
{
	if (atomic_load_explicit(&s->newest, memory_order_relaxed) & GP_SNAPSHOT_FRESH)
		s->theirs = atomic_exchange_explicit(&s->newest, s->theirs, memory_order_acq_rel) &
			    ~GP_SNAPSHOT_FRESH;
	return &s->snapshot[s->theirs];
}
