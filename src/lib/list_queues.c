/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks and queues of a process on all devices. On each device the process has one task with
 * all its queues, except those that were split off. A queue that was split off is a task of its own
 * for all handles.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/process.h"
#include "lib/lib.h"

static uint64_t key_of(const struct gpreempt *g)
{
	return gp_process_key(g->start_time, g->pid);
}

static struct gp_lib_split *find_split(const struct gpreempt *g, unsigned device, uint32_t queue)
{
	const struct gp_lib_machine *m = g->machine;

	for (unsigned i = 0; i < m->nsplits; i++)
		if (m->split[i].process == key_of(g) && m->split[i].ref.device == device &&
		    m->split[i].ref.seen.queue == queue)
			return &m->split[i];
	return NULL;
}

bool gp_lib_is_split(const struct gpreempt *g, unsigned device, uint32_t queue)
{
	return find_split(g, device, queue);
}

int gp_lib_split(struct gpreempt *g, unsigned device, uint32_t queue, struct gp_task_ref *ref)
{
	struct gp_gpu *gpu = g->machine->devices.device[device].gpu;
	struct gp_lib_split *split = find_split(g, device, queue), *list;
	struct gp_lib_machine *m = g->machine;
	int r;

	if (split) {
		*ref = split->ref;
		return 0;
	}
	if (!gp_gpu_commands(gpu)->split)
		return gp_fail(&g->err, -ENOTSUP,
			       "%s cannot hold single queues; hold the whole process",
			       gpu->info.name);
	/* Before the split, which cannot be undone. */
	list = realloc(m->split, (m->nsplits + 1) * sizeof *list);
	if (!list)
		return gp_fail(&g->err, -ENOMEM, "not enough memory");
	m->split = list;
	*ref = (struct gp_task_ref){.device = device, .gpu = gpu};
	r = gp_gpu_split(gpu, g->pid, queue, &ref->seen, &g->err);
	if (!r)
		list[m->nsplits++] = (struct gp_lib_split){.process = key_of(g), .ref = *ref};
	return r;
}

static unsigned add_splits(struct gpreempt *g, struct gp_task_ref *ref, unsigned n)
{
	const struct gp_lib_machine *m = g->machine;

	for (unsigned i = 0; i < m->nsplits && n < GP_LIB_REFS_MAX; i++)
		if (m->split[i].process == key_of(g))
			ref[n++] = m->split[i].ref;
	return n;
}

int gp_lib_find_tasks(struct gpreempt *g, struct gp_task_ref **ref)
{
	unsigned found;
	int n;

	*ref = NULL;
	/* The pid may have been reused. */
	if (gp_process_gone(g->pid, g->start_time))
		return gp_fail(&g->err, -ESRCH, "process %d has ended", g->pid);
	*ref = calloc(GP_LIB_REFS_MAX, sizeof **ref);
	if (!*ref)
		return gp_fail(&g->err, -ENOMEM, "not enough memory");
	n = gp_devices_find_any(&g->machine->devices, g->pid, *ref, GP_LIB_REFS_MAX, &g->err);
	if (n < 0 && n != -ENODEV)
		return n;
	found = add_splits(g, *ref, n < 0 ? 0 : (unsigned)n);
	if (found)
		g->err = (struct gp_error){0};
	return (int)found;
}

static struct gpreempt_queue translate(unsigned device, const struct gp_queue *q)
{
	struct gpreempt_queue out = {
		.id = q->id,
		.device = device,
		.held = q->held,
		.copies = q->copies,
		.unsure = q->unsure,
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

/* Adds the queues of one device. Returns 0 or -errno. */
static int list_ref(struct gpreempt *g, const struct gp_task_ref *ref, enum gp_lib_detail how,
		    struct gp_lib_queues *queues)
{
	/* Only the session of a hold, which exists then, shows what is held. */
	bool closely = how != GP_LIB_AS_OPENED || !(g->flags & GPREEMPT_FROM_AFAR) ||
		       gp_lib_attachment_of(g, ref);
	struct gpreempt_queue *to;
	struct gp_queue *from;
	int n = gp_task_ref_queues(ref, closely, &from, &g->err);

	/* Another process may be its debugger, or we lack permission: fewer details are better than
	 * none. */
	if (n < 0 && n != -ESRCH && closely && how == GP_LIB_AS_OPENED) {
		g->err = (struct gp_error){0};
		n = gp_task_ref_queues(ref, false, &from, &g->err);
	}
	if (n < 0)
		return n;
	to = realloc(queues->queue, (queues->n + (unsigned)n + 1) * sizeof *to);
	if (to)
		queues->queue = to;
	for (int i = 0; i < n && to; i++)
		to[queues->n++] = translate(ref->device, &from[i]);
	free(from);
	return to ? 0 : gp_fail(&g->err, -ENOMEM, "not enough memory");
}

/* Each task of a process lists all queues of the process on the device. A task of a single queue
 * does so only while that queue exists. Returns 0 or -errno. */
static int list_device(struct gpreempt *g, unsigned device, const struct gp_task_ref *ref, int n,
		       enum gp_lib_detail how, struct gp_lib_queues *queues)
{
	for (int i = 0; ref && i < n; i++) {
		int r = ref[i].device == device ? list_ref(g, &ref[i], how, queues) : -ESRCH;

		if (r != -ESRCH)
			return r;
		g->err = (struct gp_error){0};
	}
	return 0;
}

/* Copies the attached tasks, which need no search. Returns their number, or -errno. */
static int copy_attached(struct gpreempt *g, struct gp_task_ref **ref)
{
	*ref = calloc(g->nattachments + 1, sizeof **ref);
	if (!*ref)
		return gp_fail(&g->err, -ENOMEM, "not enough memory");
	for (unsigned i = 0; i < g->nattachments; i++)
		(*ref)[i] = g->attachment[i].hold.ref;
	return (int)g->nattachments;
}

int gp_lib_list(struct gpreempt *g, enum gp_lib_detail how, struct gp_lib_queues *queues)
{
	struct gp_task_ref *ref;
	int n = (how == GP_LIB_ATTACHED ? copy_attached : gp_lib_find_tasks)(g, &ref);
	int r = n < 0 ? n : 0;

	*queues = (struct gp_lib_queues){0};
	for (unsigned i = 0; i < g->machine->devices.n && !r; i++)
		r = list_device(g, i, ref, n, how, queues);
	free(ref);
	return r;
}

const struct gpreempt_queue *gp_lib_find_queue(const struct gp_lib_queues *queues,
					       const struct gpreempt_queue *meant)
{
	for (unsigned i = 0; i < queues->n; i++)
		if (queues->queue[i].id == meant->id && queues->queue[i].device == meant->device)
			return &queues->queue[i];
	return NULL;
}

unsigned gp_lib_count_held(const struct gp_lib_queues *queues)
{
	unsigned held = 0;

	for (unsigned i = 0; i < queues->n; i++)
		held += queues->queue[i].held && !queues->queue[i].copies;
	return held;
}

static int get_all_queues(struct gpreempt *g, struct gpreempt_queue *queue, unsigned max)
{
	struct gp_lib_queues queues;
	int r = gp_lib_list(g, GP_LIB_AS_OPENED, &queues);

	for (unsigned i = 0; i < queues.n && i < max && !r; i++)
		queue[i] = queues.queue[i];
	free(queues.queue);
	return r ? r : (int)queues.n;
}

int gpreempt_get_all_queues(struct gpreempt *g, struct gpreempt_queue *queue, unsigned max)
{
	struct gp_lib_call call;
	int r = gp_lib_enter(&call, g);

	if (!r)
		r = max && !queue ? -EINVAL : get_all_queues(g, queue, max);
	return gp_lib_leave(&call, r);
}

/* Returns 0, or -errno; then there is nothing to free. */
static int take_snapshot(struct gpreempt *g, struct gpreempt_snapshot *snapshot)
{
	struct gp_lib_queues queues;
	int r = gp_lib_list(g, GP_LIB_AS_OPENED, &queues);

	*snapshot = (struct gpreempt_snapshot){0};
	if (r) {
		free(queues.queue);
		return r;
	}
	snapshot->time_ns = gp_monotonic_ns();
	snapshot->n = queues.n;
	snapshot->queue = queues.queue;
	return 0;
}

int gpreempt_snapshot(struct gpreempt *g, struct gpreempt_snapshot *snapshot)
{
	struct gp_lib_call call;
	int r = gp_lib_enter(&call, g);

	if (snapshot)
		*snapshot = (struct gpreempt_snapshot){0};
	if (!r)
		r = snapshot ? take_snapshot(g, snapshot) : -EINVAL;
	return gp_lib_leave(&call, r ? r : (int)snapshot->n);
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
