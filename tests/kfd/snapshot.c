/* SPDX-License-Identifier: Apache-2.0 */
/* GET_QUEUE_SNAPSHOT and GET_DEVICE_SNAPSHOT, where there are no queues. */
#include "cases.h"

static void say_queues(pid_t pid, void *to, uint32_t room, uint32_t entry_size)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_GET_QUEUE_SNAPSHOT};
	long rc;

	args.queue_snapshot.snapshot_buf_ptr = (uintptr_t)to;
	args.queue_snapshot.num_queues = room;
	args.queue_snapshot.entry_size = entry_size;
	rc = trap(&args);
	say("%s,%u,%u", answer(rc), args.queue_snapshot.num_queues, args.queue_snapshot.entry_size);
}

PEER_CASE(count_without_buffer, debugged, "4", 0, "0,0,64 0,0,64")
{
	say_queues(p.pid, NULL, 0, 64);
	say_queues(p.pid, bad_pointer(), 0, 64);
}

PEER_CASE(entry_size_0, debugged, "4", 0, "EINVAL,0,0 EINVAL,0,0")
{
	struct kfd_queue_snapshot_entry entry;

	say_queues(p.pid, &entry, 7, 0);
	say_queues(p.pid, NULL, 0, 0);
}

PEER_CASE(entry_size_is_cut, debugged, "4", 0, "0,0,1 0,0,63 0,0,64 0,0,64")
{
	say_queues(p.pid, NULL, 0, 1);
	say_queues(p.pid, NULL, 0, 63);
	say_queues(p.pid, NULL, 0, 65);
	say_queues(p.pid, NULL, 0, UINT32_MAX);
}

/* Nothing is written where there is nothing. */
PEER_CASE(no_queues_in_a_bad_buffer, debugged, "4", 0, "0,0,64 0,0,64")
{
	say_queues(p.pid, bad_pointer(), 4, 64);
	say_queues(p.pid, NULL, UINT32_MAX, 64);
}

static uint32_t count_gpus(void)
{
	struct kfd_process_apertures args = {0};

	must("apertures", kfd_ioctl(KFD_IOC_GET_PROCESS_APERTURES, &args));
	return args.num_of_nodes;
}

static void say_devices(pid_t pid, void *to, uint32_t room, uint32_t entry_size)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_GET_DEVICE_SNAPSHOT};
	long rc;

	args.device_snapshot.snapshot_buf_ptr = (uintptr_t)to;
	args.device_snapshot.num_devices = room;
	args.device_snapshot.entry_size = entry_size;
	rc = trap(&args);
	say("%s,%s,%u", answer(rc),
	    args.device_snapshot.num_devices == count_gpus()
		    ? "all"
		    : answer(args.device_snapshot.num_devices),
	    args.device_snapshot.entry_size);
}

PEER_CASE(devices_need_a_buffer, debugged, "4", 0, "EINVAL,77,120")
{
	say_devices(p.pid, NULL, 77, 120);
}

PEER_CASE(devices_are_counted, debugged, "4", 0, "0,all,120 0,all,120 0,all,8 0,all,0")
{
	struct kfd_device_snapshot_entry entry;

	say_devices(p.pid, &entry, 0, 120);
	say_devices(p.pid, bad_pointer(), 0, 200);
	say_devices(p.pid, &entry, 0, 8);
	say_devices(p.pid, &entry, 0, 0);
}
