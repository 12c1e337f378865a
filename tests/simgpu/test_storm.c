/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Controllers hold, release and set slices at random and are killed at random; records put back
 * what they left. Every program ends by itself with all its work, each kernel executed once.
 */
#include "simgpu_world.h"

#include "base/rng.h"

#define PROGRAMS 5
#define ROUNDS   25

static unsigned rounds(void)
{
	const char *soak = getenv("GPREEMPT_SOAK");

	return soak ? ROUNDS * (unsigned)atoi(soak) : ROUNDS;
}

/* Does random actions until it is killed. */
static void rage(const struct world *w, uint64_t seed, int records)
{
	struct gp_gpu *gpu = world_open(0);
	struct gp_action a[PROGRAMS];
	unsigned n = 0;
	struct gp_rng rng;

	gp_rng_init(&rng, seed, 1);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		struct gp_seen seen;
		struct gp_undo undo;

		if (gp_gpu_find(gpu, w->program[i], &seen, NULL) ||
		    gp_gpu_attach(gpu, seen.key, &a[n].handle))
			continue;
		if (gp_gpu_undo_record(gpu, a[n].handle, &undo) ||
		    write(records, &undo, sizeof undo) != sizeof undo)
			_exit(1);
		n++;
	}
	while (n) {
		unsigned first = (unsigned)gp_rng_below(&rng, n);
		unsigned count = 1 + (unsigned)gp_rng_below(&rng, n - first);

		a[first].slice_us =
			gp_rng_below(&rng, 3) ? 1 + (uint32_t)gp_rng_below(&rng, 5000) : 0;
		switch (gp_rng_below(&rng, 3)) {
		case 0: gp_gpu_hold(gpu, now(), &a[first], count); break;
		case 1: gp_gpu_release(gpu, now(), &a[first], count); break;
		default: gp_gpu_set_slice(gpu, now(), &a[first], 1); break;
		}
		usleep((useconds_t)gp_rng_below(&rng, 3000));
	}
	pause();
}

/* One that is killed somewhere; then its records are replayed. */
static void one_round(const struct world *w, uint64_t seed)
{
	struct gp_undo undo;
	struct gp_rng rng;
	int records[2];
	pid_t pid;

	gp_rng_init(&rng, seed, 0);
	assert_int_equal(pipe(records), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(records[0]);
		rage(w, seed, records[1]);
	}
	close(records[1]);
	usleep(1000 + (useconds_t)gp_rng_below(&rng, 60000));
	world_kill(&pid, SIGKILL);
	while (read(records[0], &undo, sizeof undo) == sizeof undo) {
		int r = gp_backend_undo(&gp_simgpu_ops, &undo, NULL);

		assert_true(r == 0 || r == -ESRCH);
	}
	close(records[0]);
}

static void all_work_is_done_whatever_happens(const char *model)
{
	struct world w;

	world_begin(&w, model, "events");
	for (unsigned i = 0; i < PROGRAMS; i++) {
		static const char *const argv[] = {GPREEMPT,    "simload", "--kernel", "700us",
						   "--kernels", "3",       NULL};

		w.program[w.nprograms++] = world_spawn(argv);
	}
	for (unsigned i = 0; i < rounds(); i++)
		one_round(&w, i + 1);
	/* Each of them runs, and can still do something. */
	for (unsigned i = 0; i < PROGRAMS; i++) {
		struct gp_gpu *gpu = world_open(0);
		uint32_t handle = world_attach(gpu, w.program[i]);

		assert_false(world_look(gpu, handle).held);
		assert_false(world_look(gpu, handle).under_way);
		assert_int_equal(world_look(gpu, handle).slice_us, 0);
		WAIT_FOR(world_look(gpu, handle).active);
		world_close(gpu);
	}
	for (unsigned i = 0; i < PROGRAMS; i++) {
		int status;

		kill(w.program[i], SIGTERM);
		assert_int_equal(waitpid(w.program[i], &status, 0), w.program[i]);
		w.program[i] = 0;
		assert_true(WIFEXITED(status) && !WEXITSTATUS(status)); /* 1: work was lost */
	}
	assert_int_equal(kill(w.server, 0), 0);
	world_end(&w);
}

TEST(on_a_device_with_slices)
{
	all_work_is_done_whatever_happens("h200");
}

TEST(on_a_device_that_saves_waves)
{
	all_work_is_done_whatever_happens("mi300x");
}
