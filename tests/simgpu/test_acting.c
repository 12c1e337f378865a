/* SPDX-License-Identifier: Apache-2.0 */
/* Holding, releasing and slices: done, seen, announced, and undone by the holder. */
#include "simgpu_world.h"

SIM_TEST(a_held_task_stands_still_and_goes_on)
{
	struct gp_gpu *gpu = world_train(w);
	uint32_t handle = world_attach(gpu, w->program[0]);

	world_act(gpu, handle, GP_SIMGPU_HOLD, 0);
	assert_true(world_look(gpu, handle).held);
	assert_false(world_look(gpu, handle).running);
	WAIT_FOR(world_look(gpu, handle).active); /* it wants to, and that is seen */
	assert_false(world_gets_on(gpu, handle));
	world_act(gpu, handle, GP_SIMGPU_RELEASE, 0);
	assert_false(world_look(gpu, handle).held);
	WAIT_FOR(world_gets_on(gpu, handle));
}

SIM_TEST(an_action_is_under_way_from_the_first_moment)
{
	struct gp_action a[2];
	struct gp_gpu *gpu;

	world_load(w, "10ms", "one");
	world_load(w, "10ms", "two");
	gpu = world_open(0);
	for (unsigned i = 0; i < 2; i++)
		a[i] = (struct gp_action){.handle = world_attach(gpu, w->program[i])};
	/* Also before the server has heard of it: it is stopped. */
	assert_int_equal(kill(w->server, SIGSTOP), 0);
	assert_int_equal(gp_gpu_hold(gpu, now(), a, 2), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(a[i].status, -EINPROGRESS);
		assert_int_equal(world_look(gpu, a[i].handle).under_way, GP_UNDER_WAY_HOLD);
		assert_false(world_look(gpu, a[i].handle).held);
	}
	while (world_news(gpu))
		;
	assert_int_equal(kill(w->server, SIGCONT), 0);
	WAIT_FOR(world_news(gpu));
	for (unsigned i = 0; i < 2; i++)
		WAIT_FOR(world_look(gpu, a[i].handle).held);
}

SIM_TEST(a_server_that_does_not_listen_is_not_waited_for)
{
	unsigned taken = 0;
	struct gp_gpu *gpu = world_train(w);
	struct gp_action a = {.handle = world_attach(gpu, w->program[0])};

	assert_int_equal(kill(w->server, SIGSTOP), 0);
	do {
		assert_int_equal(gp_gpu_hold(gpu, now(), &a, 1), 0);
		taken += a.status == -EINPROGRESS;
	} while (a.status == -EINPROGRESS && taken < 100000);
	assert_int_equal(a.status, -EAGAIN);
	assert_in_range(taken, 1, 99999);
	/* What it is told at the end does not fit either, and is said later. */
	gp_gpu_detach(gpu, a.handle);
	assert_int_equal(kill(w->server, SIGCONT), 0);
	a.handle = world_attach(gpu, w->program[0]);
	WAIT_FOR(!world_look(gpu, a.handle).under_way && !world_look(gpu, a.handle).held);
	WAIT_FOR(world_gets_on(gpu, a.handle));
}

/* So many calls that no more fit: what undoes them is done all the same. */
SIM_TEST(an_undo_finds_room_in_a_flood)
{
	struct gp_action a = {0}, last = {0};
	struct gp_gpu *gpu, *other;
	uint32_t looker;

	world_load(w, "10ms", "train");
	gpu = world_open(0);
	other = world_open(0);
	a.handle = world_attach(gpu, w->program[0]);
	looker = world_attach(other, w->program[0]);
	do { /* until the device itself refuses */
		assert_int_equal(gp_gpu_hold(gpu, now(), &a, 1), 0);
		last = a.status == -EINPROGRESS ? a : last;
	} while (world_look(other, looker).failed != -EAGAIN);
	assert_int_equal(last.status, -EINPROGRESS);
	gp_gpu_detach(gpu, a.handle);
	world_close(gpu);
	WAIT_FOR(world_look(other, looker).under_way == 0);
	assert_false(world_look(other, looker).held);
	WAIT_FOR(world_gets_on(other, looker));
}

TEST(slices_are_set_and_refused)
{
	struct gp_action a = {0};
	struct gp_queue queue;
	struct gp_seen seen;
	struct world w;
	struct gp_gpu *gpu;

	world_begin(&w, "h200", "events");
	world_load(&w, "10ms", "train");
	gpu = world_open(0);
	a.handle = world_attach(gpu, w.program[0]);
	assert_int_equal(world_look(gpu, a.handle).slice_us, 0);
	world_act(gpu, a.handle, GP_SIMGPU_SLICE, 1);
	assert_int_equal(world_look(gpu, a.handle).slice_us, 1);
	assert_int_equal(gp_gpu_find(gpu, w.program[0], &seen, NULL), 0);
	assert_int_equal(gp_gpu_queues(gpu, seen.key, false, &queue, 1, NULL), 1);
	assert_int_equal(queue.slice_us, 1);
	world_act(gpu, a.handle, GP_SIMGPU_SLICE, 0);
	assert_int_equal(world_look(gpu, a.handle).slice_us, 0);
	a.slice_us = gpu->info.slice_max_us + 1;
	assert_int_equal(gp_gpu_set_slice(gpu, now(), &a, 1), 0);
	assert_int_equal(a.status, -EINVAL);
	world_close(gpu);
	world_end(&w);

	world_begin(&w, "mi300x", "events");
	world_load(&w, "10ms", "train");
	gpu = world_open(0);
	a = (struct gp_action){.handle = world_attach(gpu, w.program[0]), .slice_us = 100};
	assert_int_equal(gp_gpu_set_slice(gpu, now(), &a, 1), 0);
	assert_int_equal(a.status, -EINVAL);
	world_act(gpu, a.handle, GP_SIMGPU_HOLD, 0);
	assert_true(world_look(gpu, a.handle).held);
	world_close(gpu);
	world_end(&w);
}

SIM_TEST(detach_undoes_what_was_done_and_nothing_else)
{
	struct gp_gpu *gpu, *other;
	uint32_t handle, looker, gate;

	world_load(w, "10ms", "train");
	world_load(w, "10ms", "gate");
	gpu = world_open(0);
	other = world_open(0);
	handle = world_attach(gpu, w->program[0]);
	world_act(gpu, handle, GP_SIMGPU_HOLD, 0);
	world_act(gpu, handle, GP_SIMGPU_SLICE, 1);
	looker = world_attach(other, w->program[0]);
	assert_true(world_look(other, looker).held);
	gp_gpu_detach(other, looker);
	/* Calls are executed in order: when this call has ended, so have the earlier ones. */
	gate = world_attach(other, w->program[1]);
	world_act(other, gate, GP_SIMGPU_SLICE, 100);
	looker = world_attach(other, w->program[0]);
	assert_true(world_look(other, looker).held);
	gp_gpu_detach(gpu, handle);
	WAIT_FOR(!world_look(other, looker).held && !world_look(other, looker).slice_us);
	/* And so does close. */
	handle = world_attach(gpu, w->program[0]);
	world_act(gpu, handle, GP_SIMGPU_HOLD, 0);
	assert_true(world_look(other, looker).held);
	world_close(gpu);
	WAIT_FOR(!world_look(other, looker).held);
}

SIM_TEST(a_handle_is_for_one)
{
	struct gp_seen seen;
	uint32_t handle;
	struct gp_gpu *gpu = world_train(w);

	world_attach(gpu, w->program[0]);
	assert_int_equal(gp_gpu_find(gpu, w->program[0], &seen, NULL), 0);
	assert_int_equal(gp_gpu_attach(gpu, seen.key, &handle), -EBUSY);
	assert_int_equal(gp_gpu_attach(gpu, seen.key + 1, &handle), -ESRCH);
}
