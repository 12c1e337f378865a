/* SPDX-License-Identifier: Apache-2.0 */
/* A debug session: attaching to a process, and letting it go. */
#include "kfd.h"

static void refresh(struct device *d)
{
	if (!d->model->per_vmid_debug)
		return;
	if (d->model->mes) {
		count_add("debug_messages", 1);
		return;
	}
	device_lock(d);
	device_cycle(d, kfd.resume_ns);
	device_unlock(d);
}

void session_refresh(struct process *target)
{
	(void)target; /* every process sees every device */
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		refresh(&kfd.device[i]);
}

static int set_workaround(struct process *p, bool on)
{
	for (struct queue *q = p->queues; q; q = q->next) {
		if (!q->device->model->mask_workaround)
			continue;
		if (on && q->cu_masked)
			return -EBUSY;
		q->workaround = on;
	}
	return 0;
}

/* The only debug VMID of a device. */
static bool reserve(struct device *d, const struct process *p)
{
	bool is_free;

	if (d->model->per_vmid_debug)
		return true;
	device_lock(d);
	is_free = !d->debug_owner;
	if (is_free) {
		d->debug_owner = p;
		device_cycle(d, kfd.resume_ns);
	}
	device_unlock(d);
	return is_free;
}

static void release(struct device *d, const struct process *p)
{
	if (d->model->per_vmid_debug || d->debug_owner != p)
		return;
	device_lock(d);
	device_cycle(d, kfd.resume_ns);
	d->debug_owner = NULL;
	device_unlock(d);
}

static void leave_devices(struct process *p, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		release(&kfd.device[i], p);
		refresh(&kfd.device[i]);
	}
	set_workaround(p, false);
}

/* All devices or none; what went wrong stands in the runtime state only. */
void session_activate(struct process *p)
{
	if (set_workaround(p, true)) {
		p->runtime.runtime_state = KFD_RUNTIME_BUSY;
		return;
	}
	for (uint32_t i = 0; i < kfd.ndevices; i++) {
		struct device *d = &kfd.device[i];

		if (!reserve(d, p) || d->in_reset) {
			p->runtime.runtime_state =
				d->in_reset ? KFD_RUNTIME_ERROR : KFD_RUNTIME_BUSY;
			leave_devices(p, i);
			return;
		}
		refresh(d);
	}
}

void session_deactivate(struct process *p)
{
	resume_all(p);
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		p->on[i].watches = 0;
	p->launch_mode = 0;
	session_refresh(p);
	p->flags = 0;
	session_refresh(p);
	leave_devices(p, kfd.ndevices);
}

static int check_devices(const struct process *p)
{
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		if (p->on[i].has_gws && kfd.device[i].model->mask_workaround)
			return -EBUSY;
	return 0;
}

/* The kernel can write to a pipe's writing end; to most other files it cannot, and keeps silent. */
static void open_events(const struct call *call, struct process *target, uint32_t fd)
{
	target->event_fd = fd_is_fifo(call->pid, fd) ? fd_copy(call->process->pidfd, fd) : -1;
	target->event_fd_works =
		target->event_fd >= 0 && (fcntl(target->event_fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

static void end_session(struct process *p)
{
	if (p->event_fd >= 0)
		close(p->event_fd);
	p->event_fd = -1;
	p->event_fd_works = false;
	p->debugged = false;
}

static int start_session(struct call *call, struct process *target, struct kfd_dbg_trap *args)
{
	uint32_t size = args->enable.rinfo_size;
	int result = 0;

	if (!fd_exists(call->pid, args->enable.dbg_fd))
		return -EBADF;
	open_events(call, target, args->enable.dbg_fd);
	if (target->runtime.runtime_state == KFD_RUNTIME_ENABLED)
		session_activate(target);
	target->debugged = true;
	if (size > sizeof(target->runtime))
		size = sizeof(target->runtime);
	if (memory_write(call->pid, args->enable.rinfo_ptr, &target->runtime, size)) {
		session_deactivate(target);
		end_session(target);
		result = -EFAULT;
	}
	args->enable.rinfo_size = sizeof(target->runtime);
	return result;
}

/* With the present debugger, which may not have begun the session. */
static void count_session(const struct process *target, int change)
{
	struct process *debugger = process_by_serial(target->debugger);

	if (debugger)
		debugger->debugging += change;
}

int session_enable(struct call *call, struct process *target, struct kfd_dbg_trap *args)
{
	int result;

	if (target != call->process)
		target->debugger = call->process->serial; /* also when the rest fails */
	if (target->debugged)
		return -EALREADY;
	result = check_devices(target);
	if (!result)
		result = start_session(call, target, args);
	if (!result) {
		count_session(target, 1);
		target->enabled_exceptions = args->enable.exception_mask;
	}
	return result;
}

int session_disable(struct process *target)
{
	if (!target->debugged)
		return 0;
	if (target->runtime.runtime_state == KFD_RUNTIME_ENABLED)
		session_deactivate(target);
	else if (target->runtime.runtime_state != KFD_RUNTIME_DISABLED)
		target->runtime.runtime_state = KFD_RUNTIME_ENABLED;
	end_session(target);
	count_session(target, -1);
	target->debugger = 0;
	event_clear_all(target);
	return 0;
}
