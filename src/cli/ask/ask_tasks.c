/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's part of gpreempt ps and gpreempt stats. */
#include "cli/ask/ask.h"
#include "cli/ask/run_times.h"
#include "cli/ask/with_daemon.h"
#include "cli/cli.h"

static int ask_all(struct gp_client *client, uint64_t for_ns, bool counters,
		   struct json_object **answer, struct gp_error *err)
{
	struct json_object *devices, *tasks;
	int r = gp_ask_devices(client, &devices, err);

	if (r)
		return r;
	r = gp_ran_ask(client, devices, for_ns, &tasks, err);
	if (!r && counters) {
		r = gp_ask(client, "stats", NULL, answer, err);
	} else if (!r) {
		*answer = json_object_new_object();
		json_object_object_add(*answer, "devices", json_object_get(devices));
	}
	if (!r)
		json_object_object_add(*answer, "tasks", json_object_get(tasks));
	json_object_put(tasks);
	json_object_put(devices);
	return r;
}

bool gp_daemon_tasks(uint64_t for_ns, bool counters, struct json_object **answer, int *exit)
{
	struct gp_client *client = gp_ask_if_there();
	struct gp_error err = {0};

	*answer = NULL;
	if (!client)
		return false;
	*exit = ask_all(client, for_ns, counters, answer, &err) ? gp_cli_fail(&err) : GP_EXIT_DONE;
	gp_client_close(client);
	return true;
}
