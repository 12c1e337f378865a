/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: how they come and go, and what a debugger is shown of them. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "queue.h"

#define AQL       KFD_QUEUE_COMPUTE_AQL
#define UNTOUCHED 0x5a

static void ids_are_the_lowest_free(void)
{
	for (int i = 0; i < 3; i++)
		say("%s", answer(make_queue(AQL)));
	say("%s", answer(destroy_queue(1)));
	say("%s", answer(make_queue(AQL)));
	say("%s", answer(make_queue(AQL)));
}

static void ids_are_the_process_s(void)
{
	struct peer p = peer_start_queues(2, false);

	say("%s", answer(make_queue(AQL)));
	say("%s", answer(destroy_queue(1)));
	say("%s", answer(peer_call(&p, destroy_queue, 1)));
}

static void no_such_queue(void)
{
	make_queue(AQL);
	say("%s", answer(destroy_queue(5)));
	say("%s", answer(set_percent(WITH(5, 100))));
}

static void runtime_with_queues(void)
{
	make_queue(AQL);
	say("%s", answer(set_runtime(KFD_RUNTIME_ENABLE_MODE_ENABLE)));
	say("%s", answer(destroy_queue(0)));
	say("%s", answer(set_runtime(KFD_RUNTIME_ENABLE_MODE_ENABLE)));
}

static long create(struct kfd_create_queue args, uint32_t gpu_id)
{
	if (!args.gpu_id)
		args.gpu_id = gpu_id;
	if (!args.ring_size)
		args.ring_size = 4096;
	return kfd_ioctl(KFD_IOC_CREATE_QUEUE, &args);
}

static uint32_t first_gpu(void)
{
	uint64_t apertures[7 * 8] = {0};
	struct kfd_process_apertures args = {.apertures_ptr = (uintptr_t)apertures,
					     .num_of_nodes = 1};

	must("apertures", kfd_ioctl(KFD_IOC_GET_PROCESS_APERTURES, &args));
	return (uint32_t)apertures[6];
}

static void bad_queues(void)
{
	uint32_t gpu = first_gpu();

	say("%s", answer(create((struct kfd_create_queue){.queue_percentage = 101}, gpu)));
	say("%s", answer(create((struct kfd_create_queue){.queue_priority = 16}, gpu)));
	say("%s", answer(create((struct kfd_create_queue){.ring_size = 3000}, gpu)));
	say("%s", answer(create((struct kfd_create_queue){.ring_base_address = 1ull << 63}, gpu)));
	say("%s", answer(create((struct kfd_create_queue){.queue_type = 5}, gpu)));
	say("%s", answer(create((struct kfd_create_queue){.gpu_id = 0x1234}, gpu)));
	say("%s", answer(create((struct kfd_create_queue){0}, gpu)));
}

struct snapshot {
	long rc;
	uint32_t count, size;
	struct kfd_queue_snapshot_entry entry[8];
};

static struct snapshot look(pid_t pid, uint32_t room, uint64_t clear)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_GET_QUEUE_SNAPSHOT};
	struct snapshot s;

	memset(&s, UNTOUCHED, sizeof(s));
	args.queue_snapshot.exception_mask = clear;
	args.queue_snapshot.snapshot_buf_ptr = (uintptr_t)s.entry;
	args.queue_snapshot.num_queues = room;
	args.queue_snapshot.entry_size = sizeof(s.entry[0]);
	s.rc = trap(&args);
	s.count = args.queue_snapshot.num_queues;
	s.size = args.queue_snapshot.entry_size;
	return s;
}

/* Ids and whether they are NEW. */
static void say_look(pid_t pid, uint32_t room, uint64_t clear)
{
	struct snapshot s = look(pid, room, clear);

	say("%s,%u:", answer(s.rc), s.count);
	for (uint32_t i = 0; i < room && i < s.count; i++)
		say("%u%s", s.entry[i].queue_id,
		    s.entry[i].exception_status & KFD_EC_QUEUE_NEW ? "N" : "");
}

static void every_queue_is_new(void)
{
	struct peer p = peer_start_seized();

	peer_call(&p, make_queue, AQL);
	must("enable", enable(p.pid));
	say_look(p.pid, 8, 0);
	peer_call(&p, make_queue, AQL);
	say_look(p.pid, 8, 0);
}

static void snapshot_clears_what_it_is_told_to(void)
{
	struct peer p = peer_start_queues(3, false);

	say_look(p.pid, 8, KFD_EC_QUEUE_DELETE);
	say_look(p.pid, 1, KFD_EC_QUEUE_NEW);
	say_look(p.pid, 0, KFD_EC_QUEUE_NEW);
	say_look(p.pid, 8, KFD_EC_QUEUE_NEW);
	say_look(p.pid, 8, 0);
}

static void what_does_not_fit_is_counted(void)
{
	struct peer p = peer_start_queues(3, true);
	struct snapshot s = look(p.pid, 2, 0);

	say("%s,%u", answer(s.rc), s.count);
	say("%s", s.entry[2].queue_id == UNTOUCHED * 0x1010101u ? "kept" : "written");
}

static void fields_of_the_snapshot(void)
{
	struct peer p = peer_start_queues(1, true);
	struct kfd_queue_snapshot_entry e = look(p.pid, 8, 0).entry[0];

	say("%d", e.ring_base_address == (uint64_t)peer_call(&p, ring_address, 0));
	say("%d", e.ctx_save_restore_address == (uint64_t)peer_call(&p, save_area_address, 0));
	say("%d", e.write_pointer_address == e.read_pointer_address + 8);
	say("%d", e.gpu_id == first_gpu());
	say("%u %u", e.ring_size, e.queue_type);
	say("%d %u", e.ctx_save_restore_area_size > 0, e.reserved);
}

static void types_of_queues(void)
{
	struct peer p = peer_start_queues(0, false);
	struct snapshot s;

	peer_call(&p, make_queue, KFD_QUEUE_COMPUTE);
	peer_call(&p, make_queue, KFD_QUEUE_SDMA);
	peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL);
	s = look(p.pid, 8, 0);
	for (uint32_t i = 0; i < s.count; i++)
		say("%u", s.entry[i].queue_type);
}

static void say_strided(pid_t pid, uint32_t stride)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_GET_QUEUE_SNAPSHOT};
	unsigned char buffer[2][512];
	unsigned written = 0;
	uint32_t second;
	long rc = 0;

	/* Twice, with other bytes below: an address may have any byte in it. */
	for (unsigned i = 0; i < 2 && !rc; i++) {
		memset(buffer[i], i ? ~UNTOUCHED : UNTOUCHED, sizeof buffer[i]);
		args.queue_snapshot.snapshot_buf_ptr = (uintptr_t)buffer[i];
		args.queue_snapshot.num_queues = 2;
		args.queue_snapshot.entry_size = stride;
		rc = trap(&args);
	}
	say("%s", answer(rc));
	for (unsigned i = 0; i < stride; i++)
		written += buffer[0][i] == buffer[1][i];
	memcpy(&second, buffer[0] + stride + offsetof(struct kfd_queue_snapshot_entry, queue_id),
	       4);
	say("%u,%u,%u", args.queue_snapshot.entry_size, written, second);
}

static void entries_are_strided(void)
{
	struct peer p = peer_start_queues(2, true);

	say_strided(p.pid, 100);
	say_strided(p.pid, 64);
	say_strided(p.pid, 48);
}

/* The first entry fits, the second would begin where there is nothing; it is no longer NEW. */
static void buffer_ends_too_early(void)
{
	struct peer p = peer_start_queues(3, false);
	struct kfd_dbg_trap args = {.pid = (uint32_t)p.pid, .op = KFD_DBG_GET_QUEUE_SNAPSHOT};
	long rc;
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(two + 4096, 4096);
	args.queue_snapshot.exception_mask = KFD_EC_QUEUE_NEW;
	args.queue_snapshot.snapshot_buf_ptr = (uintptr_t)two + 4096 - 64;
	args.queue_snapshot.num_queues = 3;
	args.queue_snapshot.entry_size = 64;
	rc = trap(&args);
	say("%s,%u", answer(rc), args.queue_snapshot.num_queues);
	say_look(p.pid, 8, 0);
}

static void destroyed_is_gone(void)
{
	struct peer p = peer_start_queues(3, true);

	say("%s", answer(peer_call(&p, destroy_queue, 1)));
	say_look(p.pid, 8, 0);
}

static void disable_clears_new(void)
{
	struct peer p = peer_start_queues(2, false);

	disable(p.pid);
	must("enable", enable(p.pid));
	say_look(p.pid, 8, 0);
}

static void say_event(pid_t pid, uint64_t clear)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_QUERY_DEBUG_EVENT};
	long rc;

	args.query_debug_event.exception_mask = clear;
	rc = trap(&args);
	say("%s,%lx,%s,%u", answer(rc), args.query_debug_event.exception_mask,
	    args.query_debug_event.gpu_id == first_gpu() ? "gpu" : "-",
	    args.query_debug_event.queue_id);
}

static void event_of_a_new_queue(void)
{
	struct peer p = peer_start_queues(0, false);

	peer_call(&p, make_queue, AQL);
	peer_call(&p, make_queue, AQL);
	say("dots=%s", answer(wait_for_dots(10000) + wait_for_dots(100)));
	say_event(p.pid, 0);
	say_event(p.pid, KFD_EC_QUEUE_NEW);
	say_event(p.pid, KFD_EC_QUEUE_NEW);
	say_event(p.pid, 0);
}

static void event_of_a_destroyed_queue(void)
{
	struct peer p = peer_start_queues(1, true);

	peer_call(&p, destroy_queue, 0);
	say("dots=%s", answer(wait_for_dots(10000)));
	say_event(p.pid, KFD_EC_QUEUE_DELETE);
	say_event(p.pid, 0);
}

static void order_of_events(void)
{
	struct peer p = peer_start_queues(1, true);

	peer_call(&p, destroy_queue, 0);
	peer_call(&p, make_queue, AQL);
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	peer_call(&p, set_runtime, 0);
	say_event(p.pid, UINT64_MAX);
	say_event(p.pid, UINT64_MAX);
	say_event(p.pid, UINT64_MAX);
	say_event(p.pid, UINT64_MAX);
}

/* Nobody is told of what was there before; subscribing again does tell. */
static void pending_events_at_enable(void)
{
	struct peer p = peer_start_seized();
	struct kfd_dbg_trap args = {.pid = (uint32_t)p.pid, .op = KFD_DBG_SET_EXCEPTIONS_ENABLED};

	peer_call(&p, make_queue, AQL);
	must("enable", enable(p.pid));
	say("dots=%s", answer(dots_seen()));
	say_event(p.pid, 0);
	args.set_exceptions_enabled.exception_mask = KFD_EC_QUEUE_NEW;
	trap(&args);
	say("dots=%s", answer(dots_seen()));
}

static void say_info(pid_t pid, bool clear)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_QUERY_EXCEPTION_INFO};
	char info[64];
	long rc;

	args.query_exception_info.info_ptr = (uintptr_t)info;
	args.query_exception_info.info_size = sizeof(info);
	args.query_exception_info.exception_code = 31; /* EC_QUEUE_NEW, of queue 0 */
	args.query_exception_info.clear_exception = clear;
	rc = trap(&args);
	say("%s,%u", answer(rc), args.query_exception_info.info_size);
}

static void info_of_a_new_queue(void)
{
	struct peer p = peer_start_queues(1, false);

	say_info(p.pid, false);
	say_info(p.pid, true);
	say_info(p.pid, false);
	say_look(p.pid, 8, 0);
}

static void device_snapshot(void)
{
	struct peer p = peer_start_queues(1, true);
	struct kfd_dbg_trap args = {.pid = (uint32_t)p.pid, .op = KFD_DBG_GET_DEVICE_SNAPSHOT};
	struct kfd_device_snapshot_entry entry = {0};

	peer_call(&p, destroy_queue, 0);
	for (int i = 0; i < 2; i++) {
		args.device_snapshot.exception_mask = KFD_EC_QUEUE_DELETE;
		args.device_snapshot.snapshot_buf_ptr = (uintptr_t)&entry;
		args.device_snapshot.num_devices = 1;
		args.device_snapshot.entry_size = sizeof(entry);
		say("%s", answer(trap(&args)));
		say("%u", args.device_snapshot.entry_size);
		say("%lx,%d,%x", entry.exception_status, entry.gpu_id == first_gpu(),
		    entry.vendor_id);
	}
	args.device_snapshot.snapshot_buf_ptr = (uintptr_t)bad_pointer();
	say("%s", answer(trap(&args)));
}

static void say_file(pid_t pid, const char *name)
{
	char path[512], text[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/%d/queues/%s", kfd_sysfs, pid, name);
	f = fopen(path, "r");
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	say("%s", f ? text : "-");
}

static void sysfs_queues(void)
{
	struct peer p = peer_start_queues(1, false);

	peer_call(&p, make_queue, KFD_QUEUE_SDMA);
	say_file(p.pid, "0/type");
	say_file(p.pid, "0/size");
	say_file(p.pid, "1/type");
	peer_call(&p, destroy_queue, 1);
	say_file(p.pid, "1/type");
}

#define NEW_QUEUE "0,40000000,gpu,"

const struct kfd_case queue_cases[] = {
	{"ids_are_the_lowest_free", "1.3", NEEDS_GPU, "0 1 2 0 1 3", ids_are_the_lowest_free},
	{"ids_are_the_process_s", "1.3", NEEDS_GPU, "0 EINVAL 0", ids_are_the_process_s},
	{"no_such_queue", "1.3", NEEDS_GPU, "EINVAL EFAULT", no_such_queue},
	{"runtime_with_queues", "2.4", NEEDS_GPU, "EEXIST 0 0", runtime_with_queues},
	{"bad_queues", "1.3", NEEDS_GPU, "EINVAL EINVAL EINVAL EFAULT -524 EINVAL ESRCH",
	 bad_queues},
	{"every_queue_is_new", "0.3", NEEDS_GPU, "0,1: 0N 0,2: 1N 0N", every_queue_is_new},
	{"snapshot_clears_what_it_is_told_to", "4", NEEDS_GPU,
	 "0,3: 2N 1N 0N 0,3: 2N 0,3: 0,3: 2 1N 0N 0,3: 2 1 0", snapshot_clears_what_it_is_told_to},
	{"what_does_not_fit_is_counted", "4", NEEDS_GPU, "0,3 kept", what_does_not_fit_is_counted},
	{"fields_of_the_snapshot", "1.3", NEEDS_GPU, "1 1 1 1 65536 2 1 0", fields_of_the_snapshot},
	{"types_of_queues", "1.3", NEEDS_GPU, "2 1 0", types_of_queues},
	{"entries_are_strided", "4", NEEDS_GPU, "0 64,64,0 0 64,64,0 0 48,48,0",
	 entries_are_strided},
	{"buffer_ends_too_early", "4", NEEDS_GPU, "EFAULT,1 0,3: 2 1 0N", buffer_ends_too_early},
	{"destroyed_is_gone", "4", NEEDS_GPU, "0 0,2: 2 0", destroyed_is_gone},
	{"disable_clears_new", "2.5", NEEDS_GPU, "0,2: 1 0", disable_clears_new},
	{"event_of_a_new_queue", "4", NEEDS_GPU,
	 "dots=2 " NEW_QUEUE "1 " NEW_QUEUE "1 " NEW_QUEUE "0 EAGAIN,0,-,0", event_of_a_new_queue},
	{"event_of_a_destroyed_queue", "4", NEEDS_GPU, "dots=1 0,80000000,gpu,0 EAGAIN,0,-,0",
	 event_of_a_destroyed_queue},
	{"order_of_events", "4", NEEDS_GPU,
	 NEW_QUEUE "0 0,80000000,gpu,0 0,800000000000,-,0 EAGAIN,0,-,0", order_of_events},
	{"pending_events_at_enable", "2.3", NEEDS_GPU, "dots=0 " NEW_QUEUE "0 dots=1",
	 pending_events_at_enable},
	{"info_of_a_new_queue", "1.2", NEEDS_GPU, "0,0 0,0 ENODATA,64 0,1: 0", info_of_a_new_queue},
	{"device_snapshot", "4", NEEDS_GPU, "0 120 80000000,1,1002 0 120 0,1,1002 EFAULT",
	 device_snapshot},
	{"sysfs_queues", "5.2", NEEDS_GPU | NEEDS_SYSFS, "0 65536 1 -", sysfs_queues},
	{0},
};
