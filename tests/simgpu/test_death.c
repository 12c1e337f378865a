/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths: a held task stays held until its record is replayed, and a device without its server
 * reports that at once. */
#include "simgpu_world.h"

#include <sys/un.h>

#include "hold/replay.h"
#include "undo/undo.h"

/* Another process holds the program and sets a tiny slice, writes the record, and is killed. */
static void hold_and_die(pid_t program, struct gp_undo *undo)
{
	int done[2], status;
	pid_t pid;

	assert_int_equal(pipe(done), 0);
	pid = fork();
	if (!pid) {
		struct gp_gpu *gpu = world_open(0);
		uint32_t handle = world_attach(gpu, program);

		if (gp_gpu_undo_record(gpu, handle, undo))
			_exit(1);
		world_act(gpu, handle, GP_SIMGPU_HOLD, 0);
		world_act(gpu, handle, GP_SIMGPU_SLICE, 1);
		if (write(done[1], undo, sizeof *undo) == sizeof *undo)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(read(done[0], undo, sizeof *undo), sizeof *undo);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	close(done[0]);
	close(done[1]);
}

SIM_TEST(what_a_dead_controller_held_stays_held_until_its_record)
{
	struct gp_undo undo, other;
	struct gp_gpu *gpu;
	uint32_t handle;

	world_load(w, "10ms", "train");
	hold_and_die(w->program[0], &undo);
	gpu = world_open(0);
	handle = world_attach(gpu, w->program[0]);
	assert_true(world_look(gpu, handle).held);
	assert_int_equal(world_look(gpu, handle).slice_us, 1);
	assert_false(world_gets_on(gpu, handle));

	other = undo;
	other.key++;
	assert_int_equal(gp_backend_undo(&gp_simgpu_ops, &other, NULL), -ESRCH);
	assert_true(world_look(gpu, handle).held);
	other = undo;
	other.size--;
	assert_int_equal(gp_backend_undo(&gp_simgpu_ops, &other, NULL), -EINVAL);

	assert_int_equal(undo.pid, w->program[0]);
	assert_int_equal(gp_backend_undo(&gp_simgpu_ops, &undo, NULL), 0);
	assert_false(world_look(gpu, handle).held);
	assert_int_equal(world_look(gpu, handle).slice_us, 0);
	WAIT_FOR(world_gets_on(gpu, handle));
	assert_int_equal(gp_backend_undo(&gp_simgpu_ops, &undo, NULL), 0); /* and again */
}

SIM_TEST(the_next_scheduler_replays_the_record_also_where_sim_is_not_selected)
{
	struct gp_undo_file *file;
	struct gp_undo undo;
	struct gp_gpu *gpu;
	uint32_t handle;
	pid_t pid;

	world_load(w, "10ms", "train");
	hold_and_die(w->program[0], &undo);
	assert_int_equal(gp_undo_open(&file, true, NULL), 0);
	pid = fork(); /* the owner of the record, dead by then */
	if (!pid)
		_exit(gp_undo_put(file, "sim", &undo) < 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	unsetenv("GPREEMPT_GPU");
	gpu = world_open(0);
	handle = world_attach(gpu, w->program[0]);
	assert_true(world_look(gpu, handle).held);
	gp_records_replay_dead(file);
	assert_false(world_look(gpu, handle).held);
	world_close(gpu);
	gp_undo_close(file);
}

SIM_TEST(release_process_needs_no_record)
{
	struct gp_undo undo;
	struct gp_gpu *gpu;
	uint32_t handle;

	world_load(w, "10ms", "train");
	hold_and_die(w->program[0], &undo);
	assert_int_equal(gp_backend_release_process(&gp_simgpu_ops, getpid(), NULL, NULL), -ENODEV);
	assert_int_equal(gp_backend_release_process(&gp_simgpu_ops, w->program[0], NULL, NULL), 1);
	gpu = world_open(0);
	handle = world_attach(gpu, w->program[0]);
	assert_false(world_look(gpu, handle).held);
	assert_int_equal(world_look(gpu, handle).slice_us, 0);
}

/* All packets of a dead controller come before those of the undoing process. */
SIM_TEST(a_record_is_not_overtaken_by_what_the_dead_had_said)
{
	struct gp_undo undo;
	struct gp_gpu *gpu;
	uint32_t handle;
	int done[2], status;

	world_load(w, "10ms", "train");
	assert_int_equal(pipe(done), 0);
	for (unsigned i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (!pid) {
			struct gp_action a;

			gpu = world_open(0);
			a = (struct gp_action){.handle = world_attach(gpu, w->program[0])};
			if (gp_gpu_undo_record(gpu, a.handle, &undo))
				_exit(1);
			for (unsigned k = 0; k < 50; k++)
				gp_gpu_hold(gpu, now(), &a, 1);
			if (write(done[1], &undo, sizeof undo) == sizeof undo)
				kill(getpid(), SIGKILL);
			_exit(1);
		}
		assert_int_equal(read(done[0], &undo, sizeof undo), sizeof undo);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(gp_backend_undo(&gp_simgpu_ops, &undo, NULL), 0);
		gpu = world_open(0);
		handle = world_attach(gpu, w->program[0]);
		assert_false(world_look(gpu, handle).under_way);
		assert_false(world_look(gpu, handle).held);
		world_close(gpu);
	}
	close(done[0]);
	close(done[1]);
}

SIM_TEST(a_lost_server_is_a_lost_gpu)
{
	struct gp_observation o = {0};
	struct gp_action a = {0};
	struct gp_error err = {0};
	struct gp_seen seen;
	struct gp_undo undo;
	struct gp_gpu *gpu = world_train(w);

	a.handle = o.handle = world_attach(gpu, w->program[0]);
	assert_int_equal(gp_gpu_undo_record(gpu, a.handle, &undo), 0);
	world_act(gpu, a.handle, GP_SIMGPU_HOLD, 0);
	world_kill(&w->server, SIGKILL);
	assert_int_equal(gp_gpu_observe(gpu, now(), &o, 1), -EIO);
	assert_int_equal(gp_gpu_scan(gpu, now(), &seen, 1), 0);
	assert_int_equal(gp_gpu_hold(gpu, now(), &a, 1), 0);
	assert_int_equal(a.status, -EIO);
	assert_int_equal(gp_gpu_find(gpu, w->program[0], &seen, &err), -EIO);
	err = (struct gp_error){0};
	gp_gpu_why(gpu, a.handle, &err);
	assert_non_null(strstr(err.text, "is gone"));
	assert_int_equal(gp_simgpu_ops.probe(), 0); /* no device */
	/* What it held is gone with it. */
	assert_int_equal(gp_backend_undo(&gp_simgpu_ops, &undo, NULL), -ESRCH);
	gp_gpu_detach(gpu, a.handle);
	world_close(gpu);

	/* A new server has no state of the old one. */
	world_start_server(w, "h200", "events", "1");
	assert_int_equal(gp_backend_undo(&gp_simgpu_ops, &undo, NULL), -ESRCH);
	gpu = world_open(0);
	assert_int_equal(world_count(gpu), 0);
}

static void scan_until(struct gp_gpu *gpu, bool gone, uint64_t limit_ns)
{
	uint64_t until_ns = now() + limit_ns, slowest_ns = 0;
	struct gp_seen seen;

	do {
		uint64_t from_ns = now();

		gp_gpu_scan(gpu, now(), &seen, 1);
		slowest_ns = now() - from_ns > slowest_ns ? now() - from_ns : slowest_ns;
		usleep(20000);
	} while (now() < until_ns && gp_gpu_is_gone(gpu) != gone);
	assert_in_range(slowest_ns, 0, 1500 * GP_NS_PER_MS);
}

/* The scans are those of a device thread, which must not wait. */
SIM_TEST(a_new_server_that_does_not_answer_delays_no_scan)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct gp_gpu *gpu = world_train(w);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	world_kill(&w->server, SIGKILL);
	scan_until(gpu, true, 5 * GP_NS_PER_S);
	assert_true(gp_gpu_is_gone(gpu));
	unlink(w->path);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", w->path);
	assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof address), errno);
	assert_return_code(listen(fd, 8), errno);
	scan_until(gpu, false, 5 * GP_NS_PER_S);
	assert_true(gp_gpu_is_gone(gpu));
	close(fd);
	unlink(w->path);
	world_start_server(w, "h200", "events", "1");
	scan_until(gpu, false, PATIENCE_NS);
	assert_false(gp_gpu_is_gone(gpu));
	world_close(gpu);
}

SIM_TEST(a_program_whose_gpu_is_gone_says_so)
{
	int status;

	world_load(w, "10ms", "train");
	world_kill(&w->server, SIGKILL);
	assert_int_equal(waitpid(w->program[0], &status, 0), w->program[0]);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	w->program[0] = 0;
}

SIM_TEST(a_held_program_that_dies_leaves_nothing)
{
	struct gp_action a = {0};
	struct gp_undo undo;
	struct gp_gpu *gpu;

	world_load(w, "10ms", "train");
	world_load(w, "10ms", "other");
	gpu = world_open(0);
	a.handle = world_attach(gpu, w->program[0]);
	assert_int_equal(gp_gpu_undo_record(gpu, a.handle, &undo), 0);
	world_act(gpu, a.handle, GP_SIMGPU_HOLD, 0);
	world_kill(&w->program[0], SIGKILL);
	WAIT_FOR(world_count(gpu) == 1);
	assert_int_equal(world_look(gpu, a.handle).known, 0);
	assert_int_equal(world_look(gpu, a.handle).failed, -ESRCH);
	/* Its requests end, and no other task changes. */
	assert_int_equal(gp_gpu_release(gpu, now(), &a, 1), 0);
	WAIT_FOR(!world_look(gpu, a.handle).under_way);
	assert_int_equal(gp_backend_undo(&gp_simgpu_ops, &undo, NULL), -ESRCH);
	gp_gpu_detach(gpu, a.handle);
	a.handle = world_attach(gpu, w->program[1]);
	assert_false(world_look(gpu, a.handle).held);
	WAIT_FOR(world_gets_on(gpu, a.handle));
}
