/* SPDX-License-Identifier: Apache-2.0 */
/* rm-load, which stands for CUDA programs, and the stand-in for NVML. */
#include <dlfcn.h>

#include "rm_world.h"

WORLD_TEST(a_load_has_what_cuda_makes_and_leaves_nothing)
{
	struct emu_load *load = rm_load(w, "--memory", "1000");
	char *text;

	assert_int_equal(emu_groups(&w->emu, load->pid), 1);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 2048);
	text = emu_state(&w->emu);
	assert_non_null(strstr(text, "\"handle\":\"0x5c000002\",\"parent\":\"0xc1d00002\","
				     "\"class\":\"0x80\""));
	free(text);
	assert_int_equal(emu_load_stop(load), 0);
	TEST_WAIT(emu_clients(&w->emu) == 1); /* the test's own */
	assert_int_equal(emu_memory(&w->emu), 0);
}

WORLD_TEST(a_load_that_is_held_and_released_ends_with_the_right_result)
{
	struct emu_load *load = rm_load(w, "--kernel-us", "3000");

	for (int i = 0; i < 10; i++) {
		assert_int_equal(disable(w, w->client + 1, 0x5c000005, !(i % 2)), NV_OK);
		emulator_sleep_ms(7);
	}
	assert_int_equal(emu_load_stop(load), 0);
}

WORLD_TEST(a_load_that_is_held_can_be_killed)
{
	struct emu_load *load = rm_load(w);

	assert_int_equal(disable(w, w->client + 1, 0x5c000005, true), NV_OK);
	emulator_sleep_ms(20);
	kill(load->pid, SIGKILL);
	TEST_WAIT(waitpid(load->pid, NULL, WNOHANG) != 0);
	close(load->out);
	load->pid = 0;
	TEST_WAIT(emu_clients(&w->emu) == 1); /* the test's own */
}

WORLD_TEST(loads_grow_and_shrink)
{
	struct emu_load *load = rm_load(w, "--grow", "50", "--shrink", "400");

	assert_int_equal(emu_groups(&w->emu, load->pid), 1);
	TEST_WAIT(emu_groups(&w->emu, load->pid) == 2);
	emulator_sleep_ms(600);
	assert_int_equal(emu_groups(&w->emu, load->pid), 1);
	assert_int_equal(emu_load_stop(load), 0);
}

WORLD_TEST(loads_use_several_gpus_and_contexts_with_any_handles)
{
	struct emu_load load;

	assert_int_equal(emu_load_start(&load, "--gpus", "2", "--contexts", "3", "--handles",
					"random", "--count", "20", NULL),
			 0);
	assert_int_equal(emu_groups(&w->emu, load.pid), 3);
	assert_int_equal(emu_load_wait(&load), 0);
	assert_int_equal(emu_load_start(&load, "--no-compute", "--seconds", "0.1", NULL), 0);
	assert_int_equal(emu_groups(&w->emu, load.pid), 0);
	assert_int_equal(emu_load_wait(&load), 0);
	assert_int_equal(emu_load_start(&load, "--drop-to", "65534", "--period-us", "5000",
					"--seconds", "0.1", NULL),
			 0);
	assert_int_equal(emu_load_wait(&load), 0);
}

WORLD_TEST(a_load_sets_its_slice_back)
{
	struct emu_load *load = rm_load(w, "--reset-slice", "100");
	int fd;

	for (fd = 3; fd < 10; fd++) {
		int copy = duplicate(load->pid, fd);
		uint32_t status = rm_call_control(copy, w->client + 1, 0x5c000004,
						  NVA06C_CTRL_CMD_SET_TIMESLICE,
						  &(struct nva06c_timeslice){1}, 8);

		close(copy);
		if (!status)
			break;
	}
	assert_int_not_equal(fd, 10);
	TEST_WAIT(emu_group_sum(&w->emu, load->pid, "slice_us") == 2048);
}

struct sample {
	unsigned pid;
	unsigned long long time;
	unsigned sm, mem, enc, dec;
};

struct process_info {
	unsigned pid;
	unsigned long long memory;
	unsigned gpu_instance, compute_instance;
};

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*device)(unsigned, void **);
	int (*usage)(void *, struct sample *, unsigned *, unsigned long long);
	int (*processes)(void *, unsigned *, struct process_info *);
};

static void open_nvml(struct nvml *nvml)
{
	nvml->library = dlopen(getenv("GPREEMPT_NVML"), RTLD_NOW | RTLD_LOCAL);
	assert_non_null(nvml->library);
	*(void **)&nvml->init = dlsym(nvml->library, "nvmlInit_v2");
	*(void **)&nvml->shutdown = dlsym(nvml->library, "nvmlShutdown");
	*(void **)&nvml->device = dlsym(nvml->library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&nvml->usage = dlsym(nvml->library, "nvmlDeviceGetProcessUtilization");
	*(void **)&nvml->processes =
		dlsym(nvml->library, "nvmlDeviceGetComputeRunningProcesses_v3");
	assert_int_equal(nvml->init(), 0);
}

WORLD_TEST(nvml_tells_who_works_and_who_has_memory)
{
	struct nvml nvml;
	struct emu_load *load;
	struct sample sample[4] = {0};
	struct process_info info[4];
	unsigned count = 0;
	void *device;

	open_nvml(&nvml);
	assert_int_equal(nvml.device(5, &device), 2);
	assert_int_equal(nvml.device(0, &device), 0);
	assert_int_equal(nvml.usage(device, NULL, &count, 0), 6); /* no process works */
	load = rm_load(w, "--memory", "4096");
	for (unsigned i = 0; i < 100 && sample[0].sm < 5; i++) { /* others may have the cores */
		emulator_sleep_ms(200);
		count = 4;
		if (nvml.usage(device, sample, &count, 0) || count != 1)
			sample[0].sm = 0;
	}
	count = 0;
	assert_int_equal(nvml.usage(device, NULL, &count, 0), 7);
	assert_int_equal(count, 1);
	assert_int_equal(sample[0].pid, load->pid);
	assert_in_range(sample[0].sm, 5, 100);
	count = 4;
	assert_int_equal(nvml.usage(device, sample, &count, sample[0].time + 1000000000), 6);
	count = 4;
	assert_int_equal(nvml.processes(device, &count, info), 0);
	assert_int_equal(count, 2); /* the test itself has a compute object too */
	assert_int_equal(info[0].pid == (unsigned)load->pid ? info[0].memory : info[1].memory,
			 4096);
	emu_load_kill(load);
	assert_int_equal(nvml.shutdown(), 0);
	assert_int_equal(nvml.shutdown(), 1);
	dlclose(nvml.library);
}

WORLD_TEST(nvml_shows_no_use_of_a_held_process)
{
	struct nvml nvml;
	struct emu_load *load;
	unsigned count = 0;
	void *device;

	open_nvml(&nvml);
	assert_int_equal(nvml.device(0, &device), 0);
	load = rm_load(w);
	assert_int_equal(disable(w, w->client + 1, 0x5c000005, true), NV_OK);
	emulator_sleep_ms(400);
	assert_int_equal(nvml.usage(device, NULL, &count, 0), 6);
	emu_load_kill(load);
	nvml.shutdown();
	dlclose(nvml.library);
}
