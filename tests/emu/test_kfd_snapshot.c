/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of queues and devices, and events. */
#include "kfd_world.h"

static int snapshot(const struct world *w, pid_t pid, void *buffer, uint32_t *count, uint32_t *size)
{
	struct kfd_dbg_trap args = {
		.queue_snapshot = {.snapshot_buf_ptr = (uint64_t)(uintptr_t)buffer,
				   .exception_mask = KFD_EC_QUEUE_NEW,
				   .num_queues = *count,
				   .entry_size = *size}};
	int result = dbg(w->fd, pid, KFD_DBG_GET_QUEUE_SNAPSHOT, &args);

	*count = args.queue_snapshot.num_queues;
	*size = args.queue_snapshot.entry_size;
	return result;
}

WORLD_TEST(a_snapshot_tells_everything_newest_first)
{
	struct kfd_queue_snapshot_entry entries[3] = {0};
	pid_t pid = attach_load(w, "3");

	assert_int_equal(dbg_snapshot(w, pid, 0, entries, 3), 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(entries[i].queue_id, 2 - i);
		assert_int_equal(entries[i].exception_status, KFD_EC_QUEUE_NEW);
		assert_int_equal(entries[i].queue_type, KFD_QUEUE_COMPUTE_AQL);
		assert_int_equal(entries[i].gpu_id, 51110);
		assert_int_equal(entries[i].ring_size, 65536);
		assert_true(entries[i].ring_base_address && entries[i].write_pointer_address);
		assert_int_equal(entries[i].write_pointer_address,
				 entries[i].read_pointer_address + 8);
		assert_true(entries[i].ctx_save_restore_area_size > 60u << 20);
	}
}

WORLD_TEST(exceptions_are_reported_before_they_are_cleared)
{
	struct kfd_queue_snapshot_entry entries[3] = {0};
	pid_t pid = attach_load(w, "3");

	assert_int_equal(dbg_snapshot(w, pid, KFD_EC_QUEUE_NEW, entries, 2), 3);
	assert_int_equal(entries[1].exception_status, KFD_EC_QUEUE_NEW);
	assert_int_equal(dbg_snapshot(w, pid, 0, entries, 3), 3);
	assert_int_equal(entries[0].exception_status, 0);
	assert_int_equal(entries[1].exception_status, 0);
	assert_int_equal(entries[2].exception_status, KFD_EC_QUEUE_NEW); /* had no room */
}

WORLD_TEST(entries_are_as_far_apart_as_the_caller_says)
{
	pid_t pid = attach_load(w, "2");
	uint32_t count = 2, size = 80, ids[40] = {0};

	assert_int_equal(snapshot(w, pid, ids, &count, &size), 0);
	assert_int_equal(size, 64);
	assert_int_equal(ids[10], 1);
	assert_int_equal(ids[20 + 10], 0);
	assert_int_equal(ids[20 + 11], 51110);
	memset(ids, 0xff, sizeof(ids));
	count = 2, size = 44; /* without gpu_id and what follows */
	assert_int_equal(snapshot(w, pid, ids, &count, &size), 0);
	assert_int_equal(size, 44);
	assert_int_equal(ids[10], 1);
	assert_int_equal(ids[11 + 10], 0);
	assert_int_equal(ids[22], UINT32_MAX);
}

WORLD_TEST(a_bad_buffer_ends_a_snapshot_where_it_is)
{
	pid_t pid = attach_load(w, "3");
	uint32_t count = 3, size = 0;
	char *page = (char *)aligned_alloc(4096, 4096);

	assert_int_equal(snapshot(w, pid, page, &count, &size), -EINVAL);
	assert_int_equal(count, 0);
	count = 3, size = 64;
	assert_int_equal(snapshot(w, pid, NULL, &count, &size), -EFAULT);
	assert_int_equal(count, 0);
	count = 0;
	assert_int_equal(snapshot(w, pid, NULL, &count, &size), 0);
	assert_int_equal(count, 3);
	free(page);
}

static int set_up_two(void **state)
{
	return set_up_with(state, "mi300x", "--gpu", "navi31");
}

WITH_TEST(a_device_snapshot_has_all_gpus, set_up_two)
{
	struct kfd_device_snapshot_entry entries[3] = {0};
	struct kfd_dbg_trap args = {.device_snapshot = {.num_devices = 3, .entry_size = 200}};

	enable_self(w);
	assert_int_equal(dbg(w->fd, getpid(), KFD_DBG_GET_DEVICE_SNAPSHOT, &args), -EINVAL);
	args.device_snapshot.snapshot_buf_ptr = (uint64_t)(uintptr_t)entries;
	args.device_snapshot.num_devices = 3;
	args.device_snapshot.entry_size = sizeof(entries[0]);
	assert_int_equal(dbg(w->fd, getpid(), KFD_DBG_GET_DEVICE_SNAPSHOT, &args), 0);
	assert_int_equal(args.device_snapshot.num_devices, 2);
	assert_int_equal(args.device_snapshot.entry_size, sizeof(entries[0]));
	assert_int_equal(entries[0].gfx_target_version, 90402);
	assert_int_equal(entries[0].num_xcc, 8);
	assert_int_equal(entries[1].gfx_target_version, 110000);
	assert_int_equal(entries[1].capability & KFD_CAP_DEBUG, KFD_CAP_DEBUG);
	assert_int_equal(entries[2].gpu_id, 0);
}

static int notifications(const struct world *w)
{
	char bytes[64];
	ssize_t n = read(w->pipe[0], bytes, sizeof(bytes));

	return n < 0 ? 0 : (int)n;
}

WORLD_TEST(new_and_deleted_queues_are_told)
{
	struct gpu gpu = load_gpu(w->fd, 0);
	struct load_queue q;

	enable_self(w);
	queue_open(w->fd, &gpu, &q, KFD_QUEUE_COMPUTE_AQL, 7);
	assert_int_equal(notifications(w), 1);
	queue_close(w->fd, &q);
	assert_int_equal(notifications(w), 1);
	assert_int_equal(dbg_query(w, getpid(), UINT64_MAX), KFD_EC_QUEUE_DELETE);
	assert_int_equal(dbg_query(w, getpid(), UINT64_MAX), -EAGAIN);
}

/* Bits are set without a subscriber; a later subscriber is told once. */
WORLD_TEST(what_was_raised_before_is_told_when_it_is_wanted)
{
	struct kfd_dbg_trap args = {.enable = {.dbg_fd = (uint32_t)w->pipe[1]}};

	own_queue(w);
	assert_int_equal(dbg(w->fd, getpid(), KFD_DBG_ENABLE, &args), 0);
	assert_int_equal(dbg_query(w, getpid(), 0), -EAGAIN);
	assert_int_equal(notifications(w), 0);
	args.set_exceptions_enabled.exception_mask = KFD_EC_QUEUE_NEW;
	assert_int_equal(dbg(w->fd, getpid(), KFD_DBG_SET_EXCEPTIONS_ENABLED, &args), 0);
	assert_int_equal(notifications(w), 1);
	assert_int_equal(dbg_query(w, getpid(), 0), KFD_EC_QUEUE_NEW);
}

/* The device itself, as libhsakmt passes it: accepted, and useless. */
WORLD_TEST(only_a_pipe_is_written_to)
{
	struct kfd_dbg_trap args = {
		.enable = {.dbg_fd = (uint32_t)w->fd, .exception_mask = KFD_EC_QUEUE_NEW}};

	assert_int_equal(dbg(w->fd, getpid(), KFD_DBG_ENABLE, &args), 0);
	own_queue(w);
	assert_int_equal(kfd_emu_count(&w->emu, "notifications"), 0);
	assert_int_equal(kfd_emu_count(&w->emu, "lost_notifications"), 1);
	assert_int_equal(dbg_query(w, getpid(), 0), KFD_EC_QUEUE_NEW);
}
