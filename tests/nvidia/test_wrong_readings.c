/* SPDX-License-Identifier: Apache-2.0 */
/* The driver reads back what is not so: it is contradicted, and nothing wrong is restored. */
#include "gpu_world.h"

#define ALWAYS 1000000

static struct gp_undo record_of(struct gpu_world *w, uint32_t handle)
{
	struct gp_undo undo = {0};

	assert_int_equal(gp_gpu_undo_record(w->gpu, handle, &undo), 0);
	return undo;
}

static uint64_t slice_of(struct gpu_world *w, const struct emu_load *load)
{
	return emu_group_sum(&w->emu, load->pid, "slice_us");
}

/* Attaches while the driver reads back `read_us` for every group. */
static uint32_t attach_with_wrong_slice(struct gpu_world *w, const struct emu_load *load,
					unsigned read_us)
{
	uint32_t handle;

	emu_control(&w->emu, "read_slice %u", read_us);
	handle = gw_attach(w, load->pid);
	gw_settled(w, handle);
	return handle;
}

GPU_TEST(a_slice_that_proved_wrong_is_neither_recorded_nor_restored)
{
	static const unsigned read_us[] = {1, 50, 100, 1000000};

	for (unsigned i = 0; i < sizeof read_us / sizeof *read_us; i++) {
		struct emu_load *load = gw_load(w);
		struct gp_action a = {.handle = attach_with_wrong_slice(w, load, read_us[i]),
				      .slice_us = 5000};
		struct gp_undo undo;

		assert_int_equal(gp_gpu_set_slice(w->gpu, gw_now(), &a, 1), 0);
		TEST_WAIT(!gw_look(w, a.handle).under_way);
		assert_int_equal(gw_look(w, a.handle).failed, -EIO);
		undo = record_of(w, a.handle);
		assert_true(undo.corrected);
		emu_control(&w->emu, "clear_faults");
		assert_true(slice_of(w, load) != 2048);
		assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
		assert_int_equal(slice_of(w, load), 2048);
		gw_act(w, GW_SLICE, a.handle, 300);
		gw_close(w);
		assert_int_equal(slice_of(w, load), 2048);
		assert_int_equal(emu_load_stop(load), 0);
	}
}

GPU_TEST(a_tiny_slice_is_no_programs_own)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = attach_with_wrong_slice(w, load, 1);
	struct gp_undo undo = record_of(w, handle);

	assert_int_equal(gw_look(w, handle).slice_us, 1);
	emu_control(&w->emu, "clear_faults");
	emu_control(&w->emu, "fault set_timeslice 0x65 1"); /* it would set what it has */
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	assert_int_equal(slice_of(w, load), 2048);
}

GPU_TEST(a_slice_that_is_in_force_by_all_that_is_known_is_not_set)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = attach_with_wrong_slice(w, load, 1000000);

	assert_int_equal(gw_act(w, GW_SLICE, handle, 1000000).failed, 0);
	assert_int_equal(slice_of(w, load), 2048);
	gw_close(w);
	emu_control(&w->emu, "clear_faults");
	assert_int_equal(slice_of(w, load), 2048);
}

GPU_TEST(a_slice_that_differs_from_the_record_is_recorded_first)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = {.handle = attach_with_wrong_slice(w, load, 5000), .slice_us = 100};

	emu_control(&w->emu, "clear_faults");
	assert_int_equal(gp_gpu_set_slice(w->gpu, gw_now(), &a, 1), 0);
	TEST_WAIT(!gw_look(w, a.handle).under_way);
	if (gw_look(w, a.handle).failed) { /* it was not examined again meanwhile */
		assert_int_equal(gw_look(w, a.handle).failed, -EAGAIN);
		usleep(100000); /* it is now */
		assert_true(record_of(w, a.handle).corrected);
	}
	assert_int_equal(gw_act(w, GW_SLICE, a.handle, 100).slice_us, 100);
	gw_act(w, GW_SLICE, a.handle, 0);
	assert_int_equal(slice_of(w, load), 2048);
}

GPU_TEST(after_a_release_that_the_driver_denies_the_state_is_unknown)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = {.handle = gw_attach(w, load->pid)};

	assert_true(gw_act(w, GW_HOLD, a.handle, 0).held);
	emu_control(&w->emu, "ignore channel_state %d", ALWAYS); /* all zero: disabled */
	assert_int_equal(gp_gpu_release(w->gpu, gw_now(), &a, 1), 0);
	TEST_WAIT(!gw_look(w, a.handle).under_way);
	assert_int_equal(gw_look(w, a.handle).failed, -EIO);
	assert_true(gw_makes_progress(w, load->pid));
	for (int i = 0; i < 30; i++) { /* also when it is read back again */
		assert_true(gw_look(w, a.handle).unsure);
		usleep(10000);
	}
	emu_control(&w->emu, "clear_faults");
	TEST_WAIT(!gw_look(w, a.handle).unsure);
	assert_false(gw_look(w, a.handle).held);
}

/* The other program is the back end's second device for the GPU. */
GPU_TEST(a_hold_by_another_program_is_seen_and_so_is_its_end)
{
	struct gpu_world other = {.emu = w->emu};
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid), others;

	assert_false(gw_settled(w, handle).held);
	gw_open(&other);
	others = gw_attach(&other, load->pid);
	gw_act(&other, GW_HOLD, others, 0);
	TEST_WAIT(gw_look(w, handle).held);
	gw_act(&other, GW_RELEASE, others, 0);
	TEST_WAIT(!gw_look(w, handle).held);
	gw_close(&other);
}

/* Of a task that the back end has not changed only a fresh reading says whether it is held. */
GPU_TEST(without_a_reading_it_is_not_known_whether_a_task_is_held)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	TEST_WAIT(gw_look(w, handle).known & GP_KNOWN_HELD);
	emu_control(&w->emu, "fault channel_state 0x65 %d", ALWAYS);
	TEST_WAIT(!(gw_look(w, handle).known & GP_KNOWN_HELD));
	emu_control(&w->emu, "clear_faults");
	TEST_WAIT(gw_look(w, handle).known & GP_KNOWN_HELD);
}

/* After the client: the device, the subdevice, the diagnostic subdevice. */
GPU_TEST(what_the_driver_refused_at_the_start_is_asked_for_again)
{
	struct gpu_world other = {.emu = w->emu};
	struct emu_load *load = gw_load(w);

	gw_open(&other);
	gw_act(&other, GW_HOLD, gw_attach(&other, load->pid), 0);
	for (int after = 1; after <= 3; after++) {
		uint32_t handle;

		emu_control(&w->emu, "fault alloc 0x51 1 after %d", after);
		handle = gw_attach(w, load->pid);
		TEST_WAIT(gw_look(w, handle).held);
		gw_close(w);
		emu_control(&w->emu, "clear_faults");
	}
	gw_close(&other);
}

GPU_TEST(processes_that_the_driver_does_not_name_are_not_no_processes)
{
	struct emu_load *load = gw_load(w);

	emu_control(&w->emu, "fault handle_info 0x57 %d", ALWAYS);
	gw_open(w);
	assert_true(gp_gpu_scan(w->gpu, gw_now(), NULL, 0) < 0);
	emu_control(&w->emu, "clear_faults");
	TEST_WAIT(gp_gpu_scan(w->gpu, gw_now(), NULL, 0) == 1);
	emu_load_kill(load);
	TEST_WAIT(gp_gpu_scan(w->gpu, gw_now(), NULL, 0) == 0);
}

GPU_TEST(a_driver_that_does_not_answer_is_not_no_driver)
{
	static const char *const fault[] = {"errno alloc 5 1", "fault alloc 0x51 1",
					    "fault probed_ids 0x65 1", "ignore probed_ids 1"};

	for (unsigned i = 0; i < sizeof fault / sizeof *fault; i++) {
		assert_int_equal(emu_control(&w->emu, "%s", fault[i]), 0);
		assert_true(gp_nvidia_ops.probe() < 0);
		assert_int_equal(gp_nvidia_ops.probe(), 2);
	}
}
