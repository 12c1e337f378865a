/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions: bits of queues, devices and the process, and the debugger's pipe. */
#include <poll.h>

#include "kfd.h"

/* With a full blocking pipe a debugger would stall the driver; here it loses the event. */
static void notify(struct process *p)
{
	struct pollfd room = {.fd = p->event_fd, .events = POLLOUT};

	if (p->event_fd_works && poll(&room, 1, 0) == 1 && room.revents & POLLOUT &&
	    write(p->event_fd, ".", 1) == 1)
		count_add("notifications", 1);
	else
		count_add("lost_notifications", 1);
}

void event_raise(struct process *p, uint64_t mask, struct device *d, struct queue *q)
{
	if (!p->debugged)
		return;
	if (mask & KFD_EC_MASK_DEVICE)
		p->on[d->index].exceptions |= mask & KFD_EC_MASK_DEVICE;
	else if (mask & KFD_EC_MASK_PROCESS)
		p->exceptions |= mask & KFD_EC_MASK_PROCESS;
	else if (q)
		q->exceptions |= mask;
	if (p->enabled_exceptions & mask)
		notify(p);
}

void event_set_enabled(struct process *p, uint64_t mask)
{
	uint64_t found = p->exceptions;

	for (const struct queue *q = p->queues; q; q = q->next)
		found |= q->exceptions;
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		found |= p->on[i].exceptions;
	if (mask & found)
		notify(p);
	p->enabled_exceptions = mask;
}

void event_clear_all(struct process *p)
{
	for (struct queue *q = p->queues; q; q = q->next)
		q->exceptions = 0;
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		p->on[i].exceptions = 0;
	p->exceptions = 0;
}

/* The first that is wanted: queues, newest first, then devices, then the process. */
static uint64_t *first_raised(struct process *p, uint32_t *queue_id, uint32_t *gpu_id)
{
	for (struct queue *q = p->queues; q; q = q->next)
		if (q->exceptions & p->enabled_exceptions) {
			*queue_id = q->id;
			*gpu_id = q->device->gpu_id;
			return &q->exceptions;
		}
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		if (p->on[i].exceptions & p->enabled_exceptions) {
			*gpu_id = kfd.device[i].gpu_id;
			return &p->on[i].exceptions;
		}
	return p->exceptions & p->enabled_exceptions ? &p->exceptions : NULL;
}

int event_query(struct process *p, struct kfd_dbg_trap *args)
{
	uint64_t clear = args->query_debug_event.exception_mask;
	uint64_t *raised;

	args->query_debug_event.exception_mask = 0;
	args->query_debug_event.queue_id = args->query_debug_event.gpu_id = 0;
	raised =
		first_raised(p, &args->query_debug_event.queue_id, &args->query_debug_event.gpu_id);
	if (!raised)
		return -EAGAIN;
	args->query_debug_event.exception_mask = *raised;
	*raised &= ~clear;
	return 0;
}

/* NULL: there is no such source. */
static uint64_t *exceptions_of(struct process *p, uint64_t mask, uint32_t source)
{
	struct queue *q;
	struct device *d;

	if (mask & KFD_EC_MASK_QUEUE) {
		q = process_queue(p, source);
		return q ? &q->exceptions : NULL;
	}
	if (mask & KFD_EC_MASK_DEVICE) {
		d = device_find(source);
		return d ? &p->on[d->index].exceptions : NULL;
	}
	return mask & KFD_EC_MASK_PROCESS ? &p->exceptions : NULL;
}

int event_info(struct call *call, struct process *p, struct kfd_dbg_trap *args)
{
	uint32_t code = args->query_exception_info.exception_code;
	uint64_t mask = code && code <= 64 ? 1ull << (code - 1) : 0;
	uint32_t size = 0, room = args->query_exception_info.info_size;
	uint64_t *raised;

	if (!args->query_exception_info.info_ptr)
		return -EINVAL;
	raised = exceptions_of(p, mask, args->query_exception_info.source_id);
	if (!raised)
		return -EINVAL;
	if (!(*raised & mask))
		return -ENODATA;
	if (mask == KFD_EC_PROCESS_RUNTIME) {
		size = sizeof(p->runtime);
		if (memory_write(call->pid, args->query_exception_info.info_ptr, &p->runtime,
				 room < size ? room : size))
			return -EFAULT;
	}
	args->query_exception_info.info_size = size;
	if (args->query_exception_info.clear_exception)
		*raised &= ~mask;
	return 0;
}
