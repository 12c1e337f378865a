/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "emu/kfd/load_queue.h"
#include "queue.h"

#define QUEUES   64
#define GPUS     4
#define DONE_S   60 /* for what must come */
#define STEPS    10 /* of a packet: 1 ms by default */
#define ALL_SEEN 1024

static struct load_queue queues[QUEUES];
static struct gpu gpus[GPUS];

long make_queue(long type_and_gpu)
{
	struct gpu *gpu = &gpus[type_and_gpu >> 8];
	struct load_queue q;

	if (!gpu->gpu_id)
		*gpu = load_gpu(kfd_fd(), (uint32_t)(type_and_gpu >> 8));
	queue_open(kfd_fd(), gpu, &q, (uint32_t)(type_and_gpu & 0xff), 7);
	queues[q.id] = q;
	return q.id;
}

long destroy_queue(long id)
{
	struct kfd_destroy_queue args = {.queue_id = (uint32_t)id};

	return kfd_ioctl(KFD_IOC_DESTROY_QUEUE, &args);
}

long set_percent(long id_and_percent)
{
	struct kfd_update_queue args = {
		.queue_id = (uint32_t)(id_and_percent & 0xffff),
		.queue_percentage = (uint32_t)(id_and_percent >> 16),
		.ring_size = 65536,
	};

	args.ring_base_address = (uintptr_t)queues[args.queue_id % QUEUES].ring;
	return kfd_ioctl(KFD_IOC_UPDATE_QUEUE, &args);
}

long submit_work(long id_and_packets)
{
	struct load_queue *q = &queues[id_and_packets & 0xffff];

	for (long i = 0; i < id_and_packets >> 16; i++)
		queue_submit(kfd_fd(), q, STEPS);
	return (long)q->submitted;
}

long work_done(long id)
{
	return (long)queues[id].results->completed;
}

long work_is_right(long id)
{
	time_t until = time(NULL) + DONE_S;

	while (!queue_is_done(&queues[id]) && time(NULL) < until)
		usleep(1000);
	return queue_is_right(&queues[id]);
}

long ring_address(long id)
{
	return (long)(uintptr_t)queues[id].ring;
}

long save_area_address(long id)
{
	return (long)(uintptr_t)queues[id].save_area;
}

long waves_saved(long id)
{
	const struct kfd_save_area_header *header = queues[id].save_area;

	return header->wave_state_size > 0;
}

long see_queues(long pid)
{
	static struct kfd_queue_snapshot_entry entries[ALL_SEEN];
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_GET_QUEUE_SNAPSHOT};
	long rc;

	args.queue_snapshot.exception_mask = KFD_EC_QUEUE_NEW;
	args.queue_snapshot.snapshot_buf_ptr = (uintptr_t)entries;
	args.queue_snapshot.num_queues = ALL_SEEN;
	args.queue_snapshot.entry_size = sizeof(entries[0]);
	rc = trap(&args);
	return rc < 0 ? rc : (long)args.queue_snapshot.num_queues;
}

struct peer peer_start_queues(unsigned n, bool seen)
{
	struct peer p = peer_start_ready();

	for (unsigned i = 0; i < n; i++)
		must("queue", peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL));
	if (seen)
		must("snapshot", see_queues(p.pid));
	dots_seen();
	return p;
}

struct peer peer_start_new_queue(void)
{
	return peer_start_queues(1, false);
}

struct peer peer_start_seen_queue(void)
{
	return peer_start_queues(1, true);
}

struct peer peer_start_two_seen_queues(void)
{
	return peer_start_queues(2, true);
}

static void say_bits(long rc, unsigned n, const uint32_t *ids)
{
	say_answer(rc);
	for (unsigned i = 0; i < n; i++)
		say("%x", ids[i]);
}

void say_suspend(pid_t pid, uint64_t clear, unsigned n, const uint32_t *ids)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_SUSPEND_QUEUES};
	uint32_t copy[QUEUES];

	memcpy(copy, ids, n * sizeof(*ids));
	args.suspend_queues.exception_mask = clear;
	args.suspend_queues.queue_array_ptr = (uintptr_t)copy;
	args.suspend_queues.num_queues = n;
	args.suspend_queues.grace_period = KFD_GRACE_DEFAULT;
	say_bits(trap(&args), n, copy);
}

void say_resume(pid_t pid, unsigned n, const uint32_t *ids)
{
	uint32_t copy[QUEUES];

	memcpy(copy, ids, n * sizeof(*ids));
	say_bits(resume(pid, copy, n), n, copy);
}
