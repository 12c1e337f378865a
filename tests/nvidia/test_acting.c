/* SPDX-License-Identifier: Apache-2.0 */
/* Actions on what is not as simple as one process with one group, and what is said of them. */
#include "hand_made.h"

static bool ends_as(struct gpu_world *w, uint32_t handle, bool held)
{
	struct gp_observation o = gw_look(w, handle);

	return !o.under_way && (o.known & GP_KNOWN_HELD) && o.held == held;
}

GPU_TEST(all_contexts_of_a_process_are_held_and_have_the_slice)
{
	struct emu_load *load = gw_load(w, "--contexts", "5");
	uint32_t handle = gw_attach(w, load->pid);

	assert_int_equal(gw_act(w, GW_SLICE, handle, 7).slice_us, 7);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 5 * 7);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 5);
	assert_false(gw_makes_progress(w, load->pid));
	assert_false(gw_act(w, GW_RELEASE, handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	gw_close(w);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 5 * 2048);
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(more_channels_than_one_call_takes_are_held)
{
	uint64_t before;
	struct emu_load *load = gw_load(w, "--contexts", "20"); /* 160 channels */
	uint32_t handle = gw_attach(w, load->pid);

	gw_settled(w, handle);
	before = emu_count(&w->emu, "disable");
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	assert_int_equal(emu_count(&w->emu, "disable"), before + 3);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 20);
	assert_false(gw_act(w, GW_RELEASE, handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(a_group_with_as_many_channels_as_hardware_takes_is_held)
{
	uint32_t handle;
	struct hand *h = gw_hand_with_client(w);

	hand_group(h, 0x5c000010, 128);
	handle = gw_attach(w, h->pid);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, h->pid), 1);
}

GPU_TEST(a_batch_in_which_one_process_died_holds_the_others)
{
	struct emu_load *load[3];
	struct gp_action a[3];

	gw_load_batch(w, load, a, 3);
	kill(load[0]->pid, SIGKILL); /* the call would use its file */
	assert_int_equal(gp_gpu_hold(w->gpu, gw_now(), a, 3), 0);
	for (int i = 1; i < 3; i++) {
		assert_int_equal(a[i].status, -EINPROGRESS);
		assert_true(gw_settled(w, a[i].handle).held);
		assert_int_equal(emu_groups_held(&w->emu, load[i]->pid), 1);
	}
	TEST_WAIT(!gw_look(w, a[0].handle).under_way);
	gw_close(w);
	emu_load_wait(load[0]);
	assert_int_equal(emu_load_stop(load[1]), 0);
	assert_int_equal(emu_load_stop(load[2]), 0);
}

GPU_TEST(actions_happen_in_the_order_they_were_asked_for)
{
	struct emu_load *load[2];
	struct gp_action a[2];

	gw_load_batch(w, load, a, 2);
	emu_control(&w->emu, "latency all 3ms");
	for (uint32_t round = 0; round < 10; round++) {
		a[0].slice_us = a[1].slice_us = 100 + round;
		gp_gpu_hold(w->gpu, gw_now(), a, 2);
		gp_gpu_set_slice(w->gpu, gw_now(), a, 2);
		gp_gpu_release(w->gpu, gw_now(), &a[0], 1);
		gp_gpu_hold(w->gpu, gw_now(), &a[0], 1);
		gp_gpu_release(w->gpu, gw_now(), &a[round % 2], 1);
		TEST_WAIT(ends_as(w, a[round % 2].handle, false));
		TEST_WAIT(ends_as(w, a[!(round % 2)].handle, true));
		assert_int_equal(emu_groups_held(&w->emu, load[round % 2]->pid), 0);
		assert_int_equal(emu_groups_held(&w->emu, load[!(round % 2)]->pid), 1);
		assert_int_equal(emu_group_sum(&w->emu, load[0]->pid, "slice_us"), 100 + round);
	}
	emu_control(&w->emu, "latency all 0");
	gw_close(w);
	for (int i = 0; i < 2; i++)
		assert_int_equal(emu_load_stop(load[i]), 0);
}

GPU_TEST(a_slice_beyond_the_bounds_is_refused_at_once)
{
	struct gp_action a;
	struct emu_load *load = gw_load(w);

	a = (struct gp_action){.handle = gw_attach(w, load->pid),
			       .slice_us = w->gpu->info.slice_max_us + 1};
	assert_int_equal(gp_gpu_set_slice(w->gpu, gw_now(), &a, 1), 0);
	assert_int_equal(a.status, -EINVAL);
	assert_int_equal(gw_act(w, GW_SLICE, a.handle, w->gpu->info.slice_max_us).failed, 0);
	assert_int_equal(gw_act(w, GW_SLICE, a.handle, w->gpu->info.slice_min_us).failed, 0);
}

GPU_TEST(a_context_that_comes_while_the_task_is_held_is_seen_and_held_again)
{
	uint32_t handle;
	struct emu_load *load = gw_load(w, "--grow", "400");

	kill(load->pid, SIGSTOP); /* it grows when it is held, not before */
	handle = gw_attach(w, load->pid);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	kill(load->pid, SIGCONT);
	TEST_WAIT(emu_groups(&w->emu, load->pid) == 2);
	TEST_WAIT(ends_as(w, handle, false));
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 2);
	gw_close(w);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	assert_int_equal(emu_load_stop(load), 0);
}

/* A channel with this handle comes to a group of two that is held. */
static void grow_a_held_group(struct gpu_world *w, uint32_t channel)
{
	uint32_t handle;
	struct hand *h = gw_hand_with_client(w);

	hand_group(h, 0x5c000010, 2);
	handle = gw_attach(w, h->pid);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	hand_alloc(h, 0x5c000010, HOPPER_CHANNEL_GPFIFO_A, channel, NV2080_ENGINE_TYPE_GR0);
	assert_int_equal(emu_groups_held(&w->emu, h->pid), 0);
	TEST_WAIT(ends_as(w, handle, false));
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, h->pid), 1);
}

GPU_TEST(a_channel_that_comes_while_the_group_is_held_is_seen_and_held_again)
{
	grow_a_held_group(w, 0x5c000015);
}

/* So far behind the others that it takes a full look to find it. */
GPU_TEST(a_channel_with_a_distant_handle_is_seen_and_held_again)
{
	grow_a_held_group(w, 0x5c000030);
}

/* Whatever is believed of a group with a channel that came in between: nothing stays disabled. */
GPU_TEST(a_group_that_grew_while_it_was_held_is_put_back_whole)
{
	uint32_t handle;
	struct hand *h = gw_hand_with_client(w);

	hand_group(h, 0x5c000010, 2);
	handle = gw_attach(w, h->pid);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	hand_alloc(h, 0x5c000010, HOPPER_CHANNEL_GPFIFO_A, 0x5c000015, NV2080_ENGINE_TYPE_GR0);
	gp_gpu_detach(w->gpu, handle);
	gw_close(w);
	assert_false(gw_state_has(w, "\"enabled\":false"));
}

GPU_TEST(a_slice_that_the_process_sets_itself_is_seen)
{
	struct emu_load *load = gw_load(w, "--reset-slice", "200");
	uint32_t handle = gw_attach(w, load->pid);

	for (int i = 0; i < 3; i++) {
		assert_int_equal(gw_act(w, GW_SLICE, handle, 1).slice_us, 1);
		TEST_WAIT(gw_look(w, handle).slice_us == 0);
	}
}

GPU_TEST(a_slice_that_is_changed_back_is_seen)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	assert_int_equal(gw_act(w, GW_SLICE, handle, 300).slice_us, 300);
	emu_control(&w->emu, "undo %d", load->pid);
	TEST_WAIT(gw_look(w, handle).slice_us == 0);
}

/* CUDA makes a group and sets its slice a moment later: that is the slice it is to have again. */
GPU_TEST(what_a_process_set_before_it_was_changed_is_what_it_gets_back)
{
	uint32_t handle;
	struct hand *h = gw_hand_with_client(w);

	hand_group(h, 0x5c000010, 2);
	hand_slice(h, 0x5c000010, 1111);
	handle = gw_attach(w, h->pid);
	gw_settled(w, handle);
	hand_slice(h, 0x5c000010, 2048);
	emulator_sleep_ms(700); /* seen or not: a look is due every half second */
	assert_int_equal(gw_look(w, handle).slice_us, 0); /* as without a change by us */
	gw_act(w, GW_SLICE, handle, 1);
	gp_gpu_detach(w->gpu, handle);
	gw_close(w);
	assert_int_equal(emu_group_sum(&w->emu, h->pid, "slice_us"), 2048);
}

GPU_TEST(another_group_under_the_same_handle_is_not_touched)
{
	struct gp_action a;
	struct hand *h = gw_hand_with_client(w);

	hand_group(h, 0x5c000010, 2);
	a = gw_settled_action(w, h->pid, 1);
	/* A new group gets the hardware id meanwhile. */
	hand_free(h, 0x5c000010);
	hand_group(h, 0x5c000050, 1);
	hand_group(h, 0x5c000010, 2);
	emu_control(&w->emu, "reset_counts");
	assert_int_equal(gp_gpu_set_slice(w->gpu, gw_now(), &a, 1), 0);
	TEST_WAIT(!gw_look(w, a.handle).under_way);
	if (gw_look(w, a.handle).failed) {
		assert_int_equal(gw_look(w, a.handle).failed, -ENXIO);
		assert_int_equal(emu_count(&w->emu, "set_timeslice"), 0);
	} /* else a look came first and the new groups are known */
}

GPU_TEST(a_hold_that_was_accepted_and_ignored_is_not_said_to_be_held)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 0);

	emu_control(&w->emu, "ignore disable 1");
	assert_int_equal(gp_gpu_hold(w->gpu, gw_now(), &a, 1), 0);
	TEST_WAIT(ends_as(w, a.handle, false));
	assert_true(gw_makes_progress(w, load->pid));
	assert_true(gw_act(w, GW_HOLD, a.handle, 0).held);
	emulator_sleep_ms(50);
	assert_true(gw_look(w, a.handle).held);
}

GPU_TEST(a_release_that_was_accepted_and_ignored_is_seen_as_held)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = {.handle = gw_attach(w, load->pid)};

	assert_true(gw_act(w, GW_HOLD, a.handle, 0).held);
	emu_control(&w->emu, "ignore disable 1");
	assert_int_equal(gp_gpu_release(w->gpu, gw_now(), &a, 1), 0);
	TEST_WAIT(ends_as(w, a.handle, true));
}

GPU_TEST(a_slice_that_was_accepted_and_ignored_is_seen)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 1);

	emu_control(&w->emu, "ignore set_timeslice 1");
	assert_int_equal(gp_gpu_set_slice(w->gpu, gw_now(), &a, 1), 0);
	TEST_WAIT(!gw_look(w, a.handle).under_way);
	TEST_WAIT(gw_look(w, a.handle).slice_us == 0);
}

GPU_TEST(a_process_that_somebody_else_held_is_seen_as_held_and_can_be_released)
{
	struct gpu_world other = {.emu = w->emu};
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	gw_act(w, GW_SLICE, handle, 2048); /* touched, so that it is verified now and then */
	gw_open(&other);
	assert_true(gw_act(&other, GW_HOLD, gw_attach(&other, load->pid), 0).held);
	TEST_WAIT(ends_as(w, handle, true));
	assert_false(gw_act(w, GW_RELEASE, handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	gw_close(&other);
	assert_int_equal(emu_load_stop(load), 0);
}
