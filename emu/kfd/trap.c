/* SPDX-License-Identifier: Apache-2.0 */
/* DBG_TRAP: access checks in the driver's order, and the small operations. */
#include "kfd.h"

static bool needs_runtime(uint32_t op)
{
	return (op >= KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE && op <= KFD_DBG_SET_FLAGS);
}

static struct process *find_target(struct call *call, uint32_t op, pid_t thread,
				   const struct task *task, int *error)
{
	struct process *target;
	struct task leader;

	*error = -EINVAL;
	if (op == KFD_DBG_ENABLE && thread != call->thread && task->tracer == call->thread)
		return task_read(task->pid, &leader) && leader.has_mm
			       ? process_create(task->pid, error)
			       : NULL;
	*error = -ESRCH;
	target = process_find(task->pid);
	if (target)
		*error = 0;
	return target;
}

/* The thread that calls must trace the target's first thread. */
static bool is_allowed(const struct call *call, const struct process *target, uint32_t op)
{
	struct task leader;

	if (target == call->process)
		return true;
	if (task_read(target->pid, &leader) && leader.tracer == call->thread)
		return true;
	if (kfd.rule == RULE_OLD)
		return op == KFD_DBG_DISABLE;
	return target->debugger == call->process->serial;
}

static int check_state(const struct process *target, const struct kfd_dbg_trap *args)
{
	uint32_t gpu_id = args->op == KFD_DBG_SET_NODE_ADDRESS_WATCH
				  ? args->set_node_address_watch.gpu_id
				  : args->clear_node_address_watch.gpu_id;

	if (args->op != KFD_DBG_ENABLE && !target->debugged)
		return -EINVAL;
	if (needs_runtime(args->op) && target->runtime.runtime_state != KFD_RUNTIME_ENABLED)
		return -EPERM;
	if ((args->op == KFD_DBG_SET_NODE_ADDRESS_WATCH ||
	     args->op == KFD_DBG_CLEAR_NODE_ADDRESS_WATCH) &&
	    !device_find(gpu_id))
		return -ENODEV;
	return 0;
}

static int send_runtime_event(struct process *target, const struct kfd_dbg_trap *args)
{
	uint64_t mask = args->send_runtime_event.exception_mask;

	if (mask & KFD_EC_MEMORY_VIOLATION && !device_find(args->send_runtime_event.gpu_id))
		return -ENODEV;
	if (mask & KFD_EC_PROCESS_RUNTIME) {
		target->runtime_sema++;
		kfd_changed();
	}
	return 0; /* whether there is such a queue or not */
}

/* Thin: the mask is remembered, and any mode of the first two is taken. */
static int set_launch_override(struct process *target, struct kfd_dbg_trap *args)
{
	const uint32_t supported = 0x8003007f;
	uint32_t previous = target->override_mask;

	if (args->launch_override.override_mode > 1)
		return -EINVAL;
	if (args->launch_override.support_request_mask & ~supported) {
		args->launch_override.support_request_mask = supported;
		return -EACCES;
	}
	target->override_mask = args->launch_override.enable_mask;
	args->launch_override.enable_mask = previous;
	args->launch_override.support_request_mask = supported;
	session_refresh(target);
	return 0;
}

static int set_launch_mode(struct process *target, uint32_t mode)
{
	mode &= 0xff;
	if (mode != 0 && mode != 1 && mode != 3)
		return -EINVAL;
	target->launch_mode = mode;
	session_refresh(target);
	return 0;
}

static int set_watch(struct process *target, struct kfd_dbg_trap *args)
{
	struct device *d = device_find(args->set_node_address_watch.gpu_id);
	struct process_device *on = &target->on[d->index];

	for (uint32_t id = 0; id < MAX_WATCHES; id++)
		if (!(on->watches & 1u << id)) {
			on->watches |= 1u << id;
			args->set_node_address_watch.id = id;
			return 0;
		}
	return -ENOMEM;
}

static int clear_watch(struct process *target, const struct kfd_dbg_trap *args)
{
	struct device *d = device_find(args->clear_node_address_watch.gpu_id);
	struct process_device *on = &target->on[d->index];
	uint32_t id = args->clear_node_address_watch.id;

	if (id >= MAX_WATCHES || !(on->watches & 1u << id))
		return -EINVAL;
	on->watches &= ~(1u << id);
	return 0;
}

/* Bit 0: one memory operation at a time; bit 1 (ALU operations) no model here can. */
static int set_flags(struct process *target, struct kfd_dbg_trap *args)
{
	uint32_t previous = target->flags;
	bool refused = args->set_flags.flags & 2;

	for (uint32_t i = 0; i < kfd.ndevices; i++)
		refused |= args->set_flags.flags & 1 && !kfd.device[i].model->precise_memory;
	if (!refused)
		target->flags = args->set_flags.flags;
	args->set_flags.flags = previous;
	if (refused)
		return -EACCES;
	session_refresh(target);
	return 0;
}

static int run_op(struct call *call, struct process *target, struct kfd_dbg_trap *args)
{
	switch (args->op) {
	case KFD_DBG_ENABLE: return session_enable(call, target, args);
	case KFD_DBG_DISABLE: return session_disable(target);
	case KFD_DBG_SEND_RUNTIME_EVENT: return send_runtime_event(target, args);
	case KFD_DBG_SET_EXCEPTIONS_ENABLED:
		event_set_enabled(target, args->set_exceptions_enabled.exception_mask);
		return 0;
	case KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE: return set_launch_override(target, args);
	case KFD_DBG_SET_WAVE_LAUNCH_MODE:
		return set_launch_mode(target, args->launch_mode.launch_mode);
	case KFD_DBG_SUSPEND_QUEUES: return suspend_queues(call, target, args);
	case KFD_DBG_RESUME_QUEUES: return resume_queues(call, target, args);
	case KFD_DBG_SET_NODE_ADDRESS_WATCH: return set_watch(target, args);
	case KFD_DBG_CLEAR_NODE_ADDRESS_WATCH: return clear_watch(target, args);
	case KFD_DBG_SET_FLAGS: return set_flags(target, args);
	case KFD_DBG_QUERY_DEBUG_EVENT: return event_query(target, args);
	case KFD_DBG_QUERY_EXCEPTION_INFO: return event_info(call, target, args);
	case KFD_DBG_GET_QUEUE_SNAPSHOT: return snapshot_queues(call, target, args);
	case KFD_DBG_GET_DEVICE_SNAPSHOT: return snapshot_devices(call, target, args);
	default: return -EINVAL;
	}
}

int trap_dbg(struct call *call, void *data)
{
	struct kfd_dbg_trap *args = data;
	struct process *target;
	struct task task;
	pid_t thread;
	int result;

	if (kfd.sched_policy == 2)
		return -EINVAL;
	thread = task_in_namespace(call->thread, (pid_t)args->pid);
	if (!task_read(thread, &task) || !task.has_mm)
		return -ESRCH;
	target = find_target(call, args->op, thread, &task, &result);
	if (!target)
		return result;
	if (!is_allowed(call, target, args->op)) {
		process_put(target);
		return -EPERM;
	}
	process_lock(target);
	result = check_state(target, args);
	if (!result)
		result = run_op(call, target, args);
	process_unlock(target);
	process_put(target);
	return result;
}
