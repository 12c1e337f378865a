/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's part of gpreempt policy: shows or sets the policy in force. */
#include "cli/cli.h"
#include "cli/ask/ask.h"
#include "cli/ask/with_daemon.h"
#include "cli/lib/task_table.h"

/* "qos:period=50", in the form that the option takes. */
static void print_choice(struct json_object *answer)
{
	const char *name = gp_field_text(answer, "policy");
	struct json_object *params = gp_field(answer, "params");

	fputs(name ? name : "?", stdout);
	if (!json_object_is_type(params, json_type_object))
		return;
	json_object_object_foreach(params, key, value)
		printf(":%s=%s", key, json_object_get_string(value));
}

/* A device can have another policy: after `policy --device`, or after an ejection. */
static void print_devices(struct gp_client *client)
{
	struct json_object *devices;

	if (gp_ask_devices(client, &devices, NULL))
		return;
	for (size_t i = 0; i < json_object_array_length(devices); i++) {
		struct json_object *d = json_object_array_get_idx(devices, i);

		fputs("  ", stdout);
		gp_show_device(d);
		putchar('\n');
		gp_show_ejection(d);
	}
	json_object_put(devices);
}

void gp_daemon_show_policy(void)
{
	struct gp_client *client = gp_ask_if_there();
	struct json_object *answer = NULL;

	if (client && !gp_ask(client, "policy", NULL, &answer, NULL)) {
		fputs("\nin force: ", stdout);
		print_choice(answer);
		putchar('\n');
		print_devices(client);
	}
	json_object_put(answer);
	gp_client_close(client);
}

int gp_daemon_policies(char name[][GP_DAEMON_POLICY_SIZE], unsigned max)
{
	struct gp_client *client = gp_ask_if_there();
	struct json_object *answer = NULL, *devices;
	int n = -1;

	if (client && !gp_ask(client, "policy", NULL, &answer, NULL)) {
		devices = gp_field(answer, "devices");
		for (n = 0; json_object_is_type(devices, json_type_array) && n < (int)max &&
			    (size_t)n < json_object_array_length(devices);
		     n++)
			snprintf(name[n], sizeof name[n], "%s",
				 json_object_get_string(
					 json_object_array_get_idx(devices, (size_t)n)));
	}
	json_object_put(answer);
	gp_client_close(client);
	return n;
}

int gp_daemon_set_policy(const char *text, int device, bool json)
{
	struct json_object *params = json_object_new_object(), *answer = NULL;
	struct gp_client *client = NULL;
	struct gp_error err = {0};
	int r = gp_client_connect(NULL, &client, &err);

	json_object_object_add(params, "policy", json_object_new_string(text));
	if (device >= 0)
		gp_field_put(params, "device", (uint64_t)device);
	if (r)
		json_object_put(params);
	else
		r = gp_ask(client, "policy", params, &answer, &err);
	if (!r && json) {
		gp_print_json(answer);
	} else if (!r) {
		fputs("in force: ", stdout);
		print_choice(answer);
		putchar('\n');
	}
	json_object_put(answer);
	gp_client_close(client);
	return r ? gp_cli_fail(&err) : GP_EXIT_DONE;
}
