/* SPDX-License-Identifier: Apache-2.0 */
#include "hand_made.h"

static uint32_t hand_alloc_here(int fd, uint32_t client, const struct hand_order *o,
				uint32_t *handle)
{
	struct nv0080_alloc device = {.device_id = o->engine};
	struct nv_memory_alloc memory = {.size = o->value};
	struct emu_group_alloc group = {.engine_type = o->engine};
	struct emu_channel_alloc channel = {.engine_type = o->engine};
	void *params = NULL;
	uint32_t size = 0;

	switch (o->class) {
	case NV01_DEVICE_0: params = &device, size = sizeof device; break;
	case NV01_MEMORY_LOCAL_USER: params = &memory, size = sizeof memory; break;
	case KEPLER_CHANNEL_GROUP_A: params = &group, size = sizeof group; break;
	case HOPPER_CHANNEL_GPFIFO_A: params = &channel, size = sizeof channel; break;
	default: break;
	}
	return rm_call_alloc(fd, client, o->parent, handle, o->class, params, size);
}

/* A file of this name that only this process sees: the mounts end with it. */
static uint32_t hand_open_uvm(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev", "tmpfs", 0, NULL))
		return 1;
	return open("/dev/nvidia-uvm", O_RDWR | O_CREAT, 0600) < 0;
}

static const char *hand_control_file(void)
{
	const char *path = getenv("GPREEMPT_NVIDIACTL");

	return path ? path : "";
}

static uint32_t hand_borrow(pid_t pid, int file[64])
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), got = 0;

	for (int i = 3; i < 64; i++) {
		struct stat ctl, s;

		file[i] = (int)syscall(SYS_pidfd_getfd, pidfd, i, 0);
		if (file[i] >= 0 && !stat(hand_control_file(), &ctl) && !fstat(file[i], &s) &&
		    s.st_ino == ctl.st_ino && s.st_dev == ctl.st_dev) {
			got++;
		} else if (file[i] >= 0) {
			close(file[i]);
			file[i] = -1;
		}
	}
	close(pidfd);
	return !got;
}

static void hand_obey(int in, int out)
{
	struct hand_order o;
	uint32_t client = 0;
	int fd = -1, borrowed[64] = {0};

	while (read(in, &o, sizeof o) == sizeof o) {
		struct hand_answer a = {.handle = o.handle};
		struct nva06c_timeslice slice = {.us = o.value};

		switch (o.call) {
		case HAND_OPEN:
			fd = open(hand_control_file(), O_RDWR | O_CLOEXEC);
			a.status = fd < 0;
			break;
		case HAND_CLOSE: a.status = (uint32_t)close(fd); break;
		case HAND_ALLOC:
			a.status = hand_alloc_here(fd, o.class == NV01_ROOT_CLIENT ? 0 : client, &o,
						   &a.handle);
			if (o.class == NV01_ROOT_CLIENT)
				client = a.handle;
			break;
		case HAND_FREE: a.status = rm_call_free(fd, client, o.handle); break;
		case HAND_SLICE:
			a.status =
				rm_call_control(fd, client, o.handle, NVA06C_CTRL_CMD_SET_TIMESLICE,
						&slice, sizeof slice);
			break;
		case HAND_BORROW: a.status = hand_borrow((pid_t)o.value, borrowed); break;
		case HAND_GIVE_BACK:
			for (int i = 3; i < 64; i++)
				close(borrowed[i]);
			break;
		case HAND_UVM: a.status = hand_open_uvm(); break;
		}
		if (write(out, &a, sizeof a) != sizeof a)
			break;
	}
	_exit(0);
}

uint32_t hand_tell(struct hand *h, struct hand_order o)
{
	struct hand_answer a = {.status = ~0u};

	assert_int_equal(write(h->child.to, &o, sizeof o), sizeof o);
	assert_int_equal(read(h->child.from, &a, sizeof a), sizeof a);
	if (a.status)
		fail_msg("hand-made process: call %d: status 0x%x", o.call, a.status);
	return a.handle;
}

void hand_start(struct hand *h)
{
	*h = (struct hand){0};
	if (test_fork(&h->child)) {
		syscall(SYS_close_range, 3, ~0u, 0);
		hand_obey(STDIN_FILENO, STDOUT_FILENO);
	}
	h->pid = h->child.pid;
}

struct hand *gw_hand(struct gpu_world *w)
{
	struct hand *h = calloc(1, sizeof *h);

	assert_non_null(h);
	assert_in_range(w->nhands, 0, GW_HANDS - 1);
	w->hand[w->nhands++] = h;
	hand_start(h);
	return h;
}

struct hand *gw_hand_with_client(struct gpu_world *w)
{
	struct hand *h = gw_hand(w);

	hand_open(h);
	hand_client(h);
	return h;
}

uint32_t hand_alloc(struct hand *h, uint32_t parent, uint32_t class, uint32_t handle,
		    uint32_t engine)
{
	return hand_tell(h, (struct hand_order){.call = HAND_ALLOC,
						.parent = parent,
						.class = class,
						.handle = handle,
						.engine = engine});
}

void hand_client(struct hand *h)
{
	h->client = hand_alloc(h, 0, NV01_ROOT_CLIENT, 0, 0);
	h->device = hand_alloc(h, h->client, NV01_DEVICE_0, 0x5c000002, 0);
	h->subdevice = hand_alloc(h, h->device, NV20_SUBDEVICE_0, 0x5c000003, 0);
}

void hand_group(struct hand *h, uint32_t handle, unsigned channels)
{
	hand_alloc(h, h->device, KEPLER_CHANNEL_GROUP_A, handle, NV2080_ENGINE_TYPE_GR0);
	for (unsigned i = 0; i < channels; i++) {
		hand_alloc(h, handle, HOPPER_CHANNEL_GPFIFO_A, handle + 1 + 2 * i,
			   NV2080_ENGINE_TYPE_GR0);
		hand_alloc(h, handle + 1 + 2 * i, HOPPER_COMPUTE_A, handle + 2 + 2 * i, 0);
	}
}

void hand_stop(struct hand *h)
{
	test_child_end(&h->child);
}
