/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of commands about one process: find, split, queues and
 * put_back. Runs on the RM thread. */
#include <stdio.h>

#include "gpu/nvidia/processes.h"

#define SEARCH_MAX_NS (5 * GP_NS_PER_S) /* for a command that waits; RM takes 4 us an index */

/* Why no compute queue of the process was found: it has none, or RM does not name it. */
static int explain_none(const struct gp_nv_gpu *d, const struct gp_nv_process *p,
			const struct gp_nv_call *call)
{
	if (gp_nv_is_doubtful(&p->target) || gp_rm_lists(&d->rm, call->pid) > 0)
		return gp_fail(call->err, -EIO,
			       "the NVIDIA driver does not name the compute queues of process %d; "
			       "try again",
			       call->pid);
	return gp_fail(call->err, -ENODEV, "process %d has no compute queue on this GPU",
		       call->pid);
}

/* The process that stands for it, found. NULL: `call->question.result` says why not. */
static struct gp_nv_process *find(struct gp_nv_gpu *d, struct gp_nv_call *call)
{
	struct gp_nv_process *p = gp_nv_find_pid(d, call->pid);

	call->question.result = 0;
	if (!p) {
		call->question.result = gp_nv_add_process(
			d, call->pid, gp_nv_may_compute(d, call->pid), NULL, call->err);
		if (call->question.result)
			return NULL;
		p = d->process[d->nprocesses - 1];
	}
	if (p->leader)
		gp_nv_refresh_sharer(d, p, gp_monotonic_ns());
	if (p->leader)
		p = p->leader;
	if (!gp_nv_has_task(d, p, GP_QUEUE_ALL) && !p->nsplits) {
		/* A full rescan: the last one may have come before the program made its queues. */
		p->rescan_ns = 0;
		gp_nv_refresh(d, p, gp_monotonic_ns());
	}
	gp_nv_search_until_found(d, p, gp_monotonic_ns() + SEARCH_MAX_NS);
	if (!gp_nv_has_task(d, p, GP_QUEUE_ALL) && !p->nsplits) {
		call->question.result = explain_none(d, p, call);
		return NULL;
	}
	p->settled = true; /* a command names the process: its slice is taken as it is */
	gp_nv_publish_seen(d);
	return p;
}

static int split(struct gp_nv_gpu *d, struct gp_nv_call *call)
{
	struct gp_nv_process *p = find(d, call);
	unsigned i;

	if (!p)
		return call->question.result;
	if (!gp_nv_has_task(d, p, call->queue_id))
		return gp_fail(call->err, -ENOENT, "process %d has no compute queue %u on this GPU",
			       call->pid, call->queue_id);
	for (i = 0; i < p->nsplits; i++)
		if (p->split[i] == call->queue_id)
			break;
	if (i == GP_NV_SPLITS_MAX)
		return gp_fail(call->err, -ENOSPC,
			       "too many queues of process %d are tasks of their own", call->pid);
	if (i == p->nsplits)
		p->split[p->nsplits++] = call->queue_id;
	pthread_mutex_lock(&d->requests.lock);
	gp_nv_describe_seen(d, p, i + 1, call->seen);
	pthread_mutex_unlock(&d->requests.lock);
	gp_nv_publish_process(d, p);
	gp_nv_publish_seen(d);
	return 0;
}

static int list_queues(struct gp_nv_gpu *d, struct gp_nv_call *call)
{
	struct gp_nv_process *p = gp_nv_find_process(d, call->key);
	int n = 0, r = p ? gp_nv_target_borrow(&p->target) : -ESRCH;

	if (r == -ESRCH)
		return r;
	if (r)
		return gp_fail(call->err, r, "process %d cannot be reached: %s", p->target.pid,
			       gp_error_name(r));
	gp_nv_rescan(&p->target, true);
	for (unsigned i = 0; i < p->target.ngroups; i++) {
		struct gp_nv_group *g = &p->target.group[i];
		struct gp_queue q;

		if (g->gpu_id != d->gpu_id)
			continue;
		gp_nv_read_back(&p->target, g); /* another program may hold it */
		q = (struct gp_queue){
			.id = g->tsg_id,
			.channels = g->nchannels,
			.slice_us = g->slice_us,
			.held = g->disabled,
			.unsure = g->doubtful || g->unread,
			.copies = !g->compute,
			.owner = g->client,
			.object = g->handle,
			.pending = UINT64_MAX,
			.priority = UINT32_MAX,
		};

		snprintf(q.type, sizeof q.type, "%s", g->compute ? "compute" : "copy");
		if (gp_nv_get_interleave(&p->target, g, &q.interleave))
			q.interleave = UINT32_MAX;
		if ((unsigned)n < call->max)
			call->queue[n] = q;
		n++;
	}
	gp_nv_target_give_back(&p->target);
	gp_nv_publish_process(d, p);
	return n;
}

static int put_back(struct gp_nv_gpu *d, struct gp_nv_call *call)
{
	uint32_t status = gp_nv_put_task_back(d, call->handle);

	if (!status)
		return 0;
	return gp_fail(call->err, gp_rm_errno(status), "process %d cannot be put back: %s",
		       call->pid, gp_rm_status_name(status));
}

void gp_nv_answer(struct gp_nv_gpu *d, struct gp_nv_call *call)
{
	struct gp_nv_process *p;

	switch (call->kind) {
	case GP_NV_CALL_FIND:
		p = find(d, call);
		if (!p)
			break;
		pthread_mutex_lock(&d->requests.lock);
		gp_nv_describe_seen(d, p, 0, call->seen);
		pthread_mutex_unlock(&d->requests.lock);
		break;
	case GP_NV_CALL_SPLIT: call->question.result = split(d, call); break;
	case GP_NV_CALL_QUEUES: call->question.result = list_queues(d, call); break;
	case GP_NV_CALL_PUT_BACK: call->question.result = put_back(d, call); break;
	}
}
