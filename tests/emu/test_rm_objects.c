/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership and lifetime of open files, clients and objects. */
#include "rm_world.h"

WORLD_TEST(a_client_belongs_to_the_open_file_it_was_made_with)
{
	int other = open(w->emu.ctl, O_RDWR | O_CLOEXEC);

	assert_int_equal(class_of(w->fd, w->client, w->group), KEPLER_CHANNEL_GROUP_A);
	assert_int_equal(class_of(other, w->client, w->group), 0);
	assert_int_equal(rm_call_control(other, w->client, w->group, NVA06C_CTRL_CMD_GET_INFO,
					 &(uint32_t){0}, 4),
			 NV_ERR_INVALID_CLIENT);
	assert_int_equal(rm_call_free(other, w->client, w->group), NV_ERR_INVALID_CLIENT);
	assert_int_equal(emu_count(&w->emu, "refused_file"), 3);
	close(other);
}

WORLD_TEST(a_duplicate_taken_from_another_process_is_the_same_open_file)
{
	pid_t child = fork();
	int copy;

	if (!child)
		for (;;)
			pause();
	copy = duplicate(child, w->fd);
	assert_true(copy >= 0);
	assert_int_equal(class_of(copy, w->client, w->group), KEPLER_CHANNEL_GROUP_A);
	assert_int_equal(rm_call_control(copy, w->client, w->group, NVA06C_CTRL_CMD_SET_TIMESLICE,
					 &(struct nva06c_timeslice){1}, 8),
			 NV_OK);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(copy);
}

WORLD_TEST(memory_is_freed_at_the_last_close_only)
{
	int copy;

	make_memory(w, 1 << 20);
	assert_int_equal(emu_memory(&w->emu), 1 << 20);
	copy = dup(w->fd);
	close(w->fd);
	emulator_sleep_ms(50);
	assert_int_equal(emu_memory(&w->emu), 1 << 20);
	assert_int_equal(emu_clients(&w->emu), 1);
	close(copy);
	TEST_WAIT(emu_memory(&w->emu) == 0);
	assert_int_equal(emu_clients(&w->emu), 0);
	w->fd = open(w->emu.ctl, O_RDWR | O_CLOEXEC);
}

WORLD_TEST(a_duplicate_keeps_the_memory_of_a_dead_process)
{
	struct emu_load *load = rm_load(w, "--idle", "--memory", "1000000");
	int copy = -1;

	for (int fd = 3; fd < 10 && copy < 0; fd++) { /* its first file; others are pipes */
		copy = duplicate(load->pid, fd);
		if (copy >= 0 && !class_of(copy, w->client + 1, w->client + 1)) {
			close(copy);
			copy = -1;
		}
	}
	assert_true(copy >= 0);
	emu_load_kill(load);
	emulator_sleep_ms(50);
	assert_int_equal(emu_memory(&w->emu), 1000000);
	close(copy);
	TEST_WAIT(emu_memory(&w->emu) == 0);
}

WORLD_TEST(freeing_an_object_frees_what_is_below_it)
{
	assert_int_equal(class_of(w->fd, w->client, w->channel), HOPPER_CHANNEL_GPFIFO_A);
	assert_int_equal(rm_call_free(w->fd, w->client, w->group), NV_OK);
	assert_int_equal(class_of(w->fd, w->client, w->channel), 0);
	assert_int_equal(class_of(w->fd, w->client, w->device), NV01_DEVICE_0);
	assert_int_equal(rm_call_free(w->fd, w->client, w->group), NV_OK); /* again: no error */
	assert_int_equal(rm_call_free(w->fd, w->client, w->client), NV_OK);
	assert_int_equal(emu_clients(&w->emu), 0);
}

WORLD_TEST(handles_are_free_to_choose_but_not_twice)
{
	struct nv0080_alloc device = {0};
	uint32_t handle = 0x5c000002, client = w->client;

	assert_int_equal(rm_call_alloc(w->fd, client, client, &handle, NV01_DEVICE_0, &device,
				       sizeof(device)),
			 NV_OK);
	assert_int_equal(handle, 0x5c000002);
	assert_int_equal(rm_call_alloc(w->fd, client, client, &handle, NV01_DEVICE_0, &device,
				       sizeof(device)),
			 NV_ERR_INSERT_DUPLICATE_NAME);
	assert_int_equal(rm_call_alloc(w->fd, client, client, &client, NV01_DEVICE_0, &device,
				       sizeof(device)),
			 NV_ERR_INVALID_OBJECT_PARENT);
	handle = 0;
	assert_int_equal(
		rm_call_alloc(w->fd, w->client, w->client, &handle, NV01_DEVICE_0, NULL, 0), NV_OK);
	assert_true(handle >= 0xcaf00000);
}

static uint32_t try(const struct world *w, uint32_t client, uint32_t parent, uint32_t class,
		    void *params)
{
	uint32_t handle = 0;

	return rm_call_alloc(w->fd, client, parent, &handle, class, params, 0);
}

WORLD_TEST(allocation_is_refused_in_rms_order_with_rms_codes)
{
	struct nv0080_alloc third = {.device_id = 2};
	struct emu_group_alloc no_engine = {0};
	void *nowhere = (void *)8;

	assert_int_equal(try(w, 1, 1, 0x1234, NULL), NV_ERR_INVALID_CLASS);
	assert_int_equal(try(w, 1, 1, KEPLER_CHANNEL_GROUP_A, NULL), NV_ERR_INVALID_ARGUMENT);
	assert_int_equal(try(w, 1, 1, KEPLER_CHANNEL_GROUP_A, nowhere), NV_ERR_INVALID_ADDRESS);
	assert_int_equal(try(w, 1, 1, NV20_SUBDEVICE_0, NULL), NV_ERR_INVALID_OBJECT_HANDLE);
	assert_int_equal(try(w, w->client, 1, NV20_SUBDEVICE_0, NULL), NV_ERR_OBJECT_NOT_FOUND);
	assert_int_equal(try(w, w->client, w->client, NV20_SUBDEVICE_0, NULL),
			 NV_ERR_INVALID_OBJECT_PARENT);
	assert_int_equal(try(w, w->client, w->client, NV01_DEVICE_0, &third), NV_ERR_INVALID_CLASS);
	assert_int_equal(try(w, w->client, w->device, KEPLER_CHANNEL_GROUP_A, &no_engine),
			 NV_ERR_INVALID_ARGUMENT);
	assert_int_equal(try(w, w->client, w->subdevice, NV20_SUBDEVICE_DIAG, NULL), NV_OK);
	assert_int_equal(try(w, w->client, w->subdevice, NV20_SUBDEVICE_DIAG, NULL),
			 NV_ERR_STATE_IN_USE);
}

WORLD_TEST(a_channel_below_a_device_gets_a_group_of_its_own)
{
	uint32_t channel = make_channel(w, w->device);
	struct nv0000_handle_info info = {.object = channel, .index = NV0000_HANDLE_INFO_PARENT};

	assert_int_equal(ask(w, w->client, NV0000_CTRL_CMD_CLIENT_GET_HANDLE_INFO, &info), NV_OK);
	assert_int_equal(info.value, w->device);
	submit(w, channel, 1, 100);
	assert_int_equal(wait_done(w, channel, 1, 1000).done, 1);
	assert_int_equal(emu_groups(&w->emu, getpid()), 2);
	assert_int_equal(rm_call_free(w->fd, w->client, w->device), NV_OK);
	assert_int_equal(emu_groups(&w->emu, getpid()), 0);
}

WORLD_TEST(hardware_ids_of_groups_are_used_again)
{
	uint32_t first, second, again;

	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_GET_INFO, &first, 4), NV_OK);
	uint32_t other = make_group(w, NV2080_ENGINE_TYPE_COPY0);
	assert_int_equal(control(w, other, NVA06C_CTRL_CMD_GET_INFO, &second, 4), NV_OK);
	assert_int_not_equal(first, second);
	rm_call_free(w->fd, w->client, w->group);
	other = make_group(w, NV2080_ENGINE_TYPE_GR0);
	assert_int_equal(control(w, other, NVA06C_CTRL_CMD_GET_INFO, &again, 4), NV_OK);
	assert_int_equal(first, again);
}

static uint32_t new_client(const struct world *w)
{
	uint32_t handle = 0;

	assert_int_equal(rm_call_alloc(w->fd, 0, 0, &handle, NV01_ROOT_CLIENT, NULL, 0), NV_OK);
	return handle;
}

WORLD_TEST(client_handles_count_upwards_and_wrap_past_those_in_use)
{
	uint32_t first = w->client;

	assert_int_equal(new_client(w), first + 1);
	assert_int_equal(new_client(w), first + 2);
	assert_int_equal(rm_call_free(w->fd, first + 1, first + 1), NV_OK);
	assert_int_equal(new_client(w), first + 3); /* not the free one */
	assert_int_equal(emu_control(&w->emu, "client_index 0xfffff"), 0);
	assert_int_equal(new_client(w), 0xc1dfffff);
	assert_int_equal(new_client(w), 0xc1d00000);
	assert_int_equal(new_client(w), first + 0x400); /* the next one in the same bucket */
	assert_int_equal(new_client(w), first + 1);
}

WORLD_TEST(the_short_form_of_allocation_works_too)
{
	struct emu_rm_alloc_short args = {.class = 0};

	assert_int_equal(ioctl(w->fd, _IOWR('F', 0x2b, args), &args), 0);
	assert_int_equal(args.status, NV_OK);
	assert_int_equal(class_of(w->fd, args.object, args.object), NV01_ROOT_CLIENT);
}

WORLD_TEST(other_ioctls_are_refused_as_the_driver_does)
{
	uint8_t bytes[64] = {0};

	assert_int_equal(ioctl(w->fd, _IOWR('F', 0x7f, bytes), bytes), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ioctl(w->fd, _IOWR('F', 0x2a, uint64_t[5]), bytes), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(emu_count(&w->emu, "refused_ioctl"), 2);
}

WORLD_TEST(gpu_memory_ends)
{
	struct nv_memory_alloc params = {.size = 142ull << 30};
	uint32_t handle = 0;

	assert_int_equal(rm_call_alloc(w->fd, w->client, w->device, &handle, NV01_MEMORY_LOCAL_USER,
				       &params, sizeof(params)),
			 NV_ERR_NO_MEMORY);
}
