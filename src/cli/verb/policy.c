/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt policy: lists the policies, shows the one in force, or sets another. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "cli/lib/grid.h"
#include "hold/devices.h"
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

/* Of a device, or of all with -1. */
static void print_source(struct json_object *answer, int device)
{
	const char *source = gp_field_text(answer, "source"),
		   *by = gp_field_text(answer, "chosen_by"),
		   *configured = gp_field_text(answer, "configured");
	char at[32], option[24] = "";

	if (device >= 0)
		snprintf(option, sizeof option, " --device %d", device);
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
		printf("; the configuration has %s ('gpreempt policy --default%s' returns to it)\n",
		       configured ? configured : "another", option);
	}
}

/* "in force: qos: period 50 ms, ..." and the source. With `device` >= 0, of this device. */
static void print_choice(struct json_object *answer, int device)
{
	const char *name = gp_field_text(answer, "policy"), *between = ": ";
	const struct gp_policy_ops *ops = name ? gp_policy_find(name) : NULL;
	struct json_object *params = gp_field(answer, "params");

	fputs("in force", stdout);
	if (device >= 0)
		printf(" on device %d", device);
	printf(": %s", name ? name : "?");
	for (uint32_t i = 0; ops && i < ops->nparam; i++) {
		struct json_object *value = gp_field(params, ops->param[i].name);

		if (!value)
			continue;
		printf("%s%s %s %s", between, ops->param[i].name, json_object_get_string(value),
		       ops->param[i].unit);
		between = ", ";
	}
	putchar('\n');
	print_source(answer, device);
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

/* Prints the policy in force, or nothing without a daemon. */
static void show_policy(void)
{
	struct gp_client *client = gp_ask_if_there();
	struct json_object *answer = NULL;

	if (client && !gp_client_call(client, "policy", NULL, &answer, NULL)) {
		putchar('\n');
		print_choice(answer, -1);
		print_devices(client);
	}
	json_object_put(answer);
	gp_client_close(client);
}

#define POLICY_SIZE 32

/* The policy in force on each device, by its number. Returns the number of devices, at most `max`;
 * -1: no daemon runs. */
static int ask_policies(char name[][POLICY_SIZE], unsigned max)
{
	struct gp_client *client = gp_ask_if_there();
	struct json_object *answer = NULL, *devices;
	int n = -1;

	if (client && !gp_client_call(client, "policy", NULL, &answer, NULL)) {
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

/* Sets a policy ("qos:period=50"; NULL: the configured policy) on one device, or on all with -1. */
static int set_policy(const char *text, int device, bool json, struct gp_error *err)
{
	struct json_object *params = json_object_new_object(), *answer = NULL;
	struct gp_client *client = NULL;
	int r = gp_client_connect(NULL, &client, err);

	if (text)
		gp_field_put_text(params, "policy", text);
	else
		gp_field_put_bool(params, "default", true);
	if (device >= 0)
		gp_field_put(params, "device", (uint64_t)device);
	if (r)
		json_object_put(params);
	else
		r = gp_client_call(client, "policy", params, &answer, err);
	if (!r && json)
		gp_print_json(answer);
	else if (!r && device >= 0 && !gp_field(answer, "device"))
		printf("set on device %d\n", device); /* an older daemon tells of device 0 */
	else if (!r)
		print_choice(answer, device);
	json_object_put(answer);
	gp_client_close(client);
	return r;
}

static struct {
	bool json;
	bool names;
	bool configured; /* return to the configured policy */
	int device;      /* -1 = all */
	const char *policy;
} env = {.device = -1};

static void take_list(struct argp_state *state, char *arg)
{
	(void)state;
	(void)arg;
	env.names = false;
}

static const struct gp_option options[] = {
	{"list", 'l', NULL, "List the policies with their parameters (the default)",
	 .call = take_list},
	{"names", 'n', NULL, "List only the names", .flag = &env.names},
	{"default", 0, NULL, "Return to the policy of the configuration", .flag = &env.configured},
	{"device", 'd', "N", "Set the policy on this device only", .device = &env.device},
	{"json", 'j', NULL, "Write JSON", .flag = &env.json},
	{0},
};

static void take_policy(struct argp_state *state, char *arg)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	if (env.policy)
		argp_error(state, "give one policy; '%s' is one too many", arg);
	if (gp_policy_parse(arg, &choice, &err))
		argp_error(state, "%s", err.text);
	env.policy = arg;
}

static void check(struct argp_state *state)
{
	if (env.configured && env.policy)
		argp_error(state, "--default and the policy '%s' contradict each other",
			   env.policy);
	if (env.device >= 0 && !env.policy && !env.configured)
		argp_error(state, "--device goes with a policy to set");
}

static void print_policy(const struct gp_policy_ops *p)
{
	printf("%s: %s\n", p->name, p->summary);
	for (unsigned i = 0, n = 0; gp_attr_use_names[i]; i++)
		if (p->uses & 1u << i)
			printf("%s%s", n++ ? ", " : "  attributes: ", gp_attr_use_names[i]);
	if (p->uses)
		putchar('\n');
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct gp_param *q = &p->param[i];
		char range[48];

		snprintf(range, sizeof range, "%lld-%lld", (long long)q->min, (long long)q->max);
		printf("  %-15s %7lld %-2s  %-13s %s\n", q->name, (long long)q->def, q->unit, range,
		       q->summary);
	}
}

/* The policies of the devices; ndevices is -1 without a daemon. */
struct in_force {
	int ndevices; /* -1: not known */
	char policy[GP_DEVICES_MAX][POLICY_SIZE];
};

static void add_policy(struct json_object *all, const struct gp_policy_ops *p,
		       const struct in_force *f)
{
	struct json_object *o = gp_list_object(all), *list;

	gp_field_put_text(o, "name", p->name);
	gp_field_put_text(o, "summary", p->summary);
	list = gp_field_put_list(o, "attributes");
	for (unsigned i = 0; gp_attr_use_names[i]; i++)
		if (p->uses & 1u << i)
			json_object_array_add(list, json_object_new_string(gp_attr_use_names[i]));
	list = f->ndevices >= 0 ? gp_field_put_list(o, "in_force") : NULL;
	for (int i = 0; i < f->ndevices; i++)
		if (!strcmp(f->policy[i], p->name))
			json_object_array_add(list, json_object_new_int(i));
	list = gp_field_put_list(o, "parameters");
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct gp_param *q = &p->param[i];
		struct json_object *param = gp_list_object(list);

		gp_field_put_text(param, "name", q->name);
		json_object_object_add(param, "default", json_object_new_int64(q->def));
		json_object_object_add(param, "min", json_object_new_int64(q->min));
		json_object_object_add(param, "max", json_object_new_int64(q->max));
		gp_field_put_text(param, "unit", q->unit);
		gp_field_put_text(param, "summary", q->summary);
	}
}

static void list_json(void)
{
	struct json_object *all = json_object_new_array();
	struct in_force f;

	f.ndevices = ask_policies(f.policy, GP_DEVICES_MAX);
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
		add_policy(all, *p, &f);
	gp_print_json_once(all);
}

static void list(void)
{
	if (env.json) {
		list_json();
		return;
	}
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++) {
		if (env.names)
			puts((*p)->name);
		else
			print_policy(*p);
	}
}

static int run(struct gp_error *err)
{
	if (env.policy || env.configured)
		return set_policy(env.policy, env.device, env.json, err);
	list();
	if (!env.json && !env.names)
		show_policy();
	return GP_EXIT_DONE;
}

const struct gp_verb gp_verb_policy = {
	.name = "policy",
	.summary = "list the policies, show the one in force, or set another",
	.arguments = "[NAME[:PARAM=VALUE...]]",
	.argument = take_policy,
	.options = options,
	.check = check,
	.doc = "List the scheduling policies with their parameters (name, default, range, meaning) "
	       "and the policy in force, or set another policy in the daemon.\v"
	       "Parameters follow the name: priority:quantum=50:age_after=200\n",
	.run = run,
};
