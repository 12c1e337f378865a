/* SPDX-License-Identifier: Apache-2.0 */
#include "targets.h"

int ask_target(struct gp_client *client, struct json_object *target, struct json_object **result,
	       struct gp_error *err)
{
	struct json_object *params = json_object_new_object();

	*err = (struct gp_error){0};
	if (target)
		json_object_object_add(params, "target", target);
	return gp_client_call(client, "target", params, result, err);
}

struct json_object *by_pid(pid_t pid, uint64_t start_time)
{
	struct json_object *target = json_object_new_object();

	json_object_object_add(target, "pid", json_object_new_int(pid));
	if (start_time)
		json_object_object_add(target, "start_time", json_object_new_uint64(start_time));
	return target;
}

void assert_taken(struct gp_client *client, struct json_object *target, pid_t pid)
{
	struct json_object *result;
	struct gp_error err;

	if (ask_target(client, target, &result, &err))
		fail_msg("%s", err.text);
	assert_int_equal(number(result, "pid"), pid);
	assert_int_equal(number(result, "start_time"), gp_process_start_time(pid));
	json_object_put(result);
}

void assert_refused(struct gp_client *client, struct json_object *target, int code,
		    const char *words)
{
	struct gp_error err;

	assert_int_equal(ask_target(client, target, NULL, &err), code);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
}
