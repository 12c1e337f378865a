/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: how they come and go, and what a debugger is shown of them. */
#include <sys/mman.h>

#include "queue.h"

#define AQL       KFD_QUEUE_COMPUTE_AQL
#define UNTOUCHED 0x5a
#define NEW_QUEUE "0,40000000,gpu,"

KFD_CASE(ids_are_the_lowest_free, "1.3", NEEDS_GPU, "0 1 2 0 1 3")
{
	for (int i = 0; i < 3; i++)
		say_answer(make_queue(AQL));
	SAY_ANSWERS(destroy_queue(1), make_queue(AQL), make_queue(AQL));
}

KFD_CASE(ids_are_the_process_s, "1.3", NEEDS_GPU, "0 EINVAL 0")
{
	struct peer p = peer_start_queues(2, false);

	SAY_ANSWERS(make_queue(AQL), destroy_queue(1), peer_call(&p, destroy_queue, 1));
}

KFD_CASE(no_such_queue, "1.3", NEEDS_GPU, "EINVAL EFAULT")
{
	make_queue(AQL);
	SAY_ANSWERS(destroy_queue(5), set_percent(WITH(5, 100)));
}

KFD_CASE(runtime_with_queues, "2.4", NEEDS_GPU, "EEXIST 0 0")
{
	make_queue(AQL);
	say_answer(set_runtime(KFD_RUNTIME_ENABLE_MODE_ENABLE));
	say_answer(destroy_queue(0));
	say_answer(set_runtime(KFD_RUNTIME_ENABLE_MODE_ENABLE));
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

KFD_CASE(bad_queues, "1.3", NEEDS_GPU, "EINVAL EINVAL EINVAL EFAULT -524 EINVAL ESRCH")
{
	uint32_t gpu = first_gpu();

	say_answer(create((struct kfd_create_queue){.queue_percentage = 101}, gpu));
	say_answer(create((struct kfd_create_queue){.queue_priority = 16}, gpu));
	say_answer(create((struct kfd_create_queue){.ring_size = 3000}, gpu));
	say_answer(create((struct kfd_create_queue){.ring_base_address = 1ull << 63}, gpu));
	say_answer(create((struct kfd_create_queue){.queue_type = 5}, gpu));
	say_answer(create((struct kfd_create_queue){.gpu_id = 0x1234}, gpu));
	say_answer(create((struct kfd_create_queue){0}, gpu));
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

PEER_CASE(every_queue_is_new, seized, "0.3", NEEDS_GPU, "0,1: 0N 0,2: 1N 0N")
{
	peer_call(&p, make_queue, AQL);
	must("enable", enable(p.pid));
	say_look(p.pid, 8, 0);
	peer_call(&p, make_queue, AQL);
	say_look(p.pid, 8, 0);
}

KFD_CASE(snapshot_clears_what_it_is_told_to, "4", NEEDS_GPU,
	 "0,3: 2N 1N 0N 0,3: 2N 0,3: 0,3: 2 1N 0N 0,3: 2 1 0")
{
	struct peer p = peer_start_queues(3, false);

	say_look(p.pid, 8, KFD_EC_QUEUE_DELETE);
	say_look(p.pid, 1, KFD_EC_QUEUE_NEW);
	say_look(p.pid, 0, KFD_EC_QUEUE_NEW);
	say_look(p.pid, 8, KFD_EC_QUEUE_NEW);
	say_look(p.pid, 8, 0);
}

KFD_CASE(what_does_not_fit_is_counted, "4", NEEDS_GPU, "0,3 kept")
{
	struct peer p = peer_start_queues(3, true);
	struct snapshot s = look(p.pid, 2, 0);

	say("%s,%u", answer(s.rc), s.count);
	say("%s", s.entry[2].queue_id == UNTOUCHED * 0x1010101u ? "kept" : "written");
}

PEER_CASE(fields_of_the_snapshot, seen_queue, "1.3", NEEDS_GPU, "1 1 1 1 65536 2 1 0")
{
	struct kfd_queue_snapshot_entry e = look(p.pid, 8, 0).entry[0];

	say("%d", e.ring_base_address == (uint64_t)peer_call(&p, ring_address, 0));
	say("%d", e.ctx_save_restore_address == (uint64_t)peer_call(&p, save_area_address, 0));
	say("%d", e.write_pointer_address == e.read_pointer_address + 8);
	say("%d", e.gpu_id == first_gpu());
	say("%u %u", e.ring_size, e.queue_type);
	say("%d %u", e.ctx_save_restore_area_size > 0, e.reserved);
}

KFD_CASE(types_of_queues, "1.3", NEEDS_GPU, "2 1 0")
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
	say_answer(rc);
	for (unsigned i = 0; i < stride; i++)
		written += buffer[0][i] == buffer[1][i];
	memcpy(&second, buffer[0] + stride + offsetof(struct kfd_queue_snapshot_entry, queue_id),
	       4);
	say("%u,%u,%u", args.queue_snapshot.entry_size, written, second);
}

PEER_CASE(entries_are_strided, two_seen_queues, "4", NEEDS_GPU, "0 64,64,0 0 64,64,0 0 48,48,0")
{
	say_strided(p.pid, 100);
	say_strided(p.pid, 64);
	say_strided(p.pid, 48);
}

/* The first entry fits, the second would begin where there is nothing; it is no longer NEW. */
KFD_CASE(buffer_ends_too_early, "4", NEEDS_GPU, "EFAULT,1 0,3: 2 1 0N")
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

KFD_CASE(destroyed_is_gone, "4", NEEDS_GPU, "0 0,2: 2 0")
{
	struct peer p = peer_start_queues(3, true);

	say_answer(peer_call(&p, destroy_queue, 1));
	say_look(p.pid, 8, 0);
}

KFD_CASE(disable_clears_new, "2.5", NEEDS_GPU, "0,2: 1 0")
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

KFD_CASE(event_of_a_new_queue, "4", NEEDS_GPU,
	 "dots=2 " NEW_QUEUE "1 " NEW_QUEUE "1 " NEW_QUEUE "0 EAGAIN,0,-,0")
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

PEER_CASE(event_of_a_destroyed_queue, seen_queue, "4", NEEDS_GPU,
	  "dots=1 0,80000000,gpu,0 EAGAIN,0,-,0")
{
	peer_call(&p, destroy_queue, 0);
	say("dots=%s", answer(wait_for_dots(10000)));
	say_event(p.pid, KFD_EC_QUEUE_DELETE);
	say_event(p.pid, 0);
}

PEER_CASE(order_of_events, seen_queue, "4", NEEDS_GPU,
	  NEW_QUEUE "0 0,80000000,gpu,0 0,800000000000,-,0 EAGAIN,0,-,0")
{
	peer_call(&p, destroy_queue, 0);
	peer_call(&p, make_queue, AQL);
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	peer_call(&p, set_runtime, 0);
	say_event(p.pid, UINT64_MAX);
	say_event(p.pid, UINT64_MAX);
	say_event(p.pid, UINT64_MAX);
	say_event(p.pid, UINT64_MAX);
}

/* Earlier events are not notified; subscribing again notifies them. */
PEER_CASE(pending_events_at_enable, seized, "2.3", NEEDS_GPU, "dots=0 " NEW_QUEUE "0 dots=1")
{
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

PEER_CASE(info_of_a_new_queue, new_queue, "1.2", NEEDS_GPU, "0,0 0,0 ENODATA,64 0,1: 0")
{
	say_info(p.pid, false);
	say_info(p.pid, true);
	say_info(p.pid, false);
	say_look(p.pid, 8, 0);
}

PEER_CASE(device_snapshot, seen_queue, "4", NEEDS_GPU,
	  "0 120 80000000,1,1002 0 120 0,1,1002 EFAULT")
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)p.pid, .op = KFD_DBG_GET_DEVICE_SNAPSHOT};
	struct kfd_device_snapshot_entry entry = {0};

	peer_call(&p, destroy_queue, 0);
	for (int i = 0; i < 2; i++) {
		args.device_snapshot.exception_mask = KFD_EC_QUEUE_DELETE;
		args.device_snapshot.snapshot_buf_ptr = (uintptr_t)&entry;
		args.device_snapshot.num_devices = 1;
		args.device_snapshot.entry_size = sizeof(entry);
		say_answer(trap(&args));
		say("%u", args.device_snapshot.entry_size);
		say("%lx,%d,%x", entry.exception_status, entry.gpu_id == first_gpu(),
		    entry.vendor_id);
	}
	args.device_snapshot.snapshot_buf_ptr = (uintptr_t)bad_pointer();
	say_answer(trap(&args));
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

PEER_CASE(sysfs_queues, new_queue, "5.2", NEEDS_GPU | NEEDS_SYSFS, "0 65536 1 -")
{
	peer_call(&p, make_queue, KFD_QUEUE_SDMA);
	say_file(p.pid, "0/type");
	say_file(p.pid, "0/size");
	say_file(p.pid, "1/type");
	peer_call(&p, destroy_queue, 1);
	say_file(p.pid, "1/type");
}
