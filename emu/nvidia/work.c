/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's own ioctls: what a process and NVML do without RM. */
#include "work.h"

/* Shorter ones would keep the emulator busy, not the GPU. */
#define KERNEL_MIN_NS GP_NS_PER_US

/* As with RM's calls: through the client's own open file only. */
static struct channel *own_channel(const struct caller *caller, uint32_t client, uint32_t handle)
{
	const struct client *c = client_find(client);
	const struct object *o = c && c->file == caller->file ? object_find(c, handle) : NULL;

	return o ? o->channel : NULL;
}

int work_submit(const struct caller *caller, const struct emu_submit *submit)
{
	struct channel *channel;
	int result = -ENOENT;

	if (submit->kernel_ns < KERNEL_MIN_NS || submit->kernel_ns > 3600 * GP_NS_PER_S)
		return -EINVAL;
	rm_lock();
	channel = own_channel(caller, submit->client, submit->channel);
	if (channel)
		result = channel_submit(channel, submit->kernels, submit->kernel_ns);
	pthread_cond_broadcast(&rm.engine.changed);
	rm_unlock();
	return result;
}

static void wait_until(uint64_t ns)
{
	struct timespec at = {.tv_sec = (time_t)(ns / GP_NS_PER_S),
			      .tv_nsec = (long)(ns % GP_NS_PER_S)};

	pthread_cond_timedwait(&rm.engine.changed, &rm.lock, &at);
	engine_advance(&rm.engine, rm_now_ns());
}

int work_query(const struct caller *caller, struct emu_query *query)
{
	uint32_t timeout_us =
		query->timeout_us < EMU_WAIT_MAX_US ? query->timeout_us : EMU_WAIT_MAX_US;
	uint64_t deadline_ns = rm_now_ns() + timeout_us * GP_NS_PER_US, next_ns;
	struct channel *channel;

	rm_lock();
	while ((channel = own_channel(caller, query->client, query->channel)) &&
	       channel->done < query->wait_done && rm_now_ns() < deadline_ns) {
		next_ns = channel_next_ns(channel);
		wait_until(next_ns < deadline_ns ? next_ns : deadline_ns);
	}
	if (channel) {
		query->submitted = channel->submitted;
		query->done = channel->done;
		query->run_ns = channel->run_ns;
		query->digest = channel->digest;
	}
	rm_unlock();
	return channel ? 0 : -ENOENT;
}

void work_gpus(struct emu_gpus *gpus)
{
	memset(gpus, 0, sizeof(*gpus));
	rm_lock();
	gpus->count = rm.engine.ngpus;
	for (uint32_t i = 0; i < rm.engine.ngpus; i++)
		gpus->gpu_id[i] = rm.engine.gpu[i].gpu_id;
	snprintf(gpus->version, sizeof(gpus->version), "%s", rm.driver->version);
	rm_unlock();
}

static struct emu_process *process_of(struct emu_processes *all, pid_t pid)
{
	for (uint32_t i = 0; i < all->count; i++)
		if (all->process[i].pid == (uint32_t)pid)
			return &all->process[i];
	if (all->count == EMU_MAX_PROCESSES)
		return NULL;
	all->process[all->count] = (struct emu_process){.pid = (uint32_t)pid};
	return &all->process[all->count++];
}

int work_processes(struct emu_processes *all)
{
	uint32_t number = all->gpu;
	const struct gpu *gpu;

	memset(all, 0, sizeof(*all));
	all->gpu = number;
	if (number >= rm.engine.ngpus)
		return -EINVAL;
	rm_lock();
	gpu = &rm.engine.gpu[number];
	all->time_us = gpu->sample_us ? gpu->sample_us - rm.clock_back_us : 0;
	for (const struct client *c = rm.clients; c; c = c->next)
		for (const struct object *o = c->objects; o; o = o->next) {
			struct emu_process *p = o->gpu == gpu ? process_of(all, c->pid) : NULL;

			if (!p)
				continue;
			p->memory += o->memory;
			p->computes |= o->kind == KIND_COMPUTE;
		}
	for (uint32_t i = 0; i < gpu->nusage; i++) {
		struct emu_process *p = process_of(all, gpu->usage[i].pid);

		if (p)
			p->sm_percent = gpu->usage[i].sm_percent;
	}
	rm_unlock();
	return 0;
}
