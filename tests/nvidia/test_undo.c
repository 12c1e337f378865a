/* SPDX-License-Identifier: Apache-2.0 */
/* A killed scheduler leaves a record; its replay restores the process. */
#include <sys/resource.h>

#include "base/process.h"
#include "base/rng.h"
#include "hold/replay.h"

#include "hand_made.h"

static void is_as_cuda_left_it(struct gpu_world *w, pid_t pid, unsigned groups)
{
	assert_int_equal(emu_groups(&w->emu, pid), groups);
	assert_int_equal(emu_groups_held(&w->emu, pid), 0);
	assert_int_equal(emu_group_sum(&w->emu, pid, "slice_us"), groups * 2048);
}

static struct gp_undo record_of(struct gpu_world *w, uint32_t handle)
{
	struct gp_undo undo = {0};

	TEST_WAIT(gp_gpu_undo_record(w->gpu, handle, &undo) == 0);
	return undo;
}

/* Attaches, tells its record, and changes the process for ever. In a process of its own. */
static void schedule_until_killed(pid_t pid)
{
	struct gp_observation o = {0};
	struct gp_gpu *gpu;
	struct gp_action a = {.slice_us = 1};
	struct gp_undo undo;
	struct gp_seen seen;

	if (gp_nvidia_ops.open(0, 0, &gpu) || gp_gpu_find(gpu, pid, &seen, NULL) ||
	    gp_gpu_attach(gpu, seen.key, &a.handle))
		_exit(1);
	while (gp_gpu_undo_record(gpu, a.handle, &undo))
		usleep(100);
	if (write(STDOUT_FILENO, &undo, sizeof undo) != sizeof undo)
		_exit(1);
	for (;;) {
		gp_gpu_set_slice(gpu, gw_now(), &a, 1);
		gp_gpu_hold(gpu, gw_now(), &a, 1);
		o.handle = a.handle;
		do
			gp_gpu_observe(gpu, gw_now(), &o, 1);
		while (o.under_way);
		gp_gpu_release(gpu, gw_now(), &a, 1);
		a.slice_us = a.slice_us == 1 ? 500 : 1;
	}
}

/* Kills a scheduler some time after it began to change things; its record. */
static struct gp_undo kill_a_scheduler(pid_t pid, unsigned after_us)
{
	struct test_child child;
	struct gp_undo undo;

	if (test_fork(&child))
		schedule_until_killed(pid);
	assert_int_equal(read(child.from, &undo, sizeof undo), sizeof undo);
	usleep(after_us);
	test_child_end(&child);
	return undo;
}

GPU_TEST(a_process_is_put_back_whenever_its_scheduler_was_killed)
{
	struct gp_rng rng;
	unsigned changed = 0;
	struct emu_load *load;

	gp_rng_init(&rng, 42, 0);
	load = gw_load(w, "--contexts", "2");
	for (int round = 0; round < 40; round++) {
		struct gp_undo undo =
			kill_a_scheduler(load->pid, (unsigned)gp_rng_below(&rng, 6000));
		struct gp_error err = {0};

		changed += emu_groups_held(&w->emu, load->pid) ||
			   emu_group_sum(&w->emu, load->pid, "slice_us") != 2ul * 2048;
		if (gp_backend_undo(&gp_nvidia_ops, &undo, &err))
			fail_msg("%s", err.text);
		is_as_cuda_left_it(w, load->pid, 2);
	}
	assert_true(changed > 10); /* otherwise nothing was tried */
	assert_true(gw_makes_progress(w, load->pid));
	assert_int_equal(emu_load_stop(load), 0);
}

/* Those that are put back after it wait for it. */
GPU_TEST(putting_a_process_back_takes_few_calls)
{
	struct gp_undo undo;
	uint64_t before;
	struct emu_load *load = gw_load(w);

	for (int i = 0; i < 2; i++) {
		undo = kill_a_scheduler(load->pid, 5000);
		/* The second time it is older than the search goes back. */
		if (i)
			assert_int_equal(emu_control(&w->emu, "client_index %u", 0x8000), 0);
		before = emu_count(&w->emu, "total");
		assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
		assert_in_range(emu_count(&w->emu, "total") - before, 1, 600);
		is_as_cuda_left_it(w, load->pid, 1);
	}
}

GPU_TEST(a_replay_can_be_repeated)
{
	struct emu_load *load = gw_load(w);
	struct gp_undo undo = kill_a_scheduler(load->pid, 3000);

	for (int i = 0; i < 3; i++) {
		assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
		is_as_cuda_left_it(w, load->pid, 1);
	}
	assert_int_equal(emu_load_stop(load), 0);
}

/* One record for each of its GPUs: a file of records must be able to tell them apart. */
GPU_TEST(a_record_names_the_process_and_is_of_one_gpu)
{
	struct gpu_world second = {.emu = w->emu};
	struct gp_undo undo, other;
	struct emu_load *load = gw_load(w, "--gpus", "2", "--contexts", "2");

	gw_open(w);
	second.gpu = gw_open_index(1);
	undo = record_of(w, gw_attach(w, load->pid));
	other = record_of(&second, gw_attach(&second, load->pid));
	assert_int_equal(undo.pid, load->pid);
	assert_int_equal(undo.start_time, gp_process_start_time(load->pid));
	assert_in_range(undo.size, 1, sizeof undo.data);
	assert_true(undo.key != other.key);
	gw_close(&second);
}

GPU_TEST(a_record_taken_after_the_change_still_tells_what_was_before)
{
	struct gp_undo undo;
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	gw_slice_and_hold(w, handle);
	undo = record_of(w, handle);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	is_as_cuda_left_it(w, load->pid, 1);
}

GPU_TEST(each_group_gets_its_own_slice_back)
{
	struct gp_undo undo;
	uint32_t handle;
	struct hand *h = gw_hand_with_client(w);

	hand_group(h, 0x5c000010, 2);
	hand_group(h, 0x5c000020, 2);
	hand_slice(h, 0x5c000010, 777);
	hand_slice(h, 0x5c000020, 5555);
	handle = gw_attach(w, h->pid);
	undo = record_of(w, handle);
	gw_act(w, GW_SLICE, handle, 1);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	assert_true(gw_state_has(w, "\"slice_us\":777,"));
	assert_true(gw_state_has(w, "\"slice_us\":5555,"));
}

GPU_TEST(more_groups_than_a_record_lists_are_put_back)
{
	struct emu_load *load = gw_load(w, "--contexts", "24");
	uint32_t handle = gw_attach(w, load->pid);
	struct gp_undo undo = record_of(w, handle);

	gw_slice_and_hold(w, handle);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 24);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	is_as_cuda_left_it(w, load->pid, 24);
}

GPU_TEST(a_group_that_came_after_the_record_is_put_back)
{
	struct gp_undo undo;
	uint32_t handle;
	struct emu_load *load = gw_load(w, "--grow", "200");

	kill(load->pid, SIGSTOP); /* it grows after the record was made, not before */
	handle = gw_attach(w, load->pid);
	undo = record_of(w, handle);
	gw_act(w, GW_SLICE, handle, 1);
	kill(load->pid, SIGCONT);
	TEST_WAIT(gw_look(w, handle).slice_us == 0);
	gw_slice_and_hold(w, handle);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 2);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	is_as_cuda_left_it(w, load->pid, 2);
}

GPU_TEST(the_record_of_one_gpu_leaves_the_other_alone)
{
	struct gpu_world second = {.emu = w->emu};
	struct gp_undo undo;
	uint32_t handle;
	struct emu_load *load = gw_load(w, "--gpus", "2", "--contexts", "2");

	gw_open(w);
	second.gpu = gw_open_index(1);
	handle = gw_attach(w, load->pid);
	undo = record_of(w, handle);
	gw_act(w, GW_HOLD, handle, 0);
	gw_act(&second, GW_HOLD, gw_attach(&second, load->pid), 0);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 2);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
	gw_close(&second);
	assert_int_equal(emu_load_stop(load), 0);
}

/* The child that has the queues of a load with --fork. */
static pid_t child_of(const struct emu_load *load)
{
	char path[64];
	int child = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", load->pid, load->pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &child), 1);
	fclose(f);
	return child;
}

/* Holds it and leaves it so: the process of the device ends. */
static struct gp_undo leave_held(struct gpu_world *w, pid_t pid)
{
	struct gp_action a = {0};
	struct test_child child;
	struct gp_undo undo;

	if (test_fork(&child)) {
		a.handle = gw_attach(w, pid);
		undo = record_of(w, a.handle);
		gw_slice_and_hold(w, a.handle);
		_exit(write(STDOUT_FILENO, &undo, sizeof undo) != sizeof undo);
	}
	assert_int_equal(read(child.from, &undo, sizeof undo), sizeof undo);
	test_child_end(&child);
	assert_true(emu_groups_held(&w->emu, pid));
	return undo;
}

/* The process of the record ended; its queues live on in a child, stopped. */
GPU_TEST(the_record_of_a_parent_puts_the_child_back_that_has_its_queues)
{
	uint32_t held;
	uint64_t slice_us;
	struct emu_load *load = gw_load(w, "--fork");
	pid_t child = child_of(load), parent = load->pid;
	struct gp_undo undo = leave_held(w, parent);
	int silent, wrong;

	gw_kill(load);
	/* RM denies the queues, and lists the process that made them: the record must stay. */
	emu_control(&w->emu, "fault handle_info 0x57 100000");
	silent = gp_backend_undo(&gp_nvidia_ops, &undo, NULL);
	emu_control(&w->emu, "clear_faults");
	emu_control(&w->emu, "fault get_info 0x57 100000");
	wrong = gp_backend_undo(&gp_nvidia_ops, &undo, NULL);
	emu_control(&w->emu, "clear_faults");
	gp_backend_undo(&gp_nvidia_ops, &undo, NULL);
	held = emu_groups_held(&w->emu, parent);
	slice_us = emu_group_sum(&w->emu, parent, "slice_us");
	kill(child, SIGKILL); /* the test must end it */
	assert_int_equal(silent, -EIO);
	assert_int_equal(wrong, -EIO);
	assert_int_equal(held, 0);
	assert_int_equal(slice_us, 2048);
	TEST_WAIT(gp_backend_undo(&gp_nvidia_ops, &undo, NULL) == -ESRCH); /* not kept for ever */
}

/* Replays a record with `spare` free descriptors. */
static int undo_with_few_files(const struct gp_undo *undo, unsigned spare)
{
	struct rlimit before, few;
	int lowest = dup(STDIN_FILENO), r;

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){.rlim_cur = (rlim_t)lowest + spare, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	r = gp_backend_undo(&gp_nvidia_ops, undo, NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	return r;
}

/* A process that could not be examined has neither ended nor closed its files. */
static void keeps_its_record(struct gpu_world *w, bool orphan)
{
	struct emu_load *load = orphan ? gw_load(w, "--fork") : gw_load(w);
	pid_t pid = load->pid, child = orphan ? child_of(load) : pid;
	struct gp_undo undo = leave_held(w, pid);
	unsigned failed = 0, wrong = 0, held = 1;

	if (orphan)
		gw_kill(load);
	for (unsigned spare = 0; spare < 32 && held; spare++) {
		int r = undo_with_few_files(&undo, spare);

		held = emu_groups_held(&w->emu, pid);
		failed += r && r != -ESRCH;
		wrong += held && (!r || r == -ESRCH);
	}
	kill(child, SIGKILL);
	assert_int_equal(wrong, 0);
	assert_int_equal(held, 0);
	assert_true(failed > 3); /* otherwise nothing was tried */
}

GPU_TEST(a_process_that_cannot_be_examined_keeps_its_record)
{
	keeps_its_record(w, false);
}

GPU_TEST(an_heir_that_cannot_be_examined_keeps_the_record)
{
	keeps_its_record(w, true);
}

GPU_TEST(a_record_of_a_process_that_ended_says_so)
{
	struct gp_error err = {0};
	struct emu_load *load = gw_load(w);
	struct gp_undo undo = record_of(w, gw_attach(w, load->pid));

	kill(load->pid, SIGKILL);
	TEST_WAIT(!gw_sees(w, load->pid, NULL));
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL),
			 -ESRCH); /* not waited for yet */
	emu_load_wait(load);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, &err), -ESRCH);
	assert_true(err.text[0]);
}

static unsigned records_in(const struct gp_undo_file *file)
{
	struct gp_undo_entry e;
	unsigned n = 0;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		n += gp_undo_get(file, i, &e);
	return n;
}

/* Runs `what` in a process of its own. */
#define IN_CHILD(what)                 \
	({                             \
		pid_t child_ = fork(); \
                                       \
		if (!child_) {         \
			(void)(what);  \
			_exit(0);      \
		}                      \
		child_;                \
	})

/* The search for the heirs of the ended process hangs in the driver. The other record is of a
 * back end that needs no driver for it. */
GPU_TEST(records_of_living_processes_are_replayed_before_those_of_ended_ones)
{
	struct gp_undo living = {
		.key = 1, .pid = getpid(), .start_time = gp_process_start_time(getpid())};
	struct emu_load *load = gw_load(w);
	struct gp_undo ended = record_of(w, gw_attach(w, load->pid));
	struct gp_undo_file *file;
	char path[64];
	unsigned left;
	pid_t pid;

	gw_close(w);
	emu_load_kill(load);
	snprintf(path, sizeof path, "/tmp/gp-order-undo.%d", getpid());
	setenv("GPREEMPT_UNDO", path, 1);
	assert_int_equal(gp_undo_open(&file, true, NULL), 0);
	waitpid(IN_CHILD((gp_undo_put(file, "nvidia", &ended), gp_undo_put(file, "amd", &living))),
		NULL, 0);
	assert_int_equal(records_in(file), 2);
	kill(w->emu.pid, SIGSTOP);
	TEST_WAIT(test_process_state(w->emu.pid) == 'T');
	pid = IN_CHILD(gp_records_replay_dead(file));
	for (int i = 0; records_in(file) == 2 && i < 2000; i++)
		usleep(10000);
	left = records_in(file);
	kill(w->emu.pid, SIGCONT);
	waitpid(pid, NULL, 0);
	assert_int_equal(left, 1);
	assert_int_equal(records_in(file), 0);
	gp_undo_close(file);
	unlink(path);
	unsetenv("GPREEMPT_UNDO");
}

GPU_TEST(another_process_with_the_same_pid_is_not_touched)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);
	struct gp_undo undo = record_of(w, handle);

	gw_slice_and_hold(w, handle);
	undo.start_time--;
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -ESRCH);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 1);
}

GPU_TEST(damaged_records_are_refused_or_do_no_harm)
{
	struct gp_undo undo, bad;
	struct gp_rng rng;
	struct emu_load *load, *other;

	gp_rng_init(&rng, 7, 0);
	other = gw_load(w);
	load = gw_load(w);
	undo = record_of(w, gw_attach(w, load->pid));
	bad = undo;
	bad.size = 0;
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &bad, NULL), -EINVAL);
	bad.size = UINT32_MAX;
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &bad, NULL), -EINVAL);
	bad = undo;
	memset(bad.data, 0xff, sizeof bad.data);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &bad, NULL), -EINVAL);
	for (int i = 0; i < 30; i++) {
		bad = undo;
		for (int k = 0; k < 4; k++)
			bad.data[gp_rng_below(&rng, undo.size)] = (uint8_t)gp_rng_below(&rng, 256);
		gp_backend_undo(&gp_nvidia_ops, &bad, NULL);
	}
	/* Whatever was done, it was done to the process of the record. */
	is_as_cuda_left_it(w, other->pid, 1);
	bad = undo;
	bad.pid = -1;
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &bad, NULL), -EINVAL);
	emu_load_kill(load);
	bad.pid = 0x3fffff;
	TEST_WAIT(gp_backend_undo(&gp_nvidia_ops, &bad, NULL) ==
		  -ESRCH); /* when its file is closed */
}

GPU_TEST(a_replay_without_effect_is_a_failure)
{
	struct emu_load *load = gw_load(w);
	struct gp_undo undo;
	uint32_t handle;

	gw_open(w);
	handle = gw_attach(w, load->pid);
	undo = record_of(w, handle);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	emu_control(&w->emu, "ignore disable 100000");
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -EIO);
	assert_int_equal(gp_backend_release_process(&gp_nvidia_ops, load->pid, NULL, NULL), -EIO);
	emu_control(&w->emu, "clear_faults");
	/* RM does not name the groups: nothing is known, and nothing is undone. */
	emu_control(&w->emu, "fault handle_info 0x65 100000");
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -EIO);
	/* RM says that they are gone, and lists the process as computing. */
	emu_control(&w->emu, "clear_faults");
	emu_control(&w->emu, "fault handle_info 0x57 100000");
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -EIO);
	/* RM has no list of processes; a process with a control file has a client. */
	emu_control(&w->emu, "fault pids 0x56 100000");
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -EIO);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
	emu_control(&w->emu, "clear_faults");
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	is_as_cuda_left_it(w, load->pid, 1);
}

GPU_TEST(a_fault_during_the_replay_is_told_and_the_rest_is_done)
{
	struct gp_error err = {0};
	struct emu_load *load = gw_load(w, "--contexts", "3");
	uint32_t handle = gw_attach(w, load->pid);
	struct gp_undo undo = record_of(w, handle);

	gw_slice_and_hold(w, handle);
	gw_settled(w, handle);
	emu_control(&w->emu, "fault set_timeslice 0x65 1");
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "NV_ERR_TIMEOUT"));
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 1 + 2 * 2048);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	is_as_cuda_left_it(w, load->pid, 3);
}

GPU_TEST(a_process_is_released_without_a_record)
{
	struct emu_load *load = gw_load(w, "--gpus", "2", "--contexts", "3");

	for (int i = 0; i < 5; i++) {
		kill_a_scheduler(load->pid, 3000);
		assert_int_equal(gp_backend_release_process(&gp_nvidia_ops, load->pid, NULL, NULL),
				 3);
		assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	}
	assert_true(gw_makes_progress(w, load->pid));
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(a_tiny_slice_does_not_stay_without_a_record)
{
	struct gpu_world killed = {.emu = w->emu};
	uint32_t handle;
	struct emu_load *load = gw_load(w);

	gw_open(&killed);
	handle = gw_attach(&killed, load->pid);
	gw_slice_and_hold(&killed, handle);
	assert_int_equal(gp_backend_release_process(&gp_nvidia_ops, load->pid, NULL, NULL), 1);
	is_as_cuda_left_it(w, load->pid, 1);
	gw_close(&killed);
}

GPU_TEST(who_cannot_be_released_is_said)
{
	struct gp_error err = {0};
	struct hand *h = gw_hand(w);

	assert_int_equal(gp_backend_release_process(&gp_nvidia_ops, h->pid, NULL, &err), -ENODEV);
	assert_true(err.text[0]);
	hand_stop(h);
	err = (struct gp_error){0};
	assert_int_equal(gp_backend_release_process(&gp_nvidia_ops, h->pid, NULL, &err), -ESRCH);
	assert_true(err.text[0]);
}
