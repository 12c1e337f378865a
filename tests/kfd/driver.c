/* SPDX-License-Identifier: Apache-2.0 */
/* What a case or a peer can ask the driver. */
#include <poll.h>

#include "cases.h"

const char *kfd_device = "/dev/kfd";
const char *kfd_sysfs;

static int own_fd = -1;
static pid_t opened_by;

int kfd_fd(void)
{
	if (own_fd < 0 || opened_by != getpid())
		must("open", open_kfd(0));
	return own_fd;
}

long open_kfd(long unused)
{
	(void)unused;
	own_fd = open(kfd_device, O_RDWR | O_CLOEXEC);
	opened_by = getpid();
	return own_fd < 0 ? -errno : 0;
}

long close_kfd(long unused)
{
	int fd = own_fd;

	(void)unused;
	own_fd = -1;
	return close(fd) ? -errno : 0;
}

long kfd_ioctl(unsigned long number, void *arg)
{
	int rc = ioctl(kfd_fd(), number, arg);

	return rc < 0 ? -errno : rc;
}

long get_version(long unused)
{
	struct kfd_version version;

	(void)unused;
	return kfd_ioctl(KFD_IOC_GET_VERSION, &version);
}

long set_runtime(long mode)
{
	struct kfd_runtime_enable args = {.r_debug = RUNTIME_R_DEBUG, .mode_mask = (uint32_t)mode};

	return kfd_ioctl(KFD_IOC_RUNTIME_ENABLE, &args);
}

static int event_pipe[2];
static pid_t pipe_of;

int notify_fd(void)
{
	if (pipe_of != getpid() && pipe2(event_pipe, O_NONBLOCK | O_CLOEXEC))
		broken("pipe", -errno);
	pipe_of = getpid();
	return event_pipe[1];
}

long dots_seen(void)
{
	char dots[64];
	ssize_t n = read(event_pipe[0], dots, sizeof(dots));

	if (!n)
		return -EPIPE;
	return n < 0 && errno == EAGAIN ? 0 : n;
}

long wait_for_dots(int ms)
{
	struct pollfd poller = {.fd = event_pipe[0], .events = POLLIN};

	poll(&poller, 1, ms);
	return dots_seen();
}

long trap(struct kfd_dbg_trap *args)
{
	return kfd_ioctl(KFD_IOC_DBG_TRAP, args);
}

long trap_op(pid_t pid, uint32_t op)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = op};

	return trap(&args);
}

long enable_with(pid_t pid, uint64_t exceptions, int fd, void *info, uint32_t *size)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_ENABLE};
	long rc;

	args.enable.exception_mask = exceptions;
	args.enable.dbg_fd = (uint32_t)fd;
	args.enable.rinfo_ptr = (uintptr_t)info;
	args.enable.rinfo_size = *size;
	rc = trap(&args);
	*size = args.enable.rinfo_size;
	return rc;
}

long enable(long pid)
{
	struct kfd_runtime_info info;
	uint32_t size = sizeof(info);

	return enable_with((pid_t)pid,
			   KFD_EC_PROCESS_RUNTIME | KFD_EC_QUEUE_NEW | KFD_EC_QUEUE_DELETE,
			   notify_fd(), &info, &size);
}

long disable(long pid)
{
	return trap_op((pid_t)pid, KFD_DBG_DISABLE);
}

long seize_and_enable(long pid)
{
	long rc = seize(pid);

	return rc < 0 ? rc : enable(pid);
}

long count_queues(long pid)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_GET_QUEUE_SNAPSHOT};
	long rc;

	args.queue_snapshot.entry_size = sizeof(struct kfd_queue_snapshot_entry);
	rc = trap(&args);
	return rc < 0 ? rc : (long)args.queue_snapshot.num_queues;
}

long send_event(pid_t pid, uint64_t exceptions)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_SEND_RUNTIME_EVENT};

	args.send_runtime_event.exception_mask = exceptions;
	return trap(&args);
}

long query_event(pid_t pid, uint64_t clear, uint64_t *raised)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_QUERY_DEBUG_EVENT};
	long rc;

	args.query_debug_event.exception_mask = clear;
	rc = trap(&args);
	*raised = args.query_debug_event.exception_mask;
	return rc;
}

long suspend(pid_t pid, uint32_t *ids, uint32_t n)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_SUSPEND_QUEUES};

	args.suspend_queues.queue_array_ptr = (uintptr_t)ids;
	args.suspend_queues.num_queues = n;
	args.suspend_queues.grace_period = KFD_GRACE_DEFAULT;
	return trap(&args);
}

long resume(pid_t pid, uint32_t *ids, uint32_t n)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_RESUME_QUEUES};

	args.resume_queues.queue_array_ptr = (uintptr_t)ids;
	args.resume_queues.num_queues = n;
	return trap(&args);
}
