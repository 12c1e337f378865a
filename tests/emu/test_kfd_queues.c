/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own queues: making, changing and destroying them, and what they execute. */
#include "kfd_world.h"

#include <sys/mman.h>

struct memory {
	struct gpu gpu;
	struct load_queue q; /* for its buffers only */
	struct kfd_create_queue args;
};

/* A queue that exists, and arguments that would make another like it. */
static struct memory prepare(const struct world *w)
{
	struct memory m = {.gpu = load_gpu(w->fd, 0)};

	queue_open(w->fd, &m.gpu, &m.q, KFD_QUEUE_COMPUTE_AQL, 7);
	m.args = (struct kfd_create_queue){
		.ring_base_address = (uint64_t)(uintptr_t)m.q.ring,
		.read_pointer_address = (uint64_t)(uintptr_t)&m.q.results->rptr,
		.write_pointer_address = (uint64_t)(uintptr_t)&m.q.results->wptr,
		.ring_size = 65536,
		.gpu_id = m.gpu.gpu_id,
		.queue_type = KFD_QUEUE_COMPUTE_AQL,
		.queue_percentage = 100,
		.ctx_save_restore_address = (uint64_t)(uintptr_t)m.q.save_area,
		.ctx_save_restore_size = m.gpu.cwsr_size,
		.ctl_stack_size = m.gpu.ctl_stack_size,
	};
	return m;
}

static bool wait_done(const struct load_queue *q)
{
	for (int i = 0; i < 4000 && !queue_is_done(q); i++)
		emulator_sleep_ms(5);
	return queue_is_done(q);
}

static int update(const struct world *w, const struct load_queue *q, uint32_t percent, bool ring)
{
	struct kfd_update_queue args = {.ring_base_address =
						ring ? (uint64_t)(uintptr_t)q->ring : 0,
					.queue_id = q->id,
					.ring_size = 65536,
					.queue_percentage = percent};

	return call(w->fd, KFD_IOC_UPDATE_QUEUE, &args);
}

static int create_with(const struct world *w, struct kfd_create_queue args)
{
	return call(w->fd, KFD_IOC_CREATE_QUEUE, &args);
}

#define REFUSED(error, ...)                                       \
	do {                                                      \
		struct kfd_create_queue args = m.args;            \
		__VA_ARGS__;                                      \
		assert_int_equal(create_with(w, args), -(error)); \
	} while (0)

WORLD_TEST(create_says_what_it_does_not_like)
{
	struct memory m = prepare(w);

	REFUSED(EINVAL, args.queue_percentage = 101);
	REFUSED(EINVAL, args.queue_priority = 16);
	REFUSED(EINVAL, args.ring_size = 65536 - 64);
	REFUSED(EINVAL, args.gpu_id = 5);
	REFUSED(EINVAL, args.ctl_stack_size += 4096);
	REFUSED(EINVAL, args.ctx_save_restore_size -= 4096);
	REFUSED(EINVAL, args.write_pointer_address = 4096);
	REFUSED(EINVAL, args.ring_base_address = 4096);
	REFUSED(EFAULT, args.read_pointer_address = UINT64_MAX - 4096);
	REFUSED(524, args.queue_type = 5);
	assert_int_equal(create_with(w, m.args), 0);
	assert_int_equal(kfd_emu_queues(&w->emu, getpid()), 2);
}

WORLD_TEST(a_queue_needs_the_gpus_memory_first)
{
	uint64_t words[2];
	struct kfd_create_queue args = {.gpu_id = 51110,
					.ring_size = 65536,
					.queue_percentage = 100,
					.read_pointer_address = (uint64_t)(uintptr_t)&words[0],
					.write_pointer_address = (uint64_t)(uintptr_t)&words[1]};
	struct kfd_acquire_vm vm = {.drm_fd = 4000, .gpu_id = 51110};

	assert_int_equal(create_with(w, args), -ESRCH);
	assert_int_equal(call(w->fd, KFD_IOC_ACQUIRE_VM, &vm), -EINVAL);
}

WORLD_TEST(ids_are_reused_from_the_lowest)
{
	struct gpu gpu = load_gpu(w->fd, 0);
	struct load_queue q[3];

	for (uint32_t i = 0; i < 3; i++) {
		queue_open(w->fd, &gpu, &q[i], KFD_QUEUE_SDMA, 7);
		assert_int_equal(q[i].id, i);
	}
	queue_close(w->fd, &q[1]);
	queue_open(w->fd, &gpu, &q[1], KFD_QUEUE_SDMA, 7);
	assert_int_equal(q[1].id, 1);
	for (uint32_t i = 0; i < 3; i++)
		queue_close(w->fd, &q[i]);
}

WORLD_TEST(a_gpu_has_room_for_127_queues_of_a_process)
{
	struct memory m = prepare(w);

	m.args.queue_percentage = 0; /* off: no run list each time */
	for (int i = 1; i < 127; i++)
		assert_int_equal(create_with(w, m.args), 0);
	assert_int_equal(create_with(w, m.args), -ENOSPC);
}

WORLD_AND_MES_TEST(each_type_executes)
{
	static const uint32_t types[] = {KFD_QUEUE_COMPUTE, KFD_QUEUE_SDMA, KFD_QUEUE_COMPUTE_AQL,
					 KFD_QUEUE_SDMA_XGMI};
	struct gpu gpu = load_gpu(w->fd, 0);
	struct load_queue q;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		queue_open(w->fd, &gpu, &q, types[i], 7);
		for (int k = 0; k < 50; k++)
			queue_submit(w->fd, &q, 1);
		assert_true(wait_done(&q));
		assert_true(queue_is_right(&q));
		queue_close(w->fd, &q);
	}
}

WORLD_TEST(a_ring_wraps_around)
{
	struct load_queue *q = own_queue(w);

	for (int i = 0; i < 2500; i++) {
		while (!queue_room(q))
			emulator_sleep_ms(1);
		queue_submit(w->fd, q, 0);
	}
	assert_true(wait_done(q));
	assert_true(queue_is_right(q));
}

WORLD_TEST(nobody_looks_at_a_queue_without_a_doorbell)
{
	struct gpu gpu = load_gpu(w->fd, 0);
	struct load_queue q, other;

	queue_open(w->fd, &gpu, &q, KFD_QUEUE_COMPUTE_AQL, 7);
	queue_submit(w->fd, &q, 1);
	assert_true(wait_done(&q));
	assert_int_equal(kfd_emu_queue_number(&w->emu, getpid(), 0, "rung"), 0); /* it is idle */
	q.ring[1] = q.ring[0];
	q.results->wptr = 2;
	q.submitted = 2;
	emulator_sleep_ms(50);
	assert_int_equal(q.results->completed, 1);
	queue_open(w->fd, &gpu, &other, KFD_QUEUE_COMPUTE_AQL, 7); /* maps all again */
	assert_true(wait_done(&q));
	queue_close(w->fd, &other);
	queue_close(w->fd, &q);
}

WORLD_TEST(memory_that_is_gone_stops_the_queue_only)
{
	struct gpu gpu = load_gpu(w->fd, 0);
	struct load_queue bad, good;
	struct kfd_emu_packet *ring;

	queue_open(w->fd, &gpu, &bad, KFD_QUEUE_COMPUTE_AQL, 7);
	queue_open(w->fd, &gpu, &good, KFD_QUEUE_COMPUTE_AQL, 7);
	ring = bad.ring;
	queue_submit(w->fd, &bad, 200);
	ring[0].accumulator = 16; /* read at the end; fetched already or not, both end in a fault */
	queue_submit(w->fd, &bad, 1);
	munmap(ring, 65536);
	for (int i = 0; i < 50; i++)
		queue_submit(w->fd, &good, 1);
	assert_true(wait_done(&good));
	assert_true(queue_is_right(&good));
	wait_sum(w, getpid(), "faulted", 1);
}

WORLD_AND_MES_TEST(percentage_zero_or_no_ring_is_off)
{
	struct memory m = prepare(w);

	for (int by_ring = 0; by_ring < 2; by_ring++) {
		assert_int_equal(update(w, &m.q, by_ring ? 100 : 0, !by_ring), 0);
		queue_submit(w->fd, &m.q, 1);
		emulator_sleep_ms(50);
		assert_false(queue_is_done(&m.q));
		assert_int_equal(update(w, &m.q, 100, true), 0);
		assert_true(wait_done(&m.q));
	}
	assert_true(queue_is_right(&m.q));
	m.q.id = 9;
	assert_int_equal(update(w, &m.q, 100, true), -EFAULT);
	m.q.id = 0;
	assert_int_equal(update(w, &m.q, 101, true), -EINVAL);
	queue_close(w->fd, &m.q);
}

/* As KFDCWSRTest does: the result is that of a queue that was never touched. */
WORLD_AND_MES_TEST(forced_saves_change_no_result)
{
	struct memory m = prepare(w);

	for (int i = 0; i < 200; i++)
		queue_submit(w->fd, &m.q, 7);
	while (!queue_is_done(&m.q)) {
		assert_int_equal(update(w, &m.q, 0, true), 0);
		assert_int_equal(update(w, &m.q, 100, true), 0);
		emulator_sleep_ms(2);
	}
	assert_true(queue_is_right(&m.q));
	assert_true(kfd_emu_queue_number(&w->emu, getpid(), 0, "saved") > 0);
	queue_close(w->fd, &m.q);
}

WORLD_TEST(a_wave_state_is_that_of_a_queue_that_is_off)
{
	struct memory m = prepare(w);
	struct kfd_save_area_header header = {0};
	struct kfd_get_queue_wave_state args = {.ctl_stack_address = (uint64_t)(uintptr_t)&header};

	assert_int_equal(call(w->fd, KFD_IOC_GET_QUEUE_WAVE_STATE, &args), -EINVAL);
	queue_submit(w->fd, &m.q, 100000);
	assert_int_equal(update(w, &m.q, 0, true), 0);
	assert_int_equal(call(w->fd, KFD_IOC_GET_QUEUE_WAVE_STATE, &args), 0);
	assert_true(args.save_area_used_size > 0);
	assert_int_equal(header.wave_state_size, args.save_area_used_size);
	args.queue_id = 7;
	assert_int_equal(call(w->fd, KFD_IOC_GET_QUEUE_WAVE_STATE, &args), -EFAULT);
	queue_close(w->fd, &m.q);
}

static int set_mask(const struct world *w, uint32_t id, uint32_t bits, uint32_t mask)
{
	uint32_t words[32] = {mask};
	struct kfd_set_cu_mask args = {
		.queue_id = id, .num_cu_mask = bits, .cu_mask_ptr = (uint64_t)(uintptr_t)words};

	return call(w->fd, KFD_IOC_SET_CU_MASK, &args);
}

WORLD_TEST(masks_are_checked)
{
	struct memory m = prepare(w);

	assert_int_equal(set_mask(w, 0, 0, 1), -EINVAL);
	assert_int_equal(set_mask(w, 0, 33, 1), -EINVAL);
	assert_int_equal(set_mask(w, 3, 32, 1), -EFAULT);
	assert_int_equal(set_mask(w, 0, 32, 1), 0);
	queue_close(w->fd, &m.q);
}

/* gfx11 has CUs in pairs, and takes half of them for a debugger. */
MES_TEST(on_gfx11_a_mask_and_a_debugger_exclude_each_other)
{
	struct memory m;
	struct kfd_runtime_info info = {0};

	load_runtime(w->fd, true);
	m = prepare(w);
	assert_int_equal(set_mask(w, 0, 32, 1), -EINVAL);
	assert_int_equal(dbg_enable(w, getpid(), &info), 0);
	assert_int_equal(set_mask(w, 0, 32, 3), -EBUSY);
	assert_int_equal(dbg_disable(w, getpid()), 0);
	assert_int_equal(set_mask(w, 0, 32, 3), 0);
	assert_int_equal(dbg_enable(w, getpid(), &info), 0);
	assert_int_equal(info.runtime_state, KFD_RUNTIME_BUSY);
	assert_int_equal(dbg_disable(w, getpid()), 0);
	assert_int_equal(kfd_emu_process_number(&w->emu, getpid(), "runtime_state"),
			 KFD_RUNTIME_ENABLED);
	queue_close(w->fd, &m.q);
}
