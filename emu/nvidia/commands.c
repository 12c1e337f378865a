/* SPDX-License-Identifier: Apache-2.0 */
/* What each control does once RM's checks are passed, and the table of them. */
#include "rm.h"

const struct driver rm_drivers[] = {
	{"580", "580.159.04", 3, 384, 1032},
	{"550", "550.120", 2, 256, 776},
	{"570", "570.172.08", 3, 256, 1032},
	{"595", "595.45.04", 3, 384, 1032},
	{0},
};

static uint32_t build_version(struct call *call)
{
	struct nv0000_build_version *v = &call->params.build_version;

	memset(v, 0, sizeof(*v));
	snprintf(v->driver_version, sizeof(v->driver_version), "%s", rm.driver->version);
	snprintf(v->version, sizeof(v->version), "%s", rm.driver->version);
	snprintf(v->driver_branch, sizeof(v->driver_branch), "r%s_00", rm.driver->name);
	return NV_OK;
}

static uint32_t attached_ids(struct call *call)
{
	for (uint32_t i = 0; i < 32; i++)
		call->params.gpu_ids.gpu_id[i] =
			i < rm.engine.ngpus ? rm.engine.gpu[i].gpu_id : NV0000_CTRL_GPU_INVALID_ID;
	return NV_OK;
}

static uint32_t probed_ids(struct call *call)
{
	struct nv0000_probed_ids *ids = &call->params.probed_ids;

	memset(ids, 0, sizeof(*ids));
	for (uint32_t i = 0; i < 32; i++) {
		ids->gpu_id[i] =
			i < rm.engine.ngpus ? rm.engine.gpu[i].gpu_id : NV0000_CTRL_GPU_INVALID_ID;
		ids->excluded_gpu_id[i] = NV0000_CTRL_GPU_INVALID_ID;
	}
	return NV_OK;
}

static uint32_t pci_info(struct call *call)
{
	struct nv0000_pci_info *info = &call->params.pci_info;

	for (uint32_t i = 0; i < rm.engine.ngpus; i++)
		if (rm.engine.gpu[i].gpu_id == info->gpu_id) {
			info->domain = 0;
			info->bus = (uint16_t)rm.engine.gpu[i].bus;
			info->slot = 0;
			return NV_OK;
		}
	return NV_ERR_OBJECT_NOT_FOUND;
}

static uint32_t id_info(struct call *call)
{
	struct nv0000_id_info *info = &call->params.id_info;

	for (uint32_t i = 0; i < rm.engine.ngpus; i++)
		if (rm.engine.gpu[i].gpu_id == info->gpu_id) {
			*info = (struct nv0000_id_info){.gpu_id = info->gpu_id,
							.device_instance = i,
							.gpu_instance = i,
							.numa_id = -1};
			return NV_OK;
		}
	return NV_ERR_INVALID_ARGUMENT;
}

static uint32_t handle_info(struct call *call)
{
	struct nv0000_handle_info *info = &call->params.handle_info;
	const struct object *object = object_find(call->client, info->object);
	uint32_t value;

	if (!object)
		return NV_ERR_OBJECT_NOT_FOUND;
	if (info->index == NV0000_HANDLE_INFO_PARENT)
		value = object->parent ? object->parent->handle : 0;
	else if (info->index == NV0000_HANDLE_INFO_CLASSID)
		value = object->class;
	else
		return NV_ERR_INVALID_ARGUMENT;
	memcpy(&info->value, &value, sizeof(value)); /* the other half stays as it was */
	return NV_OK;
}

/* The kind is RM's own name, not the class that objects are allocated with. */
static uint32_t child_handle(struct call *call)
{
	struct nv0000_child_handle *child = &call->params.child_handle;
	const struct object *parent = object_find(call->client, child->parent);

	if (!parent)
		return NV_ERR_OBJECT_NOT_FOUND;
	for (const struct object *o = call->client->objects; o; o = o->next)
		if (o->parent == parent && internal_kind(o) == child->kind) {
			child->object = o->handle;
			return NV_OK;
		}
	return NV_ERR_OBJECT_NOT_FOUND;
}

static uint32_t gpu_id(struct call *call)
{
	call->params.gpu_id.gpu_id = call->object->gpu->gpu_id;
	return NV_OK;
}

static void add_pid(struct nv2080_pids *pids, uint32_t pid)
{
	for (uint32_t i = 0; i < pids->count; i++)
		if (pids->pid[i] == pid)
			return;
	if (pids->count < sizeof(pids->pid) / sizeof(pids->pid[0]))
		pids->pid[pids->count++] = pid;
}

/* RM looks at subdevices and at what is below channels only. */
static bool is_listed(const struct object *o)
{
	return o->kind == KIND_SUBDEVICE || o->kind == KIND_COMPUTE || o->kind == KIND_COPY;
}

static uint32_t gpu_pids(struct call *call)
{
	struct nv2080_pids *pids = &call->params.pids;

	if (pids->id_type > 1)
		return NV_ERR_INVALID_ARGUMENT;
	pids->count = 0;
	for (const struct client *c = rm.clients; c && !pids->id_type; c = c->next)
		for (const struct object *o = c->objects; o; o = o->next)
			if (o->class == pids->id && o->gpu == call->object->gpu && is_listed(o))
				add_pid(pids, (uint32_t)c->pid);
	return NV_OK;
}

static void switch_channel(struct channel *channel, const struct nv2080_disable_channels *d,
			   bool disable)
{
	if (disable)
		channel_disable(channel, d->only_disable_scheduling, d->rewind_gp_put);
	else
		channel_enable(channel);
}

/* One entry of the list: a channel, or a group with all its channels. */
static bool switch_entry(const struct nv2080_disable_channels *d, uint32_t i, const struct gpu *gpu,
			 bool disable)
{
	const struct client *client = client_find(d->client[i]);
	const struct object *o = client ? object_find(client, d->channel[i]) : NULL;

	if (!o || !o->group || o->gpu != gpu)
		return false;
	if (o->channel)
		switch_channel(o->channel, d, disable);
	for (struct channel *c = o->channel ? NULL : o->group->channels; c; c = c->next)
		switch_channel(c, d, disable);
	return true;
}

/*
 * The firmware does not check the owner of a channel. At the first unknown channel it stops:
 * those before it are done, those behind are not (seen on an H200 with 580.159.04, as all of this).
 */
static uint32_t disable_channels(struct call *call)
{
	const struct nv2080_disable_channels *d = &call->params.disable_channels;
	uint32_t status = NV_OK, skipped;
	bool disable;

	if (d->runlist_preempt_event)
		return NV_ERR_INSUFFICIENT_PERMISSIONS;
	if (!rm.gsp)
		return NV_ERR_NOT_SUPPORTED;
	if (!d->count || d->count > NV2080_DISABLE_CHANNELS_MAX)
		return NV_ERR_INVALID_PARAM_STRUCT;
	skipped = fault_skipped(NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS);
	disable = d->disable != fault_inverts(NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS);
	for (uint32_t i = 0; i < d->count && !status; i++)
		if ((i >= 32 || !(skipped >> i & 1)) &&
		    !switch_entry(d, i, call->object->gpu, disable))
			status = NV_ERR_INVALID_CHANNEL;
	pthread_cond_broadcast(&rm.engine.changed);
	return status;
}

static uint32_t group_ids(struct call *call)
{
	struct nv2080_group_ids *ids = &call->params.group_ids;
	const struct client *client = client_find(ids->client);
	const struct object *o = client ? object_find(client, ids->channel_or_group) : NULL;

	if (!o || !o->group || o->gpu != call->object->gpu)
		return NV_ERR_OBJECT_NOT_FOUND;
	ids->group_id = o->group->tsg_id;
	ids->count = 0;
	for (const struct channel *c = o->group->channels; c && ids->count < 128; c = c->next)
		ids->channel_id[ids->count++] = c->id;
	return NV_OK;
}

static uint32_t preemption_mode(struct call *call)
{
	const struct nv2080_preemption_mode *mode = &call->params.preemption_mode;
	struct object *object = object_find(call->client, mode->channel_or_group);

	if (!object)
		return NV_ERR_OBJECT_NOT_FOUND;
	if (!object->group || object->gpu != call->object->gpu)
		return NV_ERR_INVALID_CHANNEL;
	if (object->group->engine_type != NV2080_ENGINE_TYPE_GR0 || !object->group->channels)
		return NV_ERR_INVALID_ARGUMENT;
	if (mode->flags & NV2080_PREEMPTION_FLAGS_COMPUTE) {
		if (mode->compute_mode > MODE_CILP)
			return NV_ERR_INVALID_ARGUMENT;
		object->group->mode = (enum preempt_mode)mode->compute_mode;
	}
	return NV_OK;
}

/* A channel, and what a diagnostic subdevice tells of it. */

static uint32_t submit_token(struct call *call)
{
	call->params.u32 = call->object->channel->id;
	return NV_OK;
}

/* A channel of any client: the owner is not checked. */
static struct object *channel_find(uint32_t client_handle, uint32_t handle, uint32_t *status)
{
	struct client *client = client_find(client_handle);
	struct object *object = client ? object_find(client, handle) : NULL;

	*status = NV_OK;
	if (!client)
		*status = NV_ERR_INVALID_OBJECT_HANDLE;
	else if (!object)
		*status = NV_ERR_OBJECT_NOT_FOUND;
	else if (object->kind != KIND_CHANNEL)
		*status = NV_ERR_INVALID_CHANNEL;
	return *status ? NULL : object;
}

static uint32_t channel_state(struct call *call)
{
	struct nv208f_channel_state *s = &call->params.channel_state;
	uint32_t status;
	const struct object *o = channel_find(s->client, s->channel, &status);

	if (!o)
		return status;
	s->bound = 1;
	s->enabled = rm.channels_read ? rm.channels_read == 2 : o->channel->enabled;
	if (rm.channels_read && rm.channels_read_left && !--rm.channels_read_left)
		rm.channels_read = 0;
	s->scheduled = 1; /* in the runlist, whether it may run or not */
	s->cpu_map = 0;
	s->contention = 0;
	s->runlist_set = 1;
	s->defer_rc = 0;
	return NV_OK;
}

/* Accepted, and nothing changes. */
static uint32_t schedule(struct call *call)
{
	(void)call;
	return NV_OK;
}

static uint32_t set_timeslice(struct call *call)
{
	group_set_slice(call->object->group, call->params.timeslice.us);
	pthread_cond_broadcast(&rm.engine.changed);
	return NV_OK;
}

static uint32_t get_timeslice(struct call *call)
{
	call->params.timeslice.us =
		rm.slice_read_us ? rm.slice_read_us : call->object->group->asked_us;
	return NV_OK;
}

static uint32_t preempt(struct call *call)
{
	if (call->params.preempt.manual_timeout && call->params.preempt.timeout_us > 1000000)
		return NV_ERR_INVALID_ARGUMENT;
	group_preempt(call->object->group);
	pthread_cond_broadcast(&rm.engine.changed);
	return NV_OK;
}

static uint32_t group_info(struct call *call)
{
	call->params.info.tsg_id = call->object->group->tsg_id;
	return NV_OK;
}

/* RM turns whatever the firmware says about it into NOT_SUPPORTED, wrong levels too. */
static uint32_t set_interleave(struct call *call)
{
	if (call->params.interleave.level > 2)
		return NV_ERR_NOT_SUPPORTED;
	call->object->group->interleave = call->params.interleave.level;
	return NV_OK;
}

#define CLIENT   KIND_CLIENT
#define SUB      KIND_SUBDEVICE
#define GROUP    KIND_GROUP
#define READS    COMMAND_READS
#define NO_GPU   COMMAND_NO_GPU_ACCESS
#define FIRMWARE COMMAND_FIRMWARE

static const struct command commands[] = {
	{NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, "build_version", CLIENT, 1032, READS,
	 build_version},
	{NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS, "attached_ids", CLIENT, 128, READS, attached_ids},
	{NV0000_CTRL_CMD_GPU_GET_PROBED_IDS, "probed_ids", CLIENT, 384, READS, probed_ids},
	{NV0000_CTRL_CMD_GPU_GET_PCI_INFO, "pci_info", CLIENT, 12, READS, pci_info},
	{NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, "id_info", CLIENT, 32, READS, id_info},
	{NV0000_CTRL_CMD_CLIENT_GET_HANDLE_INFO, "handle_info", CLIENT, 16, READS, handle_info},
	{NV0000_CTRL_CMD_CLIENT_GET_CHILD_HANDLE, "child_handle", CLIENT, 12, 0, child_handle},
	{NV2080_CTRL_CMD_GPU_GET_ID, "gpu_id", SUB, 4, READS | NO_GPU, gpu_id},
	{NV2080_CTRL_CMD_GPU_GET_PIDS, "pids", SUB, 3812, 0, gpu_pids},
	{NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, "disable", SUB, 536, READS | FIRMWARE,
	 disable_channels},
	{NV2080_CTRL_CMD_FIFO_GET_CHANNEL_GROUP_UNIQUE_ID_INFO, "group_ids", SUB, 1552, READS,
	 group_ids},
	{NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE, "preemption_mode", SUB, 32, READS | FIRMWARE,
	 preemption_mode},
	{NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, "token", KIND_CHANNEL, 4, 0, submit_token},
	{NV208F_CTRL_CMD_FIFO_GET_CHANNEL_STATE, "channel_state", KIND_DIAG, 16, FIRMWARE,
	 channel_state},
	{NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, "schedule", GROUP, 3, FIRMWARE, schedule},
	{NVA06C_CTRL_CMD_SET_TIMESLICE, "set_timeslice", GROUP, 8, FIRMWARE, set_timeslice},
	{NVA06C_CTRL_CMD_GET_TIMESLICE, "get_timeslice", GROUP, 8, 0, get_timeslice},
	{NVA06C_CTRL_CMD_PREEMPT, "preempt", GROUP, 8, FIRMWARE, preempt},
	{NVA06C_CTRL_CMD_GET_INFO, "get_info", GROUP, 4, 0, group_info},
	{NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL, "set_interleave", GROUP, 4, FIRMWARE | COMMAND_NICE,
	 set_interleave},
};

const struct command *command_at(size_t i)
{
	return i < sizeof(commands) / sizeof(commands[0]) ? &commands[i] : NULL;
}

const struct command *command_find(uint32_t cmd)
{
	for (size_t i = 0; command_at(i); i++)
		if (commands[i].cmd == cmd)
			return &commands[i];
	return NULL;
}

uint32_t command_size(const struct command *command)
{
	switch (command->cmd) {
	case NVA06C_CTRL_CMD_GPFIFO_SCHEDULE: return rm.driver->schedule_size;
	case NV0000_CTRL_CMD_GPU_GET_PROBED_IDS: return rm.driver->probed_size;
	case NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2: return rm.driver->build_size;
	default: return command->size;
	}
}
