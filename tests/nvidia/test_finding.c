/* SPDX-License-Identifier: Apache-2.0 */
/* Processes are found with any handles and of any age; others are not. */
#include "base/process.h"
#include "gpu/nvidia/target.h"
#include "hand_made.h"

static void found_and_stopped(struct gpu_world *w, struct emu_load *load)
{
	struct gp_seen seen;
	uint32_t handle = gw_attach(w, load->pid);

	assert_true(gw_sees(w, load->pid, &seen));
	assert_int_equal(gw_queues(w, seen.key, "compute"), 1);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
	assert_false(gw_makes_progress(w, load->pid));
	gw_close(w);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(a_process_with_the_handles_of_libcuda_is_found)
{
	struct emu_load *load = gw_load(w);

	found_and_stopped(w, load);
}

GPU_TEST(a_process_that_counts_from_elsewhere_is_found)
{
	struct emu_load *load = gw_load(w, "--handles", "0x00310007");

	found_and_stopped(w, load);
}

/* A command has no second scan. */
GPU_TEST(the_first_scan_finds_a_process_with_a_slice_of_its_own)
{
	struct hand *h = gw_hand_with_client(w);

	hand_group(h, 0x5c000010, 2);
	hand_slice(h, 0x5c000010, 500);
	gw_open(w);
	assert_true(gw_sees(w, h->pid, NULL));
}

/* RM names one child of each kind: of a group with random handles one channel is known, and that
 * one gets the work here. Work of the other channels could not be stopped. */
GPU_TEST(a_process_with_random_handles_is_found)
{
	struct emu_load *load = gw_load(w, "--handles", "random");
	uint32_t handle = gw_attach(w, load->pid);

	assert_int_equal(gw_act(w, GW_SLICE, handle, 1).slice_us, 1);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 1);
	gw_act(w, GW_HOLD, handle, 0);
	assert_false(gw_makes_progress(w, load->pid));
	gw_close(w);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 2048);
	assert_int_equal(emu_load_stop(load), 0);
}

/* Calls to RM from nothing to the process's groups, as the emulator counts them. */
static uint64_t calls_to_attach(struct gpu_world *w, pid_t pid)
{
	struct gp_nv_target t;
	struct gp_rm rm;
	uint64_t calls;

	assert_int_equal(emu_control(&w->emu, "reset_counts"), 0);
	assert_int_equal(gp_rm_open(&rm, NULL), 0);
	assert_int_equal(gp_nv_target_open(&t, pid, NULL, NULL), 0);
	assert_int_equal(gp_nv_target_borrow(&t), 0);
	gp_nv_search_begin(&t, gp_rm_newest(&rm));
	gp_nv_search(&t, 4096, true);
	gp_nv_target_give_back(&t);
	assert_int_equal(t.nclients, 1);
	assert_int_equal(t.ngroups, 4);
	gp_nv_target_close(&t);
	gp_rm_close(&rm);
	calls = emu_count(&w->emu, "total");
	return calls;
}

GPU_TEST(attaching_takes_the_same_number_of_calls_for_every_client_index)
{
	static const uint32_t index[] = {0x10, 0xf0000, 0xffffd, 0xfffff, 0};
	uint64_t calls[sizeof index / sizeof *index];

	for (unsigned i = 0; i < sizeof index / sizeof *index; i++) {
		struct emu_load *load;

		assert_int_equal(emu_control(&w->emu, "client_index %u", index[i]), 0);
		load = gw_load(w, "--idle");
		calls[i] = calls_to_attach(w, load->pid);
		emu_load_kill(load);
		assert_int_equal(calls[i], calls[0]);
	}
	assert_in_range(calls[0], 1, 500); /* an H200 took about 220 for it */
}

GPU_TEST(clients_on_both_sides_of_the_wrap_are_found)
{
	struct emu_load *load[3];

	assert_int_equal(emu_control(&w->emu, "client_index %u", 0xfffff), 0);
	for (int i = 0; i < 3; i++) /* 0xfffff, 0, 1 */
		load[i] = gw_load(w);
	gw_open(w);
	for (int i = 0; i < 3; i++)
		TEST_WAIT(gw_sees(w, load[i]->pid, NULL));
}

GPU_TEST(a_client_that_is_thousands_of_clients_old_is_found)
{
	struct emu_load *load = gw_load(w);

	assert_int_equal(emu_control(&w->emu, "client_index 4000"), 0);
	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, NULL));
}

/* A process with the memory driver open computes or will: a long search is worth it. */
GPU_TEST(a_cuda_process_is_found_however_old_its_client_is)
{
	struct hand *old = gw_hand_with_client(w);

	hand_group(old, 0x5c000010, 2);
	hand_tell(old, (struct hand_order){.call = HAND_UVM});
	assert_int_equal(emu_control(&w->emu, "client_index 30000"), 0);
	gw_open(w);
	TEST_WAIT(gw_sees(w, old->pid, NULL));
}

GPU_TEST(a_process_without_compute_groups_is_no_task)
{
	struct gp_error err = {0};
	struct gp_seen seen;
	struct emu_load *x = gw_load(w, "--no-compute");
	struct emu_load *load = gw_load(w);

	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, NULL));
	assert_false(gw_sees(w, x->pid, NULL));
	assert_int_equal(gp_gpu_find(w->gpu, x->pid, &seen, &err), -ENODEV);
	assert_true(err.text[0]);
	assert_int_equal(emu_count(&w->emu, "set_timeslice"), 1); /* the load's own */
	assert_int_equal(emu_count(&w->emu, "disable"), 0);
}

GPU_TEST(processes_that_do_not_exist_or_use_no_gpu_are_told_apart)
{
	struct gp_error err = {0};
	struct gp_seen seen;
	struct hand *h = gw_hand(w);

	gw_open(w);
	assert_int_equal(gp_gpu_find(w->gpu, h->pid, &seen, &err), -ENODEV);
	assert_non_null(strstr(err.text, "does not use"));
	hand_stop(h);
	err = (struct gp_error){0};
	assert_int_equal(gp_gpu_find(w->gpu, h->pid, &seen, &err), -ESRCH);
	assert_true(err.text[0]);
	assert_int_equal(gp_gpu_find(w->gpu, 0x3fffff, &seen, NULL), -ESRCH);
}

GPU_TEST(two_contexts_are_two_compute_groups_of_one_task)
{
	struct gp_seen seen, all[8];
	struct emu_load *load = gw_load(w, "--contexts", "2");

	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, &seen));
	assert_int_equal(gp_gpu_scan(w->gpu, gw_now(), all, 8), 1);
	assert_int_equal(gw_queues(w, seen.key, "compute"), 2);
	assert_int_equal(gw_queues(w, seen.key, "copy"), 6);
}

GPU_TEST(each_device_sees_its_own_groups)
{
	struct gpu_world second = {.emu = w->emu};
	struct gp_seen seen;
	struct emu_load *both, *one;

	assert_int_equal(gp_nvidia_ops.probe(), 2);
	both = gw_load(w, "--gpus", "2", "--contexts", "3");
	one = gw_load(w);
	gw_open(w);
	second.gpu = gw_open_index(1);
	TEST_WAIT(gw_sees(w, both->pid, &seen) && gw_sees(w, one->pid, NULL));
	assert_int_equal(gw_queues(w, seen.key, "compute"), 2);
	TEST_WAIT(gw_sees(&second, both->pid, &seen));
	assert_int_equal(gw_queues(&second, seen.key, "compute"), 1);
	assert_false(gw_sees(&second, one->pid, NULL));
	/* Held here, it goes on there. */
	assert_true(gw_act(&second, GW_HOLD, gw_attach(&second, both->pid), 0).held);
	assert_int_equal(emu_groups_held(&w->emu, both->pid), 1);
	gw_close(&second);
	assert_int_equal(emu_groups_held(&w->emu, both->pid), 0);
}

GPU_TEST(there_is_no_device_behind_the_last)
{
	struct gp_gpu *gpu = NULL;

	assert_int_equal(gp_nvidia_ops.open(2, 0, &gpu), -ENODEV);
	assert_null(gpu);
}

GPU_TEST(start_time_name_and_memory_are_told)
{
	struct gp_seen seen;
	struct emu_load *load = gw_load(w, "--memory", "123456789");

	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, &seen) && seen.memory == 123456789);
	assert_int_equal(seen.start_time, gp_process_start_time(load->pid));
	assert_string_equal(seen.name, "rm-load");
	assert_int_equal(seen.flags, 0);
}

GPU_TEST(an_mps_server_is_marked_as_shared)
{
	struct gp_seen seen;
	struct emu_load *load = gw_load(w, "--mps");

	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, &seen));
	assert_int_equal(seen.flags, GP_SEEN_SHARED);
}

GPU_TEST(a_scan_into_too_small_an_array_says_how_many_there_are)
{
	struct gp_seen seen[2];

	for (int i = 0; i < 3; i++)
		gw_load(w);
	gw_open(w);
	TEST_WAIT(gp_gpu_scan(w->gpu, gw_now(), seen, 2) == 3);
	assert_int_equal(gp_gpu_scan(w->gpu, gw_now(), NULL, 0), 3);
}

#define BUSY_LOADS 4

/* Calls are counted instead of time: a driver answers in 3 us, an emulator on a busy machine in 50.
 */
GPU_TEST(nobody_waits_for_a_search_that_goes_far_back)
{
	struct emu_load *load[BUSY_LOADS];
	struct gp_seen seen[BUSY_LOADS];
	uint64_t before;

	for (int i = 0; i < BUSY_LOADS; i++)
		load[i] = gw_load(w);
	before = emu_count(&w->emu, "total");
	gw_open(w);
	assert_int_equal(gp_gpu_scan(w->gpu, gw_now(), seen, BUSY_LOADS), BUSY_LOADS);
	assert_true(emu_count(&w->emu, "total") - before < 4096);

	/* While the others are searched further, an end is noticed. */
	before = emu_count(&w->emu, "total");
	emu_load_kill(load[0]);
	TEST_WAIT(gp_gpu_scan(w->gpu, gw_now(), NULL, 0) == BUSY_LOADS - 1);
	assert_true(emu_count(&w->emu, "total") - before < 4096);
}

GPU_TEST(every_branch_of_the_driver_is_understood)
{
	static const char *const branch[] = {"550", "570", "580", "595"};

	for (unsigned i = 0; i < sizeof branch / sizeof *branch; i++) {
		struct emu_load *load;
		struct gp_rm rm;
		uint32_t handle;

		assert_int_equal(emu_control(&w->emu, "version %s", branch[i]), 0);
		assert_int_equal(gp_nvidia_ops.probe(), 2);
		assert_int_equal(gp_rm_open(&rm, NULL), 0);
		assert_memory_equal(rm.version, branch[i], 3);
		gp_rm_close(&rm);
		load = gw_load(w);
		handle = gw_attach(w, load->pid);
		assert_int_equal(gw_act(w, GW_SLICE, handle, 1).slice_us, 1);
		assert_true(gw_act(w, GW_HOLD, handle, 0).held);
		assert_false(gw_act(w, GW_RELEASE, handle, 0).held);
		gw_close(w);
		assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 2048);
		assert_int_equal(emu_load_stop(load), 0);
	}
}
