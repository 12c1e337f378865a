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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_that_a_device_refuses_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
