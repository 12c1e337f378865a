/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask/ask.h"

#include <errno.h>
#include <unistd.h>

#include "base/process.h"
#include "cli/cli.h"

struct gp_client *gp_ask_if_there(void)
{
	struct gp_client *client = NULL;
	struct gp_error err = {0};
	int r = gp_client_connect_within(NULL, GP_ASK_SHORT_MS, &client, &err);

	if (!r)
		gp_client_set_timeout(client, GP_CLIENT_TIMEOUT_MS);
	if (r && r != -ECONNREFUSED)
		fprintf(stderr, "gpreempt: %s; going on without the daemon\n", err.text);
	return r ? NULL : client;
}

int gp_ask(struct gp_client *client, const char *method, struct json_object *params,
	   struct json_object **result, struct gp_error *err)
{
	return gp_client_call(client, method, params, result, err);
}

int gp_ask_about(struct gp_client *client, const char *method, pid_t pid,
		 struct json_object *params, struct json_object **result, struct gp_error *err)
{
	struct json_object *target = json_object_new_object();
	uint64_t start_time = gp_process_start_time(pid);

	params = params ? params : json_object_new_object();
	json_object_object_add(params, "target", target);
	if (!start_time) {
		json_object_put(params);
		return gp_fail(err, -ESRCH, "there is no process %d", pid);
	}
	if (pid == getpid()) { /* works from every pid namespace */
		json_object_object_add(target, "self", json_object_new_boolean(true));
	} else {
		gp_field_put(target, "pid", (uint64_t)pid);
		gp_field_put(target, "start_time", start_time);
	}
	return gp_client_call(client, method, params, result, err);
}

int gp_ask_devices(struct gp_client *client, struct json_object **devices, struct gp_error *err)
{
	struct json_object *answer;
	int r = gp_ask(client, "devices", NULL, &answer, err);

	if (r)
		return r;
	*devices = json_object_get(gp_field(answer, "devices"));
	json_object_put(answer);
	if (!json_object_is_type(*devices, json_type_array)) {
		json_object_put(*devices);
		return gp_fail(
			err, -EPROTO,
			"the daemon's answer has no devices; restart gpreemptd if it is older than "
			"this program");
	}
	return 0;
}

static int add_tasks(struct gp_client *client, uint64_t device, pid_t pid,
		     struct json_object *tasks, struct gp_error *err)
{
	struct json_object *params = json_object_new_object(), *answer;
	int r;

	gp_field_put(params, "device", device);
	if (pid)
		gp_field_put(params, "pid", (uint64_t)pid);
	r = gp_ask(client, "tasks", params, &answer, err);
	if (r)
		return r;
	for (size_t i = 0; i < gp_field_count(answer, "tasks"); i++)
		json_object_array_add(tasks, json_object_get(json_object_array_get_idx(
						     gp_field(answer, "tasks"), i)));
	json_object_put(answer);
	return 0;
}

int gp_ask_tasks(struct gp_client *client, struct json_object *devices, pid_t pid,
		 struct json_object **tasks, struct gp_error *err)
{
	int r = 0;

	*tasks = json_object_new_array();
	for (size_t i = 0; i < json_object_array_length(devices) && !r; i++) {
		struct json_object *device = json_object_array_get_idx(devices, i);

		r = add_tasks(client, gp_field_number_or(device, "device", i), pid, *tasks, err);
	}
	if (r)
		json_object_put(*tasks);
	return r;
}
