/* SPDX-License-Identifier: Apache-2.0 */
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>

#include "load.h"

#define CUDA_SLICE_US 2048u /* what CUDA sets on its compute groups */

/* libcuda counts; other libraries have their own ideas. */
static uint32_t new_handle(struct program *p)
{
	if (!p->random_handles)
		return p->next_handle++;
	p->seed = p->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(p->seed >> 33) | 0x10000000u;
}

static uint32_t make(struct program *p, uint32_t parent, uint32_t class, void *params,
		     uint32_t size)
{
	uint32_t handle = new_handle(p);
	uint32_t status = rm_call_alloc(p->fd, p->client, parent, &handle, class, params, size);

	if (status)
		errx(1, "RM_ALLOC of class 0x%x: status 0x%x", class, status);
	return handle;
}

void program_open(struct program *p, uint64_t memory)
{
	const char *path = getenv("GPREEMPT_NVIDIACTL");
	uint32_t status;

	p->fd = open(path ? path : NV_CTL_DEVICE, O_RDWR | O_CLOEXEC);
	if (p->fd < 0)
		err(1, "%s", path ? path : NV_CTL_DEVICE);
	status = rm_call_alloc(p->fd, 0, 0, &p->client, NV01_ROOT_CLIENT, NULL, 0);
	if (status)
		errx(1, "RM_ALLOC of a client: status 0x%x", status);
	for (uint32_t i = 0; i < p->gpus; i++) {
		struct nv0080_alloc device = {.device_id = i};
		uint32_t subdevice = 0;
		struct nv_memory_alloc bytes = {.size = memory};

		p->device[i] = make(p, p->client, NV01_DEVICE_0, &device, sizeof(device));
		p->subdevice[i] =
			make(p, p->device[i], NV20_SUBDEVICE_0, &subdevice, sizeof(subdevice));
		if (memory)
			make(p, p->device[i], NV01_MEMORY_LOCAL_USER, &bytes, sizeof(bytes));
	}
}

static uint32_t make_group(struct program *p, uint32_t gpu, uint32_t engine_type, int channels,
			   uint32_t *first)
{
	struct emu_group_alloc group = {.engine_type = engine_type};
	uint32_t handle = make(p, p->device[gpu], KEPLER_CHANNEL_GROUP_A, &group, sizeof(group));

	for (int i = 0; i < channels; i++) {
		struct emu_channel_alloc params = {.engine_type = engine_type};
		uint32_t channel =
			make(p, handle, HOPPER_CHANNEL_GPFIFO_A, &params, sizeof(params));

		if (first && !i)
			*first = channel;
		if (engine_type == NV2080_ENGINE_TYPE_GR0)
			make(p, channel, HOPPER_COMPUTE_A, NULL, 0);
		make(p, channel, HOPPER_DMA_COPY_A, NULL, 0);
	}
	return handle;
}

void context_set_slice(const struct program *p, const struct context *c, uint64_t us)
{
	struct nva06c_timeslice slice = {.us = us};
	uint32_t status = rm_call_control(p->fd, p->client, c->group, NVA06C_CTRL_CMD_SET_TIMESLICE,
					  &slice, sizeof(slice));

	if (status)
		errx(1, "SET_TIMESLICE: status 0x%x", status);
}

void context_add(struct program *p)
{
	struct context *c = &p->context[p->ncontexts];

	if (p->ncontexts == MAX_CONTEXTS)
		errx(1, "too many contexts");
	*c = (struct context){.gpu = p->ncontexts % p->gpus, .digest = EMU_DIGEST_START};
	if (p->computes) {
		c->group = make_group(p, c->gpu, NV2080_ENGINE_TYPE_GR0, COMPUTE_CHANNELS,
				      &c->channel);
		context_set_slice(p, c, CUDA_SLICE_US);
	}
	for (uint32_t i = 0; i < COPY_GROUPS; i++)
		c->copy_group[i] = make_group(p, c->gpu, NV2080_ENGINE_TYPE_COPY0 + i,
					      COPY_CHANNELS, p->computes || i ? NULL : &c->channel);
	p->ncontexts++;
}

void context_remove(struct program *p)
{
	struct context *c = &p->context[--p->ncontexts];

	if (c->group && rm_call_free(p->fd, p->client, c->group))
		errx(1, "RM_FREE");
	for (uint32_t i = 0; i < COPY_GROUPS; i++)
		if (rm_call_free(p->fd, p->client, c->copy_group[i]))
			errx(1, "RM_FREE");
}

void context_submit(const struct program *p, struct context *c, uint64_t kernel_ns)
{
	struct emu_submit submit = {
		.client = p->client, .channel = c->channel, .kernels = 1, .kernel_ns = kernel_ns};

	if (ioctl(p->fd, EMU_SUBMIT, &submit))
		err(1, "submit");
	c->submitted++;
	c->digest = emu_digest(c->digest, kernel_ns);
}

struct emu_query context_query(const struct program *p, const struct context *c, uint64_t done,
			       uint32_t timeout_us)
{
	struct emu_query query = {.client = p->client,
				  .channel = c->channel,
				  .wait_done = done,
				  .timeout_us = timeout_us};

	if (ioctl(p->fd, EMU_QUERY, &query))
		err(1, "query");
	return query;
}
