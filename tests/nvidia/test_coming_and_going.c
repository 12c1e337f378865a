/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and groups that come and go while the device is open. */
#include "base/process.h"
#include "hand_made.h"

GPU_TEST(a_new_process_is_seen_within_a_second)
{
	uint64_t begin_ns;
	struct emu_load *load;

	gw_open(w);
	assert_int_equal(gp_gpu_scan(w->gpu, gw_now(), NULL, 0), 0);
	load = gw_load(w);
	begin_ns = gw_now();
	TEST_WAIT(gw_sees(w, load->pid, NULL));
	assert_in_range(gw_now() - begin_ns, 0, GP_NS_PER_S);
}

GPU_TEST(news_are_announced)
{
	struct pollfd news = {.events = POLLIN};
	uint64_t ignored;
	pid_t pid;
	struct emu_load *load;

	gw_open(w);
	gp_gpu_scan(w->gpu, gw_now(), NULL, 0);
	news.fd = gp_gpu_event_fd(w->gpu);
	assert_true(news.fd >= 0);
	(void)!read(news.fd, &ignored, sizeof ignored);
	load = gw_load(w);
	TEST_WAIT(poll(&news, 1, 100) == 1 && read(news.fd, &ignored, sizeof ignored) &&
		  gw_sees(w, load->pid, NULL));
	pid = gw_kill(load);
	TEST_WAIT(poll(&news, 1, 100) == 1 && read(news.fd, &ignored, sizeof ignored) &&
		  !gw_sees(w, pid, NULL));
}

/* A process as CUDA begins it; how long it had a group without a slice of its own. */
static uint64_t begin_as_cuda_does(struct hand *hand)
{
	uint64_t begin_ns;

	hand_start(hand);
	hand_open(hand);
	hand_client(hand);
	begin_ns = gw_now();
	hand_group(hand, 0x5c000010, 1);
	emulator_sleep_ms(50); /* long enough for a back end that is too quick */
	hand_slice(hand, 0x5c000010, 2048);
	return gw_now() - begin_ns;
}

GPU_TEST(a_process_that_was_found_too_early_gets_its_own_slice_back)
{
	struct gp_undo undo = {0};
	struct gp_seen seen = {0};
	struct hand hand;
	uint32_t handle = 0;

	gw_open(w);
	gp_gpu_scan(w->gpu, gw_now(), NULL, 0);
	while (begin_as_cuda_does(&hand) > 90 * GP_NS_PER_MS)
		hand_stop(
			&hand); /* the machine is too busy: the back end would not wait this long */
	TEST_WAIT(gw_sees(w, hand.pid, &seen));
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key, &handle), 0);
	TEST_WAIT(gp_gpu_undo_record(w->gpu, handle, &undo) == 0);
	gw_act(w, GW_SLICE, handle, 1);
	assert_int_equal(emu_group_sum(&w->emu, hand.pid, "slice_us"), 1);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	assert_int_equal(emu_group_sum(&w->emu, hand.pid, "slice_us"), 2048);
	hand_stop(&hand);
}

GPU_TEST(a_process_that_ends_disappears_and_its_handle_detaches)
{
	uint64_t begin_ns;
	pid_t pid;
	struct emu_load *next;
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	gw_slice_and_hold(w, handle);
	pid = gw_kill(load);
	begin_ns = gw_now();
	TEST_WAIT(!gw_sees(w, pid, NULL));
	assert_in_range(gw_now() - begin_ns, 0, 3 * GP_NS_PER_S);
	gw_look(w, handle); /* still ours */
	gp_gpu_detach(w->gpu, handle);
	next = gw_load(w);
	handle = gw_attach(w, next->pid);
	assert_false(gw_settled(w, handle).held);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
}

/* The process lives on without a GPU. */
GPU_TEST(a_held_process_that_executes_another_program_is_no_task_any_more)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	gw_slice_and_hold(w, handle);
	kill(load->pid, SIGUSR1);
	TEST_WAIT(!gw_sees(w, load->pid, NULL));
	assert_int_equal(gp_gpu_find(w->gpu, load->pid, &(struct gp_seen){0}, NULL), -ENODEV);
	gp_gpu_detach(w->gpu, handle);
}

GPU_TEST(an_action_on_a_process_that_ended_fails_and_nothing_hangs)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = {.handle = gw_attach(w, load->pid), .slice_us = 1};
	pid_t pid = gw_kill(load);

	TEST_WAIT(!gw_sees(w, pid, NULL));
	assert_int_equal(gp_gpu_set_slice(w->gpu, gw_now(), &a, 1), 0);
	assert_int_equal(gp_gpu_hold(w->gpu, gw_now(), &a, 1), 0);
	TEST_WAIT(!gw_look(w, a.handle).under_way);
	assert_int_equal(gw_look(w, a.handle).failed, -ESRCH);
}

GPU_TEST(keys_are_not_used_again)
{
	struct gp_seen seen;
	uint64_t key[8];
	uint32_t handle = 0;

	gw_open(w);
	for (int i = 0; i < 8; i++) {
		struct emu_load *load;
		pid_t pid;

		load = gw_load(w);
		assert_int_equal(gp_gpu_find(w->gpu, load->pid, &seen, NULL), 0);
		key[i] = seen.key;
		for (int k = 0; k < i; k++)
			assert_true(key[k] != key[i]);
		pid = gw_kill(load);
		TEST_WAIT(!gw_sees(w, pid, NULL));
		assert_int_equal(gp_gpu_attach(w->gpu, key[i], &handle), -ESRCH);
	}
}

GPU_TEST(a_task_is_attached_once)
{
	struct gp_seen seen;
	uint32_t again;
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	assert_true(gw_sees(w, load->pid, &seen));
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key, &again), -EBUSY);
	gp_gpu_detach(w->gpu, handle);
	TEST_WAIT(!gp_gpu_attach(w->gpu, seen.key, &again));
}

static pid_t child_of(pid_t pid)
{
	char path[64];
	FILE *f;
	int child = 0;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &child) != 1)
		child = 0;
	if (f)
		fclose(f);
	return child;
}

/* A load's child is not waited for: it is killed at the end of the test. */
static pid_t left_child;

static int kill_left_child(void **state)
{
	if (left_child > 0)
		kill(left_child, SIGKILL);
	left_child = 0;
	return gw_tear_down(state);
}

TEST_WITH(processes_that_share_a_file_are_one_task, gw_set_up, kill_left_child)
{
	struct gpu_world *w = *state;
	struct gp_seen seen;
	pid_t child;
	struct emu_load *load = gw_load(w, "--fork");

	child = left_child = child_of(load->pid);
	assert_true(child > 0);
	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, NULL));
	assert_int_equal(gp_gpu_scan(w->gpu, gw_now(), NULL, 0), 1);
	/* The child's pid finds the same task. */
	assert_int_equal(gp_gpu_find(w->gpu, child, &seen, NULL), 0);
	assert_int_equal(seen.pid, load->pid);
	assert_int_equal(gp_gpu_scan(w->gpu, gw_now(), NULL, 0), 1);
}

TEST_WITH(a_child_takes_over_and_is_put_back_in_the_end, gw_set_up, kill_left_child)
{
	struct gpu_world *w = *state;
	struct gp_observation o;
	struct gp_seen seen, heir;
	uint32_t handle = 0;
	pid_t child, parent;
	struct emu_load *load = gw_load(w, "--fork");

	child = left_child = child_of(load->pid);
	parent = load->pid;
	handle = gw_attach(w, load->pid);
	assert_true(gw_sees(w, load->pid, &seen));
	gw_slice_and_hold(w, handle);
	emu_load_kill(load);
	TEST_WAIT(gw_sees(w, child, &heir));
	assert_int_equal(heir.key, seen.key);
	assert_false(gw_sees(w, parent, NULL));
	o = gw_settled(w, handle);
	assert_true(o.held);
	assert_int_equal(o.slice_us, 1);
	/* The emulator, as RM, keeps the pid of the process that created the client. */
	assert_int_equal(emu_groups_held(&w->emu, parent), 1);
	gp_gpu_detach(w->gpu, handle);
	TEST_WAIT(!emu_groups_held(&w->emu, parent));
	TEST_WAIT(emu_group_sum(&w->emu, parent, "slice_us") == 2048);
}

/* Another scheduler duplicates files for a moment, too, and is older than what it schedules. */
GPU_TEST(a_process_that_borrowed_a_file_is_not_taken_for_its_owner)
{
	struct gp_seen seen;
	struct hand *other = gw_hand(w);
	struct emu_load *load;

	hand_open(other);
	emulator_sleep_ms(25); /* start times are counted in hundredths of a second */
	load = gw_load(w);
	hand_tell(other, (struct hand_order){.call = HAND_BORROW, .value = (uint64_t)load->pid});
	gw_open(w);
	gp_gpu_scan(w->gpu, gw_now(), NULL,
		    0); /* all processes were examined: both have the file */
	hand_tell(other, (struct hand_order){.call = HAND_GIVE_BACK});
	TEST_WAIT(gw_sees(w, load->pid, &seen));
	assert_int_equal(seen.pid, load->pid);
}

GPU_TEST(a_group_that_comes_later_is_found)
{
	struct gp_seen seen;
	struct emu_load *load = gw_load(w, "--grow", "300");

	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, &seen));
	TEST_WAIT(gw_queues(w, seen.key, "compute") == 2);
}

GPU_TEST(a_process_becomes_a_task_with_its_first_group)
{
	struct hand *h = gw_hand_with_client(w);

	gw_open(w);
	gp_gpu_scan(w->gpu, gw_now(), NULL, 0);
	assert_false(gw_sees(w, h->pid, NULL));
	hand_group(h, 0x5c000010, 2);
	TEST_WAIT(gw_sees(w, h->pid, NULL));
	hand_free(h, 0x5c000010);
	TEST_WAIT(!gw_sees(w, h->pid, NULL));
}

/* The short rescans, which continue where the last object was, do not reach this group. */
GPU_TEST(a_command_finds_a_group_that_was_made_after_the_last_look)
{
	struct hand *h = gw_hand_with_client(w);

	gw_open(w);
	assert_true(gp_gpu_find(w->gpu, h->pid, &(struct gp_seen){0}, NULL) < 0);
	hand_group(h, 0x5c000003 + 40, 2);
	assert_int_equal(gp_gpu_find(w->gpu, h->pid, &(struct gp_seen){0}, NULL), 0);
}

GPU_TEST(a_process_becomes_a_task_although_its_client_came_after_its_file)
{
	struct hand *h = gw_hand(w);

	hand_open(h);
	gw_open(w);
	gp_gpu_scan(w->gpu, gw_now(), NULL, 0);
	hand_client(h);
	hand_group(h, 0x5c000010, 2);
	TEST_WAIT(gw_sees(w, h->pid, NULL));
}

GPU_TEST(a_process_becomes_a_task_although_its_file_came_late)
{
	struct hand *h = gw_hand(w);

	gw_open(w);
	gp_gpu_scan(w->gpu, gw_now(), NULL, 0);
	hand_open(h);
	hand_client(h);
	hand_group(h, 0x5c000010, 2);
	TEST_WAIT(gw_sees(w, h->pid, NULL));
}

/* Of a task that was changed: others are looked at less often. */
GPU_TEST(a_second_client_with_a_file_of_its_own_is_found)
{
	uint32_t handle = 0;
	struct hand *h = gw_hand_with_client(w);

	hand_group(h, 0x5c000010, 2);
	handle = gw_attach(w, h->pid);
	assert_int_equal(gw_act(w, GW_SLICE, handle, 1).slice_us, 1);
	hand_open(h);
	hand_client(h);
	hand_group(h, 0x5c000010, 3);
	TEST_WAIT(gw_look(w, handle).slice_us == 0);
	assert_int_equal(gw_act(w, GW_SLICE, handle, 1).slice_us, 1);
	assert_int_equal(emu_group_sum(&w->emu, h->pid, "slice_us"), 2);
}

GPU_TEST(a_group_that_goes_is_forgotten)
{
	struct gp_seen seen;
	struct emu_load *load = gw_load(w, "--contexts", "2", "--shrink", "300");

	kill(load->pid, SIGSTOP); /* however slow this machine is, both are there to be seen */
	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, &seen) && gw_queues(w, seen.key, "compute") == 2);
	kill(load->pid, SIGCONT);
	TEST_WAIT(gw_queues(w, seen.key, "compute") == 1);
	assert_int_equal(emu_load_stop(load), 0);
}

static uint32_t first_compute_queue(struct gpu_world *w, uint64_t key)
{
	struct gp_queue queue[16];
	int n = gp_gpu_queues(w->gpu, key, true, queue, 16, NULL);

	for (int i = 0; i < n; i++)
		if (!strcmp(queue[i].type, "compute"))
			return queue[i].id;
	fail_msg("no compute queue");
	return 0;
}

GPU_TEST(one_queue_is_a_task_of_its_own_and_the_rest_leaves_it_alone)
{
	struct gp_seen main_task, part, again;
	struct gp_error err = {0};
	uint32_t main_handle = 0, part_handle = 0, id;
	struct emu_load *load;

	gw_load(w); /* has the first numbers: the hardware's 0 is a queue like others */
	load = gw_load(w, "--contexts", "2");
	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, &main_task));
	id = first_compute_queue(w, main_task.key);
	assert_int_equal(gp_gpu_split(w->gpu, load->pid, 4711, &part, &err), -ENOENT);
	assert_int_equal(gp_gpu_split(w->gpu, load->pid, id, &part, NULL), 0);
	assert_int_equal(part.queue, id);
	assert_int_equal(part.pid, load->pid);
	assert_true(part.key != main_task.key);
	assert_int_equal(gp_gpu_split(w->gpu, load->pid, id, &again, NULL), 0);
	assert_true(again.key == part.key);
	assert_int_equal(gp_gpu_scan(w->gpu, gw_now(), NULL, 0), 3);
	assert_int_equal(gp_gpu_attach(w->gpu, main_task.key, &main_handle), 0);
	assert_int_equal(gp_gpu_attach(w->gpu, part.key, &part_handle), 0);
	assert_true(gw_act(w, GW_HOLD, main_handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
	assert_false(gw_look(w, part_handle).held);
	assert_true(gw_act(w, GW_HOLD, part_handle, 0).held);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 2);
	gw_act(w, GW_RELEASE, main_handle, 0);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
	gw_act(w, GW_SLICE, part_handle, 500);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 500 + 2048);
	gp_gpu_detach(w->gpu, part_handle);
	TEST_WAIT(!emu_groups_held(&w->emu, load->pid));
	TEST_WAIT(emu_group_sum(&w->emu, load->pid, "slice_us") == 2ul * 2048);
	assert_int_equal(emu_load_stop(load), 0);
}

/* 0 is how the contract says "all of them", and hardware counts from 0. */
GPU_TEST(the_queue_with_the_number_0_can_be_a_task_or_is_refused)
{
	struct gp_seen seen, part;
	uint32_t handle = 0;
	int r;
	struct emu_load *load = gw_load(w, "--contexts", "2");

	gw_open(w);
	TEST_WAIT(gw_sees(w, load->pid, &seen));
	if (first_compute_queue(w, seen.key) != 0)
		skip();
	r = gp_gpu_split(w->gpu, load->pid, 0, &part, NULL);
	if (!r) {
		assert_int_equal(gp_gpu_attach(w->gpu, part.key, &handle), 0);
		assert_true(gw_act(w, GW_HOLD, handle, 0).held);
		assert_int_equal(emu_groups_held(&w->emu, load->pid), 1); /* not both */
	} else {
		assert_int_equal(r, -ENOENT);
	}
}
