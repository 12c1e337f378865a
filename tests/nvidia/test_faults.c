/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver can answer, and how long it can take: it is told, and nothing stays behind. */
#include "gpu/nvidia/rm.h"
#include "hand_made.h"

#define ALWAYS 1000000

enum { SLICE, HOLD, KINDS };
static const char *const command[KINDS] = {"set_timeslice", "disable"};

static void ask(struct gpu_world *w, int kind, struct gp_action *a)
{
	int r = kind == SLICE ? gp_gpu_set_slice(w->gpu, gw_now(), a, 1)
			      : gp_gpu_hold(w->gpu, gw_now(), a, 1);

	assert_int_equal(r, 0);
	assert_int_equal(a->status, -EINPROGRESS);
}

/* The observation when the action has ended. */
static struct gp_observation outcome(struct gpu_world *w, uint32_t handle)
{
	TEST_WAIT(!gw_look(w, handle).under_way);
	return gw_look(w, handle);
}

static void clear(struct gpu_world *w)
{
	assert_int_equal(emu_control(&w->emu, "clear_faults"), 0);
}

/* Asks for it again: it comes to pass. */
static void works_again(struct gpu_world *w, int kind, uint32_t handle, pid_t pid)
{
	struct gp_action a = {.handle = handle, .slice_us = 1};
	struct gp_observation o;

	clear(w);
	ask(w, kind, &a);
	o = outcome(w, handle);
	assert_int_equal(o.failed, 0);
	assert_int_equal(o.driver_code, 0);
	if (kind == SLICE)
		assert_int_equal(emu_group_sum(&w->emu, pid, "slice_us"), 1);
	else
		assert_int_equal(emu_groups_held(&w->emu, pid), 1);
	gw_act(w, GW_RELEASE, handle, 0);
	gw_act(w, GW_SLICE, handle, 0);
	assert_int_equal(emu_groups_held(&w->emu, pid), 0);
	assert_int_equal(emu_group_sum(&w->emu, pid, "slice_us"), 2048);
}

GPU_TEST(every_error_of_the_driver_is_told_and_overcome)
{
	static const struct {
		uint32_t status;
		int code;
	} error[] = {
		{NV_ERR_BUSY_RETRY, -EBUSY},        {NV_ERR_TIMEOUT, -ETIMEDOUT},
		{NV_ERR_GPU_IS_LOST, -ENODEV},      {NV_ERR_INSUFFICIENT_PERMISSIONS, -EPERM},
		{NV_ERR_INVALID_ARGUMENT, -EINVAL}, {NV_ERR_INVALID_CLIENT, -ENXIO},
		{NV_ERR_INVALID_OBJECT, -ENXIO},    {NV_ERR_INVALID_OBJECT_HANDLE, -ENXIO},
		{NV_ERR_INVALID_STATE, -EBUSY},     {NV_ERR_NOT_SUPPORTED, -ENOTSUP},
		{NV_ERR_OBJECT_NOT_FOUND, -ENXIO},  {0x7f, -EIO}, /* an unknown status */
	};
	struct gp_observation o;
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 1);

	for (unsigned i = 0; i < sizeof error / sizeof *error; i++)
		for (int kind = 0; kind < KINDS; kind++) {
			emu_control(&w->emu, "fault %s 0x%x %d", command[kind], error[i].status,
				    ALWAYS);
			ask(w, kind, &a);
			o = outcome(w, a.handle);
			assert_int_equal(o.failed, error[i].code);
			assert_int_equal(o.driver_code, error[i].status);
			assert_false(o.held);
			assert_int_equal(o.slice_us, 0);
			works_again(w, kind, a.handle, load->pid);
		}
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(a_change_without_effect_is_a_failure)
{
	struct gp_error why = {0};
	struct gp_observation o;
	struct emu_load *load = gw_load(w);
	struct gp_action a;

	gw_open(w);
	a = (struct gp_action){.handle = gw_attach(w, load->pid), .slice_us = 1};
	gw_settled(w, a.handle);
	for (int kind = 0; kind < KINDS; kind++) {
		emu_control(&w->emu, "ignore %s %d", command[kind], ALWAYS);
		ask(w, kind, &a);
		o = outcome(w, a.handle);
		assert_int_equal(o.failed, -EIO);
		assert_false(o.held);
		assert_int_equal(o.slice_us, 0);
		works_again(w, kind, a.handle, load->pid);
	}
	assert_true(gw_act(w, GW_HOLD, a.handle, 0).held);
	emu_control(&w->emu, "ignore disable %d", ALWAYS);
	gp_gpu_release(w->gpu, gw_now(), &a, 1);
	o = outcome(w, a.handle);
	assert_int_equal(o.failed, -EIO);
	assert_true(o.held);
	gp_gpu_why(w->gpu, a.handle, &why);
	assert_non_null(strstr(why.text, "reads back the old state"));
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
	emu_control(&w->emu, "clear_faults");
	assert_false(gw_act(w, GW_RELEASE, a.handle, 0).held);
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(busy_is_tried_again_and_succeeds)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 1);

	for (int kind = 0; kind < KINDS; kind++) {
		emu_control(&w->emu, "fault %s 0x3 5", command[kind]);
		ask(w, kind, &a);
		assert_int_equal(outcome(w, a.handle).failed, 0);
		works_again(w, kind, a.handle, load->pid);
	}
}

GPU_TEST(an_error_of_the_call_itself_is_told)
{
	static const int code[] = {EIO, EPERM, ENOTTY, EFAULT, ENODEV};
	struct gp_observation o;
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 1);

	for (unsigned i = 0; i < sizeof code / sizeof *code; i++)
		for (int kind = 0; kind < KINDS; kind++) {
			emu_control(&w->emu, "errno %s %d %d", command[kind], code[i], ALWAYS);
			ask(w, kind, &a);
			o = outcome(w, a.handle);
			assert_int_equal(o.failed, -code[i]);
			assert_int_equal(o.driver_code, 0); /* it was not the driver's own */
			works_again(w, kind, a.handle, load->pid);
		}
}

/* A call that was interrupted is made again, but not for ever. */
GPU_TEST(an_interrupted_call_is_made_again_but_not_for_ever)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 1);

	emu_control(&w->emu, "errno set_timeslice %d 3", EAGAIN);
	ask(w, SLICE, &a);
	assert_int_equal(outcome(w, a.handle).failed, 0);
	clear(w);
	emu_control(&w->emu, "errno set_timeslice %d 100000000", EAGAIN);
	ask(w, SLICE, &a);
	for (int i = 0; i < 2000 && gw_look(w, a.handle).under_way; i++)
		usleep(1000);
	if (gw_look(w, a.handle).under_way) {
		clear(w); /* otherwise the end of the test would wait for it, too */
		fail_msg("still under way after 2 s");
	}
}

GPU_TEST(a_failed_hold_of_one_does_not_take_the_others_with_it)
{
	struct emu_load *load[3];
	struct gp_action a[3];
	unsigned held = 0, failed = 0;

	gw_load_batch(w, load, a, 3);
	emu_control(&w->emu, "fault disable 0x40 2"); /* the one for all, and the next */
	assert_int_equal(gp_gpu_hold(w->gpu, gw_now(), a, 3), 0);
	for (int i = 0; i < 3; i++) {
		struct gp_observation o = outcome(w, a[i].handle);

		held += emu_groups_held(&w->emu, load[i]->pid);
		failed += o.failed == -EBUSY && o.driver_code == NV_ERR_INVALID_STATE;
		assert_int_equal(o.held, !o.failed);
	}
	assert_int_equal(held, 2);
	assert_int_equal(failed, 1);
	gw_close(w);
	for (int i = 0; i < 3; i++)
		assert_int_equal(emu_load_stop(load[i]), 0);
}

GPU_TEST(without_firmware_a_hold_is_not_supported_and_slices_work)
{
	struct gp_observation o;
	struct gp_action a;
	struct emu_load *load;

	emu_control(&w->emu, "gsp off");
	load = gw_load(w);
	a = gw_settled_action(w, load->pid, 1);
	ask(w, HOLD, &a);
	o = outcome(w, a.handle);
	assert_int_equal(o.failed, -ENOTSUP);
	assert_int_equal(o.driver_code, NV_ERR_NOT_SUPPORTED);
	assert_false(o.held);
	assert_int_equal(gw_act(w, GW_SLICE, a.handle, 1).slice_us, 1);
}

GPU_TEST(a_gpu_that_is_lost_is_told_and_the_other_works)
{
	struct gpu_world second = {.emu = w->emu};
	struct gp_action a;
	uint32_t handle;
	struct emu_load *load = gw_load(w);
	struct emu_load *other = gw_load(w, "--gpus", "2", "--contexts", "2");

	gw_open(w);
	second.gpu = gw_open_index(1);
	a = gw_settled_action(w, load->pid, 1);
	handle = gw_attach(&second, other->pid);
	gw_settled(&second, handle);
	emu_control(&w->emu, "lost 0");
	ask(w, SLICE, &a);
	assert_true(outcome(w, a.handle).failed);
	assert_true(gw_act(&second, GW_HOLD, handle, 0).held);
	gw_close(&second);
	gp_gpu_detach(w->gpu, a.handle); /* cannot fail */
	gw_close(w);
}

GPU_TEST(commands_that_the_driver_does_not_know_are_done_without)
{
	static const char *const optional[] = {"pids", "channel_state", "build_version",
					       "preemption_mode"};
	uint32_t handle;
	struct emu_load *load;

	for (unsigned i = 0; i < sizeof optional / sizeof *optional; i++)
		assert_int_equal(emu_control(&w->emu, "unsupported %s", optional[i]), 0);
	load = gw_load(w);
	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, NULL)); /* by a sweep */
	handle = gw_attach(w, load->pid);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	assert_int_equal(gw_act(w, GW_SLICE, handle, 1).slice_us, 1);
	assert_false(gw_act(w, GW_RELEASE, handle, 0).held);
}

GPU_TEST(faults_in_the_search_do_not_make_a_process_disappear_for_good)
{
	static const char *const asked[] = {"handle_info", "child_handle", "gpu_id", "get_info",
					    "get_timeslice"};
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	gw_slice_and_hold(w, handle);
	for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
		emu_control(&w->emu, "fault %s 0x65 200", asked[i]);
		emulator_sleep_ms(150); /* some looks fail */
		clear(w);
		TEST_WAIT(gw_sees(w, load->pid, NULL));
		TEST_WAIT(gw_look(w, handle).known & GP_KNOWN_HELD);
	}
	gp_gpu_detach(w->gpu, handle);
	gw_close(w);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 2048);
	assert_int_equal(emu_load_stop(load), 0);
}

/* Also RM's list of computing processes has it no more. */
static void vanish(struct gpu_world *w)
{
	emu_control(&w->emu, "fault handle_info 0x57 %d", ALWAYS);
	emu_control(&w->emu, "fault child_handle 0x57 %d", ALWAYS);
	emu_control(&w->emu, "fault get_info 0x57 %d", ALWAYS);
	emu_control(&w->emu, "ignore pids %d", ALWAYS);
}

GPU_TEST(a_held_task_whose_handles_vanish_for_a_while_is_not_forgotten)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);
	struct gp_undo undo = {0};

	assert_int_equal(gp_gpu_undo_record(w->gpu, handle, &undo), 0);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	vanish(w);
	for (int i = 0; i < 300; i++) { /* several full looks */
		assert_true(gw_sees(w, load->pid, NULL));
		usleep(10000);
	}
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -EIO);
	clear(w);
	assert_int_equal(gw_act(w, GW_RELEASE, handle, 0).failed, 0);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(a_slow_driver_does_not_keep_the_caller_waiting)
{
	uint64_t longest_ns = 0, looks = 0;
	struct gp_seen seen[8];
	struct gp_undo undo;
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 1);

	gp_gpu_scan(w->gpu, gw_now(), seen, 8); /* the first one may wait */
	emu_control(&w->emu, "latency all 200ms");
	for (int kind = 0; kind < KINDS; kind++) {
		uint64_t begin_ns = gw_now();

		ask(w, kind, &a);
		assert_in_range(gw_now() - begin_ns, 0, 20 * GP_NS_PER_MS);
		while (gw_look(w, a.handle).under_way) {
			uint64_t at_ns = gw_now(), took_ns;

			gp_gpu_scan(w->gpu, at_ns, seen, 8);
			gw_look(w, a.handle);
			gp_gpu_undo_record(w->gpu, a.handle, &undo);
			took_ns = gw_now() - at_ns;
			longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
			looks++;
			usleep(1000);
		}
		assert_true(gw_now() - begin_ns >= 150 * GP_NS_PER_MS); /* it was slow */
	}
	assert_true(looks > 50);
	assert_in_range(longest_ns, 0, 20 * GP_NS_PER_MS);
	emu_control(&w->emu, "latency all 0");
}

GPU_TEST(what_is_under_way_is_told_by_kind)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 1);

	emu_control(&w->emu, "latency all 100ms");
	ask(w, SLICE, &a);
	assert_int_equal(gw_look(w, a.handle).under_way, GP_UNDER_WAY_SLICE);
	ask(w, HOLD, &a);
	assert_int_equal(gw_look(w, a.handle).under_way, GP_UNDER_WAY_SLICE | GP_UNDER_WAY_HOLD);
	TEST_WAIT(gw_look(w, a.handle).under_way == GP_UNDER_WAY_HOLD);
	TEST_WAIT(!gw_look(w, a.handle).under_way);
	emu_control(&w->emu, "latency all 0");
}

GPU_TEST(a_process_that_dies_in_the_middle_of_an_action_ends_it)
{
	gw_open(w);
	for (int i = 0; i < 4; i++) {
		struct emu_load *load, *next;
		struct gp_action a;

		load = gw_load(w, "--contexts", "3");
		a = gw_settled_action(w, load->pid, 1);
		emu_control(&w->emu, "latency all %s", i < 2 ? "0" : "20ms");
		emu_control(&w->emu, "kill_on %s %d", command[i % 2], load->pid);
		ask(w, i % 2, &a);
		outcome(w, a.handle);
		TEST_WAIT(!gw_sees(w, load->pid, NULL));
		emu_load_wait(load);
		gp_gpu_detach(w->gpu, a.handle);
		emu_control(&w->emu, "latency all 0");
		next = gw_load(w);
		assert_true(gw_act(w, GW_HOLD, gw_attach(w, next->pid), 0).held);
		emu_load_kill(next);
	}
}

GPU_TEST(closing_the_device_waits_for_what_is_under_way_and_puts_it_back)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 1);

	emu_control(&w->emu, "latency all 50ms");
	ask(w, SLICE, &a);
	ask(w, HOLD, &a);
	gw_close(w);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 2048);
	emu_control(&w->emu, "latency all 0");
	assert_int_equal(emu_load_stop(load), 0);
}

/* At detach a call could only do harm to a task that is as it was before. */
GPU_TEST(a_task_that_is_released_is_left_alone_at_detach)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);
	uint64_t calls;

	gw_act(w, GW_HOLD, handle, 0);
	assert_false(gw_act(w, GW_RELEASE, handle, 0).held);
	calls = emu_count(&w->emu, "disable");
	emu_control(&w->emu, "invert %d", ALWAYS);
	assert_int_equal(gp_gpu_put_back(w->gpu, handle, NULL), 0);
	gw_close(w);
	clear(w);
	assert_int_equal(emu_count(&w->emu, "disable"), calls);
	assert_int_equal(emu_disabled(&w->emu, load->pid), 0);
}

GPU_TEST(what_cannot_be_put_back_is_told)
{
	struct gp_error err = {0};
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	gw_slice_and_hold(w, handle);
	emu_control(&w->emu, "invert %d", ALWAYS);
	assert_int_equal(gp_gpu_put_back(w->gpu, handle, &err), -EIO);
	assert_true(err.text[0]);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
	clear(w);
	gw_act(w, GW_SLICE, handle, 1);
	emu_control(&w->emu, "fault set_timeslice 0x65 %d", ALWAYS);
	assert_int_equal(gp_gpu_put_back(w->gpu, handle, NULL), -ETIMEDOUT);
	clear(w);
	assert_int_equal(gp_gpu_put_back(w->gpu, handle, NULL), 0);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 2048);
}
