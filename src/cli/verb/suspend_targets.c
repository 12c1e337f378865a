/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt suspend: finds the tasks to hold. */
#include <errno.h>
#include <stdlib.h>

#include "cli/verb/suspend.h"

static int add_process(const struct gp_suspend *what, const struct gp_devices *devices, pid_t pid,
		       struct gp_task_refs *list, struct gp_error *err)
{
	struct gp_task_ref found[GP_DEVICES_MAX], *p;
	int n = gp_devices_find(devices, pid, found, GP_DEVICES_MAX, err);
	unsigned added = 0;

	if (n < 0)
		return n;
	p = realloc(list->ref, (list->n + (unsigned)n) * sizeof *p);
	if (!p)
		return gp_fail(err, -ENOMEM, "no memory");
	list->ref = p;
	for (int i = 0; i < n; i++) {
		bool twice = false;

		/* A child that shares its parent's queues is the same task. */
		for (unsigned k = 0; k < list->n; k++)
			twice |= p[k].device == found[i].device &&
				 p[k].seen.key == found[i].seen.key;
		if (what->device != GP_DEVICES_MAX && what->device != found[i].device)
			continue;
		added++;
		if (!twice)
			p[list->n++] = found[i];
	}
	if (!added)
		return gp_fail(err, -ENODEV, "process %d has no queues on device %u", pid,
			       what->device);
	return 0;
}

/* Makes the queue a task of its own, on the one device that has it. */
static int split_queue(const struct gp_suspend *what, struct gp_task_refs *list,
		       struct gp_error *err)
{
	pid_t pid = what->targets.pid[0];
	unsigned kept = 0;

	for (unsigned i = 0; i < list->n; i++) {
		struct gp_task_ref *p = &list->ref[i];
		int r = gp_gpu_split(p->gpu, pid, what->queue, &p->seen, NULL);

		if (r == -ENOENT)
			continue;
		if (r)
			return gp_fail(err, r,
				       "queue %u of process %d cannot be held by itself: %s",
				       what->queue, pid, gp_error_name(r));
		list->ref[kept++] = *p;
	}
	list->n = kept;
	if (!kept)
		return gp_fail(err, -ESRCH,
			       "process %d has no queue %u to hold; see gpreempt queues %d", pid,
			       what->queue, pid);
	if (kept > 1)
		return gp_fail(err, -EINVAL,
			       "queue %u is on %u devices; choose one with --device N", what->queue,
			       kept);
	return 0;
}

static int refuse_shared(const struct gp_suspend *what, const struct gp_task_refs *list,
			 struct gp_error *err)
{
	int r = 0;

	for (unsigned i = 0; i < list->n && !r; i++) {
		const struct gp_seen *seen = &list->ref[i].seen;

		r = gp_refuse_shared(seen, seen->pid, what->force, GP_WOULD_STOP_ALL, err);
	}
	return r;
}

int gp_suspend_choose(const struct gp_suspend *what, const struct gp_devices *devices,
		      struct gp_task_refs *list, struct gp_error *err)
{
	int r = 0;

	if (what->device != GP_DEVICES_MAX && what->device >= devices->n)
		r = gp_fail(err, -ENODEV, "there is no device %u; the last one is %u", what->device,
			    devices->n - 1);
	for (unsigned i = 0; i < what->targets.n && !r; i++)
		r = add_process(what, devices, what->targets.pid[i], list, err);
	if (!r && !what->targets.n) {
		int n = gp_devices_scan(devices, what->device, &list->ref, err);

		list->n = n > 0 ? (unsigned)n : 0;
		r = n < 0    ? n
		    : n == 0 ? gp_fail(err, -ESRCH, "no process has queues on %s",
				       devices->device[what->device].gpu->info.name)
			     : 0;
	}
	if (!r)
		r = refuse_shared(what, list, err);
	return !r && what->one_queue ? split_queue(what, list, err) : r;
}
