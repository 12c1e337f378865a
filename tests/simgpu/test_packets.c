/* SPDX-License-Identifier: Apache-2.0 */
/* A wrong packet ends its connection; other clients are not affected. */
#include "simgpu_world.h"

#include <sys/un.h>

static int connect_plainly(const struct world *w)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", w->path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static bool is_closed(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char byte;

	assert_int_equal(poll(&p, 1, 30000), 1);
	return recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

static void expect_thrown_out(int fd, const void *data, size_t size)
{
	assert_int_equal(send(fd, data, size, MSG_NOSIGNAL), size);
	assert_true(is_closed(fd));
	close(fd);
}

SIM_TEST(wrong_greetings_are_not_answered)
{
	static char large[200000];
	struct gp_simgpu_hello hello = {.kind = GP_SIMGPU_SUBMIT, .version = GP_SIMGPU_VERSION};

	expect_thrown_out(connect_plainly(w), "x", 1);
	expect_thrown_out(connect_plainly(w), &hello, sizeof hello);
	hello.kind = GP_SIMGPU_HELLO;
	expect_thrown_out(connect_plainly(w), &hello, sizeof hello - 1);
	expect_thrown_out(connect_plainly(w), large, sizeof large);
	assert_int_equal(gp_simgpu_ops.probe(), 2);
}

SIM_TEST(refusals_come_with_a_sentence)
{
	static const struct {
		struct gp_simgpu_hello hello;
		int status;
		const char *text;
	} cases[] = {
		{{.version = 99}, -EPROTO, "version"},
		{{.version = GP_SIMGPU_VERSION, .role = 17}, -EINVAL, "role"},
		{{.version = GP_SIMGPU_VERSION, .role = GP_SIMGPU_PROGRAM, .device = 2},
		 -ENODEV,
		 "no device 2"},
		{{.version = GP_SIMGPU_VERSION, .role = GP_SIMGPU_PROGRAM, .slice_us = UINT32_MAX},
		 -EINVAL,
		 "slice"},
		{{.version = GP_SIMGPU_VERSION, .role = GP_SIMGPU_PROGRAM, .width_permille = 1001},
		 -EINVAL,
		 "invalid width or wave length"},
		{{.version = GP_SIMGPU_VERSION, .role = GP_SIMGPU_CONTROLS, .device = UINT32_MAX},
		 -ENODEV,
		 "no device"},
	};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct gp_simgpu_hello hello = cases[i].hello;
		struct gp_simgpu_welcome welcome;
		struct gp_error err = {0};

		hello.kind = GP_SIMGPU_HELLO;
		assert_int_equal(gp_simgpu_connect(w->path, &hello, &welcome, NULL, &err),
				 cases[i].status);
		assert_non_null(strstr(err.text, cases[i].text));
	}
}

SIM_TEST(a_second_context_of_a_process_is_refused)
{
	struct gp_simgpu_hello hello = {.name = "me"};
	struct gp_error err = {0};
	int fd = gp_simgpu_join(w->path, &hello, NULL);

	assert_true(fd >= 0);
	assert_int_equal(gp_simgpu_join(w->path, &hello, &err), -EBUSY);
	assert_non_null(strstr(err.text, "already"));
	hello.device = 1;
	close(gp_simgpu_join(w->path, &hello, NULL));
	close(fd);
}

SIM_TEST(wrong_requests_end_the_program_or_are_refused)
{
	struct gp_simgpu_hello hello = {.name = "me"};
	struct gp_simgpu_submit m = {.kind = GP_SIMGPU_SUBMIT, .kernels = 1, .kernel_ns = 0};
	struct gp_simgpu_done done;
	int fd = gp_simgpu_join(w->path, &hello, NULL);

	for (unsigned i = 0; i < 3; i++) { /* nothing to do, too long, no kernels */
		m.kernel_ns = i == 1 ? UINT64_MAX : i;
		m.kernels = i < 2;
		assert_int_equal(send(fd, &m, sizeof m, MSG_NOSIGNAL), sizeof m);
		WAIT_FOR(!gp_simgpu_take(fd, &done));
		assert_int_equal(done.status, -EINVAL);
	}
	/* More than are queued. */
	for (unsigned i = 0; i < GP_SIMGPU_QUEUED + 1; i++)
		assert_int_equal(gp_simgpu_submit(fd, i, 1, 10 * GP_NS_PER_S, 0), 0);
	WAIT_FOR(!gp_simgpu_take(fd, &done));
	assert_int_equal(done.status, -EAGAIN);
	assert_int_equal(done.tag, GP_SIMGPU_QUEUED);
	m.kind = GP_SIMGPU_HOLD;
	expect_thrown_out(fd, &m, sizeof m);
}

SIM_TEST(who_does_not_read_is_thrown_out_and_others_go_on)
{
	struct gp_simgpu_hello hello = {.name = "deaf"};
	struct gp_gpu *gpu;
	uint32_t handle;
	int fd, r = 0;

	world_load(w, "1ms", "train");
	fd = gp_simgpu_join(w->path, &hello, NULL);
	for (uint64_t until_ns = now() + PATIENCE_NS; r != -EIO && now() < until_ns;)
		r = gp_simgpu_submit(fd, 1, 1, 0, 0); /* each is refused, and that is said */
	assert_int_equal(r, -EIO);
	gpu = world_open(0);
	WAIT_FOR(world_count(gpu) == 1);
	handle = world_attach(gpu, w->program[0]);
	WAIT_FOR(world_gets_on(gpu, handle));
	close(fd);
}

/* A billion kernels a second are more than can be simulated in one. */
SIM_TEST(who_asks_for_too_much_slows_its_own_device_only)
{
	struct gp_simgpu_hello hello = {.name = "greedy", .device = 1};
	struct gp_gpu *gpu, *other;
	uint32_t handle;
	int fd;

	world_load(w, "1ms", "train");
	fd = gp_simgpu_join(w->path, &hello, NULL);
	assert_int_equal(gp_simgpu_submit(fd, 1, UINT32_MAX, 1, 0), 0);
	gpu = world_open(0);
	other = world_open(1);
	handle = world_attach(other, getpid());
	WAIT_FOR(world_gets_on(other, handle));
	handle = world_attach(gpu, w->program[0]);
	WAIT_FOR(world_gets_on(gpu, handle));
	close(fd);
	WAIT_FOR(world_count(other) == 0);
}

static int become_controller(const struct world *w)
{
	struct gp_simgpu_hello hello = {
		.kind = GP_SIMGPU_HELLO, .version = GP_SIMGPU_VERSION, .role = GP_SIMGPU_CONTROLS};
	struct gp_simgpu_welcome welcome;
	int files[2], fd = gp_simgpu_connect(w->path, &hello, &welcome, files, NULL);

	assert_true(fd >= 0);
	/* What it maps it cannot change. */
	assert_int_equal(write(files[0], "x", 1), -1);
	assert_int_equal(ftruncate(files[0], 0), -1);
	close(files[0]);
	close(files[1]);
	return fd;
}

SIM_TEST(wrong_commands_change_nothing)
{
	static struct gp_simgpu_control m;
	int fd;
	struct gp_gpu *gpu = world_train(w);
	uint32_t handle = world_attach(gpu, w->program[0]);

	m = (struct gp_simgpu_control){.kind = GP_SIMGPU_HOLD, .count = 2, .serial = 1};
	expect_thrown_out(become_controller(w), &m, GP_SIMGPU_CONTROL_BYTES(1)); /* count */
	m.count = 0;
	expect_thrown_out(become_controller(w), &m, GP_SIMGPU_CONTROL_HEAD);
	m.count = UINT32_MAX;
	expect_thrown_out(become_controller(w), &m, sizeof m);
	m.count = 1;
	m.serial = 2;
	expect_thrown_out(become_controller(w), &m, GP_SIMGPU_CONTROL_BYTES(1));
	m.serial = 1;
	m.kind = GP_SIMGPU_DONE;
	expect_thrown_out(become_controller(w), &m, GP_SIMGPU_CONTROL_BYTES(1));
	m.kind = GP_SIMGPU_RESTORE + 1;
	expect_thrown_out(become_controller(w), &m, GP_SIMGPU_CONTROL_BYTES(1));
	/* A place that is none, another's key: nothing happens. */
	m.kind = GP_SIMGPU_HOLD;
	m.count = 3;
	m.target[0] = (struct gp_simgpu_target){.slot = UINT32_MAX, .key = 1};
	m.target[1] = (struct gp_simgpu_target){.slot = 0, .key = 1};
	m.target[2] = (struct gp_simgpu_target){.slot = 5, .key = 0};
	fd = become_controller(w);
	assert_int_equal(send(fd, &m, GP_SIMGPU_CONTROL_BYTES(3), MSG_NOSIGNAL),
			 GP_SIMGPU_CONTROL_BYTES(3));
	WAIT_FOR(((volatile struct gp_simgpu_state *)(uintptr_t)gp_simclient_of(gpu)->state)
			 ->answered[1] == 1);
	assert_false(world_look(gpu, handle).held);
	assert_false(world_look(gpu, handle).under_way);
	close(fd);
}

SIM_TEST(silent_strangers_keep_nobody_out)
{
	enum { SILENT = 200 };
	static int fd[SILENT];

	for (unsigned i = 0; i < SILENT; i++)
		fd[i] = connect_plainly(w);
	assert_int_equal(gp_simgpu_ops.probe(), 2);
	assert_true(is_closed(fd[0])); /* the first had to go */
	for (unsigned i = 0; i < SILENT; i++)
		close(fd[i]);
}
