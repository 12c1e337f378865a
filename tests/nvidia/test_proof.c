/* SPDX-License-Identifier: Apache-2.0 */
/* The driver does nothing, and tells nothing of it or tells what agrees: work that is seen tells.
 */
#include "gpu_world.h"

#define ALWAYS 1000000

static struct gp_observation asked(struct gpu_world *w, bool hold, uint32_t handle)
{
	struct gp_action a = {.handle = handle};

	assert_int_equal(gp_gpu_act(w->gpu, gw_now(), hold ? GP_ACT_HOLD : GP_ACT_RELEASE, &a, 1),
			 0);
	TEST_WAIT(!gw_look(w, handle).under_way);
	return gw_look(w, handle);
}

GPU_TEST(a_hold_that_the_driver_confirms_is_disproved_by_work)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 0);
	struct gp_error why = {0};

	emu_control(&w->emu, "ignore disable %d", ALWAYS);
	emu_control(&w->emu, "read_channels disabled");
	assert_int_equal(asked(w, true, a.handle).failed, 0);
	TEST_WAIT(gw_look(w, a.handle).unsure);
	assert_int_equal(gw_look(w, a.handle).failed, -EREMOTEIO);
	gp_gpu_why(w->gpu, a.handle, &why);
	assert_non_null(strstr(why.text, "goes on working"));
	asked(w, true, a.handle);
	TEST_WAIT(gw_look(w, a.handle).unsure); /* the same answer is not believed again */
	emu_control(&w->emu, "clear_faults");
	asked(w, true, a.handle);
	TEST_WAIT(!gw_look(w, a.handle).unsure);
	assert_true(gw_look(w, a.handle).held);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
}

GPU_TEST(a_true_hold_is_never_disproved)
{
	struct emu_load *load = gw_load(w), *other = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 0);

	assert_true(gw_makes_progress(w, other->pid));
	for (int i = 0; i < 3; i++) {
		assert_true(asked(w, true, a.handle).held);
		for (int k = 0; k < 80; k++) {
			assert_false(gw_look(w, a.handle).unsure);
			usleep(10000);
		}
		assert_int_equal(asked(w, false, a.handle).failed, 0);
		usleep(50000);
	}
}

GPU_TEST(without_channel_states_a_hold_waits_for_the_absence_of_work)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a;
	struct gp_observation o;

	assert_int_equal(emu_control(&w->emu, "unsupported channel_state"), 0);
	a = (struct gp_action){.handle = gw_attach(w, load->pid)};
	o = asked(w, true, a.handle);
	assert_true(o.held && o.unproven);
	TEST_WAIT(!gw_look(w, a.handle).unproven);
	assert_true(gw_look(w, a.handle).held);
	assert_false(gw_look(w, a.handle).unsure);
	o = asked(w, false, a.handle);
	assert_true(!o.held && o.unproven && o.evidence == GP_EVIDENCE_ENOUGH);
	TEST_WAIT(!gw_look(w, a.handle).unproven); /* it works */
	assert_false(gw_look(w, a.handle).unsure);
	emu_control(&w->emu, "ignore disable %d", ALWAYS);
	asked(w, true, a.handle);
	TEST_WAIT(gw_look(w, a.handle).unsure);
}

GPU_TEST(without_channel_states_a_release_counts_if_the_process_works)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a;
	struct gp_undo undo = {0};

	assert_int_equal(emu_control(&w->emu, "unsupported channel_state"), 0);
	a = (struct gp_action){.handle = gw_attach(w, load->pid)};
	assert_int_equal(gp_gpu_undo_record(w->gpu, a.handle, &undo), 0);
	asked(w, true, a.handle);
	emu_control(&w->emu, "ignore disable %d", ALWAYS);
	assert_true(asked(w, false, a.handle).unproven);
	TEST_WAIT(gw_look(w, a.handle).unsure);
	assert_int_equal(gw_look(w, a.handle).failed, -ETIME);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), -ETIME);
	assert_int_equal(gp_backend_release_process(&gp_nvidia_ops, load->pid, NULL, NULL), -ETIME);
	emu_control(&w->emu, "clear_faults");
	assert_int_equal(emu_control(&w->emu, "unsupported channel_state"), 0);
	assert_int_equal(gp_backend_undo(&gp_nvidia_ops, &undo, NULL), 0);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 0);
	TEST_WAIT(!gw_look(w, a.handle).unsure); /* it works, so it is released */
}

GPU_TEST(a_confirmed_release_without_work_is_repeated)
{
	struct emu_load *load = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 0);

	usleep(600000); /* its work is seen */
	assert_true(asked(w, true, a.handle).held);
	emu_control(&w->emu, "skip 0xffffffff 2");
	emu_control(&w->emu, "read_channels enabled");
	assert_int_equal(asked(w, false, a.handle).failed, 0);
	assert_int_equal(gw_look(w, a.handle).evidence, GP_EVIDENCE_DRIVER);
	assert_int_equal(emu_groups_held(&w->emu, load->pid), 1);
	assert_true(gw_look(w, a.handle).unfinished);
	TEST_WAIT(!emu_groups_held(&w->emu, load->pid));
	TEST_WAIT(!gw_look(w, a.handle).evidence);
	assert_false(gw_look(w, a.handle).unfinished);
	assert_false(gw_look(w, a.handle).unsure);
}

/* The late effect is that of a second device for the GPU here. */
GPU_TEST(after_a_hold_that_failed_a_late_one_is_expected_for_a_while)
{
	struct gpu_world other = {.emu = w->emu};
	struct emu_load *load = gw_load(w, "--idle");
	struct gp_action a = {.handle = gw_attach(w, load->pid)};

	emu_control(&w->emu, "skip 0xffffffff 2"); /* and the release that gives it up */
	assert_int_equal(asked(w, true, a.handle).failed, -EIO);
	assert_true(gw_look(w, a.handle).unfinished);
	assert_true(gw_act(&other, GW_HOLD, gw_attach(&other, load->pid), 0).held);
	TEST_WAIT(gw_look(w, a.handle).held);
	assert_true(gw_look(w, a.handle).unfinished);
	assert_int_equal(asked(w, false, a.handle).failed, 0);
	assert_true(gw_look(w, a.handle).unfinished);
	TEST_WAIT(!gw_look(w, a.handle).unfinished);
	gw_close(&other);
}

/* What was seen during the hold says nothing about the work before it. */
GPU_TEST(a_confirmed_release_is_no_fact_if_nothing_was_seen_before_the_hold)
{
	struct emu_load *load = gw_load(w, "--idle");
	struct gp_action a = {.handle = gw_attach(w, load->pid)};

	assert_true(asked(w, true, a.handle).held);
	usleep(1500000); /* NVML has samples of this time */
	assert_int_equal(asked(w, false, a.handle).failed, 0);
	assert_int_equal(gw_look(w, a.handle).evidence, GP_EVIDENCE_DRIVER);
	assert_true(asked(w, true, a.handle).held); /* NVML has seen it idle before this hold */
	assert_int_equal(asked(w, false, a.handle).failed, 0);
	assert_int_equal(gw_look(w, a.handle).evidence, GP_EVIDENCE_ENOUGH);
}

/* For commands that did not hold the process. */
GPU_TEST(a_released_process_is_seen_to_work)
{
	struct emu_load *load = gw_load(w), *other = gw_load(w);
	struct gp_action a = gw_settled_action(w, load->pid, 0);
	pid_t pid[] = {load->pid, other->pid, getpid()};
	bool works[3] = {0};

	assert_true(asked(w, true, a.handle).held);
	gp_nvidia_ops.command->see_work(pid, works, 3, 1500 * GP_NS_PER_MS);
	assert_true(!works[0] && works[1] && !works[2]);
	assert_int_equal(asked(w, false, a.handle).failed, 0);
	gp_nvidia_ops.command->see_work(pid, works, 2, 3 * GP_NS_PER_S);
	assert_true(works[0]);
}
