/* SPDX-License-Identifier: Apache-2.0 */
/* A process with a context is found until it ends; more contexts than fit are refused. */
#include "simgpu_world.h"

SIM_TEST(a_program_is_found_as_what_it_is)
{
	struct gp_seen seen = {0};
	struct gp_queue queue = {0};
	struct gp_gpu *gpu;
	pid_t pid;

	assert_int_equal(gp_simgpu_ops.probe(), 2);
	gpu = world_open(0);
	assert_string_equal(gpu->info.name, "simulated H200 #0");
	assert_int_equal(gpu->info.caps,
			 GP_CAP_HOLD | GP_CAP_SLICE | GP_CAP_ACTIVITY | GP_CAP_EVENTS);
	assert_int_equal(world_count(gpu), 0);
	pid = world_load(w, "10ms", "train");
	assert_int_equal(gp_gpu_scan(gpu, now(), &seen, 1), 1);
	assert_int_equal(seen.pid, pid);
	assert_int_equal(seen.start_time, gp_process_start_time(pid));
	assert_string_equal(seen.name, "train");
	assert_int_equal(seen.memory, 12 << 20);
	assert_int_equal(gp_gpu_queues(gpu, seen.key, false, &queue, 1, NULL), 1);
	assert_int_equal(queue.slice_us, 2048);
	assert_false(queue.held);
	assert_int_equal(gp_gpu_find(gpu, getpid(), &seen, NULL), -ENODEV);
	assert_int_equal(gp_gpu_find(gpu, 0x3fffff, &seen, NULL), -ESRCH);
}

SIM_TEST(it_is_on_its_own_device_only)
{
	struct gp_gpu *gpu, *other;

	world_load(w, "10ms", "train");
	gpu = world_open(0);
	other = world_open(1);
	assert_int_equal(world_count(gpu), 1);
	assert_int_equal(world_count(other), 0);
	assert_int_equal(gp_simgpu_ops.open(2, 0, &(struct gp_gpu *){NULL}), -ENODEV);
}

TEST(coming_and_going_is_news)
{
	struct world w;
	struct gp_seen first = {0}, second = {0};
	struct gp_gpu *gpu;

	world_begin(&w, "h200", "none"); /* even where nothing is told of activity */
	gpu = world_open(0);
	world_news(gpu);
	assert_false(world_news(gpu));
	world_load(&w, "10ms", "first");
	WAIT_FOR(world_news(gpu));
	assert_int_equal(gp_gpu_scan(gpu, now(), &first, 1), 1);
	world_kill(&w.program[0], SIGKILL);
	WAIT_FOR(world_news(gpu));
	WAIT_FOR(world_count(gpu) == 0);
	/* A new process in its place is a new task. */
	world_load(&w, "10ms", "second");
	assert_int_equal(gp_gpu_scan(gpu, now(), &second, 1), 1);
	assert_int_not_equal(first.key, second.key);
	world_close(gpu);
	world_end(&w);
}

SIM_TEST(who_is_welcome_can_be_seen_at_once)
{
	struct gp_gpu *gpu = world_open(0);

	for (unsigned i = 0; i < 200; i++) {
		struct gp_simgpu_hello hello = {.name = "me"};
		int fd = gp_simgpu_join(w->path, &hello, NULL);

		assert_true(fd >= 0);
		assert_int_equal(world_count(gpu), 1);
		close(fd);
		WAIT_FOR(world_count(gpu) == 0);
	}
}

TEST(activity_and_run_time_are_seen)
{
	static const char *const models[] = {"h200", "mi300x"};

	for (unsigned i = 0; i < 2; i++) {
		struct world w;
		struct gp_observation o;
		struct gp_gpu *gpu;
		uint32_t handle;

		world_begin(&w, models[i], "events");
		world_load(&w, "10ms", "train");
		gpu = world_open(0);
		handle = world_attach(gpu, w.program[0]);
		WAIT_FOR(world_look(gpu, handle).active);
		o = world_look(gpu, handle);
		assert_true(o.known & GP_KNOWN_ACTIVE_SINCE);
		assert_in_range(o.active_since_ns, 1, now());
		assert_in_range(o.pending, 1, 2); /* one runs, one is queued or on its way */
		/* An AMD GPU does not report the running task. */
		assert_int_equal(!!(o.known & GP_KNOWN_RUN), i == 0);
		if (i == 0)
			WAIT_FOR(world_gets_on(gpu, handle));
		world_close(gpu);
		world_end(&w);
	}
}

TEST(what_is_not_told_is_not_known)
{
	static const struct {
		const char *activity;
		uint32_t caps, known;
	} cases[] = {
		{"none", 0, 0},
		{"sampled", GP_CAP_ACTIVITY, GP_KNOWN_ACTIVE | GP_KNOWN_RUN},
		{"exact", GP_CAP_ACTIVITY,
		 GP_KNOWN_ACTIVE | GP_KNOWN_ACTIVE_SINCE | GP_KNOWN_PENDING | GP_KNOWN_RUN |
			 GP_KNOWN_RUNNING},
	};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world w;
		struct gp_gpu *gpu;
		uint32_t handle, always = GP_KNOWN_HELD | GP_KNOWN_SLICE;

		world_begin(&w, "h200", cases[i].activity);
		world_load(&w, "10ms", "train");
		gpu = world_open(0);
		assert_int_equal(gpu->info.caps, GP_CAP_HOLD | GP_CAP_SLICE | cases[i].caps);
		handle = world_attach(gpu, w.program[0]);
		WAIT_FOR(world_look(gpu, handle).known == (always | cases[i].known));
		if (cases[i].known & GP_KNOWN_RUN)
			WAIT_FOR(world_look(gpu, handle).run_ns > 0);
		world_close(gpu);
		world_end(&w);
	}
}

/* A process that only has a context. */
static pid_t start_context(const struct world *w, int start, int ready)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct gp_simgpu_hello hello = {.device = 1};
	struct gp_error err = {0};
	int fd = gp_simgpu_join(w->path, &hello, &err);

	if (fd < 0 && write(ready, "x", 1) == 1)
		_exit(fd == -ENOSPC && strstr(err.text, "the maximum") ? 7 : 8);
	if (fd >= 0 && write(ready, ".", 1) == 1 && read(start, &fd, 1) >= 0)
		_exit(0);
	_exit(9);
}

SIM_TEST(no_more_contexts_than_fit)
{
	enum { MANY = GP_SIMGPU_CONTEXTS + 1 };
	static pid_t pid[MANY];
	int start[2], ready[2], status, refused = 0;
	struct gp_gpu *gpu;

	assert_int_equal(pipe(start), 0);
	assert_int_equal(pipe(ready), 0);
	for (unsigned i = 0; i < MANY; i++) {
		char answer;

		pid[i] = start_context(w, start[0], ready[1]);
		assert_true(pid[i] > 0);
		assert_int_equal(read(ready[0], &answer, 1), 1);
		assert_int_equal(answer, i < GP_SIMGPU_CONTEXTS ? '.' : 'x');
	}
	gpu = world_open(1);
	assert_int_equal(world_count(gpu), GP_SIMGPU_CONTEXTS);
	for (unsigned i = 0; i < MANY; i++) {
		kill(pid[i], i < GP_SIMGPU_CONTEXTS ? SIGKILL : 0);
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		refused += WIFEXITED(status) && WEXITSTATUS(status) == 7;
	}
	assert_int_equal(refused, 1);
	WAIT_FOR(world_count(gpu) == 0);
	world_close(gpu);
	for (unsigned i = 0; i < 2; i++) {
		close(start[i]);
		close(ready[i]);
	}
}
