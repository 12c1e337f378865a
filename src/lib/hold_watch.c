/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watching thread. It runs from the first hold on, for three reasons. `gpreempt resume PID`
 * asks in the undo record of a hold for the release of the task. A new queue runs until it is
 * noticed. The keeper releases the tasks of a program whose heartbeat stops.
 */
#include <signal.h>

#include "base/clock.h"
#include "lib/lib.h"

#define INTERVAL_NS (100 * GP_NS_PER_MS)

static bool is_lost(struct gpreempt *g, struct gp_lib_attachment *attachment)
{
	struct gp_holds one = {.devices = &g->machine->devices,
			       .undo = g->undo,
			       .n = 1,
			       .hold = &attachment->hold};

	gp_holds_heartbeat(&one);
	gp_holds_refresh(&one);
	return attachment->wanted && !attachment->hold.held;
}

static void check_handle(struct gpreempt *g)
{
	if (g->nattachments)
		gp_lib_drop_gone(g);
	for (unsigned i = 0; i < g->nattachments; i++) {
		struct gp_task_ref ref = g->attachment[i].hold.ref;

		/* A failure is retried at the next check and shows in the list of queues. */
		if (is_lost(g, &g->attachment[i]))
			gp_lib_switch(g, &ref, 1, true, NULL);
	}
}

static bool holds_any(const struct gp_lib_machine *m)
{
	for (const struct gpreempt *g = m->first; g; g = g->next)
		if (g->nattachments)
			return true;
	return false;
}

static void *watch(void *arg)
{
	struct gp_lib_machine *m = arg;

	pthread_mutex_lock(&m->lock);
	while (!m->quit) {
		struct timespec next = gp_timespec(gp_monotonic_ns() + INTERVAL_NS);

		for (struct gpreempt *g = m->first; g; g = g->next)
			check_handle(g);
		if (holds_any(m))
			pthread_cond_timedwait(&m->wake, &m->lock, &next);
		else
			pthread_cond_wait(&m->wake, &m->lock);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

int gp_lib_watch(struct gp_lib_machine *m)
{
	sigset_t all, before;
	int r = 0;

	if (m->watching) {
		pthread_cond_signal(&m->wake); /* it may be waiting for a first attachment */
		return 0;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&m->watcher, NULL, watch, m);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	m->watching = !r;
	return -r;
}

void gp_lib_stop_watching(struct gp_lib_machine *m)
{
	pthread_mutex_lock(&m->lock);
	m->quit = true;
	pthread_cond_signal(&m->wake);
	pthread_mutex_unlock(&m->lock);
	if (m->watching)
		pthread_join(m->watcher, NULL);
}
