/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rm-ask: asks RM what it says to calls that are wrong in one way or another, and prints a line
 * for each. Run on the real driver and on the emulator, it shows where they differ. It makes
 * clients of its own and does not touch those of others; root is needed for some.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "emu/nvidia/rm_client.h"

#define UNKNOWN 0x77777777u /* a handle that does not exist */

static int fd, other; /* two opens of the control file */
static uint32_t client, device, subdevice, group;

static void say(const char *question, uint32_t status)
{
	printf("%-52s 0x%02x\n", question, status);
}

static uint32_t control(uint32_t object, uint32_t cmd, void *params, uint32_t size)
{
	return rm_call_control(fd, client, object, cmd, params, size);
}

static uint32_t alloc(uint32_t root, uint32_t parent, uint32_t handle, uint32_t class, void *params,
		      uint32_t size)
{
	return rm_call_alloc(fd, root, parent, &handle, class, params, size);
}

static void ask_order(void)
{
	uint32_t info = NVA06C_CTRL_CMD_GET_INFO;
	void *nowhere = (void *)8;
	uint32_t value[4] = {0};

	say("null command, all else wrong",
	    rm_call_control(other, UNKNOWN, UNKNOWN, 0xa06c0000, nowhere, 99));
	say("unknown client, size wrong", rm_call_control(other, UNKNOWN, 1, info, nowhere, 99));
	say("other's client, size wrong", rm_call_control(other, client, 1, info, nowhere, 99));
	say("other's client, address wrong", rm_call_control(other, client, 1, info, nowhere, 4));
	say("other's client, object wrong", rm_call_control(other, client, 1, info, value, 4));
	say("object unknown", control(UNKNOWN, info, value, 4));
	say("object of another class", control(subdevice, info, value, 4));
	say("address wrong", control(group, info, nowhere, 4));
	say("no parameters, with a size", control(group, info, NULL, 4));
	say("parameters, without a size", control(group, info, value, 0));
	say("size too large", control(group, info, value, 8));
	say("unknown command of a known class", control(group, 0xa06c01ff, value, 4));
	say("unknown command of an unknown class", control(group, 0x777701ff, value, 4));
	say("GET_INFO", control(group, info, value, 4));
}

static void ask_handles(void)
{
	struct nv0000_handle_info info = {.object = client, .index = NV0000_HANDLE_INFO_CLASSID};
	struct nv0000_child_handle child = {device, KEPLER_CHANNEL_GROUP_A, 0};
	struct nv0000_pci_info pci = {.gpu_id = 5};
	struct nv0000_id_info id = {.gpu_id = 5};

	say("class of the client", control(client, 0xd02, &info, sizeof(info)));
	printf("  is 0x%x\n", (uint32_t)info.value);
	info.index = NV0000_HANDLE_INFO_PARENT;
	say("parent of the client", control(client, 0xd02, &info, sizeof(info)));
	printf("  is 0x%x\n", (uint32_t)info.value);
	info.index = 7;
	say("handle info, index wrong", control(client, 0xd02, &info, sizeof(info)));
	info.object = UNKNOWN;
	say("handle info, object unknown", control(client, 0xd02, &info, sizeof(info)));
	say("child by class", control(client, 0xd05, &child, sizeof(child)));
	child.kind = NV_INTERNAL_CHANNEL_GROUP;
	say("child by RM's own name", control(client, 0xd05, &child, sizeof(child)));
	child.parent = UNKNOWN;
	say("child, parent unknown", control(client, 0xd05, &child, sizeof(child)));
	say("PCI place of an unknown GPU", control(client, 0x21b, &pci, sizeof(pci)));
	say("instance of an unknown GPU", control(client, 0x205, &id, sizeof(id)));
}

static void ask_allocation(void)
{
	struct nv0080_alloc far = {.device_id = 31};
	struct emu_group_alloc no_engine = {0};
	uint32_t diag = NV20_SUBDEVICE_DIAG, sub = NV20_SUBDEVICE_0, tsg = KEPLER_CHANNEL_GROUP_A;

	say("class unknown, client unknown", alloc(UNKNOWN, UNKNOWN, 0, 0x1234, NULL, 0));
	say("no parameters for a group, client unknown", alloc(UNKNOWN, UNKNOWN, 0, tsg, NULL, 0));
	say("address wrong, client unknown", alloc(UNKNOWN, UNKNOWN, 0, tsg, (void *)8, 20));
	say("client unknown", alloc(UNKNOWN, UNKNOWN, 0, sub, NULL, 0));
	say("other's client", rm_call_alloc(other, client, device, &(uint32_t){0}, sub, NULL, 0));
	say("parent unknown", alloc(client, UNKNOWN, 0, sub, NULL, 0));
	say("parent of a wrong class", alloc(client, client, 0, sub, NULL, 0));
	say("handle in use", alloc(client, device, subdevice, sub, NULL, 0));
	say("handle is the client's", alloc(client, device, client, sub, NULL, 0));
	say("device that is not there", alloc(client, client, 0, NV01_DEVICE_0, &far, sizeof(far)));
	say("group without an engine",
	    alloc(client, device, 0, tsg, &no_engine, sizeof(no_engine)));
	say("diagnostic subdevice", alloc(client, subdevice, 0x5c000009, diag, NULL, 0));
	say("diagnostic subdevice again", alloc(client, subdevice, 0, diag, NULL, 0));
	say("client with a handle of one's own",
	    alloc(0xc1d54321, 0, 0, NV01_ROOT_CLIENT, NULL, 0));
	say("... again", alloc(0xc1d54321, 0, 0, NV01_ROOT_CLIENT, NULL, 0));
	say("free an unknown object", rm_call_free(fd, client, UNKNOWN));
	say("free for an unknown client", rm_call_free(fd, UNKNOWN, UNKNOWN));
	say("free for other's client", rm_call_free(other, client, group));
}

static uint32_t slice(uint64_t us)
{
	struct nva06c_timeslice params = {us};

	return control(group, NVA06C_CTRL_CMD_SET_TIMESLICE, &params, sizeof(params));
}

static uint64_t slice_now(void)
{
	struct nva06c_timeslice params = {0};

	control(group, NVA06C_CTRL_CMD_GET_TIMESLICE, &params, sizeof(params));
	return params.us;
}

static void ask_group(void)
{
	struct nva06c_preempt preempt = {.wait = 1, .manual_timeout = 1, .timeout_us = 2000000};
	uint8_t schedule[4] = {1};
	uint32_t level = 7;

	printf("slice of a new group: %lu us\n", slice_now());
	say("slice 1", slice(1));
	say("slice 1001", slice(1001));
	printf("  is read back as %lu us\n", slice_now());
	say("slice 0", slice(0));
	printf("  is read back as %lu us\n", slice_now());
	say("slice of 584,000 years", slice(UINT64_MAX));
	printf("  is read back as %lu us\n", slice_now());
	say("slice of 10 s", slice(10000000));
	say("schedule, 2 bytes", control(group, 0xa06c0101, schedule, 2));
	say("schedule, 3 bytes", control(group, 0xa06c0101, schedule, 3));
	say("interleave 7", control(group, 0xa06c0107, &level, 4));
	level = 2;
	say("interleave 2", control(group, 0xa06c0107, &level, 4));
	say("read interleave", control(group, 0xa06c0108, &level, 4));
	say("preempt, 2 s", control(group, NVA06C_CTRL_CMD_PREEMPT, &preempt, sizeof(preempt)));
}

static uint32_t disable(struct nv2080_disable_channels params)
{
	params.disable = 1;
	return control(subdevice, NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, &params, sizeof(params));
}

static void ask_subdevice(void)
{
	struct nv208f_channel_state s = {.client = UNKNOWN, .channel = UNKNOWN};
	struct nv2080_preemption_mode mode = {.flags = 1, .channel_or_group = UNKNOWN};
	struct nv2080_pids pids = {.id_type = 9};
	uint32_t state = NV208F_CTRL_CMD_FIFO_GET_CHANNEL_STATE;
	uint32_t set_mode = NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE;

	say("disable 0 channels", disable((struct nv2080_disable_channels){.count = 0}));
	say("disable 65 channels", disable((struct nv2080_disable_channels){.count = 65}));
	say("disable with an event",
	    disable((struct nv2080_disable_channels){.runlist_preempt_event = 8}));
	say("disable for an unknown client",
	    disable((struct nv2080_disable_channels){
		    .count = 1, .client = {UNKNOWN}, .channel = {UNKNOWN}}));
	say("disable an unknown channel",
	    disable((struct nv2080_disable_channels){
		    .count = 1, .client = {client}, .channel = {UNKNOWN}}));
	say("disable a group", disable((struct nv2080_disable_channels){
				       .count = 1, .client = {client}, .channel = {group}}));
	say("channel state, client unknown", control(0x5c000009, state, &s, sizeof(s)));
	s.client = client;
	say("channel state, channel unknown", control(0x5c000009, state, &s, sizeof(s)));
	s.channel = group;
	say("channel state of a group", control(0x5c000009, state, &s, sizeof(s)));
	say("preemption mode, group unknown", control(subdevice, set_mode, &mode, sizeof(mode)));
	mode.channel_or_group = group;
	say("preemption mode of an empty group", control(subdevice, set_mode, &mode, sizeof(mode)));
	say("pids by an unknown kind of id",
	    control(subdevice, NV2080_CTRL_CMD_GPU_GET_PIDS, &pids, sizeof(pids)));
}

static void make(void)
{
	struct nv0080_alloc first = {0};
	struct emu_group_alloc engine = {.engine_type = NV2080_ENGINE_TYPE_GR0};
	uint32_t status = rm_call_alloc(fd, 0, 0, &client, NV01_ROOT_CLIENT, NULL, 0);

	status |= rm_call_alloc(fd, client, client, &device, NV01_DEVICE_0, &first, sizeof(first));
	status |= rm_call_alloc(fd, client, device, &subdevice, NV20_SUBDEVICE_0, NULL, 0);
	status |= rm_call_alloc(fd, client, device, &group, KEPLER_CHANNEL_GROUP_A, &engine,
				sizeof(engine));
	if (status)
		errx(1, "RM makes no group: statuses add up to 0x%x", status);
	printf("handles that RM chooses begin with 0x%x\n", device >> 20);
}

int main(void)
{
	const char *path = getenv("GPREEMPT_NVIDIACTL");

	open("/dev/nvidia0", O_RDWR | O_CLOEXEC); /* so that the real GPU is awake */
	fd = open(path ? path : NV_CTL_DEVICE, O_RDWR | O_CLOEXEC);
	other = open(path ? path : NV_CTL_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0 || other < 0)
		err(1, "%s", path ? path : NV_CTL_DEVICE);
	make();
	ask_order();
	ask_handles();
	ask_allocation();
	ask_group();
	ask_subdevice();
	return 0;
}
