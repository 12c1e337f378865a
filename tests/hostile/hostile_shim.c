/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_shim.so: a driver that misbehaves. LD_PRELOAD loads it into gpreempt, gpreemptd, the
 * keeper and users of the library, never into programs that use the emulated GPU. It wraps ioctl()
 * and ptrace(). hostile.py writes the rules into the file HOSTILE, which all processes map.
 *
 * One rule per line: PROGRAM OPERATION WHEN FAULT [ARGUMENT]
 *   PROGRAM    short name of the calling program, or *
 *   OPERATION  a name of amd_ops or nvidia_ops below, ptrace_seize ..., or *
 *   WHEN       3: the third call; 3+: from the third call on; %3: every third call
 *   FAULT      errno E      do nothing, answer -E           do_errno E   do it, answer -E
 *              lie          do nothing, answer success      hang         wait for the test
 *              count N      do it, answer N (or +1, -1)     delay MS     do it later
 *              bits B       AMD: do it, set bits B in all ids; half_bits B: in every second id
 *              lie_bits B   AMD: do nothing, set bits B, answer 0
 *              lie_zero     AMD: do nothing, answer 0 without bits
 *              half_lie     do it for the first half of the queues or channels, answer success for
 *                           all; half_lie 1: for the second half (NVIDIA)
 *              wrong_type T, wrong_gpu ID  AMD: do it, the newest queue of a snapshot has type T
 *                           or is on GPU ID
 *              num N        AMD: do it, answer N queues     entry N      AMD: entry size N
 *              version M.N  AMD: do it, answer version M.N
 *              status S     NVIDIA: do nothing, status S    do_status S  NVIDIA: do it, status S
 *              value V      NVIDIA: do it, the value that is read back is V
 *              kill, do_kill  SIGKILL to the caller, before or after the call
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu/amd/kfd_abi.h"
#include "gpu/nvidia/rm_abi.h"
#include "hostile_page.h"

struct rule {
	char program[32], op[32], when[16], fault[16], arg[32];
	unsigned index;
};

struct name {
	uint32_t number;
	const char *name;
};

static const struct name amd_ops[] = {
	{KFD_DBG_ENABLE, "enable"},
	{KFD_DBG_DISABLE, "disable"},
	{KFD_DBG_SEND_RUNTIME_EVENT, "send_runtime_event"},
	{KFD_DBG_SUSPEND_QUEUES, "suspend"},
	{KFD_DBG_RESUME_QUEUES, "resume"},
	{KFD_DBG_QUERY_DEBUG_EVENT, "query_event"},
	{KFD_DBG_GET_QUEUE_SNAPSHOT, "queue_snapshot"},
	{KFD_DBG_GET_DEVICE_SNAPSHOT, "device_snapshot"},
	{0, NULL},
};

static const struct name nvidia_ops[] = {
	{NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, "build_version"},
	{NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS, "attached_ids"},
	{NV0000_CTRL_CMD_GPU_GET_PROBED_IDS, "probed_ids"},
	{NV0000_CTRL_CMD_GPU_GET_PCI_INFO, "pci_info"},
	{NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, "id_info"},
	{NV0000_CTRL_CMD_CLIENT_GET_HANDLE_INFO, "handle_info"},
	{NV0000_CTRL_CMD_CLIENT_GET_CHILD_HANDLE, "child_handle"},
	{NV2080_CTRL_CMD_GPU_GET_ID, "gpu_id"},
	{NV2080_CTRL_CMD_GPU_GET_PIDS, "pids"},
	{NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO, "time"},
	{NV2080_CTRL_CMD_GR_FECS_BIND_EVTBUF_FOR_UID_V2, "bind_events"},
	{NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, "hold"}, /* or "release" */
	{NV2080_CTRL_CMD_FIFO_GET_CHANNEL_GROUP_UNIQUE_ID_INFO, "group_ids"},
	{NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE, "set_mode"},
	{NV208F_CTRL_CMD_FIFO_GET_CHANNEL_STATE, "channel_state"},
	{NV90CD_CTRL_CMD_EVENT_BUFFER_ENABLE_EVENT, "enable_events"},
	{NV90CD_CTRL_CMD_EVENT_BUFFER_FLUSH, "flush_events"},
	{NVA06C_CTRL_CMD_SET_TIMESLICE, "set_slice"},
	{NVA06C_CTRL_CMD_GET_TIMESLICE, "get_slice"},
	{NVA06C_CTRL_CMD_PREEMPT, "preempt"},
	{NVA06C_CTRL_CMD_GET_INFO, "group_info"},
	{NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL, "set_interleave"},
	{NVA06C_CTRL_CMD_GET_INTERLEAVE_LEVEL, "get_interleave"},
	{0, NULL},
};

static struct hostile_page *page;

__attribute__((constructor)) static void map_page(void)
{
	const char *path = getenv("HOSTILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	page = map == MAP_FAILED ? NULL : map;
}

static const char *find_name(const struct name *table, uint32_t number)
{
	for (; table->name; table++)
		if (table->number == number)
			return table->name;
	return "other";
}

static bool is_due(const char *when, uint32_t n)
{
	char *end;
	unsigned long number = strtoul(when + (*when == '%'), &end, 10);

	if (!number)
		return false;
	if (*when == '%')
		return n % number == 0;
	return *end == '+' ? n >= number : n == number;
}

/* The first rule that applies to this call; every rule for the operation counts the call. */
static bool find_rule(const char *op, struct rule *found)
{
	char text[HOSTILE_TEXT_BYTES], *rest = NULL;
	bool any = false;
	unsigned index = 0;

	if (!page || !page->text[0])
		return false;
	memcpy(text, page->text, sizeof text);
	text[sizeof text - 1] = 0;
	for (char *line = strtok_r(text, "\n", &rest); line && index < HOSTILE_RULES_MAX;
	     line = strtok_r(NULL, "\n", &rest), index++) {
		struct rule r = {.index = index};
		uint32_t n;

		if (sscanf(line, "%31s %31s %15s %15s %31s", r.program, r.op, r.when, r.fault,
			   r.arg) < 4)
			continue;
		if (strcmp(r.program, "*") != 0 &&
		    strcmp(r.program, program_invocation_short_name) != 0)
			continue;
		if (strcmp(r.op, "*") != 0 && strcmp(r.op, op) != 0)
			continue;
		n = atomic_fetch_add(&page->seen[index], 1) + 1;
		if (any || !is_due(r.when, n))
			continue;
		atomic_fetch_add(&page->applied[index], 1);
		*found = r;
		any = true;
	}
	return any;
}

static bool is(const struct rule *r, const char *fault)
{
	return !strcmp(r->fault, fault);
}

static uint64_t number_of(const struct rule *r)
{
	return strtoull(r->arg, NULL, 0);
}

static void sleep_ms(uint64_t ms)
{
	struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* As a call that hangs in the driver: signals other than SIGKILL do not end it. */
static void hang(void)
{
	atomic_fetch_add(&page->hanging, 1);
	while (page->hang)
		sleep_ms(2);
	atomic_fetch_sub(&page->hanging, 1);
}

static int fail_with(int code)
{
	errno = code;
	return -1;
}

/* Faults that need no knowledge of the driver. True: `*result` is the answer. */
static bool apply_common(const struct rule *r, int fd, unsigned long request, void *arg,
			 int *result)
{
	if (is(r, "errno")) {
		*result = fail_with((int)number_of(r));
	} else if (is(r, "do_errno")) {
		syscall(SYS_ioctl, fd, request, arg);
		*result = fail_with((int)number_of(r));
	} else if (is(r, "hang") || is(r, "delay") || is(r, "kill")) {
		if (is(r, "kill"))
			kill(getpid(), SIGKILL);
		if (is(r, "hang"))
			hang();
		else
			sleep_ms(number_of(r));
		*result = (int)syscall(SYS_ioctl, fd, request, arg);
	} else if (is(r, "do_kill")) {
		syscall(SYS_ioctl, fd, request, arg);
		kill(getpid(), SIGKILL);
	} else {
		return false;
	}
	return true;
}

/* AMD. */

static uint32_t *ids_of(struct kfd_dbg_trap *a, uint32_t *n)
{
	uint64_t address = 0;

	*n = 0;
	if (a->op == KFD_DBG_SUSPEND_QUEUES) {
		*n = a->suspend_queues.num_queues;
		address = a->suspend_queues.queue_array_ptr;
	} else if (a->op == KFD_DBG_RESUME_QUEUES) {
		*n = a->resume_queues.num_queues;
		address = a->resume_queues.queue_array_ptr;
	}
	if (!address)
		*n = 0;
	return (uint32_t *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
}

static void set_bits(struct kfd_dbg_trap *a, uint32_t bits, unsigned step)
{
	uint32_t n, *id = ids_of(a, &n);

	for (uint32_t i = 0; i < n; i += step)
		id[i] |= bits;
}

/* Changes the first half of the queues only. The others get no error bit, and are counted. */
static int change_half(int fd, unsigned long request, struct kfd_dbg_trap *a)
{
	uint32_t *n = a->op == KFD_DBG_SUSPEND_QUEUES ? &a->suspend_queues.num_queues
						      : &a->resume_queues.num_queues;
	uint32_t all = *n;
	int result;

	*n = all / 2;
	result = (int)syscall(SYS_ioctl, fd, request, a);
	*n = all;
	return result < 0 ? result : (int)all;
}

/* Falsifies the first entry, which is the newest queue. */
static void change_entry(const struct rule *r, const struct kfd_dbg_trap *a)
{
	// NOLINTNEXTLINE(performance-no-int-to-ptr)
	void *entries = (void *)(uintptr_t)a->queue_snapshot.snapshot_buf_ptr;
	struct kfd_queue_snapshot_entry *first = entries;

	if (!first || !a->queue_snapshot.num_queues)
		return;
	if (is(r, "wrong_type"))
		first->queue_type = (uint32_t)number_of(r);
	else
		first->gpu_id = (uint32_t)number_of(r);
}

static int changed_count(const char *arg, int real)
{
	long n = strtol(arg, NULL, 0);

	return *arg == '+' || *arg == '-' ? real + (int)n : (int)n;
}

static int hostile_trap(const struct rule *r, int fd, unsigned long request, struct kfd_dbg_trap *a)
{
	uint32_t n;
	int result;

	ids_of(a, &n);
	if (is(r, "lie"))
		return (int)n;
	if (is(r, "lie_zero"))
		return 0;
	if (is(r, "lie_bits")) {
		set_bits(a, (uint32_t)number_of(r), 1);
		return 0;
	}
	if (is(r, "half_lie"))
		return change_half(fd, request, a);
	result = (int)syscall(SYS_ioctl, fd, request, a);
	if (result < 0)
		return result;
	if (is(r, "wrong_type") || is(r, "wrong_gpu"))
		change_entry(r, a);
	if (is(r, "count"))
		return changed_count(r->arg, result);
	if (is(r, "bits"))
		set_bits(a, (uint32_t)number_of(r), 1);
	if (is(r, "half_bits"))
		set_bits(a, (uint32_t)number_of(r), 2);
	if (is(r, "num"))
		a->queue_snapshot.num_queues =
			(uint32_t)changed_count(r->arg, (int)a->queue_snapshot.num_queues);
	if (is(r, "entry"))
		a->queue_snapshot.entry_size = (uint32_t)number_of(r);
	return result;
}

static int hostile_version(const struct rule *r, int fd, unsigned long request,
			   struct kfd_version *v)
{
	int result = is(r, "lie") ? 0 : (int)syscall(SYS_ioctl, fd, request, v);

	if (is(r, "version"))
		sscanf(r->arg, "%u.%u", &v->major, &v->minor);
	return result;
}

static int amd(int fd, unsigned long request, void *arg)
{
	struct kfd_dbg_trap *a = request == KFD_IOC_DBG_TRAP ? arg : NULL;
	const char *op = a                                 ? find_name(amd_ops, a->op)
			 : request == KFD_IOC_GET_VERSION  ? "version"
			 : request == KFD_IOC_UPDATE_QUEUE ? "update_queue"
			 : request == KFD_IOC_SMI_EVENTS   ? "smi_events"
							   : "other";
	struct rule r;
	int result;

	if (!find_rule(op, &r))
		return (int)syscall(SYS_ioctl, fd, request, arg);
	if (apply_common(&r, fd, request, arg, &result))
		return result;
	if (a)
		return hostile_trap(&r, fd, request, a);
	if (request == KFD_IOC_GET_VERSION)
		return hostile_version(&r, fd, request, arg);
	return is(&r, "lie") ? 0 : (int)syscall(SYS_ioctl, fd, request, arg);
}

/* NVIDIA. */

static void *params_of(const struct nv_rm_control *c)
{
	return (void *)(uintptr_t)c->params; // NOLINT(performance-no-int-to-ptr)
}

static const char *control_name(const struct nv_rm_control *c)
{
	const struct nv2080_disable_channels *p = params_of(c);

	if (c->cmd == NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS && p && !p->disable)
		return "release";
	return find_name(nvidia_ops, c->cmd);
}

/* What a control reads back. */
static void set_value(const struct nv_rm_control *c, uint64_t value)
{
	void *p = params_of(c);

	switch (c->cmd) {
	case NVA06C_CTRL_CMD_GET_TIMESLICE: ((struct nva06c_timeslice *)p)->us = value; break;
	case NVA06C_CTRL_CMD_GET_INFO: ((struct nva06c_info *)p)->tsg_id = (uint32_t)value; break;
	case NVA06C_CTRL_CMD_GET_INTERLEAVE_LEVEL:
		((struct nva06c_interleave *)p)->level = (uint32_t)value;
		break;
	case NV0000_CTRL_CMD_CLIENT_GET_HANDLE_INFO:
		((struct nv0000_handle_info *)p)->value = value;
		break;
	case NV0000_CTRL_CMD_CLIENT_GET_CHILD_HANDLE:
		((struct nv0000_child_handle *)p)->object = (uint32_t)value;
		break;
	case NV208F_CTRL_CMD_FIFO_GET_CHANNEL_STATE:
		((struct nv208f_channel_state *)p)->enabled = (uint8_t)value;
		break;
	case NV2080_CTRL_CMD_GPU_GET_PIDS:
		((struct nv2080_pids *)p)->count = (uint32_t)value;
		break;
	case NV2080_CTRL_CMD_FIFO_GET_CHANNEL_GROUP_UNIQUE_ID_INFO:
		((struct nv2080_group_ids *)p)->count = (uint32_t)value;
		break;
	default: break;
	}
}

/* Holds or releases one half of the channels. */
static int switch_half(const struct rule *r, int fd, unsigned long request, struct nv_rm_control *c)
{
	struct nv2080_disable_channels *p = params_of(c), all = *p;
	uint32_t first = number_of(r) ? (all.count + 1) / 2 : 0;
	int result;

	p->count = number_of(r) ? all.count - first : all.count / 2;
	memmove(p->client, all.client + first, p->count * sizeof *p->client);
	memmove(p->channel, all.channel + first, p->count * sizeof *p->channel);
	result = p->count ? (int)syscall(SYS_ioctl, fd, request, c) : 0;
	*p = all;
	return result;
}

static int hostile_control(const struct rule *r, int fd, unsigned long request,
			   struct nv_rm_control *c)
{
	bool pretend = is(r, "lie") || is(r, "status");
	int result;

	if (is(r, "half_lie") && c->cmd == NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS)
		return switch_half(r, fd, request, c);
	result = pretend ? 0 : (int)syscall(SYS_ioctl, fd, request, c);
	if (is(r, "lie"))
		c->status = NV_OK;
	if (is(r, "status") || is(r, "do_status"))
		c->status = (uint32_t)number_of(r);
	if (is(r, "value"))
		set_value(c, number_of(r));
	return result;
}

static int hostile_alloc(const struct rule *r, int fd, unsigned long request, void *arg)
{
	bool pretend = is(r, "lie") || is(r, "status");
	int result = pretend ? 0 : (int)syscall(SYS_ioctl, fd, request, arg);
	uint32_t status = is(r, "status") || is(r, "do_status") ? (uint32_t)number_of(r) : NV_OK;

	if (request == NV_ESC_RM_ALLOC && (pretend || is(r, "do_status")))
		((struct nv_rm_alloc *)arg)->status = status;
	if (request == NV_ESC_RM_FREE && (pretend || is(r, "do_status")))
		((struct nv_rm_free *)arg)->status = status;
	return result;
}

static int nvidia(int fd, unsigned long request, void *arg)
{
	struct nv_rm_control *c = request == NV_ESC_RM_CONTROL ? arg : NULL;
	const char *op = c                            ? control_name(c)
			 : request == NV_ESC_RM_ALLOC ? "alloc"
			 : request == NV_ESC_RM_FREE  ? "free"
						      : "other";
	struct rule r;
	int result;

	if (!find_rule(op, &r))
		return (int)syscall(SYS_ioctl, fd, request, arg);
	if (apply_common(&r, fd, request, arg, &result))
		return result;
	return c ? hostile_control(&r, fd, request, c) : hostile_alloc(&r, fd, request, arg);
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *arg;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (_IOC_TYPE(request) == 'K' && _IOC_SIZE(request))
		return amd(fd, request, arg);
	if (_IOC_TYPE(request) == NV_IOCTL_MAGIC && _IOC_SIZE(request))
		return nvidia(fd, request, arg);
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

static const struct name ptrace_ops[] = {
	{PTRACE_SEIZE, "ptrace_seize"},           {PTRACE_INTERRUPT, "ptrace_interrupt"},
	{PTRACE_DETACH, "ptrace_detach"},         {PTRACE_CONT, "ptrace_cont"},
	{PTRACE_GETSIGINFO, "ptrace_getsiginfo"}, {0, NULL},
};

__attribute__((visibility("default"))) long ptrace(enum __ptrace_request request, ...)
{
	static long (*real)(enum __ptrace_request, ...);
	struct rule r;
	va_list list;
	pid_t pid;
	void *address, *data;

	if (!real)
		real = (long (*)(enum __ptrace_request, ...))dlsym(RTLD_NEXT, "ptrace");
	va_start(list, request);
	pid = va_arg(list, pid_t);
	address = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);
	if (!find_rule(find_name(ptrace_ops, (uint32_t)request), &r))
		return real(request, pid, address, data);
	if (is(&r, "errno"))
		return fail_with((int)number_of(&r));
	if (is(&r, "lie"))
		return 0;
	if (is(&r, "do_errno")) {
		real(request, pid, address, data);
		return fail_with((int)number_of(&r));
	}
	return real(request, pid, address, data);
}
