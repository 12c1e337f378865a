/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread: what it says holds, also where a device refuses, is late or loses count. */
#include "control_world.h"

static void a_policy_that_a_device_refuses_is_not_kept(void **state)
{
	struct json_object *answer;
	struct world w;

	(void)state;
	world_begin(&w, 0, 0); /* cannot hold anybody */
	answer = world_ask(&w, "policy", "{\"policy\":\"edf\"}");
	assert_non_null(json_object_object_get(answer, "error"));
	json_object_put(answer);
	assert_string_equal(gp_roster_policy(w.c.roster), ""); /* a restart would not start */
	assert_string_equal(w.c.policy[0].ops->name, "none");
	answer = world_ask(&w, "policy", "{\"policy\":\"rr\"}");
	assert_null(json_object_object_get(answer, "error"));
	json_object_put(answer);
	assert_string_equal(gp_roster_policy(w.c.roster), "rr");
	assert_string_equal(w.c.policy[0].ops->name, "rr");
	world_end(&w);
}

static bool has_no_task(struct world *w)
{
	return !w->c.procs.first || !w->c.procs.first->ntasks;
}

static bool has_all_tasks(struct world *w)
{
	return w->c.procs.first && w->c.procs.first->ntasks == STILL_MAX;
}

/* More than fit: whoever is not told of one that left must not keep him for ever. */
static void many_tasks_that_come_and_go_at_once_are_all_heard_of(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, STILL_MAX, GP_CAP_HOLD);
	assert_true(world_until(&w, has_all_tasks));
	w.gpu->tasks = 0;
	assert_true(world_until(&w, has_no_task));
	w.gpu->tasks = STILL_MAX;
	assert_true(world_until(&w, has_all_tasks));
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_that_a_device_refuses_is_not_kept),
		cmocka_unit_test(many_tasks_that_come_and_go_at_once_are_all_heard_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
