/* SPDX-License-Identifier: Apache-2.0 */
/* The driver reads back what is not so, or nothing: it is contradicted, nothing wrong is restored,
 * and no hold or release counts that is not seen. */
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
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	assert_int_equal(slice_of(w, load), 2048);
}

/* The undo does not ask whether the group has its own slice already: the answer may be wrong. */
GPU_TEST(an_undo_sets_the_slice_whatever_the_driver_says_of_it)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);
	struct gp_undo undo = record_of(w, handle);

	assert_int_equal(gw_act(w, GW_SLICE, handle, 1).slice_us, 1);
	emu_control(&w->emu, "read_slice 2048");
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	assert_int_equal(slice_of(w, load), 2048);
	emu_control(&w->emu, "clear_faults");
}

GPU_TEST(the_record_of_a_hold_restores_no_slice)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = attach_with_wrong_slice(w, load, 777);
	struct gp_undo undo = record_of(w, handle);

	undo.hold_only = true;
	emu_control(&w->emu, "clear_faults");
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
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

/* Asks for it, and returns what the task looks like when the driver has answered. */
static struct gp_observation outcome(struct gpu_world *w, bool hold, struct gp_action *a)
{
	assert_int_equal(gp_gpu_act(w->gpu, gw_now(), hold ? GP_ACT_HOLD : GP_ACT_RELEASE, a, 1),
			 0);
	TEST_WAIT(!gw_look(w, a->handle).under_way);
	return gw_look(w, a->handle);
}

static void why_has(struct gpu_world *w, uint32_t handle, const char *text)
{
	struct gp_error why = {0};

	gp_gpu_why(w->gpu, handle, &why);
	assert_non_null(strstr(why.text, text));
}

/* Bits of channels that the driver passes over: the first; the last; all but the first and last;
 * all but the last. */
static const unsigned passed_over[] = {0x01, 0x80, 0x7e, 0x7f};

GPU_TEST(a_release_of_a_part_of_the_channels_has_failed_and_is_not_known)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = {.handle = gw_attach(w, load->pid)};

	for (unsigned i = 0; i < sizeof passed_over / sizeof *passed_over; i++) {
		assert_true(gw_act(w, GW_HOLD, a.handle, 0).held);
		emu_control(&w->emu, "skip %u 1", passed_over[i]);
		assert_int_equal(outcome(w, false, &a).failed, -EIO);
		why_has(w, a.handle, "for a part of the channels");
		for (int k = 0; k < 20; k++) { /* also when it is read back again */
			assert_true(gw_look(w, a.handle).unsure);
			usleep(10000);
		}
		assert_int_equal(outcome(w, false, &a).failed, 0);
		assert_false(gw_look(w, a.handle).unsure);
		assert_true(gw_makes_progress(w, load->pid));
	}
}

GPU_TEST(a_hold_of_a_part_of_the_channels_has_failed_and_is_given_up)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 0);

	for (unsigned i = 0; i < sizeof passed_over / sizeof *passed_over; i++) {
		emu_control(&w->emu, "skip %u 1", passed_over[i]);
		assert_int_equal(outcome(w, true, &a).failed, -EIO);
		why_has(w, a.handle, "for a part of the channels");
		assert_false(gw_look(w, a.handle).held);
		assert_true(gw_makes_progress(w, load->pid));
	}
}

GPU_TEST(a_group_with_a_part_of_its_channels_held_is_neither_held_nor_released)
{
	struct gpu_world other = {.emu = w->emu};
	struct emu_load *load = gw_load(w);
	struct gp_action a = {.handle = gw_attach(w, load->pid)}, b;

	gw_open(&other);
	b = (struct gp_action){.handle = gw_attach(&other, load->pid)};
	assert_true(gw_act(&other, GW_HOLD, b.handle, 0).held);
	emu_control(&w->emu, "skip 1 1000");
	assert_int_equal(outcome(&other, false, &b).failed, -EIO);
	gp_gpu_set_slice(w->gpu, gw_now(), &a,
			 1); /* touched, so that it is verified now and then */
	TEST_WAIT(gw_look(w, a.handle).unsure);
	emu_control(&w->emu, "clear_faults");
	assert_int_equal(outcome(w, false, &a).failed, 0);
	assert_false(gw_look(w, a.handle).unsure);
	assert_true(gw_makes_progress(w, load->pid));
	gw_close(&other);
}

GPU_TEST(an_undo_that_enables_a_part_of_the_channels_is_repeated)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);
	struct gp_undo undo = record_of(w, handle);

	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	emu_control(&w->emu, "skip 1 1000");
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -EIO);
	assert_int_equal(gp_backend_release_process(&gp_nvidia_ops, load->pid, NULL, NULL), -EIO);
	emu_control(&w->emu, "clear_faults");
	emu_control(&w->emu, "skip 1 1");
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	assert_true(gw_makes_progress(w, load->pid));
}

/* What makes it impossible to read back, although the driver has the call. */
static const char *const unreadable[] = {"fault channel_state 0x65 1000000",
					 "errno channel_state 5 1000000"};

GPU_TEST(a_release_that_cannot_be_read_back_has_failed)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = {.handle = gw_attach(w, load->pid)};
	struct gp_undo undo = record_of(w, a.handle);
	struct gp_queue queue[8];
	struct gp_seen seen;

	assert_true(gw_sees(w, load->pid, &seen));
	for (unsigned i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
		assert_true(gw_act(w, GW_HOLD, a.handle, 0).held);
		emu_control(&w->emu, "%s", unreadable[i]);
		emu_control(&w->emu, "ignore disable %d", ALWAYS);
		assert_int_equal(outcome(w, false, &a).failed, -EIO);
		why_has(w, a.handle, "cannot be read back");
		assert_true(gw_look(w, a.handle).unsure);
		assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -EIO);
		assert_int_equal(gp_backend_release_process(&gp_nvidia_ops, load->pid, NULL, NULL),
				 -EIO);
		for (int n = gp_gpu_queues(w->gpu, seen.key, true, queue, 8, NULL); n-- > 0;)
			assert_true(queue[n].unsure);
		emu_control(&w->emu, "clear_faults");
		assert_int_equal(outcome(w, false, &a).failed, 0);
		assert_true(gw_makes_progress(w, load->pid));
		for (int n = gp_gpu_queues(w->gpu, seen.key, true, queue, 8, NULL); n-- > 0;)
			assert_false(queue[n].unsure || queue[n].held);
	}
}

GPU_TEST(a_hold_that_cannot_be_read_back_has_failed_and_is_given_up)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 0);

	for (unsigned i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
		emu_control(&w->emu, "%s", unreadable[i]);
		assert_int_equal(outcome(w, true, &a).failed, -EIO);
		assert_true(gw_look(w, a.handle).unsure);
		assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
		emu_control(&w->emu, "clear_faults");
		TEST_WAIT(!gw_look(w, a.handle).unsure);
		assert_false(gw_look(w, a.handle).held);
	}
}

GPU_TEST(what_was_refused_at_first_is_opened_when_it_is_read)
{
	struct emu_load *load = gw_load(w);
	struct gp_undo undo;
	uint32_t handle = gw_attach(w, load->pid);

	undo = record_of(w, handle);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	for (int after = 1; after < 4; after++) { /* after the client: device, subdevice, diag */
		emu_control(&w->emu, "fault alloc 0x51 1 after %d", after);
		assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
		assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
		emu_control(&w->emu, "clear_faults");
		assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	}
	emu_control(&w->emu, "ignore disable %d", ALWAYS);
	emu_control(&w->emu, "fault alloc 0x51 %d after 3", ALWAYS);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -EIO);
}

GPU_TEST(a_channel_that_the_driver_denies_is_switched_with_its_group)
{
	static const unsigned denied[] = {0x57, 0x33, 0x1b};
	struct emu_load *load = gw_load(w);
	struct gp_action a = {.handle = gw_attach(w, load->pid)};
	unsigned i = 0;

	for (int after = 0; after < 24; after++) { /* each question about the group in its turn */
		assert_true(gw_act(w, GW_HOLD, a.handle, 0).held);
		emu_control(&w->emu, "fault handle_info 0x%x 1 after %d", denied[i++ % 3], after);
		assert_int_equal(outcome(w, false, &a).failed, 0);
		emu_control(&w->emu, "clear_faults");
		assert_true(gw_makes_progress(w, load->pid));
		assert_false(gw_look(w, a.handle).unsure);
	}
}

/* The state of a task is read back every second, and after a change. */
GPU_TEST(one_wrong_reading_ends_no_hold)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	usleep(100000); /* it was read back after the change */
	emu_control(&w->emu, "read_channels enabled 1");
	for (int i = 0; i < 250; i++) {
		assert_true(gw_look(w, handle).held);
		assert_int_equal(emu_disabled(&w->emu, load->pid), 8);
		usleep(10000);
	}
}
