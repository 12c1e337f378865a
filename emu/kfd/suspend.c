/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SUSPEND_QUEUES and RESUME_QUEUES. What happened to each queue stands in the array the caller
 * gave; the result is how many.
 */
#include "kfd.h"

struct ids {
	uint64_t address; /* 0: there is none, which for RESUME means all */
	uint32_t count;
	uint32_t *id;
};

static int ids_read(const struct call *call, struct ids *ids)
{
	if (ids->count > KFD_DBG_QUEUES_MAX)
		return -EINVAL;
	ids->id = calloc(ids->count + 1, sizeof(*ids->id));
	if (!ids->id)
		return -ENOMEM;
	if (memory_read(call->pid, ids->address, ids->id, ids->count * sizeof(*ids->id))) {
		free(ids->id);
		return -EFAULT;
	}
	for (uint32_t i = 0; i < ids->count; i++)
		ids->id[i] |= KFD_DBG_QUEUE_INVALID;
	return 0;
}

/* The count is given back even if this fails. */
static void ids_write(const struct call *call, struct ids *ids)
{
	memory_write(call->pid, ids->address, ids->id, ids->count * sizeof(*ids->id));
	free(ids->id);
}

/* The first only: a second mention stays invalid. */
static uint32_t *ids_find(struct ids *ids, uint32_t queue)
{
	for (uint32_t i = 0; i < ids->count; i++)
		if ((ids->id[i] & ~KFD_DBG_QUEUE_INVALID) == queue)
			return &ids->id[i];
	return NULL;
}

static int suspend_one(struct queue *q)
{
	bool was_active = queue_is_active(q);

	if (q->suspended)
		return 0;
	if (q->exceptions & KFD_EC_QUEUE_NEW || q->being_destroyed)
		return -EBUSY;
	q->suspended = true;
	q->process->suspends++;
	if (was_active && q->device->model->mes)
		return device_remove(q, kfd.suspend_ns);
	return 0;
}

/* How many; on HWS they still run. */
static uint32_t suspend_on(struct process *p, struct device *d, struct ids *ids, uint64_t clear)
{
	uint32_t count = 0;

	for (struct queue *q = p->queues; q; q = q->next) {
		uint32_t *id = q->device == d ? ids_find(ids, q->id) : NULL;
		int error = id ? suspend_one(q) : -EBUSY;

		if (!error) {
			*id &= ~KFD_DBG_QUEUE_INVALID;
			if (d->model->mes)
				q->exceptions &= ~clear;
			count++;
		} else if (error != -EBUSY) {
			*id |= KFD_DBG_QUEUE_ERROR;
			break;
		}
	}
	return count;
}

/* Also what was skipped loses its exceptions, or is marked as failed. */
static uint32_t load_without_suspended(struct process *p, struct device *d, struct ids *ids,
				       uint32_t count, uint64_t clear)
{
	int error = device_cycle(d, kfd.suspend_ns);

	for (struct queue *q = p->queues; q; q = q->next) {
		uint32_t *id = q->device == d ? ids_find(ids, q->id) : NULL;

		if (!id)
			continue;
		if (error)
			*id |= KFD_DBG_QUEUE_ERROR;
		else
			q->exceptions &= ~clear;
	}
	return error ? 0 : count;
}

static uint32_t suspend_all(struct process *p, struct ids *ids, uint64_t clear)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < kfd.ndevices; i++) {
		struct device *d = &kfd.device[i];
		uint32_t count;

		device_lock(d);
		cp_settle(d);
		count = suspend_on(p, d, ids, clear);
		if (count && !d->model->mes)
			count = load_without_suspended(p, d, ids, count, clear);
		device_unlock(d);
		total += count;
	}
	return total;
}

int suspend_queues(struct call *call, struct process *target, struct kfd_dbg_trap *args)
{
	struct ids ids = {.address = args->suspend_queues.queue_array_ptr,
			  .count = args->suspend_queues.num_queues};
	uint32_t total;
	int result;

	if (!ids.address)
		return ids.count ? -EINVAL : 0;
	result = ids_read(call, &ids);
	if (result)
		return result;
	if (args->suspend_queues.grace_period != KFD_GRACE_DEFAULT &&
	    args->suspend_queues.grace_period && !(args->suspend_queues.grace_period & 0xff))
		count_add("infinite_grace", 1); /* on hardware: a hang */
	target->grace = args->suspend_queues.grace_period;
	total = suspend_all(target, &ids, args->suspend_queues.exception_mask);
	for (struct queue *q = target->queues; total && q; q = q->next)
		if (q->type == KFD_QUEUE_COMPUTE || q->type == KFD_QUEUE_COMPUTE_AQL)
			queue_write_save_area(q);
	if (total)
		target->suspended_ns = kfd_now_ns();
	ids_write(call, &ids);
	return (int)total;
}

static int resume_one(struct queue *q)
{
	if (!q->suspended)
		return 0;
	q->suspended = false;
	q->process->resumes++;
	kfd_changed(); /* a destroy of the queue waits for this */
	return q->device->model->mes ? device_add(q, kfd.resume_ns) : 0;
}

static uint32_t resume_on(struct process *p, struct device *d, struct ids *ids)
{
	uint32_t count = 0;

	for (struct queue *q = p->queues; q; q = q->next) {
		uint32_t *id = ids && q->device == d ? ids_find(ids, q->id) : NULL;
		int error;

		if (q->device != d || (ids && !id))
			continue;
		error = resume_one(q);
		if (id && error) {
			*id |= KFD_DBG_QUEUE_ERROR;
			break;
		}
		if (id)
			*id &= ~KFD_DBG_QUEUE_INVALID;
		count += !error;
	}
	return count;
}

static uint32_t load_with_resumed(struct process *p, struct device *d, struct ids *ids,
				  uint32_t count)
{
	if (!device_cycle(d, kfd.resume_ns))
		return count;
	for (struct queue *q = p->queues; ids && q; q = q->next) {
		uint32_t *id = q->device == d ? ids_find(ids, q->id) : NULL;

		if (id)
			*id |= KFD_DBG_QUEUE_ERROR;
	}
	return 0;
}

static int resume_ids(struct process *p, struct ids *ids)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < kfd.ndevices; i++) {
		struct device *d = &kfd.device[i];
		uint32_t count;

		device_lock(d);
		cp_settle(d);
		count = resume_on(p, d, ids);
		if (count && !d->model->mes)
			count = load_with_resumed(p, d, ids, count);
		device_unlock(d);
		total += count;
	}
	return (int)total;
}

int resume_all(struct process *target)
{
	return resume_ids(target, NULL);
}

int resume_queues(struct call *call, struct process *target, struct kfd_dbg_trap *args)
{
	struct ids ids = {.address = args->resume_queues.queue_array_ptr,
			  .count = args->resume_queues.num_queues};
	int result;

	if (!ids.address)
		return resume_all(target);
	result = ids_read(call, &ids);
	if (result)
		return result;
	result = resume_ids(target, &ids);
	ids_write(call, &ids);
	return result;
}
