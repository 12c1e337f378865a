/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RM_CONTROL: RM's checks in RM's order (control.c, rs_server.c and rs_resource.c of the open
 * kernel modules), up to the point where a command does what it is for.
 */
#include "rm.h"

#define UNKNOWN_PARAMS_MAX (1u << 20) /* of a command that RM does not know */
#define CAP_SYS_ADMIN      21
#define CAP_SYS_NICE       23

/* Whether the calling thread has one of these capabilities: not the file's, not the client's. */
static bool caller_is_nice(const struct caller *caller)
{
	char path[64], line[256];
	unsigned long long caps = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)caller->thread);
	status = fopen(path, "re");
	if (!status)
		return false;
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	fclose(status);
	return caps & (1ull << CAP_SYS_ADMIN | 1ull << CAP_SYS_NICE);
}

/* Before RM checks the owner of the client. */
static uint32_t check_arguments(const struct nv_rm_control *c, const struct command *command)
{
	if (c->flags & (NV0000_FLAGS_IRQL_RAISED | NV0000_FLAGS_LOCK_BYPASS))
		return NV_ERR_INVALID_ARGUMENT;
	if (!client_find(c->client))
		return count_refusal(REFUSED_CLIENT), NV_ERR_INVALID_CLIENT;
	if (!c->params != !c->params_size || c->params_size > UNKNOWN_PARAMS_MAX ||
	    (command && c->params_size != command_size(command)))
		return count_refusal(REFUSED_SIZE), NV_ERR_INVALID_ARGUMENT;
	return NV_OK;
}

static uint32_t copy_in(struct call *call, const struct nv_rm_control *c)
{
	uint32_t size = c->params_size < PARAMS_MAX ? c->params_size : PARAMS_MAX;

	memset(&call->params, 0, sizeof(call->params));
	if (size && caller_read(call->caller, c->params, call->params.bytes, size))
		return count_refusal(REFUSED_ADDRESS), NV_ERR_INVALID_ADDRESS;
	return NV_OK;
}

static uint32_t find_target(struct call *call, const struct nv_rm_control *c)
{
	call->client = client_find(c->client);
	if (!call->client || call->client->file != call->caller->file)
		return count_refusal(REFUSED_FILE), NV_ERR_INVALID_CLIENT;
	call->object = object_find(call->client, c->object);
	if (!call->object)
		return count_refusal(REFUSED_OBJECT), NV_ERR_OBJECT_NOT_FOUND;
	return NV_OK;
}

static uint32_t check_target(const struct call *call, const struct command *command)
{
	const struct gpu *gpu = call->object->gpu;

	if (!command || call->object->kind != command->kind)
		return count_refusal(REFUSED_COMMAND), NV_ERR_NOT_SUPPORTED;
	if (command->flags & COMMAND_NICE && !caller_is_nice(call->caller))
		return count_refusal(REFUSED_PERMISSION), NV_ERR_INSUFFICIENT_PERMISSIONS;
	if (gpu && rm.lost[gpu->index] && !(command->flags & COMMAND_NO_GPU_ACCESS))
		return NV_ERR_GPU_IS_LOST;
	return NV_OK;
}

/* The firmware works: others may use RM meanwhile, but not the firmware. */
static void wait_for_firmware(const struct gpu *gpu, uint64_t latency_ns)
{
	struct timespec time = {.tv_sec = (time_t)(latency_ns / GP_NS_PER_S),
				.tv_nsec = (long)(latency_ns % GP_NS_PER_S)};
	pthread_mutex_t *firmware = &rm.firmware[gpu->index];

	rm_unlock();
	pthread_mutex_lock(firmware);
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) == EINTR)
		;
	pthread_mutex_unlock(firmware);
	rm_lock();
}

static uint32_t run_command(struct call *call, const struct nv_rm_control *c,
			    const struct command *command, int *error)
{
	struct fault fault = fault_take(c->cmd, call->caller->thread);
	bool enables = c->cmd == NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS &&
		       !call->params.disable_channels.disable;
	uint64_t latency_ns = fault_latency_ns(c->cmd, enables);
	uint32_t status;

	if (fault.kill)
		kill(fault.kill, SIGKILL);
	if (call->object->gpu && latency_ns) {
		wait_for_firmware(call->object->gpu, latency_ns);
		status = find_target(call, c); /* it may have been freed */
		if (status)
			return status;
	}
	*error = fault.error;
	if (fault.error || fault.status || fault.ignore)
		return fault.status;
	status = command->run(call);
	if (!status && c->params_size &&
	    caller_write(call->caller, c->params, call->params.bytes, c->params_size))
		return count_refusal(REFUSED_ADDRESS), NV_ERR_INVALID_ADDRESS;
	return status;
}

static uint32_t control_locked(struct call *call, const struct nv_rm_control *c, int *error)
{
	const struct command *command = command_find(c->cmd);
	uint32_t status;

	count_call(c->cmd);
	if (!(c->cmd & 0xffffu))
		return NV_OK; /* every class has a command that does nothing */
	if (fault_is_unsupported(c->cmd))
		command = NULL;
	status = check_arguments(c, command);
	if (!status)
		status = copy_in(call, c);
	if (!status)
		status = find_target(call, c);
	if (!status)
		status = check_target(call, command);
	if (!status)
		status = run_command(call, c, command, error);
	return status;
}

uint32_t rm_control(const struct caller *caller, const struct nv_rm_control *c, int *error)
{
	const struct command *command = command_find(c->cmd);
	struct call *call = malloc(sizeof(*call));
	uint32_t status;
	bool api_lock;

	if (!call)
		return NV_ERR_NO_MEMORY;
	call->caller = caller;
	rm_lock();
	api_lock = rm.api_lock;
	rm_unlock();
	if (api_lock && command && command->flags & COMMAND_READS)
		pthread_rwlock_rdlock(&rm.api);
	else if (api_lock)
		pthread_rwlock_wrlock(&rm.api);
	rm_lock();
	status = control_locked(call, c, error);
	rm_unlock();
	if (api_lock)
		pthread_rwlock_unlock(&rm.api);
	free(call);
	return status;
}
