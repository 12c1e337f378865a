/* SPDX-License-Identifier: Apache-2.0 */
/* A user's file named nvidiactl, on a file system that never answers, delays no other process. */
#include <poll.h>

#include "hand_made.h"

struct stuck_world {
	struct gpu_world gpu_world;
	struct emu_load *load;
	struct test_child server;
	pid_t holder;
	char control[64]; /* the name of the control file in this test */
};

static bool read_line(int fd, char *out, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && read(fd, out + n, 1) == 1 && out[n] != '\n')
		n++;
	out[n] = 0;
	return n > 0;
}

static void start_stuck(struct stuck_world *w, const char *mode)
{
	const char *const words[] = {STUCK_FILE, mode, NULL};
	char line[64] = "";

	test_spawn(&w->server, words);
	read_line(w->server.from, line, sizeof line);
	if (sscanf(line, "ready %d", &w->holder) != 1)
		fail_msg("stuck-file: '%s'", line);
}

/* Ends every question first: a back end that waits for an answer could not be closed. */
static void stop_stuck(struct stuck_world *w)
{
	if (!w->server.pid)
		return;
	close(w->server.to);
	waitpid(w->server.pid, NULL, 0);
	close(w->server.from);
}

/* Whether any process asked the file system a question about the file. */
static bool was_asked(struct stuck_world *w)
{
	struct pollfd p = {.fd = w->server.from, .events = POLLIN};

	return poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}

/* Gives the control file a name of its own, which daemons of other tests do not look for. */
static int rename_control(struct stuck_world *w)
{
	int fd;

	snprintf(w->control, sizeof w->control, "/tmp/stuckctl.%d", getpid());
	fd = open(w->control, O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	setenv("GPREEMPT_NVIDIACTL", w->control, 1);
	return fd < 0 ? -1 : mount(w->gpu_world.emu.ctl, w->control, NULL, MS_BIND, NULL);
}

static int set_up(void **state)
{
	struct stuck_world *w = calloc(1, sizeof *w);

	*state = w;
	if (!w || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    emu_start(&w->gpu_world.emu, NULL) || rename_control(w))
		return -1;
	w->load = gw_load(&w->gpu_world);
	return 0;
}

static int tear_down(void **state)
{
	struct stuck_world *w = *state;
	int r;

	stop_stuck(w);
	emu_load_kill(w->load);
	gw_close(&w->gpu_world);
	umount2(w->control, MNT_DETACH);
	unlink(w->control);
	r = emu_stop(&w->gpu_world.emu);
	free(w);
	return r;
}

#define STUCK_TEST(f) TEST_IN(struct stuck_world, f, set_up, tear_down)

static void holds_and_releases(struct stuck_world *w, uint32_t handle, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		assert_true(gw_act(&w->gpu_world, GW_HOLD, handle, 0).held);
		assert_int_equal(emu_groups_held(&w->gpu_world.emu, w->load->pid), 1);
		assert_false(gw_act(&w->gpu_world, GW_RELEASE, handle, 0).held);
		assert_int_equal(emu_groups_held(&w->gpu_world.emu, w->load->pid), 0);
	}
}

STUCK_TEST(a_process_with_a_stuck_file_delays_no_hold)
{
	start_stuck(w, "open");
	gw_open(&w->gpu_world);
	TEST_WAIT(
		gw_sees(&w->gpu_world, w->load->pid, NULL)); /* after a sweep over all processes */
	holds_and_releases(w, gw_attach(&w->gpu_world, w->load->pid), 3);
	assert_int_equal(gp_gpu_find(w->gpu_world.gpu, w->holder, &(struct gp_seen){0}, NULL),
			 -ENODEV);
	assert_false(was_asked(w));
}

STUCK_TEST(a_process_that_replaces_its_control_file_delays_no_hold)
{
	uint32_t handle;

	start_stuck(w, "replace");
	gw_open(&w->gpu_world);
	handle = gw_attach(&w->gpu_world, w->load->pid);
	/* The back end knows the process and its file. */
	assert_int_equal(gp_gpu_find(w->gpu_world.gpu, w->holder, &(struct gp_seen){0}, NULL),
			 -ENODEV);
	assert_int_equal(write(w->server.to, "x", 1), 1);
	emulator_sleep_ms(50);
	gp_gpu_find(w->gpu_world.gpu, w->holder, &(struct gp_seen){0}, NULL);
	holds_and_releases(w, handle, 3);
	assert_false(was_asked(w));
}

STUCK_TEST(a_process_that_toggles_its_control_file_delays_no_hold)
{
	uint64_t until_ns = gw_now() + 2 * GP_NS_PER_S;
	uint32_t handle;

	start_stuck(w, "toggle");
	gw_open(&w->gpu_world);
	handle = gw_attach(&w->gpu_world, w->load->pid);
	while (gw_now() < until_ns) {
		gp_gpu_find(w->gpu_world.gpu, w->holder, &(struct gp_seen){0}, NULL);
		holds_and_releases(w, handle, 1);
	}
	assert_false(was_asked(w));
}

/* The record of an ended process: its replay looks for a process that inherited the queues. */
STUCK_TEST(a_stuck_file_delays_no_replay)
{
	struct gp_undo undo = {0};
	struct emu_load *ended = gw_load(&w->gpu_world);
	uint32_t handle;

	start_stuck(w, "open");
	gw_open(&w->gpu_world);
	handle = gw_attach(&w->gpu_world, ended->pid);
	TEST_WAIT(gp_gpu_undo_record(w->gpu_world.gpu, handle, &undo) == 0);
	gw_close(&w->gpu_world);
	emu_load_kill(ended);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -ESRCH);
	assert_int_equal(gp_backend_release_process(&gp_nvidia_ops, w->holder, NULL, NULL),
			 -ENODEV);
	assert_false(was_asked(w));
}

STUCK_TEST(a_stuck_file_delays_no_resume_of_all)
{
	const char *program = getenv("GPREEMPT");
	uint32_t handle;
	char command[512], undo[128];

	if (!program)
		skip();
	snprintf(undo, sizeof undo, "/tmp/stuck-undo.%d", getpid());
	snprintf(command, sizeof command,
		 "GPREEMPT_UNDO=%s GPREEMPT_GPU=nvidia timeout -s KILL 20 %s resume --all "
		 "--no-daemon >/dev/null",
		 undo, program);
	start_stuck(w, "open");
	gw_open(&w->gpu_world);
	handle = gw_attach(&w->gpu_world, w->load->pid);
	assert_true(gw_act(&w->gpu_world, GW_HOLD, handle, 0).held);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
	unlink(undo);
	assert_int_equal(emu_groups_held(&w->gpu_world.emu, w->load->pid), 0);
	assert_false(was_asked(w));
}
