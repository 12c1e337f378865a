/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of a process, from all devices. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "lib/lib.h"

static struct gpreempt_queue translate(unsigned device, const struct gp_queue *q)
{
	struct gpreempt_queue out = {
		.id = q->id,
		.device = device,
		.held = q->held,
		.copies = q->copies,
		.channels = q->channels,
		.priority = q->priority,
		.slice_us = q->slice_us ? q->slice_us : GPREEMPT_UNKNOWN32,
		.pending = q->pending,
		.ring_address = q->ring_address,
		.ring_bytes = q->ring_bytes,
		.save_address = q->save_address,
		.save_bytes = q->save_bytes,
		.owner = q->owner,
		.object = q->object,
		.serial = q->serial,
	};

	snprintf(out.type, sizeof out.type, "%s", q->type);
	return out;
}

/* Adds those of one device. 0 or -errno. */
static int list_place(struct gpreempt *g, const struct gp_place *place, enum lib_look how,
                      struct lib_queues *queues)
{
	bool closely = how != LIB_AS_OPENED || !(g->flags & GPREEMPT_FROM_AFAR);
	struct gpreempt_queue *to;
	struct gp_queue *from;
	int n = gp_place_queues(place, closely, &from, &g->err);

	/* Somebody else may be its debugger, or we not permitted to: better less than nothing. */
	if (n < 0 && n != -ESRCH && closely && how == LIB_AS_OPENED) {
		g->err = (struct gp_error){0};
		n = gp_place_queues(place, false, &from, &g->err);
	}
	if (n < 0)
		return n;
	to = realloc(queues->queue, (queues->n + (unsigned)n + 1) * sizeof *to);
	if (to)
		queues->queue = to;
	for (int i = 0; i < n && to; i++)
		to[queues->n++] = translate(place->device, &from[i]);
	free(from);
	return to ? 0 : gp_fail(&g->err, -ENOMEM, "no memory");
}

/* Every task of a process names all its queues on the device; but one that is a single queue only
 * while that is there. 0 or -errno. */
static int list_device(struct gpreempt *g, unsigned device, const struct gp_place *place, int n,
                       enum lib_look how, struct lib_queues *queues)
{
	for (int i = 0; i < n; i++) {
		int r = place[i].device == device ? list_place(g, &place[i], how, queues) : -ESRCH;

		if (r != -ESRCH)
			return r;
		g->err = (struct gp_error){0};
	}
	return 0;
}

/* Those that need not be looked for. How many, or -errno. */
static int places_attached(struct gpreempt *g, struct gp_place **place)
{
	*place = calloc(g->ngrips + 1, sizeof **place);
	if (!*place)
		return gp_fail(&g->err, -ENOMEM, "no memory");
	for (unsigned i = 0; i < g->ngrips; i++)
		(*place)[i] = g->grip[i].hold.place;
	return (int)g->ngrips;
}

int lib_list(struct gpreempt *g, enum lib_look how, struct lib_queues *queues)
{
	struct gp_place *place;
	int n = (how == LIB_ATTACHED ? places_attached : lib_find_tasks)(g, &place);
	int r = n < 0 ? n : 0;

	*queues = (struct lib_queues){0};
	for (unsigned i = 0; i < g->machine->devices.n && !r; i++)
		r = list_device(g, i, place, n, how, queues);
	free(place);
	return r;
}

const struct gpreempt_queue *lib_find_queue(const struct lib_queues *queues,
                                            const struct gpreempt_queue *meant)
{
	for (unsigned i = 0; i < queues->n; i++)
		if (queues->queue[i].id == meant->id && queues->queue[i].device == meant->device)
			return &queues->queue[i];
	return NULL;
}

unsigned lib_count_held(const struct lib_queues *queues)
{
	unsigned held = 0;

	for (unsigned i = 0; i < queues->n; i++)
		held += queues->queue[i].held && !queues->queue[i].copies;
	return held;
}

static int get_all_queues(struct gpreempt *g, struct gpreempt_queue *queue, unsigned max)
{
	struct lib_queues queues;
	int r = lib_list(g, LIB_AS_OPENED, &queues);

	for (unsigned i = 0; i < queues.n && i < max && !r; i++)
		queue[i] = queues.queue[i];
	free(queues.queue);
	return r ? r : (int)queues.n;
}

int gpreempt_get_all_queues(struct gpreempt *g, struct gpreempt_queue *queue, unsigned max)
{
	struct lib_call call;
	int r = lib_enter(&call, g);

	if (!r)
		r = max && !queue ? -EINVAL : get_all_queues(g, queue, max);
	return lib_leave(&call, r);
}

/* ---- snapshots ----------------------------------------------------------------------------------
 */

int lib_take_snapshot(struct gpreempt *g, struct gpreempt_snapshot *snapshot)
{
	struct lib_queues queues;
	int r = lib_list(g, LIB_AS_OPENED, &queues);

	*snapshot = (struct gpreempt_snapshot){0};
	if (r) {
		free(queues.queue);
		return r;
	}
	snapshot->time_ns = gp_now_ns(&gp_clock_monotonic);
	snapshot->n = queues.n;
	snapshot->queue = queues.queue;
	return 0;
}

int gpreempt_snapshot(struct gpreempt *g, struct gpreempt_snapshot *snapshot)
{
	struct lib_call call;
	int r = lib_enter(&call, g);

	if (snapshot)
		*snapshot = (struct gpreempt_snapshot){0};
	if (!r)
		r = snapshot ? lib_take_snapshot(g, snapshot) : -EINVAL;
	return lib_leave(&call, r ? r : (int)snapshot->n);
}

void gpreempt_snapshot_free(struct gpreempt_snapshot *snapshot)
{
	int saved = errno;

	if (!snapshot)
		return;
	free(snapshot->queue);
	snapshot->queue = NULL;
	snapshot->n = 0;
	errno = saved;
}
