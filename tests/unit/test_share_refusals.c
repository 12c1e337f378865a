/* SPDX-License-Identifier: Apache-2.0 */
/* Which guarantees `share` refuses if they exceed 100 %, and when that ends. */
#include "fake_gpu.h"

static uint32_t add_share(struct rig *r, uint32_t permille)
{
	uint32_t handle = rig_add(r, GP_BEST_EFFORT);

	r->attr[handle + 1].share_permille = permille;
	return handle;
}

static bool refused(const struct rig *r, unsigned index)
{
	return rig_task(r, index).refused;
}

static void look_again(struct rig *r)
{
	r->now_ns += 200 * MS; /* the engine has scanned for new and lost tasks */
	rig_step(r);
}

TEST(guarantees_of_the_whole_are_all_given)
{
	struct rig *r = rig_new(4);

	add_share(r, 500);
	add_share(r, 300);
	add_share(r, 200);
	add_share(r, 0);
	rig_start(r, &gp_policy_share);
	assert_int_equal(r->events[GP_EVENT_REFUSED], 0);
	rig_free(r);
}

TEST(the_later_ones_are_refused_and_told_so)
{
	struct rig *r = rig_new(3);

	add_share(r, 600);
	add_share(r, 401);
	add_share(r, 400);
	rig_start(r, &gp_policy_share);
	assert_false(refused(r, 0));
	assert_true(refused(r, 1));
	assert_false(refused(r, 2)); /* the rest is enough for it */
	assert_int_equal(r->events[GP_EVENT_REFUSED], 1);
	assert_int_equal(r->last[GP_EVENT_REFUSED].task, 2);
	rig_free(r);
}

TEST(one_that_was_refused_runs_by_its_weight)
{
	struct rig *r = rig_new(2);

	r->gpu.base.info.caps &= ~(uint32_t)GP_CAP_ACTIVITY; /* so that slices show the part */
	add_share(r, 800);
	add_share(r, 900);
	rig_start(r, &gp_policy_share);
	assert_int_equal(gp_engine_plan(r->engine)->task[0].slice_us, 90000); /* 80 + 20/2 */
	assert_int_equal(gp_engine_plan(r->engine)->task[1].slice_us, 10000);
	rig_free(r);
}

TEST(room_that_becomes_free_is_given_to_the_one_that_was_refused)
{
	struct rig *r = rig_new(2);

	add_share(r, 600);
	add_share(r, 600);
	rig_start(r, &gp_policy_share);
	assert_true(refused(r, 1));
	r->gpu.task[0].present = false;
	look_again(r);
	assert_int_equal(r->events[GP_EVENT_ADMITTED], 1);
	assert_false(refused(r, 0)); /* it is the first now */
	rig_free(r);
}

TEST(a_promise_is_not_taken_back_for_one_that_was_refused_before)
{
	struct rig *r = rig_new(3);

	add_share(r, 500);
	add_share(r, 600);
	add_share(r, 500);
	rig_start(r, &gp_policy_share);
	assert_true(refused(r, 1));
	assert_false(refused(r, 2));
	r->gpu.task[0].present = false;
	look_again(r);
	assert_true(refused(r, 0)); /* the 600 do not fit beside the 500 that were promised */
	assert_false(refused(r, 1));
	rig_free(r);
}

TEST(one_that_asks_for_less_is_admitted)
{
	struct rig *r = rig_new(2);
	struct gp_task_attr attr;

	add_share(r, 700);
	add_share(r, 700);
	rig_start(r, &gp_policy_share);
	attr = rig_task(r, 1).attr;
	attr.share_permille = 300;
	assert_int_equal(gp_engine_set_attr(r->engine, 2, &attr), 0);
	rig_step(r);
	assert_false(refused(r, 1));
	rig_free(r);
}

TEST(a_gang_asks_once)
{
	struct rig *r = rig_new(3);

	for (unsigned i = 0; i < 2; i++)
		r->attr[add_share(r, 600) + 1].gang = 7;
	add_share(r, 500);
	rig_start(r, &gp_policy_share);
	assert_false(refused(r, 0));
	assert_false(refused(r, 1));
	assert_true(refused(r, 2));
	rig_free(r);
}

TEST(a_gang_whose_first_task_leaves_keeps_its_promise)
{
	struct rig *r = rig_new(3);

	r->attr[add_share(r, 600) + 1].gang = 7;
	add_share(r, 600);
	r->attr[add_share(r, 600) + 1].gang = 7;
	rig_start(r, &gp_policy_share);
	assert_true(refused(r, 1));
	r->gpu.task[0].present = false;
	look_again(r);
	assert_true(refused(r, 0)); /* although it came before the rest of the gang */
	assert_false(refused(r, 1));
	rig_free(r);
}

TEST(one_that_is_unmanaged_asks_for_nothing)
{
	struct rig *r = rig_new(2);

	r->attr[rig_add(r, GP_UNMANAGED) + 1].share_permille = 900;
	add_share(r, 900);
	rig_start(r, &gp_policy_share);
	assert_int_equal(r->events[GP_EVENT_REFUSED], 0);
	rig_free(r);
}
