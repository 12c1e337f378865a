/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that watches over what is held, from the first hold on: `gpreempt resume PID` takes the
 * record of a hold away, which is how it asks us to let go, and a queue that is new runs until it
 * is seen.
 */
#include <signal.h>

#include "base/clock.h"
#include "lib/lib.h"

#define LOOK_NS (100 * GP_NS_PER_MS)

static bool is_loose(struct gpreempt *g, struct gp_lib_attachment *attachment)
{
	struct gp_holds one = {.devices = &g->machine->devices,
	                       .undo = g->undo,
	                       .n = 1,
	                       .hold = &attachment->hold};

	gp_holds_refresh(&one);
	return attachment->wanted && !attachment->hold.held;
}

static void watch_over(struct gpreempt *g)
{
	if (g->nattachments)
		gp_lib_drop_gone(g);
	for (unsigned i = 0; i < g->nattachments; i++) {
		struct gp_task_ref ref = g->attachment[i].hold.ref;

		/* What fails is tried again, and shows in the list of queues. */
		if (is_loose(g, &g->attachment[i]))
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

static void *keep(void *arg)
{
	struct gp_lib_machine *m = arg;

	pthread_mutex_lock(&m->lock);
	while (!m->quit) {
		struct timespec next = gp_timespec(gp_monotonic_ns() + LOOK_NS);

		for (struct gpreempt *g = m->first; g; g = g->next)
			watch_over(g);
		if (holds_any(m))
			pthread_cond_timedwait(&m->wake, &m->lock, &next);
		else
			pthread_cond_wait(&m->wake, &m->lock);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

int gp_lib_keep(struct gp_lib_machine *m)
{
	sigset_t all, before;
	int r = 0;

	if (m->keeps) {
		pthread_cond_signal(&m->wake); /* it may sleep until there is something */
		return 0;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&m->keeper, NULL, keep, m);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	m->keeps = !r;
	return -r;
}

void gp_lib_stop_keeping(struct gp_lib_machine *m)
{
	pthread_mutex_lock(&m->lock);
	m->quit = true;
	pthread_cond_signal(&m->wake);
	pthread_mutex_unlock(&m->lock);
	if (m->keeps)
		pthread_join(m->keeper, NULL);
}
