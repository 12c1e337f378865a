/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files, their clients, and the clients' objects: RM_ALLOC and RM_FREE with RM's checks in
 * RM's order (rs_server.c, alloc_free.c of the open kernel modules).
 */
#include <sys/uio.h>

#include "rm.h"

/* Handles that RM chooses itself. */
#define GENERATED_BASE 0xcaf00000u

/* Of its table of clients. */
#define CLIENT_BUCKETS 0x400u

struct class_info {
	uint32_t class;
	enum kind kind;
	uint32_t params_size;
	bool params_required;
};

static const struct class_info classes[] = {
	{NV01_ROOT_HANDLE, KIND_CLIENT, 4, false},
	{NV01_ROOT_NON_PRIV, KIND_CLIENT, 4, false},
	{NV01_ROOT_CLIENT, KIND_CLIENT, 4, false},
	{NV01_DEVICE_0, KIND_DEVICE, sizeof(struct nv0080_alloc), false},
	{NV20_SUBDEVICE_0, KIND_SUBDEVICE, 4, false},
	{NV20_SUBDEVICE_DIAG, KIND_DIAG, 0, false},
	{NV01_MEMORY_LOCAL_USER, KIND_MEMORY, sizeof(struct nv_memory_alloc), true},
	{KEPLER_CHANNEL_GROUP_A, KIND_GROUP, sizeof(struct emu_group_alloc), true},
};

/* Those that come in one class per generation: Volta, Turing, Ampere, Ada, Hopper, Blackwell. */
static const uint16_t channel_classes[] = {0xc36f, 0xc46f, 0xc56f, 0xc86f, 0xc96f, 0xca6f};
static const uint16_t compute_classes[] = {0xc3c0, 0xc5c0, 0xc6c0, 0xc7c0,
					   0xc9c0, 0xcbc0, 0xcdc0, 0xcec0};
static const uint16_t copy_classes[] = {0xc3b5, 0xc5b5, 0xc6b5, 0xc7b5, 0xc8b5, 0xc9b5, 0xcab5};

static bool is_in(uint32_t class, const uint16_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == class)
			return true;
	return false;
}

static bool class_find(uint32_t class, struct class_info *info)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (classes[i].class == class) {
			*info = classes[i];
			return true;
		}
	*info = (struct class_info){.class = class};
	if (is_in(class, channel_classes, sizeof(channel_classes) / 2))
		*info = (struct class_info){class, KIND_CHANNEL, sizeof(struct emu_channel_alloc),
					    true};
	else if (is_in(class, compute_classes, sizeof(compute_classes) / 2))
		*info = (struct class_info){class, KIND_COMPUTE, 16, false};
	else if (is_in(class, copy_classes, sizeof(copy_classes) / 2))
		*info = (struct class_info){class, KIND_COPY, 8, false};
	else
		return false;
	return true;
}

uint32_t internal_kind(const struct object *object)
{
	static const uint32_t names[] = {
		[KIND_CLIENT] = EMU_INTERNAL_CLIENT,
		[KIND_DEVICE] = NV_INTERNAL_DEVICE,
		[KIND_SUBDEVICE] = NV_INTERNAL_SUBDEVICE,
		[KIND_GROUP] = NV_INTERNAL_CHANNEL_GROUP,
		[KIND_CHANNEL] = NV_INTERNAL_CHANNEL,
		[KIND_COMPUTE] = NV_INTERNAL_GRAPHICS_OBJECT,
		[KIND_COPY] = EMU_INTERNAL_COPY_CONTEXT,
		[KIND_MEMORY] = EMU_INTERNAL_VIDEO_MEMORY,
		[KIND_DIAG] = EMU_INTERNAL_DIAG,
	};

	return names[object->kind];
}

static struct iovec remote(uint64_t address, uint32_t size)
{
	return (struct iovec){.iov_base = (void *)(uintptr_t)address, .iov_len = size};
}

uint32_t caller_read(const struct caller *caller, uint64_t address, void *to, uint32_t size)
{
	struct iovec here = {to, size}, there = remote(address, size);

	if (process_vm_readv(caller->thread, &here, 1, &there, 1, 0) != (ssize_t)size)
		return NV_ERR_INVALID_ADDRESS;
	return NV_OK;
}

uint32_t caller_write(const struct caller *caller, uint64_t address, const void *from,
		      uint32_t size)
{
	uint8_t copy[PARAMS_MAX];
	struct iovec here = {copy, size}, there = remote(address, size);

	memcpy(copy, from, size);
	if (process_vm_writev(caller->thread, &here, 1, &there, 1, 0) != (ssize_t)size)
		return NV_ERR_INVALID_ADDRESS;
	return NV_OK;
}

struct client *client_find(uint32_t handle)
{
	for (struct client *c = rm.clients; c; c = c->next)
		if (c->handle == handle)
			return c;
	return NULL;
}

struct object *object_find(const struct client *client, uint32_t handle)
{
	for (struct object *o = client->objects; o; o = o->next)
		if (o->handle == handle)
			return o;
	return NULL;
}

uint64_t client_memory(const struct client *client, const struct gpu *gpu)
{
	uint64_t bytes = 0;

	for (const struct object *o = client->objects; o; o = o->next)
		if (!gpu || o->gpu == gpu)
			bytes += o->memory;
	return bytes;
}

static void object_destroy(struct client *client, struct object *object)
{
	struct object **at = &client->objects;

	if (object->channel)
		channel_free(object->channel);
	else if (object->group)
		group_free(object->group);
	if (object->gpu)
		object->gpu->memory -= object->memory;
	while (*at != object)
		at = &(*at)->next;
	*at = object->next;
	free(object);
}

/* A channel below a device has a group of its own, which goes with it. */
static struct object *hidden_group(const struct client *client, const struct object *channel)
{
	if (channel->kind != KIND_CHANNEL || channel->parent->kind == KIND_GROUP)
		return NULL;
	for (struct object *o = client->objects; o; o = o->next)
		if (o->kind == KIND_GROUP && o->group == channel->group)
			return o;
	return NULL;
}

static struct object *last_child(const struct client *client, const struct object *parent)
{
	struct object *last = NULL;

	for (struct object *o = client->objects; o; o = o->next)
		if (o->parent == parent)
			last = o;
	return last;
}

/* The channel that has the group, or NULL. */
static struct object *wrapped_channel(const struct client *client, const struct object *group)
{
	for (struct object *o = client->objects; o && group->kind == KIND_GROUP; o = o->next)
		if (o->kind == KIND_CHANNEL && o->group == group->group && o->parent != group)
			return o;
	return NULL;
}

static void object_free_tree(struct client *client, struct object *object)
{
	struct object *wrapped = wrapped_channel(client, object);
	struct object *group = hidden_group(client, object), *child;

	if (wrapped) {
		object_free_tree(client, wrapped); /* takes this one along */
		return;
	}
	while ((child = last_child(client, object)))
		object_free_tree(client, child);
	object_destroy(client, object);
	if (group)
		object_destroy(client, group);
}

static void client_destroy(struct client *client)
{
	struct client **at = &rm.clients;

	object_free_tree(client, client->objects);
	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	free(client);
	pthread_cond_broadcast(&rm.engine.changed);
}

uint32_t rm_free(const struct caller *caller, const struct nv_rm_free *args)
{
	struct client *client = client_find(args->root);
	struct object *object;

	if (!client)
		return count_refusal(REFUSED_CLIENT), NV_ERR_INVALID_OBJECT_HANDLE;
	if (client->file != caller->file)
		return count_refusal(REFUSED_FILE), NV_ERR_INVALID_CLIENT;
	object = object_find(client, args->object);
	if (!object)
		return NV_OK; /* RM says so too: it is built in its compatible mode */
	if (object == client->objects)
		client_destroy(client);
	else
		object_free_tree(client, object);
	return NV_OK;
}

struct file *file_open(void)
{
	struct file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->id = ++rm.next_file;
	file->next = rm.files;
	rm.files = file;
	return file;
}

void file_close(struct file *file)
{
	struct file **at = &rm.files;
	struct client *next;

	for (struct client *c = rm.clients; c; c = next) {
		next = c->next;
		if (c->file == file)
			client_destroy(c);
	}
	while (*at != file)
		at = &(*at)->next;
	*at = file->next;
	free(file);
}

static struct object *object_add(struct client *client, struct object *parent, uint32_t handle,
				 const struct class_info *info)
{
	struct object *o = calloc(1, sizeof(*o)), **end = &client->objects;

	if (!o)
		return NULL;
	o->parent = parent;
	o->handle = handle;
	o->class = info->class;
	o->kind = info->kind;
	o->gpu = parent ? parent->gpu : NULL;
	while (*end)
		end = &(*end)->next;
	*end = o;
	return o;
}

/*
 * The next index, whether the last one's client still lives or not. After a wrap it may be in use:
 * then RM adds the number of its hash buckets until one is free, and goes on behind the index that
 * it began with. So a new handle may be higher than those that follow.
 */
static uint32_t client_handle(void)
{
	for (uint32_t i = 0; i < CLIENT_BUCKETS; i++) {
		uint32_t index = rm.next_index;

		rm.next_index = (rm.next_index + 1) % NV_CLIENT_COUNT;
		while (index < NV_CLIENT_COUNT && client_find(NV_CLIENT_BASE + index))
			index += CLIENT_BUCKETS;
		if (index < NV_CLIENT_COUNT)
			return NV_CLIENT_BASE + index;
	}
	return 0;
}

/* The process of a thread; they differ where a thread other than the first one calls. */
static pid_t thread_group(pid_t thread)
{
	char path[64], line[128];
	int pid = thread;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	status = fopen(path, "re");
	if (!status)
		return thread;
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "Tgid: %d", &pid) == 1)
			break;
	fclose(status);
	return pid;
}

static uint32_t client_alloc(const struct caller *caller, struct nv_rm_alloc *args)
{
	const struct class_info info = {.class = NV01_ROOT_CLIENT, .kind = KIND_CLIENT};
	uint32_t handle = args->root ? args->root : client_handle();
	struct client *client;

	if (!handle)
		return NV_ERR_INSUFFICIENT_RESOURCES;
	if (client_find(handle))
		return NV_ERR_INSERT_DUPLICATE_NAME;
	client = calloc(1, sizeof(*client));
	if (!client || !object_add(client, NULL, handle, &info)) {
		free(client);
		return NV_ERR_INSUFFICIENT_RESOURCES;
	}
	client->handle = handle;
	client->file = caller->file;
	client->pid = thread_group(caller->thread);
	client->uid = caller->uid;
	client->next = rm.clients;
	rm.clients = client;
	args->object = handle;
	return NV_OK;
}

static uint32_t parent_check(const struct class_info *info, const struct object *parent)
{
	static const uint32_t parents[] = {
		[KIND_DEVICE] = 1u << KIND_CLIENT,
		[KIND_SUBDEVICE] = 1u << KIND_DEVICE,
		[KIND_GROUP] = 1u << KIND_DEVICE,
		[KIND_CHANNEL] = 1u << KIND_DEVICE | 1u << KIND_GROUP,
		[KIND_COMPUTE] = 1u << KIND_CHANNEL,
		[KIND_COPY] = 1u << KIND_CHANNEL,
		[KIND_MEMORY] = 1u << KIND_DEVICE | 1u << KIND_SUBDEVICE,
		[KIND_DIAG] = 1u << KIND_SUBDEVICE,
	};

	return parents[info->kind] & 1u << parent->kind ? NV_OK : NV_ERR_INVALID_OBJECT_PARENT;
}

static uint32_t handle_assign(struct client *client, uint32_t *handle)
{
	if (*handle) {
		if (*handle == client->handle)
			return NV_ERR_INVALID_OBJECT_HANDLE;
		return object_find(client, *handle) ? NV_ERR_INSERT_DUPLICATE_NAME : NV_OK;
	}
	do {
		*handle = GENERATED_BASE + client->generated++;
	} while (object_find(client, *handle));
	return NV_OK;
}

static uint32_t device_construct(struct object *object, const struct nv0080_alloc *params)
{
	if (params->device_id >= rm.engine.ngpus)
		return NV_ERR_INVALID_CLASS;
	object->gpu = &rm.engine.gpu[params->device_id];
	return NV_OK;
}

static uint32_t group_construct(const struct client *client, struct object *object,
				uint32_t engine_type)
{
	if (!engine_type_is_valid(engine_type))
		return NV_ERR_INVALID_ARGUMENT;
	object->group = group_new(object->gpu, engine_type, client->pid);
	return object->group ? NV_OK : NV_ERR_INSUFFICIENT_RESOURCES;
}

/* A channel below a device: RM makes a group for it, with a handle that it chooses. */
static uint32_t wrap_channel(struct client *client, struct object *channel, uint32_t engine_type)
{
	const struct class_info info = {.class = KEPLER_CHANNEL_GROUP_A, .kind = KIND_GROUP};
	struct object *group;
	uint32_t handle = 0, status;

	handle_assign(client, &handle);
	group = object_add(client, channel->parent, handle, &info);
	if (!group)
		return NV_ERR_NO_MEMORY;
	status = group_construct(client, group, engine_type);
	if (status)
		object_destroy(client, group);
	else
		channel->group = group->group;
	return status;
}

static uint32_t channel_construct(struct client *client, struct object *object,
				  const struct emu_channel_alloc *params)
{
	uint32_t status = NV_OK;

	if (object->parent->kind == KIND_GROUP)
		object->group = object->parent->group;
	else
		status = wrap_channel(client, object, params->engine_type);
	if (status)
		return status;
	object->channel = channel_new(object->group);
	return object->channel ? NV_OK : NV_ERR_INSUFFICIENT_RESOURCES;
}

static uint32_t memory_construct(struct object *object, const struct nv_memory_alloc *params)
{
	if (!params->size)
		return NV_ERR_INVALID_ARGUMENT;
	if (params->size > rm.memory_limit - object->gpu->memory)
		return NV_ERR_NO_MEMORY;
	object->memory = params->size;
	object->gpu->memory += params->size;
	return NV_OK;
}

union alloc_params {
	uint32_t handle;
	struct nv0080_alloc device;
	struct emu_group_alloc group;
	struct emu_channel_alloc channel;
	struct nv_memory_alloc memory;
};

static uint32_t construct(struct client *client, struct object *object,
			  const union alloc_params *params)
{
	switch (object->kind) {
	case KIND_DEVICE: return device_construct(object, &params->device);
	case KIND_GROUP: return group_construct(client, object, params->group.engine_type);
	case KIND_CHANNEL: return channel_construct(client, object, &params->channel);
	case KIND_MEMORY: return memory_construct(object, &params->memory);
	case KIND_COMPUTE: /* only the graphics engine computes; it also copies */
		return object->parent->group->engine_type == NV2080_ENGINE_TYPE_GR0
			       ? NV_OK
			       : NV_ERR_INVALID_ARGUMENT;
	default: return NV_OK;
	}
}

static uint32_t object_alloc(struct client *client, struct nv_rm_alloc *args,
			     const struct class_info *info, const union alloc_params *params)
{
	struct object *parent, *object;
	uint32_t status;

	if (args->object == client->handle)
		return NV_ERR_INVALID_OBJECT_PARENT;
	parent = object_find(client, args->parent);
	if (!parent)
		return count_refusal(REFUSED_OBJECT), NV_ERR_OBJECT_NOT_FOUND;
	if (parent->gpu && rm.lost[parent->gpu->index])
		return NV_ERR_RESET_REQUIRED;
	if (info->kind == KIND_DIAG)
		for (struct object *o = client->objects; o; o = o->next)
			if (o->parent == parent && o->kind == KIND_DIAG)
				return NV_ERR_STATE_IN_USE;
	status = parent_check(info, parent);
	if (!status)
		status = handle_assign(client, &args->object);
	if (status)
		return status;
	object = object_add(client, parent, args->object, info);
	if (!object)
		return NV_ERR_NO_MEMORY;
	status = construct(client, object, params);
	if (status) {
		if (object->kind == KIND_CHANNEL && !object->channel)
			object->group = NULL; /* it is not this object's to free */
		object_destroy(client, object);
	}
	return status;
}

uint32_t rm_alloc(const struct caller *caller, struct nv_rm_alloc *args)
{
	union alloc_params params;
	struct class_info info;
	struct client *client;
	uint32_t status;

	memset(&params, 0, sizeof(params));
	if (!class_find(args->class, &info))
		return NV_ERR_INVALID_CLASS;
	if (info.params_required && !args->params)
		return NV_ERR_INVALID_ARGUMENT;
	if (args->params && info.params_size && info.params_size <= sizeof(params) &&
	    caller_read(caller, args->params, &params, info.params_size))
		return count_refusal(REFUSED_ADDRESS), NV_ERR_INVALID_ADDRESS;
	if (info.kind == KIND_CLIENT) {
		status = client_alloc(caller, args);
		if (!status && args->params)
			status = caller_write(caller, args->params, &args->object, 4);
		return status;
	}
	client = client_find(args->root);
	if (!client)
		return count_refusal(REFUSED_CLIENT), NV_ERR_INVALID_OBJECT_HANDLE;
	if (client->file != caller->file)
		return count_refusal(REFUSED_FILE), NV_ERR_INVALID_CLIENT;
	return object_alloc(client, args, &info, &params);
}
