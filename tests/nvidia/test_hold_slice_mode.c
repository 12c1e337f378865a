/* SPDX-License-Identifier: Apache-2.0 */
/* Holding, releasing and slices through real ioctls, on a process that does not know of it. */
#include "gpu_world.h"

GPU_TEST(a_held_process_stops_and_goes_on_with_the_right_result)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	assert_true(gw_makes_progress(w, load->pid));
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
	assert_false(gw_makes_progress(w, load->pid));
	assert_false(gw_act(w, GW_RELEASE, handle, 0).held);
	assert_true(gw_makes_progress(w, load->pid));
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(a_slice_is_set_and_0_gives_back_what_it_had)
{
	struct gp_observation o;
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	assert_int_equal(gw_settled(w, handle).slice_us, 0);
	o = gw_act(w, GW_SLICE, handle, 1);
	assert_int_equal(o.slice_us, 1);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 1);
	o = gw_act(w, GW_SLICE, handle, 0);
	assert_int_equal(o.slice_us, 0);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 2048);
	emu_load_stop(load);
}

GPU_TEST(detaching_puts_everything_back)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	gw_slice_and_hold(w, handle);
	gp_gpu_detach(w->gpu, handle);
	gw_close(w);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 2048);
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(closing_the_device_puts_everything_back)
{
	struct emu_load *load = gw_load(w);

	gw_act(w, GW_HOLD, gw_attach(w, load->pid), 0);
	gw_close(w);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(several_processes_are_held_with_one_call)
{
	struct emu_load *load[4];
	struct gp_action a[4];
	uint64_t before;

	gw_load_batch(w, load, a, 4);
	before = emu_count(&w->emu, "disable");
	assert_int_equal(gp_gpu_hold(w->gpu, gw_now(), a, 4), 0);
	for (int i = 0; i < 4; i++)
		assert_true(gw_settled(w, a[i].handle).held);
	/* 8 channels each: 32 of the 64 that one call takes. */
	assert_int_equal(emu_count(&w->emu, "disable"), before + 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(emu_groups_held(&w->emu, load[i]->pid), 1);
	gw_close(w);
	for (int i = 0; i < 4; i++)
		assert_int_equal(emu_load_stop(load[i]), 0);
}

GPU_TEST(copy_groups_are_left_alone)
{
	struct gp_queue queue[16];
	struct gp_seen seen;
	int n, copies = 0;
	struct emu_load *load = gw_load(w);

	gw_act(w, GW_HOLD, gw_attach(w, load->pid), 0);
	assert_int_equal(gp_gpu_find(w->gpu, load->pid, &seen, NULL), 0);
	n = gp_gpu_queues(w->gpu, seen.key, true, queue, 16, NULL);
	assert_int_equal(n, 4);
	for (int i = 0; i < n; i++) {
		bool copy = !strcmp(queue[i].type, "copy");

		copies += copy;
		assert_int_equal(queue[i].held, !copy);
		assert_int_equal(queue[i].channels, copy ? 4 : 8);
		assert_int_equal(queue[i].slice_us, copy ? 1024 : 2048);
	}
	assert_int_equal(copies, 3);
}

GPU_TEST(a_preemption_mode_reaches_the_group_and_is_put_back)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	gw_settled(w, handle);
	assert_int_equal(gp_gpu_set_preempt_type(w->gpu, handle, GP_NV_WFI), 0);
	TEST_WAIT(gw_state_has(w, "\"mode\":\"wfi\""));
	assert_int_equal(gp_gpu_set_preempt_type(w->gpu, handle, 3), -EINVAL);
	gp_gpu_detach(w->gpu, handle);
	TEST_WAIT(gw_state_has(w, "\"mode\":\"cilp\"")); /* what CUDA has */
	emu_load_stop(load);
}
