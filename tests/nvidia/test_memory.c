/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that ended leaves its GPU memory to others, whatever was being done with it. RM frees
 * it at the last close of the process's control file, and a duplicate counts.
 */
#include "hand_made.h"

#define GIGABYTES "10000000000"
#define FREE_NS   (3 * GP_NS_PER_S)

/* Kills it; its memory is free soon, while the device stays open. A busy machine takes longer than
 * the call of 300 ms that may be under way; 40 calls would take 12 s. */
static void memory_is_free_after_the_end(struct gpu_world *w, struct emu_load *load)
{
	uint64_t begin_ns;

	assert_true(emu_memory(&w->emu) >= strtoull(GIGABYTES, NULL, 10));
	begin_ns = gw_now();
	emu_load_kill(load);
	while (emu_memory(&w->emu) && gw_now() - begin_ns < FREE_NS)
		usleep(2000);
	assert_int_equal(emu_memory(&w->emu), 0);
}

static struct emu_load *start(struct gpu_world *w, const char *contexts)
{
	gw_open(w);
	return gw_load(w, "--memory", GIGABYTES, "--contexts", contexts);
}

GPU_TEST(a_process_that_is_only_known_keeps_nothing)
{
	struct emu_load *load = start(w, "1");

	TEST_WAIT(gw_sees(w, load->pid, NULL));
	memory_is_free_after_the_end(w, load);
}

GPU_TEST(a_process_that_is_held_keeps_nothing)
{
	struct emu_load *load = start(w, "1");
	uint32_t handle = gw_attach(w, load->pid);

	gw_act(w, GW_SLICE, handle, 1);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	memory_is_free_after_the_end(w, load);
}

/* At any moment of the looks, searches and actions. */
GPU_TEST(a_process_that_dies_at_any_moment_keeps_nothing)
{
	gw_open(w);
	for (unsigned i = 0; i < 12; i++) {
		struct emu_load *load;
		struct gp_action a;

		load = gw_load(w, "--memory", GIGABYTES);
		a = (struct gp_action){.handle = gw_attach(w, load->pid), .slice_us = 1};
		gp_gpu_set_slice(w->gpu, gw_now(), &a, 1);
		gp_gpu_hold(w->gpu, gw_now(), &a, 1);
		usleep(i * 200);
		memory_is_free_after_the_end(w, load);
		gp_gpu_detach(w->gpu, a.handle);
	}
}

static void with_a_slow_action(struct gpu_world *w, const char *contexts, bool hold)
{
	pid_t pid;
	struct emu_load *load = start(w, contexts);
	struct gp_action a = gw_settled_action(w, load->pid, 1);

	emu_control(&w->emu, "latency all 300ms");
	if (hold)
		gp_gpu_hold(w->gpu, gw_now(), &a, 1);
	else
		gp_gpu_set_slice(w->gpu, gw_now(), &a, 1);
	emulator_sleep_ms(20); /* it is at the firmware now, or about to be */
	pid = load->pid;
	memory_is_free_after_the_end(w, load);
	TEST_WAIT(!gw_look(w, a.handle).under_way);
	TEST_WAIT(!gw_sees(w, pid, NULL));
	emu_control(&w->emu, "latency all 0");
}

GPU_TEST(a_process_that_dies_while_a_slow_slice_is_under_way_keeps_nothing)
{
	with_a_slow_action(w, "1", false);
}

GPU_TEST(a_process_that_dies_while_a_slow_hold_is_under_way_keeps_nothing)
{
	with_a_slow_action(w, "1", true);
}

/* Each context has a call of its own. */
GPU_TEST(a_process_with_many_contexts_that_dies_while_slow_slices_are_under_way)
{
	with_a_slow_action(w, "12", false);
}

GPU_TEST(a_process_with_many_contexts_that_dies_while_slow_holds_are_under_way)
{
	with_a_slow_action(w, "40", true);
}

/* The driver kills it at the first check of a group. Each further check would take 100 ms, in which
 * the borrowed file keeps the memory. */
GPU_TEST(a_process_that_dies_while_its_groups_are_checked_is_not_checked_further)
{
	struct emu_load *load = start(w, "12");
	struct gp_action a = gw_settled_action(w, load->pid, 0);

	emu_control(&w->emu, "latency get_info 100ms");
	emu_control(&w->emu, "kill_on get_info %d", load->pid);
	emu_control(&w->emu, "reset_counts");
	gp_gpu_hold(w->gpu, gw_now(), &a, 1);
	TEST_WAIT(!gw_look(w, a.handle).under_way);
	assert_in_range(emu_count(&w->emu, "get_info"), 1, 6);
	TEST_WAIT(!emu_memory(&w->emu));
	emu_control(&w->emu, "latency get_info 0");
}

GPU_TEST(a_process_that_dies_while_others_are_slowly_changed_keeps_nothing)
{
	struct emu_load *other[6];
	struct gp_action a[7];
	struct emu_load *load = start(w, "1");

	for (int i = 0; i < 6; i++)
		other[i] = gw_load(w);
	a[0] = (struct gp_action){.handle = gw_attach(w, load->pid), .slice_us = 1};
	for (int i = 0; i < 6; i++)
		a[i + 1] = (struct gp_action){.handle = gw_attach(w, other[i]->pid), .slice_us = 1};
	for (int i = 0; i < 7; i++)
		gw_settled(w, a[i].handle);
	emu_control(&w->emu, "latency all 300ms");
	gp_gpu_set_slice(w->gpu, gw_now(), a, 7); /* one batch */
	emulator_sleep_ms(20);
	memory_is_free_after_the_end(w, load);
	emu_control(&w->emu, "latency all 0");
}
