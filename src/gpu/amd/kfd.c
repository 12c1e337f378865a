/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd/kfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INTERRUPTS_MAX 100   /* a call that signals interrupt more often than this fails */
#define TOO_LARGE      4096u /* no entry of a snapshot is as large */

const char *gp_kfd_path(void)
{
	const char *path = secure_getenv("GPREEMPT_KFD");

	return path && *path ? path : "/dev/kfd";
}

static int check_version(int kfd, struct gp_error *err)
{
	struct kfd_version v = {0};
	int r = gp_kfd_version(kfd, &v);

	if (r)
		return gp_fail(err, r, "%s is not amdkfd: %s", gp_kfd_path(), gp_error_name(r));
	if (!v.major && !v.minor)
		return gp_fail(
			err, -EPROTO,
			"%s answers that its interface is 0.0, which cannot be true; see the "
			"kernel log (dmesg), or reload amdgpu",
			gp_kfd_path());
	if (v.major > KFD_DEBUG_MAJOR)
		return gp_fail(err, -EPROTONOSUPPORT,
			       "amdkfd's interface is %u.%u, which this version of gpreempt does "
			       "not know (it knows 1.13 and later of 1.x): use a newer gpreempt",
			       v.major, v.minor);
	if (v.major < KFD_DEBUG_MAJOR || v.minor < KFD_DEBUG_MINOR)
		return gp_fail(err, -ENOTSUP,
			       "amdkfd's interface is %u.%u, but only 1.13 and later suspend "
			       "queues: use Linux 6.5 or later",
			       v.major, v.minor);
	return 0;
}

static int explain_open(int code, struct gp_error *err)
{
	const char *path = gp_kfd_path();

	switch (code) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		return gp_fail(err, -ENOENT,
			       "there is no %s: no AMD GPU, or amdgpu is not loaded, or the "
			       "container does not have the device",
			       path);
	case -EINVAL: /* opening makes a KFD process, which a locked driver refuses */
	case -EAGAIN:
		return gp_fail(err, -EBUSY,
			       "%s cannot be opened now: the driver is resetting a GPU, or has put "
			       "it to sleep; try again in a few seconds",
			       path);
	default:
		return gp_fail(err, code,
			       "%s may not be opened: %s; be root or in the group `render`", path,
			       gp_error_name(code));
	}
}

int gp_kfd_open(struct gp_error *err)
{
	int kfd = open(gp_kfd_path(), O_RDWR | O_CLOEXEC), r;

	if (kfd < 0)
		return explain_open(-errno, err);
	r = check_version(kfd, err);
	if (!r)
		return kfd;
	close(kfd);
	return r;
}

int gp_kfd_version(int kfd, struct kfd_version *version)
{
	int r = -EINTR;

	for (int i = 0; i < INTERRUPTS_MAX && r == -EINTR; i++)
		r = ioctl(kfd, KFD_IOC_GET_VERSION, version) < 0 ? -errno : 0;
	return r;
}

static int trap(int kfd, struct kfd_dbg_trap *args)
{
	int r = ioctl(kfd, KFD_IOC_DBG_TRAP, args);

	return r < 0 ? -errno : r;
}

/* Repeats a call that a signal interrupted. The driver writes into `args`, and into the ids, even
 * if it fails, so they are restored first. */
static int trap_again(int kfd, struct kfd_dbg_trap *args, uint32_t *id, uint32_t n)
{
	const struct kfd_dbg_trap first = *args;
	int r = -EINTR;

	for (int i = 0; i < INTERRUPTS_MAX && r == -EINTR; i++) {
		*args = first;
		for (uint32_t k = 0; k < n; k++)
			id[k] &= KFD_DBG_QUEUE_ID_MASK;
		r = trap(kfd, args);
	}
	return r;
}

/* For calls without a count: a positive answer is none of the driver's. */
static int no_count(int r)
{
	return r > 0 ? -EPROTO : r;
}

int gp_kfd_enable(int kfd, pid_t pid, uint64_t exceptions, int fd, struct kfd_runtime_info *info)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid,
				    .op = KFD_DBG_ENABLE,
				    .enable = {.exception_mask = exceptions,
					       .rinfo_ptr = (uintptr_t)info,
					       .rinfo_size = sizeof *info,
					       .dbg_fd = (uint32_t)fd}};

	return no_count(trap(kfd, &args));
}

int gp_kfd_disable(int kfd, pid_t pid)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_DISABLE};

	return no_count(trap_again(kfd, &args, NULL, 0));
}

int gp_kfd_query_event(int kfd, pid_t pid, uint64_t clear, uint64_t *raised)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid,
				    .op = KFD_DBG_QUERY_DEBUG_EVENT,
				    .query_debug_event = {.exception_mask = clear}};
	int r = trap_again(kfd, &args, NULL, 0);

	*raised = r ? 0 : args.query_debug_event.exception_mask;
	return r;
}

int gp_kfd_send_runtime_event(int kfd, pid_t pid)
{
	struct kfd_dbg_trap args = {
		.pid = (uint32_t)pid,
		.op = KFD_DBG_SEND_RUNTIME_EVENT,
		.send_runtime_event = {.exception_mask = KFD_EC_PROCESS_RUNTIME}};

	return trap_again(kfd, &args, NULL, 0);
}

/* Queue ids are below KFD_DBG_QUEUES_MAX and unique in a process; a queue has a GPU. */
static bool is_plausible(const struct kfd_queue_snapshot_entry *entry, uint32_t n)
{
	uint64_t seen[KFD_DBG_QUEUES_MAX / 64] = {0};

	for (uint32_t i = 0; i < n; i++) {
		uint32_t id = entry[i].queue_id;

		if (id >= KFD_DBG_QUEUES_MAX || !entry[i].gpu_id || seen[id / 64] >> id % 64 & 1)
			return false;
		seen[id / 64] |= 1ull << id % 64;
	}
	return true;
}

int gp_kfd_snapshot(int kfd, pid_t pid, uint64_t clear, struct kfd_queue_snapshot_entry *entry,
		    uint32_t room)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid,
				    .op = KFD_DBG_GET_QUEUE_SNAPSHOT,
				    .queue_snapshot = {.exception_mask = clear,
						       .snapshot_buf_ptr = (uintptr_t)entry,
						       .num_queues = room,
						       .entry_size = sizeof *entry}};
	uint32_t n;
	int r;

	memset(entry, 0, room * sizeof *entry);
	r = no_count(trap_again(kfd, &args, NULL, 0));
	n = args.queue_snapshot.num_queues;
	if (r)
		return r;
	if (n > KFD_DBG_QUEUES_MAX || args.queue_snapshot.entry_size != sizeof *entry ||
	    !is_plausible(entry, n < room ? n : room))
		return -EPROTO;
	return (int)n;
}

int gp_kfd_has_session(int kfd, pid_t pid)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid,
				    .op = KFD_DBG_GET_QUEUE_SNAPSHOT,
				    .queue_snapshot = {.entry_size = TOO_LARGE}};
	int r = no_count(trap_again(kfd, &args, NULL, 0));

	if (r)
		return r == -EINVAL ? 0 : r;
	/* A driver that does the call writes the size of its own entry. */
	return args.queue_snapshot.entry_size < TOO_LARGE &&
			       args.queue_snapshot.entry_size >=
				       sizeof(struct kfd_queue_snapshot_entry) &&
			       args.queue_snapshot.num_queues <= KFD_DBG_QUEUES_MAX
		       ? 1
		       : -EPROTO;
}

int gp_kfd_suspend(int kfd, pid_t pid, uint32_t *id, uint32_t n, uint32_t grace)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid,
				    .op = KFD_DBG_SUSPEND_QUEUES,
				    .suspend_queues = {.queue_array_ptr = (uintptr_t)id,
						       .num_queues = n,
						       .grace_period = grace}};

	return trap_again(kfd, &args, id, n);
}

int gp_kfd_resume(int kfd, pid_t pid, uint32_t *id, uint32_t n)
{
	struct kfd_dbg_trap args = {
		.pid = (uint32_t)pid,
		.op = KFD_DBG_RESUME_QUEUES,
		.resume_queues = {.queue_array_ptr = (uintptr_t)id, .num_queues = n}};

	return trap_again(kfd, &args, id, n);
}

int gp_kfd_update_queue(int kfd, struct kfd_update_queue *args)
{
	int r;

	do
		r = ioctl(kfd, KFD_IOC_UPDATE_QUEUE, args) < 0 ? -errno : 0;
	while (r == -EINTR);
	return r;
}

/* Whether the descriptor is a stream of the driver: any other file of this process must stay. */
static bool is_smi_stream(uint32_t fd)
{
	static const char name[] = "anon_inode:kfd_smi_ev";
	char path[32], link[sizeof name];

	snprintf(path, sizeof path, "/proc/self/fd/%u", fd);
	return readlink(path, link, sizeof link) == (ssize_t)strlen(name) &&
	       !memcmp(link, name, strlen(name));
}

int gp_kfd_smi_events(int kfd, uint32_t gpu_id)
{
	struct kfd_smi_events args = {.gpuid = gpu_id, .anon_fd = UINT32_MAX};
	int r = -EINTR;

	for (int i = 0; i < INTERRUPTS_MAX && r == -EINTR; i++)
		r = ioctl(kfd, KFD_IOC_SMI_EVENTS, &args) < 0 ? -errno : 0;
	if (r)
		return r;
	if (!is_smi_stream(args.anon_fd))
		return -EPROTO;
	fcntl((int)args.anon_fd, F_SETFD, FD_CLOEXEC); /* the driver does not */
	return (int)args.anon_fd;
}

int gp_kfd_try_suspend(int kfd, pid_t pid)
{
	return gp_kfd_suspend(kfd, pid, NULL, 0, KFD_GRACE_DEFAULT);
}
