/* SPDX-License-Identifier: Apache-2.0 */
/* RM_CONTROL: what is checked, in which order, and what the controls answer. */
#include "rm_world.h"

#define GET_INFO NVA06C_CTRL_CMD_GET_INFO

WORLD_TEST(checks_come_in_rms_order)
{
	int other = open(w->emu.ctl, O_RDWR | O_CLOEXEC);
	void *nowhere = (void *)8;
	uint32_t value;

	/* Each of these also has every fault that follows. */
	assert_int_equal(rm_call_control(other, 1, 1, 0xa06c0000, nowhere, 99), NV_OK);
	assert_int_equal(rm_call_control(other, 1, 1, GET_INFO, nowhere, 99),
			 NV_ERR_INVALID_CLIENT);
	assert_int_equal(rm_call_control(other, w->client, 1, GET_INFO, nowhere, 99),
			 NV_ERR_INVALID_ARGUMENT);
	assert_int_equal(rm_call_control(other, w->client, 1, GET_INFO, nowhere, 4),
			 NV_ERR_INVALID_ADDRESS);
	assert_int_equal(rm_call_control(other, w->client, 1, GET_INFO, &value, 4),
			 NV_ERR_INVALID_CLIENT);
	assert_int_equal(control(w, 1, GET_INFO, &value, 4), NV_ERR_OBJECT_NOT_FOUND);
	assert_int_equal(control(w, w->channel, GET_INFO, &value, 4), NV_ERR_NOT_SUPPORTED);
	assert_int_equal(control(w, w->group, GET_INFO, &value, 4), NV_OK);
	close(other);
}

WORLD_TEST(a_size_that_differs_is_refused)
{
	uint64_t value[200] = {1};

	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_SET_TIMESLICE, value, 4),
			 NV_ERR_INVALID_ARGUMENT);
	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_SET_TIMESLICE, value, 16),
			 NV_ERR_INVALID_ARGUMENT);
	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_SET_TIMESLICE, NULL, 8),
			 NV_ERR_INVALID_ARGUMENT);
	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_SET_TIMESLICE, value, 0),
			 NV_ERR_INVALID_ARGUMENT);
	assert_int_equal(emu_count(&w->emu, "refused_size"), 4);
}

WORLD_TEST(an_unknown_command_is_not_supported_whatever_its_size)
{
	uint64_t value[2] = {0};

	assert_int_equal(control(w, w->group, 0xa06c01ff, value, 8), NV_ERR_NOT_SUPPORTED);
	assert_int_equal(control(w, w->group, 0xa06c01ff, value, 16), NV_ERR_NOT_SUPPORTED);
	assert_int_equal(emu_count(&w->emu, "0xa06c01ff"), 2);
}

WORLD_TEST(sizes_are_those_of_the_driver)
{
	uint8_t bytes[1032] = {1};

	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, bytes, 3), NV_OK);
	assert_int_equal(control(w, w->client, NV0000_CTRL_CMD_GPU_GET_PROBED_IDS, bytes, 384),
			 NV_OK);
	assert_int_equal(emu_control(&w->emu, "version 550"), 0);
	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, bytes, 3),
			 NV_ERR_INVALID_ARGUMENT);
	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, bytes, 2), NV_OK);
	assert_int_equal(control(w, w->client, NV0000_CTRL_CMD_GPU_GET_PROBED_IDS, bytes, 256),
			 NV_OK);
	assert_int_equal(
		control(w, w->client, NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, bytes, 776),
		NV_OK);
	assert_string_equal((char *)bytes, "550.120");
	assert_int_not_equal(emu_control(&w->emu, "version 123"), 0);
}

WORLD_TEST(handle_info_tells_class_and_parent)
{
	struct nv0000_handle_info info = {.object = w->channel, .index = 1};
	uint32_t cmd = NV0000_CTRL_CMD_CLIENT_GET_HANDLE_INFO;

	assert_int_equal(class_of(w->fd, w->client, w->client), NV01_ROOT_CLIENT);
	assert_int_equal(control(w, w->client, cmd, &info, 16), NV_OK);
	assert_int_equal(info.value, w->group);
	info.object = w->client;
	assert_int_equal(control(w, w->client, cmd, &info, 16), NV_OK);
	assert_int_equal(info.value, 0);
	info.index = 7;
	assert_int_equal(control(w, w->client, cmd, &info, 16), NV_ERR_INVALID_ARGUMENT);
	info.object = 1;
	assert_int_equal(control(w, w->client, cmd, &info, 16), NV_ERR_OBJECT_NOT_FOUND);
}

WORLD_TEST(child_handle_wants_rms_own_names)
{
	struct nv0000_child_handle child = {w->device, KEPLER_CHANNEL_GROUP_A, 0};
	uint32_t cmd = NV0000_CTRL_CMD_CLIENT_GET_CHILD_HANDLE;

	assert_int_equal(control(w, w->client, cmd, &child, 12), NV_ERR_OBJECT_NOT_FOUND);
	child.kind = NV_INTERNAL_CHANNEL_GROUP;
	assert_int_equal(control(w, w->client, cmd, &child, 12), NV_OK);
	assert_int_equal(child.object, w->group);
	child.parent = 1;
	assert_int_equal(control(w, w->client, cmd, &child, 12), NV_ERR_OBJECT_NOT_FOUND);
}

WORLD_TEST(a_slice_is_rounded_down_but_read_back_as_asked)
{
	struct nva06c_timeslice slice;

	assert_int_equal(set_slice(w, w->group, 1001), NV_OK);
	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_GET_TIMESLICE, &slice, 8), NV_OK);
	assert_int_equal(slice.us, 1001);
	assert_int_equal(emu_group_sum(&w->emu, getpid(), "slice_us"), 1001);
	assert_int_equal(emu_group_sum(&w->emu, getpid(), "programmed_us"), 1000);
	assert_int_equal(set_slice(w, w->group, UINT64_MAX), NV_OK);
	assert_int_equal(emu_group_sum(&w->emu, getpid(), "programmed_us"), 255 << 15);
	assert_int_equal(set_slice(w, w->group, 0), NV_OK);
	assert_int_equal(emu_group_sum(&w->emu, getpid(), "slice_us"), 0);
}

/* Becomes user `nobody` in a child that has the file; returns the child's answer. */
static uint32_t as_nobody(const struct world *w, uint32_t cmd, void *params, uint32_t size)
{
	int status;
	pid_t child = fork();

	if (!child) {
		if (setuid(65534))
			_exit(255);
		_exit((int)control(w, w->group, cmd, params, size));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return (uint32_t)WEXITSTATUS(status);
}

WORLD_TEST(privilege_is_the_callers_and_ownership_the_files)
{
	struct nva06c_interleave level = {2};

	assert_int_equal(as_nobody(w, NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL, &level, 4),
			 NV_ERR_INSUFFICIENT_PERMISSIONS);
	assert_int_equal(emu_group_sum(&w->emu, getpid(), "interleave"), 1);
	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL, &level, 4),
			 NV_OK);
	assert_int_equal(emu_group_sum(&w->emu, getpid(), "interleave"), 2);
	assert_int_equal(
		as_nobody(w, NVA06C_CTRL_CMD_SET_TIMESLICE, &(struct nva06c_timeslice){5}, 8),
		NV_OK);
}

WORLD_TEST(disable_channels_takes_channels_and_groups_of_any_client)
{
	struct world other = *w;
	struct nv2080_disable_channels d = {.disable = 1, .count = 2};
	uint32_t cmd = NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS;

	other.fd = open(w->emu.ctl, O_RDWR | O_CLOEXEC);
	make_client(&other);
	make_channel(&other, other.group);
	d.client[0] = w->client, d.channel[0] = w->channel;
	d.client[1] = other.client, d.channel[1] = other.group;
	assert_int_equal(ask(w, w->subdevice, cmd, &d), NV_OK);
	assert_int_equal(emu_groups_held(&w->emu, getpid()), 2);
	d.disable = 0;
	assert_int_equal(ask(w, w->subdevice, cmd, &d), NV_OK);
	assert_int_equal(emu_groups_held(&w->emu, getpid()), 0);
	close(other.fd);
}

WORLD_TEST(disable_channels_stops_at_the_first_that_is_unknown)
{
	uint32_t channel = make_channel(w, make_group(w, NV2080_ENGINE_TYPE_GR0));
	struct nv2080_disable_channels d = {.disable = 1, .count = 3};
	uint32_t cmd = NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS;

	d.client[0] = d.client[1] = d.client[2] = w->client;
	d.channel[0] = w->channel;
	d.channel[1] = w->device;
	d.channel[2] = channel;
	assert_int_equal(ask(w, w->subdevice, cmd, &d), NV_ERR_INVALID_CHANNEL);
	assert_int_equal(emu_groups_held(&w->emu, getpid()), 1);
	d.count = 65;
	assert_int_equal(ask(w, w->subdevice, cmd, &d), NV_ERR_INVALID_PARAM_STRUCT);
	d.count = 0;
	assert_int_equal(ask(w, w->subdevice, cmd, &d), NV_ERR_INVALID_PARAM_STRUCT);
	d.runlist_preempt_event = 8;
	assert_int_equal(ask(w, w->subdevice, cmd, &d), NV_ERR_INSUFFICIENT_PERMISSIONS);
}

WORLD_TEST(without_firmware_channels_cannot_be_disabled)
{
	assert_int_equal(emu_control(&w->emu, "gsp off"), 0);
	assert_int_equal(disable(w, w->client, w->channel, true), NV_ERR_NOT_SUPPORTED);
	assert_int_equal(emu_groups_held(&w->emu, getpid()), 0);
}

WORLD_TEST(a_diagnostic_subdevice_reads_back_what_is_disabled)
{
	uint32_t diag = make(w, w->subdevice, NV20_SUBDEVICE_DIAG, NULL, 0);
	struct nv208f_channel_state s = {.client = w->client, .channel = w->channel};
	uint32_t cmd = NV208F_CTRL_CMD_FIFO_GET_CHANNEL_STATE;

	assert_int_equal(ask(w, diag, cmd, &s), NV_OK);
	assert_int_equal(s.enabled, 1);
	assert_int_equal(disable(w, w->client, w->channel, true), NV_OK);
	assert_int_equal(ask(w, diag, cmd, &s), NV_OK);
	assert_int_equal(s.enabled, 0);
	s.channel = w->group;
	assert_int_equal(ask(w, diag, cmd, &s), NV_ERR_INVALID_CHANNEL);
}

WORLD_TEST(gpus_have_ids_and_places)
{
	struct nv0000_gpu_ids ids;
	struct nv0000_pci_info pci;
	struct nv2080_gpu_id id;

	assert_int_equal(ask(w, w->client, NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS, &ids), NV_OK);
	assert_int_equal(ids.gpu_id[2], NV0000_CTRL_GPU_INVALID_ID);
	assert_int_equal(ask(w, w->subdevice, NV2080_CTRL_CMD_GPU_GET_ID, &id), NV_OK);
	assert_int_equal(id.gpu_id, ids.gpu_id[0]);
	pci.gpu_id = ids.gpu_id[1];
	assert_int_equal(ask(w, w->client, NV0000_CTRL_CMD_GPU_GET_PCI_INFO, &pci), NV_OK);
	assert_int_equal(pci.bus << 8, ids.gpu_id[1]);
	pci.gpu_id = 5;
	assert_int_equal(ask(w, w->client, NV0000_CTRL_CMD_GPU_GET_PCI_INFO, &pci),
			 NV_ERR_OBJECT_NOT_FOUND);
}

WORLD_TEST(pids_are_those_with_an_object_of_the_class)
{
	struct nv2080_pids pids = {.id = HOPPER_COMPUTE_A};

	assert_int_equal(ask(w, w->subdevice, NV2080_CTRL_CMD_GPU_GET_PIDS, &pids), NV_OK);
	assert_int_equal(pids.count, 1);
	assert_int_equal(pids.pid[0], getpid());
	pids.id = KEPLER_CHANNEL_GROUP_A; /* there is one, but it is not below a channel */
	assert_int_equal(ask(w, w->subdevice, NV2080_CTRL_CMD_GPU_GET_PIDS, &pids), NV_OK);
	assert_int_equal(pids.count, 0);
}

WORLD_TEST(only_channels_have_a_submit_token)
{
	uint32_t token;

	assert_int_equal(
		control(w, w->channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &token, 4),
		NV_OK);
	assert_int_equal(
		control(w, w->group, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &token, 4),
		NV_ERR_NOT_SUPPORTED);
}
