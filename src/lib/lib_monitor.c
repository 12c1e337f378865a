/* SPDX-License-Identifier: Apache-2.0 */
/* Takes samples over time. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
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
