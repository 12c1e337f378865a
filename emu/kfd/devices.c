/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's queue manager: what is on the hardware. HWS can only take everything off a device
 * and map a new list; MES takes and gives single queues.
 */
#include "kfd.h"

struct queue *device_next(const struct device *d, const struct queue *q)
{
	const struct process *p = q ? q->process : kfd.processes;
	struct queue *next = q ? q->next : NULL;

	if (!q && p)
		next = p->queues;
	for (;;) {
		while (next && next->device != d)
			next = next->next;
		p = next || !p ? NULL : p->next;
		if (!p)
			return next;
		next = p->queues;
	}
}

void device_lock(struct device *d)
{
	while (d->locked)
		pthread_cond_wait(&kfd.changed, &kfd.lock);
	d->locked = true;
}

void device_unlock(struct device *d)
{
	d->locked = false;
	kfd_changed();
}

bool queue_is_active(const struct queue *q)
{
	return q->ring_size && q->ring && q->percent && !q->suspended &&
	       !q->process->on[q->device->index].evicted;
}

static uint32_t mapped_count(const struct device *d)
{
	uint32_t n = 0;

	for (struct queue *q = NULL; (q = device_next(d, q));)
		n += q->mapped;
	return n;
}

static uint32_t active_count(const struct device *d)
{
	uint32_t n = 0;

	for (struct queue *q = NULL; (q = device_next(d, q));)
		n += queue_is_active(q);
	return n;
}

static void unmap_all(struct device *d, uint32_t mapped)
{
	if (!mapped)
		return;
	d->cycles++;
	d->preempted += mapped;
	count_add("cycles", 1);
	count_add("preempted", mapped);
	for (struct queue *q = NULL; (q = device_next(d, q));)
		if (q->mapped)
			cp_unmap(q);
}

static void map_active(struct device *d)
{
	cp_settle(d);
	for (struct queue *q = NULL; (q = device_next(d, q));)
		if (queue_is_active(q))
			cp_map(q);
	cp_ring(d);
}

/* What could not be preempted stays where it is, also a queue that is marked as suspended. */
static bool preemption_fails(struct device *d)
{
	if (!d->fail_cycles)
		return false;
	d->fail_cycles--;
	count_add("preemption_timeouts", 1);
	return true;
}

int device_cycle(struct device *d, uint64_t ns)
{
	uint32_t mapped;

	cp_settle(d);
	if (d->in_reset)
		return -EIO;
	if (preemption_fails(d))
		return -ETIME;
	mapped = mapped_count(d);
	unmap_all(d, mapped);
	if (mapped || active_count(d))
		kfd_sleep_ns(ns); /* else there is no list to load */
	if (d->in_reset)
		return -EIO;
	map_active(d);
	return 0;
}

static int message(struct device *d, uint64_t ns)
{
	if (d->in_reset)
		return -EIO;
	if (preemption_fails(d))
		return -ETIMEDOUT;
	d->messages++;
	count_add("messages", 1);
	kfd_sleep_ns(ns);
	return 0;
}

int device_remove(struct queue *q, uint64_t ns)
{
	struct device *d = q->device;

	cp_settle(d);
	if (!q->mapped)
		return 0;
	if (d->in_reset || d->fail_cycles)
		return message(d, 0);
	cp_unmap(q);
	d->preempted++;
	count_add("preempted", 1);
	return message(d, ns);
}

int device_add(struct queue *q, uint64_t ns)
{
	int result;

	if (q->mapped || !queue_is_active(q))
		return 0;
	result = message(q->device, ns);
	if (result)
		return result;
	cp_settle(q->device);
	cp_map(q);
	cp_ring(q->device);
	return 0;
}

int device_refresh(struct device *d, struct queue *q)
{
	if (!d->model->mes)
		return device_cycle(d, kfd.resume_ns);
	return queue_is_active(q) ? device_add(q, kfd.resume_ns) : device_remove(q, kfd.suspend_ns);
}

static void refresh_process(struct device *d, const struct process *p)
{
	if (!d->model->mes) {
		device_cycle(d, kfd.resume_ns);
		return;
	}
	for (struct queue *q = p->queues; q; q = q->next)
		if (q->device == d)
			device_refresh(d, q);
}

void device_evict(struct device *d, struct process *p, enum kfd_smi_trigger trigger)
{
	struct process_device *on = &p->on[d->index];

	smi_evicted(d, p->pid, trigger);
	device_lock(d);
	if (!on->evicted++) {
		on->evicted_since_ns = kfd_now_ns();
		refresh_process(d, p);
	}
	device_unlock(d);
}

void device_restore(struct device *d, struct process *p)
{
	struct process_device *on = &p->on[d->index];

	if (on->evicted)
		smi_restored(d, p->pid, '0');
	device_lock(d);
	if (on->evicted && !--on->evicted) {
		on->evicted_ns += kfd_now_ns() - on->evicted_since_ns;
		refresh_process(d, p);
	}
	device_unlock(d);
}

/* All processes are evicted, and none is restored at the end. */
void device_reset(struct device *d, bool begin)
{
	cp_settle(d);
	d->in_reset = begin;
	d->resets += begin;
	smi_reset(d, begin);
	if (!begin)
		return;
	count_add("resets", 1);
	for (struct process *p = kfd.processes; p; p = p->next) {
		smi_evicted(d, p->pid, KFD_SMI_TRIGGER_SUSPEND);
		if (!p->on[d->index].evicted++)
			p->on[d->index].evicted_since_ns = kfd_now_ns();
	}
	for (struct queue *q = NULL; (q = device_next(d, q));)
		if (q->mapped)
			cp_unmap(q);
}
