/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong when it is asked for, and only then. */
#include <pthread.h>

#include "rm_world.h"

WORLD_TEST(a_fault_comes_as_often_as_asked_and_no_more)
{
	assert_int_equal(emu_control(&w->emu, "fault 0xa06c0103 0x03 2 after 1"), 0);
	assert_int_equal(set_slice(w, w->group, 10), NV_OK);
	assert_int_equal(set_slice(w, w->group, 20), NV_ERR_BUSY_RETRY);
	assert_int_equal(set_slice(w, w->group, 30), NV_ERR_BUSY_RETRY);
	assert_int_equal(emu_group_sum(&w->emu, getpid(), "slice_us"), 10);
	assert_int_equal(set_slice(w, w->group, 40), NV_OK);
}

WORLD_TEST(any_means_every_control_but_no_allocation)
{
	assert_int_equal(emu_control(&w->emu, "fault any 0x65 1"), 0);
	make_memory(w, 1000);
	assert_int_equal(class_of(w->fd, w->client, w->group), 0);
	assert_int_equal(class_of(w->fd, w->client, w->group), KEPLER_CHANNEL_GROUP_A);
	assert_int_equal(emu_control(&w->emu, "fault alloc 0x51 1"), 0);
	assert_int_equal(rm_call_alloc(w->fd, 0, 0, &(uint32_t){0}, NV01_ROOT_CLIENT, NULL, 0),
			 NV_ERR_NO_MEMORY);
}

WORLD_TEST(the_ioctl_itself_can_fail)
{
	assert_int_equal(emu_control(&w->emu, "errno set_timeslice %d 1", EINTR), 0);
	assert_int_equal(set_slice(w, w->group, 10), RM_ERRNO | EINTR);
	assert_int_equal(set_slice(w, w->group, 10), NV_OK);
}

WORLD_TEST(accepted_can_mean_without_effect)
{
	assert_int_equal(emu_control(&w->emu, "ignore disable 1"), 0);
	assert_int_equal(disable(w, w->client, w->channel, true), NV_OK);
	assert_int_equal(emu_groups_held(&w->emu, getpid()), 0);
	assert_int_equal(disable(w, w->client, w->channel, true), NV_OK);
	assert_int_equal(emu_groups_held(&w->emu, getpid()), 1);
}

WORLD_TEST(a_lost_gpu_stays_lost)
{
	uint32_t id;

	assert_int_equal(emu_control(&w->emu, "lost 0"), 0);
	assert_int_equal(set_slice(w, w->group, 10), NV_ERR_GPU_IS_LOST);
	assert_int_equal(disable(w, w->client, w->channel, true), NV_ERR_GPU_IS_LOST);
	/* What does not need the GPU is still answered. */
	assert_int_equal(class_of(w->fd, w->client, w->group), KEPLER_CHANNEL_GROUP_A);
	assert_int_equal(control(w, w->subdevice, NV2080_CTRL_CMD_GPU_GET_ID, &id, 4), NV_OK);
	assert_int_equal(set_slice(w, w->group, 10), NV_ERR_GPU_IS_LOST);
}

WORLD_TEST(an_unsupported_command_is_unknown)
{
	struct nva06c_timeslice slice = {1};

	assert_int_equal(emu_control(&w->emu, "unsupported set_timeslice"), 0);
	assert_int_equal(set_slice(w, w->group, 10), NV_ERR_NOT_SUPPORTED);
	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_SET_TIMESLICE, &slice, 4),
			 NV_ERR_NOT_SUPPORTED); /* so its size is not known either */
}

WORLD_TEST(a_process_can_be_killed_in_the_middle_of_its_call)
{
	int status;
	pid_t child;

	assert_int_equal(emu_control(&w->emu, "kill_on disable 0"), 0);
	child = fork();
	if (!child) {
		disable(w, w->client, w->channel, true);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(emu_groups_held(&w->emu, getpid()), 1); /* the call had its effect */
}

static uint64_t now_us(void)
{
	return test_now_ns() / 1000;
}

static void *slow_call(void *arg)
{
	struct world *w = arg;

	return (void *)(uintptr_t)set_slice(w, w->group, 10);
}

/* How long a cheap call takes while a slow one is under way. */
static uint64_t cheap_beside_slow(struct world *w, int fd, uint32_t client)
{
	pthread_t thread;
	uint64_t start;
	void *result;

	pthread_create(&thread, NULL, slow_call, w);
	emulator_sleep_ms(50);
	start = now_us();
	assert_int_equal(class_of(fd, client, client), NV01_ROOT_CLIENT);
	start = now_us() - start;
	pthread_join(thread, &result);
	assert_null(result);
	return start;
}

WORLD_TEST(a_slow_call_does_not_delay_cheap_ones_of_other_files)
{
	struct world other = *w;

	other.fd = open(w->emu.ctl, O_RDWR | O_CLOEXEC);
	make_client(&other);
	assert_int_equal(emu_control(&w->emu, "latency set_timeslice 500ms"), 0);
	assert_true(cheap_beside_slow(w, other.fd, other.client) < 200000);
	/* With RM's API lock the cheap call waits. */
	assert_int_equal(emu_control(&w->emu, "api_lock on"), 0);
	assert_true(cheap_beside_slow(w, other.fd, other.client) > 200000);
	close(other.fd);
}

WORLD_TEST(slow_calls_of_one_gpu_wait_for_each_other)
{
	pthread_t thread[3];
	uint64_t start = now_us();

	assert_int_equal(emu_control(&w->emu, "latency all 50ms"), 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, slow_call, w);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_true(now_us() - start >= 150000);
}

WORLD_TEST(the_effect_comes_at_the_end_of_the_call)
{
	pthread_t thread;

	assert_int_equal(emu_control(&w->emu, "latency set_timeslice 200ms"), 0);
	pthread_create(&thread, NULL, slow_call, w);
	emulator_sleep_ms(50);
	assert_int_equal(emu_group_sum(&w->emu, getpid(), "slice_us"), 1024);
	pthread_join(thread, NULL);
	assert_int_equal(emu_group_sum(&w->emu, getpid(), "slice_us"), 10);
}

WORLD_TEST(undo_sets_slices_back_as_cuda_would)
{
	set_slice(w, w->group, 1);
	assert_int_equal(emu_control(&w->emu, "undo %d", getpid()), 0);
	assert_int_equal(emu_group_sum(&w->emu, getpid(), "slice_us"), 2048);
}

WORLD_TEST(counts_can_be_reset)
{
	set_slice(w, w->group, 1);
	assert_int_equal(emu_count(&w->emu, "set_timeslice"), 1);
	assert_true(emu_count(&w->emu, "total") > 1);
	assert_int_equal(emu_control(&w->emu, "reset_counts"), 0);
	assert_int_equal(emu_count(&w->emu, "total"), 0);
}

WORLD_TEST(commands_nobody_knows_are_refused)
{
	assert_int_equal(emu_control(&w->emu, "fault"), -EINVAL);
	assert_int_equal(emu_control(&w->emu, "fault nothing 1 1"), -EINVAL);
	assert_int_equal(emu_control(&w->emu, "latency disable 5 apples"), -EINVAL);
	assert_int_equal(emu_control(&w->emu, "lost 7"), -EINVAL);
	assert_int_equal(emu_control(&w->emu, "dance"), -EINVAL);
	assert_int_equal(emu_control(&w->emu, "gsp off\ngsp on\n"), 0);
}

WORLD_TEST(the_control_file_is_for_root)
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(setuid(65534) ? 1 : -emu_control(&w->emu, "gsp off"));
	waitpid(child, &status, 0);
	assert_int_equal(WEXITSTATUS(status), EACCES);
}
