/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's part of gpreempt policy: shows or sets the policy in force. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/ask/ask.h"
#include "cli/ask/with_daemon.h"
#include "cli/lib/task_table.h"
#include "policy/registry.h"

/* A local time such as "2026-11-16 19:20:03". */
static const char *time_text(uint64_t ns, char *out, size_t size)
{
	time_t seconds = (time_t)(ns / GP_NS_PER_S);
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || !strftime(out, size, "%F %T", &tm))
		snprintf(out, size, "?");
	return out;
}

static void print_source(struct json_object *answer)
{
	const char *source = gp_field_text(answer, "source"),
		   *by = gp_field_text(answer, "chosen_by"),
		   *configured = gp_field_text(answer, "configured");
	char at[32];

	if (!source)
		return; /* an older daemon */
	if (!strcmp(source, "configuration")) {
		puts("  from the configuration");
	} else if (!strcmp(source, "command_line")) {
		puts("  from the command line of gpreemptd (--policy)");
	} else {
		if (by)
			printf("  chosen by %s at %s", by,
			       time_text(gp_field_number_or(answer, "chosen_at_ns", 0), at,
					 sizeof at));
		else
			fputs("  chosen by a user", stdout);
		printf("; the configuration has %s ('gpreempt policy --default' returns to it)\n",
		       configured ? configured : "another");
	}
}

/* "qos: period 50 ms, ..." and the source. */
static void print_choice(struct json_object *answer)
{
	const char *name = gp_field_text(answer, "policy"), *between = ": ";
	const struct gp_policy_ops *ops = name ? gp_policy_find(name) : NULL;
	struct json_object *params = gp_field(answer, "params");

	printf("in force: %s", name ? name : "?");
	for (uint32_t i = 0; ops && i < ops->nparam; i++) {
		struct json_object *value = gp_field(params, ops->param[i].name);

		if (!value)
			continue;
		printf("%s%s %s %s", between, ops->param[i].name, json_object_get_string(value),
		       ops->param[i].unit);
		between = ", ";
	}
	putchar('\n');
	print_source(answer);
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
		putchar('\n');
		print_choice(answer);
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

	if (text)
		json_object_object_add(params, "policy", json_object_new_string(text));
	else
		gp_field_put_bool(params, "default", true);
	if (device >= 0)
		gp_field_put(params, "device", (uint64_t)device);
	if (r)
		json_object_put(params);
	else
		r = gp_ask(client, "policy", params, &answer, &err);
	if (!r && json) {
		gp_print_json(answer);
	} else if (!r) {
		print_choice(answer);
	}
	json_object_put(answer);
	gp_client_close(client);
	return r ? gp_cli_fail(&err) : GP_EXIT_DONE;
}
