/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver says that an object does not exist, and it does: once, or for a while, at any moment
 * of a search. No channel stays disabled that is said to be released, and none runs that is said to
 * be held.
 */
#include "gpu_world.h"

#include "support/process.h"

#define MOMENTS 60 /* questions before the first wrong answer */
#define STEP    7

/* A process that is left held by a scheduler that has ended. */
struct left {
	struct emu_load *load;
	struct gp_undo undo;
};

static void hold_and_leave(struct gpu_world *w, struct left *left)
{
	struct test_child child;
	uint32_t handle;

	if (test_fork(&child)) {
		handle = gw_attach(w, left->load->pid);
		gp_gpu_undo_record(w->gpu, handle, &left->undo);
		gw_act(w, GW_HOLD, handle, 0);
		_exit(write(STDOUT_FILENO, &left->undo, sizeof left->undo) != sizeof left->undo);
	}
	assert_int_equal(read(child.from, &left->undo, sizeof left->undo), sizeof left->undo);
	test_child_end(&child);
}

static int undo(const struct left *left)
{
	return gp_backend_undo(&gp_nvidia_ops, &left->undo, NULL);
}

static int release(const struct left *left)
{
	int r = gp_backend_release_process(&gp_nvidia_ops, left->load->pid, NULL, NULL);

	return r < 0 ? r : 0;
}

/* What says that all is released has released all. */
static void releases_all(struct gpu_world *w, struct left *left, int (*act)(const struct left *),
			 const char *fault)
{
	int r;

	hold_and_leave(w, left);
	assert_true(emu_disabled(&w->emu, left->load->pid));
	emu_control(&w->emu, "%s", fault);
	r = act(left);
	emu_control(&w->emu, "clear_faults");
	if (!r && emu_disabled(&w->emu, left->load->pid))
		fail_msg("%s %s: %u channels stayed disabled", act == undo ? "undo" : "release",
			 fault, emu_disabled(&w->emu, left->load->pid));
	assert_int_equal(act(left), 0);
	assert_int_equal(emu_disabled(&w->emu, left->load->pid), 0);
}

static void releases_all_at_any_moment(struct gpu_world *w, const char *contexts, unsigned times)
{
	static const unsigned status[] = {0x57, 0x33, 0x23};
	struct left left = {.load = gw_load(w, "--contexts", contexts)};
	char fault[64];

	for (unsigned after = 0; after < MOMENTS; after += STEP) {
		snprintf(fault, sizeof fault, "fault handle_info 0x%x %u after %u",
			 status[after / STEP % 3], times, after);
		releases_all(w, &left, undo, fault);
		releases_all(w, &left, release, fault);
	}
	for (unsigned after = 0; after < 6; after++) {
		snprintf(fault, sizeof fault, "fault child_handle 0x57 %u after %u", times, after);
		releases_all(w, &left, undo, fault);
		releases_all(w, &left, release, fault);
	}
}

GPU_TEST(one_denial_during_an_undo_leaves_no_channel_disabled)
{
	releases_all_at_any_moment(w, "1", 1);
}

GPU_TEST(one_denial_during_an_undo_leaves_no_group_disabled)
{
	releases_all_at_any_moment(w, "2", 1);
}

GPU_TEST(many_denials_during_an_undo_leave_nothing_disabled)
{
	releases_all_at_any_moment(w, "2", 8);
	releases_all_at_any_moment(w, "2", 100);
}

/* The rest of the driver is honest: that the groups exist is known. */
GPU_TEST(an_undo_fails_while_the_driver_denies_everything)
{
	struct left left = {.load = gw_load(w, "--contexts", "2")};

	hold_and_leave(w, &left);
	emu_control(&w->emu, "fault handle_info 0x57 1000000 after 40");
	if (!undo(&left))
		assert_int_equal(emu_disabled(&w->emu, left.load->pid), 0);
	emu_control(&w->emu, "clear_faults");
	emu_control(&w->emu, "fault handle_info 0x57 1000000");
	assert_int_equal(undo(&left), -EIO);
	emu_control(&w->emu, "clear_faults");
	assert_int_equal(undo(&left), 0);
	assert_int_equal(emu_disabled(&w->emu, left.load->pid), 0);
}

/* Records of earlier versions have none. */
GPU_TEST(a_record_without_numbers_of_channels_is_replayed)
{
	struct left left = {.load = gw_load(w)};

	hold_and_leave(w, &left);
	left.undo.size = 220;
	assert_int_equal(undo(&left), 0);
	assert_int_equal(emu_disabled(&w->emu, left.load->pid), 0);
}

/* A task that is held has no channel that can run. */
static void holds_all(struct gpu_world *w, const char *contexts, const char *fault, unsigned times,
		      unsigned after)
{
	struct emu_load *load = gw_load(w, "--contexts", contexts);
	struct gp_observation o;
	uint32_t handle;
	uint32_t off;

	gw_open(w);
	emu_control(&w->emu, "fault %s %u after %u", fault, times, after);
	handle = gw_attach(w, load->pid);
	o = gw_act(w, GW_HOLD, handle, 0);
	off = emu_disabled(&w->emu, load->pid);
	if (o.held && !o.unsure && off != 8u * (unsigned)atoi(contexts))
		fail_msg("%s %u after %u: held, and %u channels are disabled", fault, times, after,
			 off);
	emu_control(&w->emu, "clear_faults");
	gw_close(w);
	emu_load_kill(load);
	w->nloads--;
}

GPU_TEST(one_denial_before_a_hold_hides_no_channel)
{
	static const char *const fault[] = {"handle_info 0x57", "handle_info 0x23",
					    "child_handle 0x57", "get_info 0x57"};

	for (unsigned after = 0; after < MOMENTS; after += STEP)
		for (unsigned i = 0; i < 4; i++)
			holds_all(w, i % 2 ? "1" : "2", fault[i], 1, i == 2 ? after / 8 : after);
}

GPU_TEST(many_denials_before_a_hold_hide_no_channel)
{
	for (unsigned after = 5; after < 2 * MOMENTS; after += STEP)
		holds_all(w, "2", "handle_info 0x57", after % 2 ? 100 : 150, after);
}

/* Two questions about two handles, also if RM does not count the channels of a group. RM is asked
 * five questions for each channel of the emulated program. */
GPU_TEST(two_questions_without_an_answer_before_a_hold_hide_no_channel)
{
	emu_control(&w->emu, "unsupported group_ids");
	for (unsigned after = 5; after < MOMENTS; after++) {
		emu_control(&w->emu, "errno handle_info 24 1 after %u", after);
		holds_all(w, "1", "handle_info 0x65", 1, after + 5);
		emu_control(&w->emu, "unsupported group_ids"); /* holds_all has cleared it */
	}
}

/* Handles that are not counted upwards: RM names the first channel only. It also says how many
 * there are, except drivers that lack that call. */
GPU_TEST(a_hold_reaches_channels_that_the_search_did_not_find)
{
	static const char *const fault[] = {"", "unsupported group_ids",
					    "fault group_ids 0x65 1000000"};
	struct emu_load *load = gw_load(w, "--handles", "random");
	uint32_t handle;

	for (unsigned i = 0; i < 3; i++) {
		if (*fault[i])
			emu_control(&w->emu, "%s", fault[i]);
		handle = gw_attach(w, load->pid);
		assert_true(gw_act(w, GW_HOLD, handle, 0).held);
		assert_int_equal(emu_disabled(&w->emu, load->pid), 8);
		assert_false(gw_act(w, GW_RELEASE, handle, 0).held);
		assert_int_equal(emu_disabled(&w->emu, load->pid), 0);
		gw_close(w);
		emu_control(&w->emu, "clear_faults");
	}
}
