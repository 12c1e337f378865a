/* SPDX-License-Identifier: Apache-2.0 */
/* Which guarantees `share` refuses if they exceed 100 %, and when that ends. */
#include "fake_gpu.h"

static uint32_t add_share(struct rig *r, uint32_t permille)
{
	uint32_t handle = rig_add(r, GP_BEST_EFFORT);

	r->attr[handle + 1].share_permille = permille;
	return handle;
}

static void start_shares(struct rig *r, const uint32_t *permille, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_share(r, permille[i]);
	rig_start(r, &gp_policy_share);
}

#define START_SHARES(r, ...)                             \
	start_shares(r, (const uint32_t[]){__VA_ARGS__}, \
		     sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static bool refused(const struct rig *r, unsigned index)
{
	return rig_task(r, index).refused;
}

/* The engine scans for new and lost tasks. */
static void scan_again(struct rig *r)
{
	rig_tick(r, 200 * MS);
}

RIG_TEST(guarantees_of_the_whole_are_all_given)
{
	START_SHARES(r, 500, 300, 200, 0);
	assert_int_equal(r->events[GP_EVENT_REFUSED], 0);
}

RIG_TEST(the_later_ones_are_refused_and_told_so)
{
	START_SHARES(r, 600, 401, 400);
	assert_false(refused(r, 0));
	assert_true(refused(r, 1));
	assert_false(refused(r, 2)); /* the rest is enough for it */
	assert_int_equal(r->events[GP_EVENT_REFUSED], 1);
	assert_int_equal(r->last[GP_EVENT_REFUSED].task, 2);
}

RIG_TEST(one_that_was_refused_runs_by_its_weight)
{
	r->gpu.base.info.caps &= ~(uint32_t)GP_CAP_ACTIVITY; /* so that slices show the part */
	START_SHARES(r, 800, 900);
	assert_int_equal(gp_engine_plan(r->engine)->task[0].slice_us, 90000); /* 80 + 20/2 */
	assert_int_equal(gp_engine_plan(r->engine)->task[1].slice_us, 10000);
}

RIG_TEST(room_that_becomes_free_is_given_to_the_one_that_was_refused)
{
	START_SHARES(r, 600, 600);
	assert_true(refused(r, 1));
	r->gpu.task[0].present = false;
	scan_again(r);
	assert_int_equal(r->events[GP_EVENT_ADMITTED], 1);
	assert_false(refused(r, 0)); /* it is the first now */
}

RIG_TEST(a_promise_is_not_taken_back_for_one_that_was_refused_before)
{
	START_SHARES(r, 500, 600, 500);
	assert_true(refused(r, 1));
	assert_false(refused(r, 2));
	r->gpu.task[0].present = false;
	scan_again(r);
	assert_true(refused(r, 0)); /* the 600 do not fit beside the 500 that were promised */
	assert_false(refused(r, 1));
}

RIG_TEST(one_that_asks_for_less_is_admitted)
{
	struct gp_task_attr attr;

	START_SHARES(r, 700, 700);
	attr = rig_task(r, 1).attr;
	attr.share_permille = 300;
	assert_int_equal(gp_engine_set_attr(r->engine, 2, &attr), 0);
	rig_step(r);
	assert_false(refused(r, 1));
}

RIG_TEST(a_gang_asks_once)
{
	for (unsigned i = 0; i < 2; i++)
		r->attr[add_share(r, 600) + 1].gang = 7;
	START_SHARES(r, 500);
	assert_false(refused(r, 0));
	assert_false(refused(r, 1));
	assert_true(refused(r, 2));
}

RIG_TEST(a_gang_whose_first_task_leaves_keeps_its_promise)
{
	r->attr[add_share(r, 600) + 1].gang = 7;
	add_share(r, 600);
	r->attr[add_share(r, 600) + 1].gang = 7;
	rig_start(r, &gp_policy_share);
	assert_true(refused(r, 1));
	r->gpu.task[0].present = false;
	scan_again(r);
	assert_true(refused(r, 0)); /* although it came before the rest of the gang */
	assert_false(refused(r, 1));
}

RIG_TEST(one_that_is_unmanaged_asks_for_nothing)
{
	r->attr[rig_add(r, GP_UNMANAGED) + 1].share_permille = 900;
	START_SHARES(r, 900);
	assert_int_equal(r->events[GP_EVENT_REFUSED], 0);
}
