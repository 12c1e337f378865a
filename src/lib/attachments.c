/* SPDX-License-Identifier: Apache-2.0 */
/* The attached tasks of a handle. A task stays attached after its release: attaching costs much
 * more than holding, and a program that preempts once usually does so again. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "lib/lib.h"

static bool is_same_task(const struct gp_task_ref *a, const struct gp_task_ref *b)
{
	return a->device == b->device && a->seen.key == b->seen.key;
}

struct gp_lib_attachment *gp_lib_attachment_of(struct gpreempt *g, const struct gp_task_ref *ref)
{
	for (unsigned i = 0; i < g->nattachments; i++)
		if (is_same_task(&g->attachment[i].hold.ref, ref))
			return &g->attachment[i];
	return NULL;
}

bool gp_lib_is_done_on(const struct gpreempt *g, unsigned device, bool hold)
{
	for (unsigned i = 0; i < g->nattachments; i++) {
		const struct gp_lib_attachment *a = &g->attachment[i];
		bool failed = a->hold.status || a->hold.last.unsure;

		if (a->hold.ref.device == device && a->hold.ref.seen.queue == GP_QUEUE_ALL)
			return a->wanted == hold && (hold || !failed);
	}
	return !hold;
}

static int begin(struct gpreempt *g, const struct gp_task_ref *ref, unsigned n)
{
	struct gp_lib_attachment *list =
		realloc(g->attachment, (g->nattachments + n) * sizeof *list);
	struct gp_holds fresh;
	int r;

	if (!list)
		return gp_fail(&g->err, -ENOMEM, "not enough memory");
	g->attachment = list;
	r = gp_holds_begin(&fresh, &g->machine->devices, ref, n, &g->err);
	if (r) {
		gp_holds_end(&fresh);
		return r;
	}
	for (unsigned i = 0; i < fresh.n; i++)
		list[g->nattachments++] = (struct gp_lib_attachment){.hold = fresh.hold[i]};
	/* Both refer to the same file; one is enough. */
	if (g->undo)
		gp_undo_close(fresh.undo);
	else
		g->undo = fresh.undo;
	free(fresh.hold);
	return 0;
}

int gp_lib_attach(struct gpreempt *g, const struct gp_task_ref *ref, unsigned n)
{
	struct gp_task_ref *missing = calloc(n + 1, sizeof *missing);
	unsigned nmissing = 0;
	int r = 0;

	if (!missing)
		return gp_fail(&g->err, -ENOMEM, "not enough memory");
	for (unsigned i = 0; i < n; i++)
		if (!gp_lib_attachment_of(g, &ref[i]))
			missing[nmissing++] = ref[i];
	if (nmissing)
		r = begin(g, missing, nmissing);
	free(missing);
	return r;
}

/* A selection of attachments in the form that hold/hold.h takes. attachment[i] belongs to
 * holds.hold[i]. */
struct selection {
	struct gp_holds holds;
	struct gp_lib_attachment **attachment;
};

static bool is_selected(const struct gp_lib_attachment *attachment, const struct gp_task_ref *ref,
			unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (is_same_task(&attachment->hold.ref, &ref[i]))
			return true;
	return !ref;
}

static int gather(struct gpreempt *g, const struct gp_task_ref *ref, unsigned n,
		  struct selection *s)
{
	*s = (struct selection){.holds = {.devices = &g->machine->devices, .undo = g->undo}};
	s->holds.hold = calloc(g->nattachments + 1, sizeof *s->holds.hold);
	s->attachment = calloc(g->nattachments + 1, sizeof(struct gp_lib_attachment *));
	if (!s->holds.hold || !s->attachment)
		return -ENOMEM;
	for (unsigned i = 0; i < g->nattachments; i++)
		if (is_selected(&g->attachment[i], ref, n)) {
			s->attachment[s->holds.n] = &g->attachment[i];
			s->holds.hold[s->holds.n++] = g->attachment[i].hold;
		}
	return 0;
}

static void store_back(struct selection *s)
{
	for (unsigned i = 0; i < s->holds.n; i++)
		s->attachment[i]->hold = s->holds.hold[i];
	free(s->holds.hold);
	free(s->attachment);
}

/* After a failure, releases the tasks that were not held before. */
static void release_unwanted(const struct selection *s)
{
	struct gp_holds one = s->holds;

	for (unsigned i = 0; i < s->holds.n; i++) {
		one.n = 1;
		one.hold = &s->holds.hold[i];
		if (!s->attachment[i]->wanted)
			gp_holds_release(&one, NULL);
	}
}

int gp_lib_switch(struct gpreempt *g, const struct gp_task_ref *ref, unsigned n, bool hold,
		  struct gp_error *err)
{
	struct selection s;
	int r = gather(g, ref, n, &s);

	if (r) {
		s.holds.n = 0;
		store_back(&s);
		return gp_fail(err, r, "not enough memory");
	}
	if (hold)
		gp_holds_heartbeat(&s.holds); /* gp_lib_watch goes on with it */
	gp_holds_refresh(&s.holds);
	r = (hold ? gp_holds_hold : gp_holds_release)(&s.holds, err);
	if (r && hold)
		release_unwanted(&s);
	/* After a release that failed, the watching thread must not hold the task again. */
	for (unsigned i = 0; i < s.holds.n; i++)
		if (!r || !hold)
			s.attachment[i]->wanted = hold;
	store_back(&s);
	return r;
}

_Static_assert((int)GP_EVIDENCE_ENOUGH == GPREEMPT_SEEN &&
		       (int)GP_EVIDENCE_DRIVER == GPREEMPT_BY_DRIVER &&
		       (int)GP_EVIDENCE_NONE == GPREEMPT_ACCEPTED,
	       "the public names of enum gp_evidence");

int gp_lib_evidence(struct gpreempt *g)
{
	int weakest = GPREEMPT_SEEN;

	for (unsigned i = 0; i < g->nattachments; i++) {
		struct gp_hold *h = &g->attachment[i].hold;
		struct gp_holds one = {
			.devices = &g->machine->devices, .undo = g->undo, .n = 1, .hold = h};

		gp_holds_refresh(&one);
		if (h->status || h->last.unsure)
			return gp_fail(&g->err, -EREMOTEIO,
				       "it is not known whether process %d is held", g->pid);
		if ((int)h->last.evidence > weakest)
			weakest = (int)h->last.evidence;
	}
	return g->nattachments ? weakest : -ENOENT;
}

bool gp_lib_drop_gone(struct gpreempt *g)
{
	bool any = false;

	for (unsigned i = g->nattachments; i-- > 0;) {
		struct gp_holds one = {.devices = &g->machine->devices,
				       .undo = g->undo,
				       .n = 1,
				       .hold = &g->attachment[i].hold};

		if (!gp_hold_has_ended(&one, one.hold) && gp_hold_is_recorded(&one, one.hold))
			continue;
		g->attachment[i].wanted = false;
		if (gp_holds_remove(&one, 0, NULL))
			continue; /* it is tried again at the next check */
		g->attachment[i] = g->attachment[--g->nattachments];
		any = true;
	}
	return any;
}

void gp_lib_drop_all(struct gpreempt *g)
{
	struct selection s;

	gp_lib_release_self(g);
	if (!gather(g, NULL, 0, &s)) {
		gp_holds_release(&s.holds, NULL);
		gp_holds_end(&s.holds); /* closes the undo file */
		g->undo = NULL;
	} else {
		free(s.holds.hold); /* records stay in the undo file; the keeper replays them */
	}
	free(s.attachment);
	free(g->attachment);
	g->attachment = NULL;
	g->nattachments = 0;
}

/*
 * The watching thread. It runs from the first hold on, for three reasons. `gpreempt resume PID`
 * asks in the undo record of a hold for the release of the task. A new queue runs until it is
 * noticed. The keeper releases the tasks of a program whose heartbeat stops.
 */

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
