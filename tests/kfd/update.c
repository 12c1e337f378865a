/* SPDX-License-Identifier: Apache-2.0 */
/* What a program can do with its own queues: UPDATE_QUEUE, SET_CU_MASK; and a session with itself,
 * or beside its debugger's. */
#include <sys/mman.h>

#include "queue.h"

#define AQL        KFD_QUEUE_COMPUTE_AQL
#define RING_SIZE  65536u
#define NO_QUEUE   77u
#define NOT_USER   0xffff800000000000ull
#define MASK_BYTES (1024u / 8)

static long update(uint32_t id, uint64_t ring, uint32_t size, uint32_t percent, uint32_t priority)
{
	struct kfd_update_queue args = {.queue_id = id,
					.ring_base_address = ring,
					.ring_size = size,
					.queue_percentage = percent,
					.queue_priority = priority};

	return kfd_ioctl(KFD_IOC_UPDATE_QUEUE, &args);
}

/* What is wrong by itself is told before the queue is looked for, and in this order. */
KFD_CASE(update_that_is_wrong, "1.3", 0, "EFAULT EINVAL EINVAL EFAULT EINVAL EFAULT EFAULT EINVAL")
{
	say_answer(update(NO_QUEUE, 0, RING_SIZE, 100, 15));
	say_answer(update(NO_QUEUE, 0, RING_SIZE, 101, 15));
	say_answer(update(NO_QUEUE, 0, RING_SIZE, 100, 16));
	say_answer(update(NO_QUEUE, NOT_USER, 3, 100, 15));
	say_answer(update(NO_QUEUE, 0, 3, 100, 15));
	say_answer(update(NO_QUEUE, 0, 0, 0, 0));
	say_answer(update(NO_QUEUE, 0, RING_SIZE, 0x200 | 100, 15)); /* an XCC */
	say_answer(update(NO_QUEUE, 0, RING_SIZE, 0x200 | 101, 15));
}

static void say_whether_it_runs(long id)
{
	long before = work_done(id);

	submit_work(WITH(id, 1));
	for (int i = 0; i < 200 && work_done(id) == before; i++)
		usleep(1000);
	say("%s", work_done(id) == before ? "stands" : "runs");
}

/* A ring that the GPU does not have is refused, and changes nothing. */
KFD_CASE(update_with_another_ring, "1.3", NEEDS_GPU, "EFAULT runs")
{
	long id = must("queue", make_queue(AQL));
	void *gone = mmap(NULL, RING_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(gone, RING_SIZE);
	say_answer(update((uint32_t)id, (uintptr_t)gone, RING_SIZE, 0, 7));
	say_whether_it_runs(id);
}

KFD_CASE(update_stops_and_starts, "1.3", NEEDS_GPU, "0 stands 0 right 0 stands 0 right")
{
	long id = must("queue", make_queue(AQL));
	uint64_t ring = (uint64_t)ring_address(id);

	say_answer(update((uint32_t)id, ring, RING_SIZE, 0, 7));
	say_whether_it_runs(id);
	say_answer(update((uint32_t)id, ring, RING_SIZE, 100, 7));
	say("%s", work_is_right(id) ? "right" : "wrong");
	say_answer(update((uint32_t)id, 0, RING_SIZE, 100, 7)); /* no ring is as good as 0 % */
	say_whether_it_runs(id);
	say_answer(update((uint32_t)id, ring, RING_SIZE, 100, 7));
	say("%s", work_is_right(id) ? "right" : "wrong");
}

/* DESTROY_QUEUE does not wait, as it would for a queue that a debugger has suspended. */
KFD_CASE(destroyed_while_at_0_percent, "1.3", NEEDS_GPU, "0 0 EFAULT")
{
	long id = must("queue", make_queue(AQL));

	say_answer(update((uint32_t)id, (uint64_t)ring_address(id), RING_SIZE, 0, 7));
	say_answer(destroy_queue(id));
	say_answer(update((uint32_t)id, (uint64_t)ring_address(id), RING_SIZE, 100, 7));
}

static long set_mask(uint32_t id, uint32_t bits, const void *mask)
{
	struct kfd_set_cu_mask args = {
		.queue_id = id, .num_cu_mask = bits, .cu_mask_ptr = (uintptr_t)mask};

	return kfd_ioctl(KFD_IOC_SET_CU_MASK, &args);
}

KFD_CASE(mask_that_is_wrong, "1.3", 0, "EINVAL EINVAL EFAULT EFAULT EFAULT")
{
	static const uint32_t all[MASK_BYTES / 4];

	say_answer(set_mask(NO_QUEUE, 0, all));
	say_answer(set_mask(NO_QUEUE, 33, all));
	say_answer(set_mask(NO_QUEUE, 32, bad_pointer()));
	say_answer(set_mask(NO_QUEUE, 32, all));
	say_answer(set_mask(NO_QUEUE, 0x80000000u, all)); /* what is too much is not read */
}

KFD_CASE(mask_is_taken, "1.3", NEEDS_GPU | NEEDS_HWS, "0 runs 0")
{
	uint32_t mask[MASK_BYTES / 4] = {0xffff};
	long id = must("queue", make_queue(AQL));

	say_answer(set_mask((uint32_t)id, 64, mask));
	say_whether_it_runs(id);
	mask[0] = 0x5; /* halves of pairs */
	say_answer(set_mask((uint32_t)id, 64, mask));
}

KFD_CASE_AGAIN(mask_parts_no_pair, mask_is_taken, none, "1.3", NEEDS_GPU | NEEDS_MES,
	       "0 runs EINVAL")

static long count_own(long unused)
{
	(void)unused;
	return count_queues(getpid());
}

static long enable_own(long unused)
{
	(void)unused;
	return enable(getpid());
}

static long disable_own(long unused)
{
	(void)unused;
	return disable(getpid());
}

/* It may use the session of its debugger, and is refused one of its own, which the debugger does
 * not notice; but it can end it. */
PEER_CASE(own_session_beside_a_debugger, debugged, "2.2", NEEDS_NEW_RULE, "0 EALREADY 0 0 0 EPERM")
{
	SAY_ANSWERS(peer_call(&p, count_own, 0), peer_call(&p, enable_own, 0), count_queues(p.pid));
	must("detach", detach(p.pid));
	SAY_ANSWERS(count_queues(p.pid), peer_call(&p, disable_own, 0), count_queues(p.pid));
}
