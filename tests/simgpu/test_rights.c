/* SPDX-License-Identifier: Apache-2.0 */
/* All users may use a simulated GPU; only its owner and root may control it. */
#include "simgpu_world.h"

/* What `f` answers in a process of another user. */
static int as_nobody(int (*f)(const struct world *w), const struct world *w)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (setgid(TEST_NOBODY) || setuid(TEST_NOBODY))
			_exit(99);
		_exit(-f(w));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static int control(const struct world *w)
{
	struct gp_error err = {0};
	struct gp_simclient_gpu *d;
	int r = gp_simclient_open(w->path, 0, &d, &err);

	return r == -EPERM && !strstr(err.text, "may control this simulated GPU") ? -98 : r;
}

static int release_train(const struct world *w)
{
	return gp_backend_release_process(&gp_simgpu_ops, w->program[0], NULL, NULL);
}

static int use(const struct world *w)
{
	struct gp_simgpu_hello hello = {.name = "theirs"};
	int fd = gp_simgpu_join(w->path, &hello, NULL), r;
	struct gp_simgpu_done done = {0};
	uint64_t until_ns = now() + PATIENCE_NS;

	if (fd < 0)
		return fd;
	r = gp_simgpu_submit(fd, 1, 1, 1000, 0);
	while (!r && (r = gp_simgpu_take(fd, &done)) == -EAGAIN && now() < until_ns) {
		pause_shortly();
		r = 0;
	}
	return done.tag == 1 ? r : -97;
}

/* A program that says it is a controller. */
static int hold_as_program(const struct world *w)
{
	struct gp_simgpu_hello hello = {.name = "theirs"};
	struct gp_simgpu_control m = {.kind = GP_SIMGPU_HOLD, .count = 1, .serial = 1};
	int fd = gp_simgpu_join(w->path, &hello, NULL);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char byte;

	if (fd < 0)
		return fd;
	if (send(fd, &m, GP_SIMGPU_CONTROL_BYTES(1), MSG_NOSIGNAL) < 0)
		return -96;
	poll(&p, 1, 30000);
	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 ? 0 : -95; /* it was thrown out */
}

SIM_TEST(others_use_it_and_do_not_control_it)
{
	struct gp_gpu *gpu = world_train(w);
	uint32_t handle;

	if (geteuid())
		skip();
	handle = world_attach(gpu, w->program[0]);
	world_act(gpu, handle, GP_SIMGPU_HOLD, 0);
	assert_int_equal(as_nobody(control, w), -EPERM);
	assert_int_equal(as_nobody(release_train, w), -EPERM);
	assert_int_equal(as_nobody(use, w), 0);
	assert_int_equal(as_nobody(hold_as_program, w), 0);
	assert_true(world_look(gpu, handle).held);
}

SIM_TEST(root_controls_another_users)
{
	const char *argv[] = {SIMGPU, "--socket", w->path, NULL};

	if (geteuid())
		skip();
	world_kill(&w->server, SIGTERM);
	/* The folder belongs to user `nobody` during the start. */
	assert_int_equal(chown(w->folder, TEST_NOBODY, TEST_NOBODY), 0);
	assert_int_equal(seteuid(TEST_NOBODY), 0);
	if (access(SIMGPU, X_OK)) { /* a build folder that others may not enter */
		assert_int_equal(seteuid(0), 0);
		skip();
	}
	w->server = world_spawn(argv);
	assert_int_equal(seteuid(0), 0);
	world_open(0);
	assert_int_equal(as_nobody(control, w), 0);
}
