/* SPDX-License-Identifier: Apache-2.0 */
#include "simgpu_world.h"

#define OPENED_MAX 4

static struct gp_gpu *opened[OPENED_MAX];

pid_t world_spawn(const char *const *argv)
{
	struct test_child child;
	char line[8] = "";

	test_spawn(&child, argv);
	assert_true(child.pid >= 0);
	assert_int_equal(read(child.from, line, 6), 6);
	assert_string_equal(line, "ready\n");
	/* The pipes stay open, or its last words would be its death: they end with the test. */
	return child.pid;
}

void world_start_server(struct world *w, const char *model, const char *activity,
			const char *devices)
{
	const char *argv[] = {SIMGPU,      "--device", model,      "--activity", activity,
			      "--devices", devices,    "--socket", w->path,      NULL};

	w->server = world_spawn(argv);
}

void world_begin(struct world *w, const char *model, const char *activity)
{
	*w = (struct world){0};
	snprintf(w->folder, sizeof w->folder, "/tmp/simgpu-test-XXXXXX");
	assert_non_null(mkdtemp(w->folder));
	assert_int_equal(chmod(w->folder, 0755), 0);
	snprintf(w->path, sizeof w->path, "%s/socket", w->folder);
	setenv("GPREEMPT_SIMGPU", w->path, 1);
	setenv("GPREEMPT_RUN", w->folder, 1);
	setenv("GPREEMPT_GPU", "sim", 1);
	world_start_server(w, model, activity, "2");
}

void world_kill(pid_t *pid, int number)
{
	if (*pid <= 0)
		return;
	kill(*pid, number);
	waitpid(*pid, NULL, 0);
	*pid = 0;
}

void world_end(struct world *w)
{
	static const char *const files[] = {"socket", "undo"};
	char path[96];

	for (unsigned i = 0; i < OPENED_MAX; i++)
		if (opened[i])
			world_close(opened[i]);
	for (unsigned i = 0; i < w->nprograms; i++)
		world_kill(&w->program[i], SIGKILL);
	world_kill(&w->server, SIGKILL);
	for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", w->folder, files[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(w->folder), 0);
}

pid_t world_load(struct world *w, const char *kernel, const char *name)
{
	const char *argv[] = {GPREEMPT, "simload",  "--kernel", kernel, "--name",
			      name,     "--memory", "12",       NULL};

	assert_true(w->nprograms < WORLD_PROGRAMS);
	return w->program[w->nprograms++] = world_spawn(argv);
}

int world_set_up(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	*state = w;
	if (!w)
		return -1;
	world_begin(w, "h200", "events");
	return 0;
}

int world_tear_down(void **state)
{
	world_end(*state);
	free(*state);
	return 0;
}

struct gp_gpu *world_open(unsigned index)
{
	struct gp_gpu *gpu = NULL;
	unsigned i = 0;

	assert_int_equal(gp_simgpu_ops.open(index, 0, &gpu), 0);
	while (opened[i])
		assert_in_range(++i, 1, OPENED_MAX - 1);
	opened[i] = gpu;
	return gpu;
}

void world_close(struct gp_gpu *gpu)
{
	for (unsigned i = 0; i < OPENED_MAX; i++)
		if (opened[i] == gpu)
			opened[i] = NULL;
	gpu->ops->close(gpu);
}

struct gp_gpu *world_train(struct world *w)
{
	world_load(w, "10ms", "train");
	return world_open(0);
}

uint32_t world_attach(struct gp_gpu *gpu, pid_t pid)
{
	struct gp_seen seen;
	uint32_t handle = UINT32_MAX;

	assert_int_equal(gp_gpu_find(gpu, pid, &seen, NULL), 0);
	assert_int_equal(gp_gpu_attach(gpu, seen.key, &handle), 0);
	return handle;
}

struct gp_observation world_look(struct gp_gpu *gpu, uint32_t handle)
{
	struct gp_observation o = {.handle = handle};

	assert_int_equal(gp_gpu_observe(gpu, now(), &o, 1), 0);
	return o;
}

void world_act(struct gp_gpu *gpu, uint32_t handle, enum gp_simgpu_kind kind, uint32_t slice_us)
{
	struct gp_action a = {.handle = handle, .slice_us = slice_us};

	if (kind == GP_SIMGPU_HOLD)
		assert_int_equal(gp_gpu_hold(gpu, now(), &a, 1), 0);
	else if (kind == GP_SIMGPU_RELEASE)
		assert_int_equal(gp_gpu_release(gpu, now(), &a, 1), 0);
	else
		assert_int_equal(gp_gpu_set_slice(gpu, now(), &a, 1), 0);
	assert_int_equal(a.status, -EINPROGRESS);
	WAIT_FOR(!world_look(gpu, handle).under_way);
}

unsigned world_count(struct gp_gpu *gpu)
{
	int n = gp_gpu_scan(gpu, now(), NULL, 0);

	assert_true(n >= 0);
	return (unsigned)n;
}

bool world_gets_on(struct gp_gpu *gpu, uint32_t handle)
{
	uint64_t before_ns = world_look(gpu, handle).run_ns;

	usleep(100000);
	return world_look(gpu, handle).run_ns > before_ns;
}

bool world_news(struct gp_gpu *gpu)
{
	uint64_t count;

	return read(gp_gpu_event_fd(gpu), &count, sizeof count) == sizeof count;
}
