/* SPDX-License-Identifier: Apache-2.0 */
/* Activity of processes, with an emulated NVML and without one. */
#include <sys/syscall.h>

#include "gpu_world.h"

#define WITHOUT_NVML "/nonexistent/libnvidia-ml.so"

#define HOUR_S       3600

static _Atomic time_t wall_back_s;

/* The wall clock of this process can be set back. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, id, t);

	if (!r && id == CLOCK_REALTIME)
		t->tv_sec -= wall_back_s;
	return r;
}

static bool is_known_to_be(struct gpu_world *w, uint32_t handle, bool active)
{
	struct gp_observation o = gw_look(w, handle);

	return (o.known & GP_KNOWN_ACTIVE) && o.active == active;
}

GPU_TEST(a_busy_process_is_active_and_an_idle_one_known_to_be_idle)
{
	struct gp_observation o;
	uint32_t busy_handle, idle_handle;
	struct emu_load *busy = gw_load(w, "--kernel-us", "500", "--period-us", "1000");
	struct emu_load *idle = gw_load(w, "--idle");

	gw_open(w);
	assert_true(w->gpu->info.caps & GP_CAP_ACTIVITY);
	assert_true(w->gpu->info.sample_period_ns > 0);
	busy_handle = gw_attach(w, busy->pid);
	idle_handle = gw_attach(w, idle->pid);
	TEST_WAIT(is_known_to_be(w, busy_handle, true));
	TEST_WAIT(is_known_to_be(w, idle_handle, false));
	TEST_WAIT(gw_look(w, busy_handle).run_ns > 0);
	o = gw_look(w, busy_handle);
	assert_true(o.known & GP_KNOWN_RUN);
	assert_int_equal(o.run_source, GP_RUN_MEASURED);
	assert_true(o.run_at_ns <= gw_now());
	assert_int_equal(gw_look(w, idle_handle).run_ns, 0);
}

GPU_TEST(run_time_grows_with_the_work_and_never_falls)
{
	uint64_t last_ns = 0, begin_ns, true_ns;
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	TEST_WAIT(gw_look(w, handle).run_ns > 0);
	begin_ns = gw_look(w, handle).run_ns;
	true_ns = gw_run_ns(w, load->pid);
	for (int i = 0; i < 100; i++) {
		uint64_t run_ns = gw_look(w, handle).run_ns;

		assert_true(run_ns >= last_ns);
		last_ns = run_ns;
		usleep(10000);
	}
	true_ns = gw_run_ns(w, load->pid) - true_ns;
	/* Its windows begin and end elsewhere: half as much is close enough for a second. */
	assert_in_range(last_ns - begin_ns, true_ns / 2, true_ns * 3 / 2);
}

GPU_TEST(activity_is_known_after_the_wall_clock_was_set_back)
{
	uint64_t run_ns;
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	TEST_WAIT(gw_look(w, handle).run_ns > 0);
	wall_back_s = HOUR_S;
	assert_int_equal(emu_control(&w->emu, "clock_back %ds", HOUR_S), 0);
	run_ns = gw_look(w, handle).run_ns;
	TEST_WAIT(gw_look(w, handle).run_ns > run_ns + GP_NS_PER_S);
	assert_true(is_known_to_be(w, handle, true));
	wall_back_s = 0; /* and forward again */
	assert_int_equal(emu_control(&w->emu, "clock_back 0"), 0);
	run_ns = gw_look(w, handle).run_ns;
	TEST_WAIT(gw_look(w, handle).run_ns > run_ns + GP_NS_PER_S);
	assert_true(is_known_to_be(w, handle, true));
}

GPU_TEST(nothing_is_said_of_the_activity_of_a_held_task)
{
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);

	TEST_WAIT(is_known_to_be(w, handle, true));
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	for (int i = 0; i < 50; i++) {
		assert_false(gw_look(w, handle).known & GP_KNOWN_ACTIVE);
		usleep(10000);
	}
	assert_false(gw_act(w, GW_RELEASE, handle, 0).held);
	TEST_WAIT(is_known_to_be(w, handle, true));
}

GPU_TEST(without_nvml_everything_but_activity_works)
{
	struct gp_observation o;
	uint32_t handle;
	struct emu_load *load;

	setenv("GPREEMPT_NVML", WITHOUT_NVML, 1);
	load = gw_load(w);
	handle = gw_attach(w, load->pid);
	assert_int_equal(gw_act(w, GW_SLICE, handle, 1).slice_us, 1);
	assert_true(gw_act(w, GW_HOLD, handle, 0).held);
	assert_false(gw_act(w, GW_RELEASE, handle, 0).held);
	if (!(w->gpu->info.caps & GP_CAP_ACTIVITY)) {
		o = gw_look(w, handle);
		assert_false(o.known & (GP_KNOWN_ACTIVE | GP_KNOWN_RUN));
	}
	assert_true(w->gpu->info.name[0]);
	gw_close(w);
	assert_int_equal(emu_group_sum(&w->emu, load->pid, "slice_us"), 2048);
	assert_int_equal(emu_load_stop(load), 0);
}
