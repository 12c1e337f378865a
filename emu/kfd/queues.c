/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ioctls a program uses for its own queues. Of the memory checks only those are made that
 * can be made without buffer objects: what is named must be mapped, not by a mapping of exactly its
 * size.
 */
#include "kfd.h"

#define USER_END      0x800000000000ull /* access_ok() */
#define MIN_RING_SIZE 1024u
#define EOP_SIZE      4096u
#define MAX_CU_BITS   1024u

static bool is_compute(uint32_t type)
{
	return type == KFD_QUEUE_COMPUTE || type == KFD_QUEUE_COMPUTE_AQL;
}

static bool bad_address(uint64_t address)
{
	return address >= USER_END - 8;
}

static int check_properties(struct kfd_create_queue *args)
{
	if ((args->queue_percentage & 0xff) > KFD_QUEUE_PERCENT_MAX)
		return -EINVAL;
	if (args->queue_priority > KFD_QUEUE_PRIORITY_MAX)
		return -EINVAL;
	if (bad_address(args->ring_base_address))
		return -EFAULT;
	if (args->ring_size & (args->ring_size - 1))
		return -EINVAL;
	if (args->ring_size < MIN_RING_SIZE)
		args->ring_size = MIN_RING_SIZE;
	if (bad_address(args->read_pointer_address) || bad_address(args->write_pointer_address) ||
	    bad_address(args->eop_buffer_address) || bad_address(args->ctx_save_restore_address))
		return -EFAULT;
	return args->queue_type <= KFD_QUEUE_SDMA_BY_ENG_ID ? 0 : -KFD_ENOTSUPP;
}

static bool is_mapped(const struct process *p, uint64_t address, uint64_t size)
{
	uint64_t word;

	return !program_read(p, address, &word, sizeof(word)) &&
	       !program_read(p, address + size - sizeof(word), &word, sizeof(word));
}

static int check_buffers(const struct process *p, const struct device *d,
			 const struct kfd_create_queue *args)
{
	if (!is_mapped(p, args->write_pointer_address, 8) ||
	    !is_mapped(p, args->read_pointer_address, 8) ||
	    (args->ring_base_address && !is_mapped(p, args->ring_base_address, args->ring_size)))
		return -EINVAL;
	if (!is_compute(args->queue_type))
		return 0;
	if (args->eop_buffer_address && args->eop_buffer_size != EOP_SIZE)
		return -EINVAL;
	if (args->ctl_stack_size != d->sizes.control_stack ||
	    args->ctx_save_restore_size < d->sizes.cwsr)
		return -EINVAL;
	return is_mapped(p, args->ctx_save_restore_address,
			 (uint64_t)(args->ctx_save_restore_size + d->sizes.debug) * d->model->xccs)
		       ? 0
		       : -EINVAL;
}

static uint32_t queues_on(const struct process *p, const struct device *d)
{
	uint32_t n = 0;

	for (const struct queue *q = p->queues; q; q = q->next)
		n += q->device == d;
	return n;
}

static uint32_t free_id(const struct process *p)
{
	uint32_t id = 0;

	while (id < MAX_QUEUES && process_queue(p, id))
		id++;
	return id;
}

static struct queue *make_queue(struct process *p, struct device *d, uint32_t id,
				const struct kfd_create_queue *args)
{
	struct queue *q = calloc(1, sizeof(*q));
	uint64_t index = 0;

	if (!q)
		return NULL;
	*q = (struct queue){
		.process = p,
		.device = d,
		.id = id,
		.serial = kfd.next_serial++,
		.type = args->queue_type == KFD_QUEUE_SDMA_BY_ENG_ID ? KFD_QUEUE_SDMA
								     : args->queue_type,
		.ring = args->ring_base_address,
		.rptr = args->read_pointer_address,
		.wptr = args->write_pointer_address,
		.cwsr = args->ctx_save_restore_address,
		.eop = args->eop_buffer_address,
		.ring_size = args->ring_size,
		.cwsr_size = args->ctx_save_restore_size,
		.control_stack = args->ctl_stack_size,
		.percent = args->queue_percentage & 0xff,
		.priority = args->queue_priority,
		.doorbell = (uint64_t)d->index << 16 | (uint64_t)id * 8,
		.exceptions = KFD_EC_QUEUE_NEW,
		.workaround = p->debugged && d->model->mask_workaround,
	};
	if (!program_read(p, q->rptr, &index, sizeof(index)))
		q->read_index = index / queue_units(q);
	return q;
}

static int add_queue(struct process *p, struct device *d, struct kfd_create_queue *args)
{
	uint32_t id = free_id(p);
	struct queue *q;

	if (queues_on(p, d) >= d->model->max_queues)
		return -ENOSPC;
	q = id < MAX_QUEUES ? make_queue(p, d, id, args) : NULL;
	if (!q)
		return -ENOMEM;
	args->queue_id = id;
	args->doorbell_offset = q->doorbell;
	device_lock(d);
	cp_settle(d);
	q->next = p->queues;
	p->queues = q;
	p->nqueues++;
	if (queue_is_active(q))
		device_refresh(d, q); /* the next attempt reports a failure */
	device_unlock(d);
	return 0;
}

int queue_create(struct call *call, void *data)
{
	struct kfd_create_queue *args = data;
	struct process *p = call->process;
	struct device *d;
	int result = check_properties(args);

	if (result)
		return result;
	process_lock(p);
	d = device_find(args->gpu_id);
	if (!d)
		result = -EINVAL;
	else if (!p->on[d->index].has_vm || p->dead)
		result = -ESRCH;
	else
		result = check_buffers(p, d, args);
	if (!result)
		result = add_queue(p, d, args);
	process_unlock(p);
	if (!result)
		event_raise(p, KFD_EC_QUEUE_NEW, d, process_queue(p, args->queue_id));
	return result;
}

static bool is_resumed(const void *arg)
{
	return !((const struct queue *)arg)->suspended;
}

/* A debugger that has the queue suspended is waited for. */
static int wait_resumed(struct call *call, struct queue *q)
{
	int result = 0;

	if (q->being_destroyed)
		return -EBUSY;
	q->being_destroyed = true;
	if (q->process->debugged && q->suspended) {
		process_unlock(q->process);
		result = call_wait(call, is_resumed, q) ? -KFD_ERESTARTSYS : 0;
		process_lock(q->process);
	}
	q->being_destroyed = !result;
	return result;
}

static void unlink_queue(struct queue *q)
{
	struct queue **at = &q->process->queues;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	q->process->nqueues--;
}

static void remove_queue(struct queue *q)
{
	struct device *d = q->device;
	bool was_active = queue_is_active(q);

	device_lock(d);
	cp_settle(d);
	q->percent = 0;
	if (was_active)
		device_refresh(d, q);
	unlink_queue(q);
	device_unlock(d);
}

int queue_destroy(struct call *call, void *data)
{
	const struct kfd_destroy_queue *args = data;
	struct process *p = call->process;
	struct queue *q;
	int result;

	process_lock(p);
	q = process_queue(p, args->queue_id);
	result = q ? wait_resumed(call, q) : -EINVAL;
	if (!result) {
		remove_queue(q);
		event_raise(p, KFD_EC_QUEUE_DELETE, q->device, NULL);
		free(q);
	}
	process_unlock(p);
	return result;
}

static void free_queues(struct process *p, const struct device *d)
{
	for (struct queue **at = &p->queues; *at;) {
		struct queue *q = *at;

		if (q->device != d) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		p->nqueues--;
		free(q);
	}
}

/* At the process's death: one cycle for each device. */
void queues_remove_all(struct process *p)
{
	for (uint32_t i = 0; i < kfd.ndevices; i++) {
		struct device *d = &kfd.device[i];

		if (!queues_on(p, d))
			continue;
		device_lock(d);
		cp_settle(d);
		for (struct queue *q = p->queues; q; q = q->next) {
			if (q->device != d)
				continue;
			q->percent = 0;
			q->faulted = true; /* its memory is gone */
			if (d->model->mes)
				device_remove(q, 0);
		}
		if (!d->model->mes)
			device_cycle(d, kfd.resume_ns);
		free_queues(p, d);
		device_unlock(d);
	}
}

int queue_update(struct call *call, void *data)
{
	const struct kfd_update_queue *args = data;
	struct process *p = call->process;
	uint32_t ring_size;
	struct queue *q;
	int result;

	if ((args->queue_percentage & 0xff) > KFD_QUEUE_PERCENT_MAX ||
	    args->queue_priority > KFD_QUEUE_PRIORITY_MAX)
		return -EINVAL;
	if (bad_address(args->ring_base_address))
		return -EFAULT;
	if (args->ring_size & (args->ring_size - 1))
		return -EINVAL;
	process_lock(p);
	q = process_queue(p, args->queue_id);
	if (!q) {
		process_unlock(p);
		return -EFAULT;
	}
	ring_size = args->ring_size < MIN_RING_SIZE ? MIN_RING_SIZE : args->ring_size;
	if (args->ring_base_address && !is_mapped(p, args->ring_base_address, ring_size)) {
		process_unlock(p);
		return -EFAULT; /* and the queue is as it was */
	}
	device_lock(q->device);
	cp_settle(q->device);
	q->ring = args->ring_base_address;
	q->ring_size = ring_size;
	q->percent = args->queue_percentage & 0xff;
	q->priority = args->queue_priority;
	result = device_refresh(q->device, q);
	device_unlock(q->device);
	process_unlock(p);
	return result;
}

/* A work group processor has two CUs, which cannot be parted. */
static bool splits_pairs(const uint32_t *mask, uint32_t bits)
{
	for (uint32_t i = 0; i < bits; i += 2) {
		uint32_t pair = mask[i / 32] >> i % 32 & 3;

		if (pair == 1 || pair == 2)
			return true;
	}
	return false;
}

int queue_set_cu_mask(struct call *call, void *data)
{
	const struct kfd_set_cu_mask *args = data;
	struct process *p = call->process;
	uint32_t mask[MAX_CU_BITS / 32], bits = args->num_cu_mask;
	struct queue *q;
	int result = 0;

	if (!bits || bits % 32)
		return -EINVAL;
	if (bits > MAX_CU_BITS)
		bits = MAX_CU_BITS;
	if (memory_read(p->pid, args->cu_mask_ptr, mask, bits / 8))
		return -EFAULT;
	process_lock(p);
	q = process_queue(p, args->queue_id);
	if (!q)
		result = -EFAULT;
	else if (q->workaround)
		result = -EBUSY;
	else if (q->device->model->gfx_target_version >= 100000 && splits_pairs(mask, bits))
		result = -EINVAL;
	if (!result) {
		q->cu_masked = true;
		device_lock(q->device);
		result = device_refresh(q->device, q);
		device_unlock(q->device);
	}
	process_unlock(p);
	return result;
}

int queue_wave_state(struct call *call, void *data)
{
	struct kfd_get_queue_wave_state *args = data;
	struct process *p = call->process;
	struct kfd_save_area_header header;
	struct queue *q;
	int result;

	process_lock(p);
	q = process_queue(p, args->queue_id);
	if (!q) {
		result = -EFAULT;
	} else if (!is_compute(q->type) || queue_is_active(q)) {
		result = -EINVAL;
	} else {
		header = queue_save_header(q, 0);
		result = memory_write(p->pid, args->ctl_stack_address, &header, 16);
		args->ctl_stack_used_size = header.control_stack_size;
		args->save_area_used_size = header.wave_state_size;
	}
	process_unlock(p);
	return result;
}

int queue_ring(struct call *call, uint64_t doorbell)
{
	for (struct queue *q = call->process->queues; q; q = q->next)
		if (q->doorbell == doorbell) {
			cp_settle(
				q->device); /* its work begins now, not when the device went idle */
			q->rung = true;
			q->doorbells++;
			q->rung_ns = kfd_now_ns();
			cp_ring(q->device);
			return 0;
		}
	return -EFAULT;
}
