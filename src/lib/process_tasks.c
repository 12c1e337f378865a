/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks of a process. On each device it has one task with all its queues, except those that
 * were split off. A queue that was split off is a task of its own for all handles.
 */
#include <errno.h>
#include <stdlib.h>

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
	if (gp_process_start_time(g->pid) != g->start_time)
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
