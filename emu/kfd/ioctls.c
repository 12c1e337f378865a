/* SPDX-License-Identifier: Apache-2.0 */
/* From an ioctl's number to what runs it, as the driver's own dispatcher. */
#include <signal.h>

#include "kfd.h"

#define IOC_IN_OUT _IOC(_IOC_READ | _IOC_WRITE, 0, 0, 0)

static int get_version(struct call *call, void *data)
{
	struct kfd_version *args = data;

	(void)call;
	args->major = kfd.major;
	args->minor = kfd.minor;
	return 0;
}

/* Takes any file for that of the render node. */
static int acquire_vm(struct call *call, void *data)
{
	const struct kfd_acquire_vm *args = data;
	struct device *d = device_find(args->gpu_id);

	if (!d || !fd_exists(call->pid, args->drm_fd))
		return -EINVAL;
	process_lock(call->process);
	call->process->on[d->index].has_vm = true;
	process_unlock(call->process);
	return 0;
}

/* A FUSE server cannot give its caller a new file: see smi.c. */
static int smi_events(struct call *call, void *data)
{
	const struct kfd_smi_events *args = data;

	(void)call;
	return device_find(args->gpuid) ? -EOPNOTSUPP : -EINVAL;
}

/* The debugger's interface of another time. */
static int deprecated(struct call *call, void *data)
{
	(void)call;
	(void)data;
	return -EPERM;
}

static const struct {
	const char *name;
	unsigned int cmd;
	int (*run)(struct call *call, void *data);
} table[KFD_IOC_LAST_NR + 1] = {
	[0x01] = {"get_version", KFD_IOC_GET_VERSION, get_version},
	[0x02] = {"create_queue", KFD_IOC_CREATE_QUEUE, queue_create},
	[0x03] = {"destroy_queue", KFD_IOC_DESTROY_QUEUE, queue_destroy},
	[0x07] = {"update_queue", KFD_IOC_UPDATE_QUEUE, queue_update},
	[0x0d] = {"dbg_register", _IOC(_IOC_WRITE, 'K', 0x0d, 8), deprecated},
	[0x0e] = {"dbg_unregister", _IOC(_IOC_WRITE, 'K', 0x0e, 8), deprecated},
	[0x0f] = {"dbg_address_watch", _IOC(_IOC_WRITE, 'K', 0x0f, 16), deprecated},
	[0x10] = {"dbg_wave_control", _IOC(_IOC_WRITE, 'K', 0x10, 16), deprecated},
	[0x14] = {"get_apertures", KFD_IOC_GET_PROCESS_APERTURES, node_apertures},
	[0x15] = {"acquire_vm", KFD_IOC_ACQUIRE_VM, acquire_vm},
	[0x1a] = {"set_cu_mask", KFD_IOC_SET_CU_MASK, queue_set_cu_mask},
	[0x1b] = {"get_wave_state", KFD_IOC_GET_QUEUE_WAVE_STATE, queue_wave_state},
	[0x1f] = {"smi_events", KFD_IOC_SMI_EVENTS, smi_events},
	[0x22] = {"criu_op", KFD_IOC_CRIU_OP, criu_op},
	[0x25] = {"runtime_enable", KFD_IOC_RUNTIME_ENABLE, runtime_enable},
	[0x26] = {"dbg_trap", KFD_IOC_DBG_TRAP, trap_dbg},
};

static const char *const op_names[] = {
	[KFD_DBG_ENABLE] = "enable",
	[KFD_DBG_DISABLE] = "disable",
	[KFD_DBG_SEND_RUNTIME_EVENT] = "send_runtime_event",
	[KFD_DBG_SET_EXCEPTIONS_ENABLED] = "set_exceptions_enabled",
	[KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE] = "set_launch_override",
	[KFD_DBG_SET_WAVE_LAUNCH_MODE] = "set_launch_mode",
	[KFD_DBG_SUSPEND_QUEUES] = "suspend_queues",
	[KFD_DBG_RESUME_QUEUES] = "resume_queues",
	[KFD_DBG_SET_NODE_ADDRESS_WATCH] = "set_address_watch",
	[KFD_DBG_CLEAR_NODE_ADDRESS_WATCH] = "clear_address_watch",
	[KFD_DBG_SET_FLAGS] = "set_flags",
	[KFD_DBG_QUERY_DEBUG_EVENT] = "query_debug_event",
	[KFD_DBG_QUERY_EXCEPTION_INFO] = "query_exception_info",
	[KFD_DBG_GET_QUEUE_SNAPSHOT] = "get_queue_snapshot",
	[KFD_DBG_GET_DEVICE_SNAPSHOT] = "get_device_snapshot",
};

/* A driver with an older interface does not have the last calls. */
static bool is_known(unsigned int nr)
{
	if (!nr || nr > KFD_IOC_LAST_NR)
		return false;
	return nr < _IOC_NR(KFD_IOC_RUNTIME_ENABLE) || kfd.major > KFD_DEBUG_MAJOR ||
	       kfd.minor >= KFD_DEBUG_MINOR;
}

/* The driver's own idea of it; what is not emulated is copied both ways. */
static unsigned int driver_cmd(unsigned int cmd)
{
	unsigned int nr = _IOC_NR(cmd);

	return nr <= KFD_IOC_LAST_NR && table[nr].run ? table[nr].cmd : IOC_IN_OUT;
}

bool ioctl_copies_in(unsigned int cmd)
{
	return _IOC_DIR(driver_cmd(cmd)) & _IOC_WRITE;
}

bool ioctl_copies_out(unsigned int cmd)
{
	return _IOC_DIR(driver_cmd(cmd)) & _IOC_READ;
}

static const char *call_name(unsigned int nr, const void *data)
{
	uint32_t op;

	if (nr != _IOC_NR(KFD_IOC_DBG_TRAP))
		return table[nr].name;
	memcpy(&op, (const char *)data + offsetof(struct kfd_dbg_trap, op), sizeof(op));
	return op < sizeof(op_names) / sizeof(op_names[0]) ? op_names[op] : table[nr].name;
}

/* A driver that lies about a snapshot. */
static void falsify(const struct call *call, const struct fault *fault, struct kfd_dbg_trap *args)
{
	uint64_t first = args->queue_snapshot.snapshot_buf_ptr;

	if (first && fault->sets_type)
		memory_write(call->pid,
			     first + offsetof(struct kfd_queue_snapshot_entry, queue_type),
			     &fault->out_type, sizeof(fault->out_type));
	if (first && fault->out_gpu)
		memory_write(call->pid, first + offsetof(struct kfd_queue_snapshot_entry, gpu_id),
			     &fault->out_gpu, sizeof(fault->out_gpu));
	if (fault->sets_count)
		args->queue_snapshot.num_queues = fault->out_count;
	if (fault->sets_size)
		args->queue_snapshot.entry_size = fault->out_size;
}

/* A driver that suspends or resumes a part of the queues and confirms all. */
static int run_part(struct call *call, unsigned int nr, struct kfd_dbg_trap *args, uint32_t part)
{
	uint32_t *n = args->op == KFD_DBG_SUSPEND_QUEUES ? &args->suspend_queues.num_queues
							 : &args->resume_queues.num_queues;
	uint32_t all = *n;
	int result;

	*n = part < all ? part : all;
	result = table[nr].run(call, args);
	*n = all;
	return result < 0 ? result : (int)all;
}

static int run_faulty(struct call *call, unsigned int nr, void *data)
{
	const char *name = call_name(nr, data);
	struct fault fault = fault_take(name, call->pid);
	int result;

	count_add(name, 1);
	if (fault.kill)
		kill(fault.kill, SIGKILL);
	kfd_delay_ns(fault.delay_ns);
	if (fault.error)
		return -fault.error;
	result = fault.ignored   ? 0
		 : fault.is_part ? run_part(call, nr, data, fault.part)
				 : table[nr].run(call, data);
	if (fault.sets_count || fault.sets_size || fault.sets_type || fault.out_gpu)
		falsify(call, &fault, data);
	return fault.sets_result && result >= 0 ? fault.result : result;
}

/* Only the process that opened the file may use it. */
static int check_caller(const struct call *call, unsigned int nr)
{
	if (nr == _IOC_NR(KFD_IOC_CRIU_OP))
		return criu_check(call);
	return call->process->pid == call->pid ? 0 : -EBADF;
}

static void count_refusal(int error)
{
	char name[32];

	snprintf(name, sizeof(name), "refused_%s",
		 error == KFD_ERESTARTSYS ? "ERESTARTSYS"
		 : error == KFD_ENOTSUPP  ? "ENOTSUPP"
					  : strerrorname_np(error));
	count_add(name, 1);
}

int ioctl_run(struct call *call, unsigned int cmd, void *data)
{
	unsigned int nr = _IOC_NR(cmd);
	int result;

	kfd_lock();
	processes_bury();
	count_add("total", 1);
	result = is_known(nr) ? check_caller(call, nr) : -ENOTTY;
	if (!result)
		result = table[nr].run ? run_faulty(call, nr, data)
				       : -EOPNOTSUPP; /* the driver has it, this does not */
	if (result < 0)
		count_refusal(-result);
	kfd_unlock();
	return result;
}
