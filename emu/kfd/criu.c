/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRIU_OP: of what checkpointing needs only the part that stops and starts a process's queues. The
 * file may be a copy of the target's, used by its tracer.
 */
#include "kfd.h"

#define CAP_SYS_ADMIN          21
#define CAP_CHECKPOINT_RESTORE 40

enum { CRIU_PROCESS_INFO, CRIU_CHECKPOINT, CRIU_UNPAUSE, CRIU_RESTORE, CRIU_RESUME };

int criu_check(const struct call *call)
{
	struct task task, leader;

	if (call->process->pid != call->pid &&
	    (!task_read(call->process->pid, &leader) || leader.tracer != call->thread))
		return -EBADF;
	if (!task_read(call->thread, &task) ||
	    !(task.capabilities & (1ull << CAP_SYS_ADMIN | 1ull << CAP_CHECKPOINT_RESTORE)))
		return -EACCES;
	return 0;
}

/* A second pause nests. If the caller dies, the queues stay paused. */
static int process_info(struct process *p, struct kfd_criu *args)
{
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		device_evict(&kfd.device[i], p, KFD_SMI_TRIGGER_CRIU_CHECKPOINT);
	p->paused = true;
	args->pid = (uint32_t)p->pid;
	args->num_devices = kfd.ndevices;
	args->num_bos = 0;
	args->num_objects = p->nqueues;
	args->priv_data_size = 4096ull * (p->nqueues + 1); /* the value is not used */
	return 0;
}

static int unpause(struct process *p)
{
	if (!p->paused)
		return -EINVAL;
	p->paused = false;
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		device_restore(&kfd.device[i], p);
	return 0;
}

int criu_op(struct call *call, void *data)
{
	struct kfd_criu *args = data;
	struct process *p = call->process;
	int result;

	process_lock(p);
	if (args->op == CRIU_PROCESS_INFO)
		result = process_info(p, args);
	else if (args->op == CRIU_UNPAUSE)
		result = unpause(p);
	else
		result = args->op <= CRIU_RESUME ? -EOPNOTSUPP : -EINVAL;
	process_unlock(p);
	return result;
}
