/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command processor of each device: a thread that takes packets from the rings of what is
 * mapped and executes them. The compute queues of a device share `slots` of them; a copy queue has
 * an engine of its own. A queue that is taken off stops in the middle of its packet, and goes on
 * from there. The read pointer moves when a packet is taken, not when it ends: one that runs cannot
 * be seen in the pointers.
 */
#include "kfd.h"

#define SAVED_WAVES     64u
#define BYTES_PER_WAVE  4096u
#define LEAST_PACKET_NS 1000u /* also of a packet without steps: time must pass */

/* What the hardware has, and can work on. */
static struct queue *next_mapped(const struct device *d, const struct queue *q)
{
	struct queue *next = device_next(d, q);

	while (next && (!next->mapped || next->faulted))
		next = device_next(d, next);
	return next;
}

static bool is_copy(const struct queue *q)
{
	return q->type != KFD_QUEUE_COMPUTE && q->type != KFD_QUEUE_COMPUTE_AQL;
}

uint64_t queue_units(const struct queue *q)
{
	if (q->type == KFD_QUEUE_COMPUTE_AQL)
		return 1;
	return sizeof(struct kfd_emu_packet) / (is_copy(q) ? 1 : 4);
}

/* As the hardware reports it: of PM4 in the ring, of the others for ever. */
static uint64_t read_pointer(const struct queue *q)
{
	uint64_t index = q->read_index * queue_units(q);

	return q->type == KFD_QUEUE_COMPUTE ? index % (q->ring_size / 4) : index;
}

static void queue_fault(struct queue *q)
{
	q->faulted = true;
	q->busy = false;
	count_add("memory_faults", 1);
	event_raise(q->process, KFD_EC_MEMORY_VIOLATION, q->device, q);
}

/* Takes the next packet, if there is one. */
static void fetch(struct queue *q)
{
	uint64_t write_index, index, ring_packets = q->ring_size / sizeof(q->packet);
	uint64_t at = q->ring + q->read_index % ring_packets * sizeof(q->packet);

	if (program_read(q->process, q->wptr, &write_index, sizeof(write_index))) {
		queue_fault(q);
		return;
	}
	if (write_index / queue_units(q) <= q->read_index) {
		q->rung = false; /* until its doorbell rings, or it is mapped again */
		return;
	}
	if (program_read(q->process, at, &q->packet, sizeof(q->packet))) {
		queue_fault(q);
		return;
	}
	if (q->packet.header == KFD_EMU_PACKET_INVALID) {
		q->rung = false;
		return;
	}
	q->read_index++;
	index = read_pointer(q);
	if (program_write(q->process, q->rptr, &index, sizeof(index))) {
		queue_fault(q);
		return;
	}
	q->busy = true;
	q->left_ns = q->packet.steps * kfd.step_ns;
	if (q->left_ns < LEAST_PACKET_NS)
		q->left_ns = LEAST_PACKET_NS;
}

static int add_result(const struct queue *q)
{
	uint64_t sum, completed;
	const struct process *p = q->process;

	if (q->packet.header != KFD_EMU_PACKET_DISPATCH) {
		count_add("bad_packets", 1);
		return 0;
	}
	if (program_read(p, q->packet.accumulator, &sum, sizeof(sum)) ||
	    program_read(p, q->packet.completed, &completed, sizeof(completed)))
		return -EFAULT;
	sum = kfd_emu_mix(sum, q->packet.seed);
	completed++;
	if (program_write(p, q->packet.accumulator, &sum, sizeof(sum)) ||
	    program_write(p, q->packet.completed, &completed, sizeof(completed)))
		return -EFAULT;
	return 0;
}

static void complete(struct queue *q)
{
	if (add_result(q)) {
		queue_fault(q);
		return;
	}
	q->busy = false;
	q->executed++;
	count_add("packets", 1);
}

static void fetch_all(struct device *d)
{
	for (struct queue *q = NULL; (q = next_mapped(d, q));)
		if (q->rung && !q->busy)
			fetch(q);
}

static uint64_t sharing(const struct device *d)
{
	uint64_t n = 0;

	for (struct queue *q = NULL; (q = next_mapped(d, q));)
		n += q->busy && !is_copy(q);
	return n > kfd.slots ? n : kfd.slots;
}

/* How long until the first packet is done; GP_NEVER: nothing runs. */
static uint64_t next_end(const struct device *d, uint64_t share)
{
	uint64_t first = GP_NEVER;

	for (struct queue *q = NULL; (q = next_mapped(d, q));) {
		uint64_t ns =
			is_copy(q) ? q->left_ns : (q->left_ns * share + kfd.slots - 1) / kfd.slots;

		if (q->busy && ns < first)
			first = ns;
	}
	return first;
}

static void run(struct device *d, uint64_t share, uint64_t ns)
{
	for (struct queue *q = NULL; (q = next_mapped(d, q));) {
		uint64_t part = is_copy(q) ? ns : ns * kfd.slots / share;

		if (!q->busy)
			continue;
		q->run_ns += part;
		if (is_copy(q))
			q->process->on[d->index].sdma_ns += part;
		q->left_ns -= part < q->left_ns ? part : q->left_ns;
		if (!q->left_ns)
			complete(q);
	}
}

uint64_t cp_advance(struct device *d, uint64_t now_ns)
{
	for (;;) {
		uint64_t share, end, ns;

		fetch_all(d);
		share = sharing(d);
		end = next_end(d, share);
		if (end == GP_NEVER || d->at_ns >= now_ns) {
			if (d->at_ns < now_ns)
				d->at_ns = now_ns;
			return end == GP_NEVER ? GP_NEVER : d->at_ns + end;
		}
		ns = now_ns - d->at_ns < end ? now_ns - d->at_ns : end;
		run(d, share, ns);
		d->at_ns += ns;
	}
}

void cp_settle(struct device *d)
{
	cp_advance(d, kfd_now_ns());
}

void cp_ring(struct device *d)
{
	pthread_cond_signal(&d->wake);
}

static void *cp_thread(void *arg)
{
	struct device *d = arg;

	kfd_lock();
	while (!kfd.stopping) {
		uint64_t next_ns = cp_advance(d, kfd_now_ns());
		struct timespec until = {.tv_sec = (time_t)(next_ns / GP_NS_PER_S),
					 .tv_nsec = (long)(next_ns % GP_NS_PER_S)};

		if (next_ns == GP_NEVER)
			pthread_cond_wait(&d->wake, &kfd.lock);
		else
			pthread_cond_timedwait(&d->wake, &kfd.lock, &until);
	}
	kfd_unlock();
	return NULL;
}

int devices_start(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	for (uint32_t i = 0; i < kfd.ndevices; i++) {
		struct device *d = &kfd.device[i];

		pthread_cond_init(&d->wake, &attributes);
		d->at_ns = kfd_now_ns();
		if (pthread_create(&d->thread, NULL, cp_thread, d))
			return -EAGAIN;
	}
	pthread_condattr_destroy(&attributes);
	return 0;
}

void devices_stop(void)
{
	kfd_lock();
	kfd.stopping = true;
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		cp_ring(&kfd.device[i]);
	kfd_unlock();
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		pthread_join(kfd.device[i].thread, NULL);
}

void cp_unmap(struct queue *q)
{
	uint64_t write_index = 0;

	q->mapped = false;
	q->preempted++;
	q->saved += q->busy;
	q->saved_rptr = read_pointer(q);
	if (!program_read(q->process, q->wptr, &write_index, sizeof(write_index)))
		q->saved_wptr = write_index;
	q->saved_waves = q->busy ? SAVED_WAVES * BYTES_PER_WAVE : 0;
	q->saved_control_stack = q->busy ? SAVED_WAVES * 8 : 0;
}

void cp_map(struct queue *q)
{
	q->mapped = true;
	q->rung = true; /* the hardware looks at a queue that it gets */
}

/* The control stack grows downwards from its end, waves upwards from there. */
struct kfd_save_area_header queue_save_header(const struct queue *q, uint32_t xcc)
{
	struct kfd_save_area_header header = {
		.control_stack_offset = q->control_stack - q->saved_control_stack,
		.control_stack_size = q->saved_control_stack,
		.wave_state_offset = q->control_stack + q->saved_waves,
		.wave_state_size = q->saved_waves,
	};

	(void)xcc; /* PM4 queues run on one, AQL on all; both have all headers */
	return header;
}

/* As the driver does after a suspend; what is not mapped it cannot write, and says nothing. */
void queue_write_save_area(const struct queue *q)
{
	for (uint32_t xcc = 0; xcc < q->device->model->xccs; xcc++) {
		struct kfd_save_area_header header = queue_save_header(q, xcc);

		program_write(q->process, q->cwsr + (uint64_t)xcc * q->cwsr_size, &header, 16);
	}
}
