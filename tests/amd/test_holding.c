/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding and releasing through the table of functions: what is held stands still, what is not
 * goes on, and every program ends with the right result. Looked at from outside, in the emulator's
 * state.
 */
#include "gpu/amd/kfd_abi.h"
#include "amd_world.h"

static bool is_suspended(struct amd_world *w, pid_t pid, uint32_t queue)
{
	return kfd_emu_queue_number(&w->emu, pid, queue, "suspended") == 1;
}

static uint64_t executed(struct amd_world *w, pid_t pid, uint32_t queue)
{
	return kfd_emu_queue_number(&w->emu, pid, queue, "executed");
}

static void queue_goes_on(struct amd_world *w, pid_t pid, uint32_t queue)
{
	uint64_t before = executed(w, pid, queue);

	TEST_WAIT(executed(w, pid, queue) > before + 3);
}

static void queue_stands_still(struct amd_world *w, pid_t pid, uint32_t queue)
{
	uint64_t before = kfd_emu_queue_number(&w->emu, pid, queue, "run_ns");

	emulator_sleep_ms(50);
	assert_int_equal(kfd_emu_queue_number(&w->emu, pid, queue, "run_ns"), before);
}

/* Nothing of us is left with it. */
static void is_as_before(struct amd_world *w, pid_t pid)
{
	TEST_WAIT(!aw_is_debugged(w, pid) && !aw_tracer(pid));
	assert_int_equal(aw_suspended(w, pid), 0);
	aw_wait_progress(w, pid);
}

AMD_TEST_EVERYWHERE(what_is_held_stands_still_and_goes_on_when_it_is_released)
{
	struct kfd_load *load = aw_load(w, "--queues", "3");
	uint32_t handle = aw_attach(w, load->pid);

	aw_wait_progress(w, load->pid);
	for (int i = 0; i < 3; i++) {
		aw_must_hold(w, handle);
		assert_int_equal(aw_suspended(w, load->pid), 3);
		aw_stands_still(w, load->pid);
		assert_true(aw_look(w, handle).held);
		aw_must_release(w, handle);
		assert_int_equal(aw_suspended(w, load->pid), 0);
		aw_wait_progress(w, load->pid);
	}
	assert_int_equal(kfd_load_stop(load), 0); /* while we are attached, and answer it */
}

AMD_TEST_ON(close_releases_what_is_held_before_it_returns, mi250, navi31_old)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");

	aw_must_hold(w, aw_attach(w, load->pid));
	aw_close(w);
	assert_int_equal(aw_suspended(w, load->pid), 0);
	assert_false(aw_is_debugged(w, load->pid));
	is_as_before(w, load->pid);
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST_ON(detach_releases_what_is_held, mi250, mi250_old)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = 0;

	aw_open(w);
	for (int i = 0; i < 3; i++) {
		handle = aw_attach(w, load->pid);
		aw_must_hold(w, handle);
		gp_gpu_detach(w->gpu, handle);
		is_as_before(w, load->pid);
	}
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST(a_process_that_is_only_attached_to_is_left_alone)
{
	struct kfd_load *load = aw_load(w);
	uint32_t handle = aw_attach(w, load->pid);

	aw_must_release(w, handle); /* it was not held */
	emulator_sleep_ms(100);
	assert_int_equal(kfd_emu_count(&w->emu, "enable"), 0);
	assert_int_equal(kfd_emu_count(&w->emu, "resume_queues"), 0);
	assert_int_equal(aw_tracer(load->pid), 0);
}

AMD_TEST(one_that_will_be_held_is_attached_to_beforehand)
{
	struct kfd_load *load = aw_load(w);
	uint32_t handle = aw_attach(w, load->pid);

	gp_gpu_prepare(w->gpu, handle, true);
	TEST_WAIT(aw_is_debugged(w, load->pid));
	assert_int_equal(kfd_emu_count(&w->emu, "suspend_queues"), 0);
	aw_must_hold(w, handle);
	assert_int_equal(kfd_emu_count(&w->emu, "enable"), 1);
}

AMD_TEST(to_hold_twice_is_to_hold_once)
{
	struct kfd_load *load = aw_load(w);
	uint32_t handle = aw_attach(w, load->pid);

	aw_must_hold(w, handle);
	aw_must_hold(w, handle);
	assert_int_equal(kfd_emu_count(&w->emu, "suspend_queues"), 1);
	aw_must_release(w, handle);
	aw_must_release(w, handle);
	assert_int_equal(kfd_emu_count(&w->emu, "resume_queues"), 1);
}

AMD_TEST_ON(what_was_asked_last_counts, mi250, navi31_old)
{
	struct kfd_load *load = aw_load(w);
	struct gp_action a = {0};

	a.handle = aw_attach(w, load->pid);
	for (int i = 0; i < 10; i++) {
		gp_gpu_hold(w->gpu, aw_now(), &a, 1);
		assert_int_equal(a.status, -EINPROGRESS);
		gp_gpu_release(w->gpu, aw_now(), &a, 1);
		assert_int_equal(a.status, -EINPROGRESS);
		assert_false(aw_settled(w, a.handle).held);
		assert_int_equal(aw_suspended(w, load->pid), 0);
		gp_gpu_release(w->gpu, aw_now(), &a, 1);
		gp_gpu_hold(w->gpu, aw_now(), &a, 1);
		assert_true(aw_settled(w, a.handle).held);
		assert_int_equal(aw_suspended(w, load->pid), 1);
	}
}

/* How often the hardware is bothered. */

AMD_TEST_ON(a_hold_is_one_cycle_of_the_run_list_and_one_call, mi300x, vega20)
{
	struct kfd_load *load = aw_load(w, "--queues", "5");
	uint64_t cycles, calls;
	uint32_t handle = 0;

	aw_open(w);
	assert_true(w->gpu->info.caps & GP_CAP_STOPS_ALL);
	handle = aw_attach(w, load->pid);
	gp_gpu_prepare(w->gpu, handle, true);
	aw_settled(w, handle);
	for (int i = 0; i < 5; i++) {
		cycles = kfd_emu_count(&w->emu, "cycles");
		calls = kfd_emu_count(&w->emu, "total");
		aw_must_hold(w, handle);
		assert_int_equal(kfd_emu_count(&w->emu, "total"), calls + 1);
		/* Nothing else was mapped: the release finds an empty device. */
		assert_int_equal(kfd_emu_count(&w->emu, "cycles"), cycles + 1);
		aw_must_release(w, handle);
		assert_int_equal(kfd_emu_count(&w->emu, "total"), calls + 2);
		assert_int_equal(kfd_emu_count(&w->emu, "cycles"), cycles + 1);
	}
}

AMD_TEST_ON(where_queues_are_taken_one_by_one_only_those_of_the_task_are, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "4"), *other = aw_load(w, "--queues", "2");
	uint64_t messages, preempted;
	uint32_t handle = 0;

	aw_open(w);
	assert_false(w->gpu->info.caps & GP_CAP_STOPS_ALL);
	handle = aw_attach(w, load->pid);
	gp_gpu_prepare(w->gpu, handle, true);
	aw_settled(w, handle);
	messages = kfd_emu_count(&w->emu, "messages");
	preempted = aw_sum(w, other->pid, "preempted");
	aw_must_hold(w, handle);
	assert_int_equal(kfd_emu_count(&w->emu, "messages"), messages + 4);
	aw_must_release(w, handle);
	assert_int_equal(kfd_emu_count(&w->emu, "messages"), messages + 8);
	assert_int_equal(aw_sum(w, other->pid, "preempted"), preempted);
}

AMD_TEST(queues_that_copy_go_on)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = 0;

	target_do(t, "queue sdma");
	handle = aw_attach(w, t->pid);
	aw_must_hold(w, handle);
	target_do(t, "submit 0 20 1");
	target_do(t, "submit 1 20 1");
	TEST_WAIT(target_ask(t, "done 1") == 1);
	assert_int_equal(executed(w, t->pid, 0), 0);
	aw_must_release(w, handle);
	TEST_WAIT(target_ask(t, "done 0") == 1);
}

AMD_TEST(a_process_that_only_copies_is_no_task)
{
	struct kfd_load *load = aw_load(w, "--type", "sdma");
	struct gp_queue queue[4];
	struct gp_error err = {0};
	struct gp_seen seen = {0};
	uint32_t handle = 0;

	aw_open(w);
	assert_int_equal(gp_gpu_find(w->gpu, load->pid, &seen, &err), -ENODATA);
	assert_non_null(strstr(err.text, "no compute queue"));
	assert_false(aw_sees(w, load->pid, NULL));
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key, &handle), -ESRCH);
	for (int closely = 0; closely < 2; closely++) { /* but it can be looked at */
		assert_int_equal(gp_gpu_queues(w->gpu, seen.key, closely, queue, 4, &err), 1);
		assert_string_equal(queue[0].type, "sdma");
		assert_true(queue[0].copies);
	}
}

AMD_TEST_ON(a_queue_that_is_made_while_the_others_are_held_is_held_too, mi250, navi31_old)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = aw_attach(w, t->pid);

	aw_must_hold(w, handle);
	for (uint32_t id = 1; id < 5; id++) {
		assert_int_equal(target_ask(t, "queue aql"), id);
		TEST_WAIT(aw_suspended(w, t->pid) == id + 1);
		target_do(t, "submit %u 5 1", id);
		queue_stands_still(w, t->pid, id);
		TEST_WAIT(aw_look(w, handle).held);
	}
	aw_must_release(w, handle);
	assert_int_equal(aw_suspended(w, t->pid), 0);
	for (uint32_t id = 1; id < 5; id++)
		TEST_WAIT(target_ask(t, "done %u", id) == 1);
	assert_int_equal(target_ask(t, "queue aql"), 5);
	target_do(t, "submit 5 5 1");
	TEST_WAIT(target_ask(t, "done 5") == 1); /* no longer */
}

/* It runs until the back end, which is slow here, has suspended it: the hold of the others is no
 * lie for it. On the first GPU the driver counts compute units of the whole process. */
AMD_TEST_ON(a_queue_that_runs_until_it_is_held_does_not_disprove_the_hold, mi250, navi31)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = aw_attach(w, t->pid);

	gp_gpu_prepare(w->gpu, handle, true);
	target_do(t, "submit 0 1000 100");
	for (uint32_t id = 1; id < 4; id++) {
		aw_must_hold(w, handle);
		kfd_emu_control(&w->emu, "delay query_debug_event 100ms");
		assert_int_equal(target_ask(t, "queue aql"), id);
		target_do(t, "submit %u 1000 100", id);
		TEST_WAIT(aw_suspended(w, t->pid) == id + 1);
		emulator_sleep_ms(50); /* the readings go on */
		assert_int_equal(aw_settled(w, handle).failed, 0);
		assert_true(aw_look(w, handle).held);
		aw_must_release(w, handle);
	}
}

AMD_TEST_ON(who_destroys_a_held_queue_waits_for_its_release, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 2);
	uint32_t handle = aw_attach(w, t->pid);

	aw_must_hold(w, handle);
	target_tell(t, "destroy 0");
	emulator_sleep_ms(50);
	assert_false(target_has_answered(t));
	aw_must_release(w, handle);
	assert_int_equal(target_answer(t), 0);
	target_do(t, "submit 1 5 1");
	TEST_WAIT(target_ask(t, "done 1") == 1);
	aw_must_hold(w, handle); /* the remaining queue */
	assert_int_equal(aw_suspended(w, t->pid), 1);
}

AMD_TEST(a_task_without_queues_is_held_by_nothing_and_its_next_queue_is)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = aw_attach(w, t->pid);

	gp_gpu_prepare(w->gpu, handle, true);
	aw_settled(w, handle);
	target_do(t, "destroy 0");
	assert_int_equal(aw_hold(w, handle).failed, 0);
	target_do(t, "queue aql");
	TEST_WAIT(aw_suspended(w, t->pid) == 1);
	TEST_WAIT(aw_look(w, handle).held);
}

AMD_TEST_ON(queues_come_and_go_while_their_task_is_held_and_released, mi250, navi31_old)
{
	struct kfd_load *load = aw_load(w, "--queues", "4", "--churn", "3");
	uint32_t handle = aw_attach(w, load->pid);

	for (int i = 0; i < 60; i++) {
		int failed;

		/* A queue whose program waited for its release to destroy it refuses a hold until
		 * the program goes on, which may take long on a busy machine. */
		TEST_WAIT((failed = aw_hold(w, handle).failed) != -EAGAIN);
		assert_int_equal(failed, 0);
		emulator_sleep_ms(2);
		assert_int_equal(aw_release(w, handle).failed, 0);
		emulator_sleep_ms(3);
	}
	assert_true(kfd_emu_count(&w->emu, "destroy_queue") > 3);
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST_ON(fifty_queues_are_held_together, mi300x, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "50");
	uint32_t handle = aw_attach(w, load->pid);

	aw_must_hold(w, handle);
	assert_int_equal(aw_suspended(w, load->pid), 50);
	aw_must_release(w, handle);
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST(queues_of_both_kinds_of_packets_are_held)
{
	struct kfd_load *load = aw_load(w, "--type", "pm4", "--queues", "2");
	uint32_t handle = aw_attach(w, load->pid);

	aw_must_hold(w, handle);
	aw_stands_still(w, load->pid);
	aw_must_release(w, handle);
	assert_int_equal(kfd_load_stop(load), 0);
}

static int list_queues(struct amd_world *w, uint64_t key, bool closely, struct gp_queue *queue,
		       unsigned max)
{
	struct gp_error err = {0};
	int n = gp_gpu_queues(w->gpu, key, closely, queue, max, &err);

	assert_int_equal(n < 0, err.code != 0); /* a sentence if it failed */
	return n;
}

/* What the driver's own formula makes of the chip, in MiB, over all XCCs. */
static unsigned save_area_of(const struct gp_gpu *gpu)
{
	return strstr(gpu->info.name, "gfx942") ? 177 : 60;
}

AMD_TEST_ON(the_queues_are_listed_as_they_are, mi250, mi250_old, mi300x)
{
	struct target *t = aw_target_with(w, 1);
	static const char *const type[] = {"aql", "pm4", "sdma"};
	struct gp_error err = {0};
	struct gp_queue queue[8];
	struct gp_seen seen = {0};
	uint32_t handle = 0;

	target_do(t, "queue pm4");
	target_do(t, "queue sdma");
	aw_open(w);
	assert_int_equal(gp_gpu_find(w->gpu, t->pid, &seen, &err), 0);
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key, &handle), 0);
	aw_must_hold(w, handle);
	target_do(t, "submit 0 7 1");
	assert_int_equal(list_queues(w, seen.key, true, queue, 1), 3);
	assert_int_equal(list_queues(w, seen.key, true, queue, 8), 3);
	for (int i = 0; i < 3; i++) {
		assert_in_range(queue[i].id, 0, 2);
		assert_string_equal(queue[i].type, type[queue[i].id]);
		assert_int_equal(queue[i].copies, queue[i].id == 2);
		assert_int_equal(queue[i].held, queue[i].id < 2);
		assert_int_equal(queue[i].ring_bytes, 65536);
		assert_true(queue[i].ring_address);
		assert_true(queue[i].pending == (queue[i].id == 0  ? 7
						 : queue[i].copies ? UINT64_MAX
								   : 0));
		if (queue[i].id < 2)
			assert_int_equal(queue[i].save_bytes >> 20, save_area_of(w->gpu));
	}
	assert_int_equal(list_queues(w, seen.key + 64, true, queue, 8), -ESRCH);
}

AMD_TEST(from_afar_queues_are_listed_without_touching_the_process)
{
	struct target *t = aw_target_with(w, 2);
	struct gp_error err = {0};
	struct gp_queue queue[8];
	struct gp_seen seen = {0};

	target_do(t, "queue sdma");
	aw_open(w);
	assert_int_equal(gp_gpu_find(w->gpu, t->pid, &seen, &err), 0);
	assert_int_equal(list_queues(w, seen.key, false, queue, 8), 3);
	for (int i = 0; i < 3; i++) {
		assert_in_range(queue[i].id, 0, 2);
		assert_int_equal(queue[i].copies, queue[i].id == 2);
		assert_int_equal(queue[i].ring_bytes, 65536);
	}
	assert_int_equal(kfd_emu_count(&w->emu, "enable"), 0);
	assert_int_equal(aw_tracer(t->pid), 0);
}

/* The snapshot clears the exception `new`, and with it the event of the new queue. */
AMD_TEST(a_look_at_the_queues_does_not_let_a_new_one_slip_through)
{
	struct target *t = aw_target_with(w, 1);
	struct kfd_load *other = aw_load(w);
	struct gp_error err = {0};
	struct gp_queue queue[8];
	struct gp_action slow = {0};
	struct gp_seen seen = {0};
	uint32_t handle = 0;

	slow.handle = aw_attach(w, other->pid);
	gp_gpu_prepare(w->gpu, slow.handle, true);
	assert_int_equal(gp_gpu_find(w->gpu, t->pid, &seen, &err), 0);
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key, &handle), 0);
	aw_must_hold(w, handle);
	kfd_emu_control(&w->emu, "delay suspend_queues 300ms");
	gp_gpu_hold(w->gpu, aw_now(), &slow, 1);
	target_do(t, "queue aql"); /* the back end is busy with the slow hold */
	assert_int_equal(list_queues(w, seen.key, true, queue, 8), 2);
	TEST_WAIT(aw_suspended(w, t->pid) == 2);
}

AMD_TEST_ON(a_batch_is_held_together_and_others_go_on, mi250, navi31_old)
{
	struct kfd_load *load[4];
	struct gp_action a[3] = {0};

	for (int i = 0; i < 4; i++)
		load[i] = aw_load(w, "--queues", "2");
	aw_open(w);
	for (int i = 0; i < 3; i++)
		a[i].handle = aw_attach(w, load[i]->pid);
	gp_gpu_hold(w->gpu, aw_now(), a, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(a[i].status, -EINPROGRESS);
		assert_true(aw_settled(w, a[i].handle).held);
		assert_int_equal(aw_suspended(w, load[i]->pid), 2);
	}
	aw_wait_progress(w, load[3]->pid);
	gp_gpu_release(w->gpu, aw_now(), a, 3);
	for (int i = 0; i < 3; i++)
		assert_false(aw_settled(w, a[i].handle).held);
	for (int i = 0; i < 4; i++)
		assert_int_equal(kfd_load_stop(load[i]), 0);
}

AMD_TEST_ON(where_one_can_be_held_the_second_is_refused_in_a_sentence, vega20, mixed)
{
	struct kfd_load *load[2] = {aw_load(w), aw_load(w)};
	struct gp_observation o;
	struct gp_error err = {0};
	uint32_t handle[2] = {0};

	aw_open(w);
	assert_int_equal(w->gpu->info.max_held, 1);
	for (int i = 0; i < 2; i++)
		handle[i] = aw_attach(w, load[i]->pid);
	aw_must_hold(w, handle[0]);
	o = aw_hold(w, handle[1]);
	assert_int_equal(o.failed, -EBUSY);
	assert_false(o.held);
	gp_gpu_why(w->gpu, handle[1], &err);
	assert_non_null(strstr(err.text, "one process at a time; choose one of them"));
	gp_gpu_detach(w->gpu, handle[0]);
	TEST_WAIT(!aw_hold(w, handle[1]).failed); /* as soon as the place is free */
	assert_int_equal(aw_suspended(w, load[1]->pid), 1);
}

AMD_TEST_ON(a_process_on_two_gpus_is_held_on_each_by_itself, two_mi250, two_navi31)
{
	struct target *t = aw_target_with(w, 1); /* queue 0, on the first */
	struct gp_gpu *second = NULL;
	uint32_t handle[2] = {0};

	target_do(t, "queue aql 1");
	target_do(t, "queue aql 1");
	aw_open(w);
	assert_int_equal(gp_amd_ops.open(1, 0, &second), 0);
	handle[0] = aw_attach(w, t->pid);
	handle[1] = aw_attach_on(second, t->pid);
	aw_must_hold(w, handle[0]);
	assert_int_equal(aw_suspended(w, t->pid), 1);
	assert_false(aw_look_on(second, handle[1]).held);
	target_do(t, "submit 0 5 1");
	target_do(t, "submit 1 5 1");
	TEST_WAIT(target_ask(t, "done 1") == 1);
	assert_int_equal(executed(w, t->pid, 0), 0);
	assert_true(aw_act_on(second, true, handle[1]).held);
	assert_int_equal(aw_suspended(w, t->pid), 3);
	aw_must_release(w, handle[0]);
	assert_int_equal(aw_suspended(w, t->pid), 2);
	assert_true(aw_look_on(second, handle[1]).held);
	TEST_WAIT(target_ask(t, "done 0") == 1);
	aw_must_hold(w, handle[0]);
	gp_amd_ops.close(second); /* what was held there is released, and only that */
	assert_true(is_suspended(w, t->pid, 0));
	assert_false(is_suspended(w, t->pid, 1) || is_suspended(w, t->pid, 2));
	assert_true(aw_is_debugged(w, t->pid));
	gp_gpu_detach(w->gpu, handle[0]);
	TEST_WAIT(!aw_is_debugged(w, t->pid));
	assert_int_equal(aw_suspended(w, t->pid), 0);
}

AMD_TEST_ON(a_process_is_a_task_only_where_it_has_queues, two_mi250)
{
	struct kfd_load *load = aw_load(w, "--gpu", "1");
	struct gp_gpu *second = NULL;
	struct gp_error err = {0};
	struct gp_seen seen = {0};

	aw_open(w);
	assert_int_equal(gp_amd_ops.open(1, 0, &second), 0);
	assert_int_equal(gp_gpu_find(w->gpu, load->pid, &seen, &err), -ENODEV);
	assert_false(aw_sees(w, load->pid, NULL));
	assert_true(aw_act_on(second, true, aw_attach_on(second, load->pid)).held);
	assert_int_equal(aw_suspended(w, load->pid), 1);
	gp_amd_ops.close(second);
	assert_int_equal(kfd_load_stop(load), 0);
}

static struct gp_seen split(struct amd_world *w, pid_t pid, uint32_t queue)
{
	struct gp_error err = {0};
	struct gp_seen seen = {0};

	if (gp_gpu_split(w->gpu, pid, queue, &seen, &err))
		fail_msg("split: %s", err.text);
	assert_int_equal(seen.queue, queue);
	assert_int_equal(seen.pid, pid);
	return seen;
}

static void one_queue_as_a_task(struct amd_world *w, uint32_t chosen)
{
	struct kfd_load *load = aw_load(w, "--queues", "3");
	uint32_t rest, one = 0;
	struct gp_seen seen;

	aw_open(w);
	seen = split(w, load->pid, chosen);
	assert_int_equal(split(w, load->pid, chosen).key, seen.key);
	rest = aw_attach(w, load->pid);
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key, &one), 0);
	assert_int_not_equal(rest, one);

	aw_must_hold(w, one);
	for (uint32_t id = 0; id < 3; id++)
		assert_int_equal(is_suspended(w, load->pid, id), id == chosen);
	assert_false(aw_look(w, rest).held);
	queue_stands_still(w, load->pid, chosen);
	queue_goes_on(w, load->pid, (chosen + 1) % 3);

	aw_must_hold(w, rest);
	assert_int_equal(aw_suspended(w, load->pid), 3);
	aw_must_release(w, one);
	for (uint32_t id = 0; id < 3; id++)
		assert_int_equal(is_suspended(w, load->pid, id), id != chosen);
	assert_true(aw_look(w, rest).held);
	queue_goes_on(w, load->pid, chosen);

	gp_gpu_detach(w->gpu, rest);
	TEST_WAIT(!aw_suspended(w, load->pid));
	aw_must_hold(w, one); /* the session is still there */
	assert_int_equal(aw_suspended(w, load->pid), 1);
	gp_gpu_detach(w->gpu, one);
	is_as_before(w, load->pid);
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST_ON(a_queue_can_be_a_task_of_its_own, mi250, navi31_old)
{
	one_queue_as_a_task(w, 1);
}

AMD_TEST(queue_0_can_be_one_too)
{
	one_queue_as_a_task(w, 0);
}

AMD_TEST(a_queue_that_is_not_there_cannot_be_a_task)
{
	struct target *t = aw_target_with(w, 1);
	struct gp_error err = {0};
	struct gp_seen seen = {0};

	target_do(t, "queue sdma");
	aw_open(w);
	assert_int_equal(gp_gpu_split(w->gpu, t->pid, 7, &seen, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no compute queue 7"));
	err = (struct gp_error){0};
	assert_int_equal(gp_gpu_split(w->gpu, t->pid, 1, &seen, &err), -ENOENT);
	err = (struct gp_error){0};
	assert_int_equal(gp_gpu_split(w->gpu, 0x3ffffe, 0, &seen, &err), -ESRCH);
	assert_true(strlen(err.text) > 10);
}

/* The holder of the process could not release a queue that became another task. */
AMD_TEST(a_held_process_is_not_taken_apart)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_error err = {0};
	struct gp_seen seen = {0};
	uint32_t handle = aw_attach(w, load->pid);

	aw_must_hold(w, handle);
	assert_int_equal(gp_gpu_split(w->gpu, load->pid, 1, &seen, &err), -EBUSY);
	assert_non_null(strstr(err.text, "release it first"));
	aw_must_release(w, handle);
	assert_int_equal(aw_suspended(w, load->pid), 0);
	split(w, load->pid, 1);
	aw_must_hold(w, handle);
	assert_int_equal(aw_suspended(w, load->pid), 1);
}

AMD_TEST(when_every_queue_is_a_task_the_process_is_none)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_seen seen[8] = {0};
	uint32_t handle[2] = {0};

	aw_open(w);
	for (uint32_t i = 0; i < 2; i++)
		seen[i] = split(w, load->pid, i);
	TEST_WAIT(!aw_sees(w, load->pid, NULL));
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(gp_gpu_attach(w->gpu, seen[i].key, &handle[i]), 0);
		aw_must_hold(w, handle[i]);
		assert_int_equal(aw_suspended(w, load->pid), i + 1);
	}
	assert_int_equal(gp_gpu_scan(w->gpu, aw_now(), seen, 8), 2);
}

AMD_TEST(the_preempt_type_has_bounds)
{
	struct kfd_load *load = aw_load(w);
	uint32_t handle = aw_attach(w, load->pid);

	assert_int_equal(gp_gpu_set_preempt_type(w->gpu, handle, 256), -EINVAL);
	assert_int_equal(gp_gpu_set_preempt_type(w->gpu, handle, 512), -EINVAL);
	assert_int_equal(gp_gpu_set_preempt_type(w->gpu, handle, UINT32_MAX), -EINVAL);
	for (unsigned mode = 0; mode < 256; mode += 15) {
		assert_int_equal(gp_gpu_set_preempt_type(w->gpu, handle, mode), 0);
		aw_must_hold(w, handle);
		assert_int_equal(aw_process(w, load->pid, "grace"),
				 mode == GP_AMD_SAVE ? KFD_GRACE_DEFAULT : mode);
		aw_must_release(w, handle);
	}
	assert_int_equal(kfd_emu_count(&w->emu, "infinite_grace"), 0);
}

/* The driver hands a grace on to HWS only. */
AMD_TEST_ON(mes_has_no_choice, navi31)
{
	struct kfd_load *load = aw_load(w);
	uint32_t handle;

	aw_open(w);
	assert_int_equal(w->gpu->info.caps & (GP_CAP_HOLD | GP_CAP_PREEMPT_MODE), GP_CAP_HOLD);
	handle = aw_attach(w, load->pid);
	assert_int_equal(gp_gpu_set_preempt_type(w->gpu, handle, 15), -ENOTSUP);
	assert_int_equal(gp_gpu_set_preempt_type(w->gpu, handle, GP_AMD_SAVE), 0);
	aw_must_hold(w, handle);
	assert_int_equal(aw_process(w, load->pid, "grace"), KFD_GRACE_DEFAULT);
}

AMD_TEST(there_is_a_record_before_the_first_change)
{
	struct kfd_load *load = aw_load(w);
	struct gp_undo undo = {0};
	pid_t pid = load->pid;
	uint32_t handle = aw_attach(w, pid);

	TEST_WAIT(!gp_gpu_undo_record(w->gpu, handle, &undo));
	assert_int_equal(undo.pid, pid);
	assert_int_equal(kfd_emu_count(&w->emu, "suspend_queues"), 0);
	assert_int_equal(gp_backend_undo(&gp_amd_ops, &undo, NULL), 0);
	kfd_load_kill(load);
	assert_int_equal(gp_backend_undo(&gp_amd_ops, &undo, NULL), -ESRCH);
}

AMD_TEST(a_task_is_attached_once)
{
	struct kfd_load *load = aw_load(w);
	struct gp_seen seen = {0};
	uint32_t handle = 0;

	aw_open(w);
	TEST_WAIT(aw_sees(w, load->pid, &seen));
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key, &handle), 0);
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key, &handle), -EBUSY);
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key + 64, &handle), -ESRCH);
}

AMD_TEST_ON(work_is_seen, mi250)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = aw_attach(w, t->pid);

	gp_gpu_prepare(w->gpu, handle, true);
	TEST_WAIT(aw_look(w, handle).known & GP_KNOWN_ACTIVE);
	assert_false(aw_look(w, handle).active);
	target_do(t, "submit 0 1 20000"); /* two seconds of it */
	TEST_WAIT(aw_look(w, handle).active);
	/* It is suspended some time before the back end has the answer. */
	aw_disturb(w, "late_errno suspend_queues %d 1", EINTR);
	aw_disturb(w, "delay suspend_queues 100ms 1 1");
	aw_must_hold(w, handle);
	emulator_sleep_ms(100);
	assert_true(aw_look(w, handle).active); /* it has still to end it */
	aw_must_release(w, handle);
	TEST_WAIT(target_ask(t, "done 0") == 1);
	TEST_WAIT(!aw_look(w, handle).active);
}

/* A change makes itself known: the engine sleeps until then. */
AMD_TEST(news_are_told)
{
	struct target *t = aw_target_with(w, 1);
	struct pollfd p = {.events = POLLIN};
	uint32_t handle = 0;
	uint64_t ignored;

	aw_open(w);
	p.fd = gp_gpu_event_fd(w->gpu);
	assert_true(p.fd >= 0);
	handle = aw_attach(w, t->pid);
	gp_gpu_prepare(w->gpu, handle, true);
	TEST_WAIT(aw_look(w, handle).known & GP_KNOWN_ACTIVE);
	emulator_sleep_ms(150); /* so that nothing of the beginning is left */
	(void)!read(p.fd, &ignored, sizeof ignored);
	target_do(t, "submit 0 1 100");
	assert_int_equal(poll(&p, 1, 20000), 1);
	TEST_WAIT(aw_look(w, handle).active);
}
