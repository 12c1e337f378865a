/* SPDX-License-Identifier: Apache-2.0 */
#include "rm_world.h"

uint32_t make(const struct world *w, uint32_t parent, uint32_t class, void *params, uint32_t size)
{
	uint32_t handle = 0;

	assert_int_equal(rm_call_alloc(w->fd, w->client, parent, &handle, class, params, size), 0);
	return handle;
}

uint32_t make_group(const struct world *w, uint32_t engine)
{
	struct emu_group_alloc params = {.engine_type = engine};

	return make(w, w->device, KEPLER_CHANNEL_GROUP_A, &params, sizeof(params));
}

uint32_t make_channel(const struct world *w, uint32_t parent)
{
	struct emu_channel_alloc params = {.engine_type = NV2080_ENGINE_TYPE_GR0};

	return make(w, parent, HOPPER_CHANNEL_GPFIFO_A, &params, sizeof(params));
}

uint32_t make_memory(const struct world *w, uint64_t bytes)
{
	struct nv_memory_alloc params = {.size = bytes};

	return make(w, w->device, NV01_MEMORY_LOCAL_USER, &params, sizeof(params));
}

void make_client(struct world *w)
{
	struct nv0080_alloc device = {0};

	w->client = 0;
	assert_int_equal(rm_call_alloc(w->fd, 0, 0, &w->client, NV01_ROOT_CLIENT, NULL, 0), 0);
	w->device = make(w, w->client, NV01_DEVICE_0, &device, sizeof(device));
	w->subdevice = make(w, w->device, NV20_SUBDEVICE_0, NULL, 0);
	w->group = make_group(w, NV2080_ENGINE_TYPE_GR0);
	w->channel = make_channel(w, w->group);
	make(w, w->channel, HOPPER_COMPUTE_A, NULL, 0);
}

int rm_set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	*state = w;
	if (!w || emu_start(&w->emu, "--gpus", "2", NULL))
		return -1;
	w->fd = open(w->emu.ctl, O_RDWR | O_CLOEXEC);
	make_client(w);
	return 0;
}

int rm_tear_down(void **state)
{
	struct world *w = *state;
	int result;

	emu_load_kill(&w->load);
	close(w->fd);
	result = emu_stop(&w->emu);
	free(w);
	return result;
}

/* Skips the tests where there is no FUSE. */
TEST_BEGIN
{
	struct emu emu;
	int result = emu_start(&emu, NULL);

	if (result == -ENODEV)
		exit(EMU_SKIP);
	emu_stop(&emu);
}

uint32_t class_of(int fd, uint32_t client, uint32_t object)
{
	struct nv0000_handle_info info = {.object = object, .index = NV0000_HANDLE_INFO_CLASSID};

	if (rm_call_control(fd, client, client, NV0000_CTRL_CMD_CLIENT_GET_HANDLE_INFO, &info,
			    sizeof(info)))
		return 0;
	return (uint32_t)info.value;
}

uint32_t set_slice(const struct world *w, uint32_t group, uint64_t us)
{
	struct nva06c_timeslice slice = {.us = us};

	return ask(w, group, NVA06C_CTRL_CMD_SET_TIMESLICE, &slice);
}

uint32_t disable(const struct world *w, uint32_t client, uint32_t channel, bool disable)
{
	struct nv2080_disable_channels d = {
		.disable = disable, .count = 1, .client = {client}, .channel = {channel}};

	return ask(w, w->subdevice, NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, &d);
}

void submit(const struct world *w, uint32_t channel, uint64_t kernels, uint64_t us)
{
	struct emu_submit args = {w->client, channel, kernels, us * 1000};

	assert_int_equal(ioctl(w->fd, EMU_SUBMIT, &args), 0);
}

struct emu_query wait_done(const struct world *w, uint32_t channel, uint64_t done, unsigned ms)
{
	struct emu_query query = {.client = w->client, .channel = channel, .wait_done = done};

	for (unsigned i = 0; i <= ms / 10 && (!i || query.done < done); i++) {
		query.timeout_us = ms ? 10000 : 0;
		assert_int_equal(ioctl(w->fd, EMU_QUERY, &query), 0);
	}
	return query;
}

uint64_t digest_of(uint64_t kernels, uint64_t us)
{
	uint64_t digest = EMU_DIGEST_START;

	while (kernels--)
		digest = emu_digest(digest, us * 1000);
	return digest;
}

int duplicate(pid_t pid, int fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	close(pidfd);
	return copy;
}
