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
	for (unsigned i = 0; i < 3; i++) {
		free(s->snapshot[i].task);
		free(s->snapshot[i].recent);
	}
	free(s->past);
	memset(s, 0, sizeof *s);
}

static bool grow(struct gp_snapshot *snapshot, unsigned n)
{
	struct gp_task_stats *task = realloc(snapshot->task, n * sizeof *task);
	struct gp_recent *recent = realloc(snapshot->recent, n * sizeof *recent);

	snapshot->task = task ? task : snapshot->task;
	snapshot->recent = recent ? recent : snapshot->recent;
	return task && recent;
}

static void copy_tasks(struct gp_snapshot *snapshot, const struct gp_engine *e)
{
	unsigned n = gp_engine_tasks(e);

	if (n > snapshot->capacity && grow(snapshot, 2 * n))
		snapshot->capacity = 2 * n;
	snapshot->ntasks = n < snapshot->capacity ? n : snapshot->capacity;
	for (unsigned i = 0; i < snapshot->ntasks; i++)
		gp_engine_task_stats(e, i, &snapshot->task[i]);
}

/* The samples of a task. They are usually at the same place as at the last snapshot. */
static struct gp_past *find_past(const struct gp_snapshots *s, unsigned i, uint64_t id)
{
	if (i < s->npast && s->past[i].id == id)
		return &s->past[i];
	for (unsigned k = 0; k < s->npast; k++)
		if (s->past[k].id == id)
			return &s->past[k];
	return NULL;
}

static struct gp_recent since(const struct gp_past_sample *then, const struct gp_past_sample *now)
{
	struct gp_recent r = {.over_ns = now->at_ns - then->at_ns,
			      .held_ns = now->held_ns - then->held_ns,
			      .unproven_ns = now->unproven_ns - then->unproven_ns};

	if (then->run_at_ns && now->run_at_ns > then->run_at_ns && now->run_ns >= then->run_ns) {
		r.run_over_ns = now->run_at_ns - then->run_at_ns;
		r.ran_ns = now->run_ns - then->run_ns;
	}
	return r;
}

/* Without memory the old samples are used, and new tasks have none. */
static void compare_with_past(struct gp_snapshots *s, struct gp_snapshot *snapshot)
{
	struct gp_past *past = calloc(snapshot->ntasks + 1, sizeof *past);

	for (unsigned i = 0; i < snapshot->ntasks; i++) {
		const struct gp_task_stats *t = &snapshot->task[i];
		struct gp_past_sample now = {snapshot->now_ns, t->held_ns, t->unproven_ns,
					     t->run_source ? t->run_at_ns : 0, t->run_ns};
		const struct gp_past *old = find_past(s, i, t->id);
		struct gp_past p = old ? *old : (struct gp_past){t->id, {now, now}};

		snapshot->recent[i] = since(&p.sample[0], &now);
		if (now.at_ns - p.sample[1].at_ns >= GP_RECENT_NS / 2) {
			p.sample[0] = p.sample[1];
			p.sample[1] = now;
		}
		if (past)
			past[i] = p;
	}
	if (!past)
		return;
	free(s->past);
	s->past = past;
	s->npast = snapshot->ntasks;
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
	compare_with_past(s, snapshot);
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
