/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt policy: lists the policies, shows the one in force, or sets another. */
#include <argp.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/lib/fields.h"
#include "cli/ask/with_daemon.h"
#include "cli/lib/targets.h"
#include "hold/devices.h"
#include "policy/registry.h"

enum { DEFAULT = 0x2000 };

static struct {
	bool json;
	bool names;
	bool configured; /* return to the configured policy */
	int device;      /* -1 = all */
	const char *policy;
} env = {.device = -1};

static const struct argp_option options[] = {
	{"list", 'l', NULL, 0, "List the policies with their parameters (the default)", 0},
	{"names", 'n', NULL, 0, "List only the names", 0},
	{"default", DEFAULT, NULL, 0, "Return to the policy of the configuration", 0},
	{"device", 'd', "N", 0, "Set the policy on this device only", 0},
	{"json", 'j', NULL, 0, "Write JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	switch (key) {
	case 'l': env.names = false; break;
	case 'n': env.names = true; break;
	case 'j': env.json = true; break;
	case DEFAULT: env.configured = true; break;
	case 'd':
		env.device = (int)gp_option_number(state, "--device", arg, 0, GP_DEVICES_MAX - 1);
		break;
	case ARGP_KEY_ARG:
		if (env.policy)
			argp_error(state, "give one policy; '%s' is one too many", arg);
		if (gp_policy_parse(arg, &choice, &err))
			argp_error(state, "%s", err.text);
		env.policy = arg;
		break;
	case ARGP_KEY_END:
		if (env.configured && env.policy)
			argp_error(state, "--default and the policy '%s' contradict each other",
				   env.policy);
		if (env.device >= 0 && !env.policy && !env.configured)
			argp_error(state, "--device goes with a policy to set");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
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
	char policy[GP_DEVICES_MAX][GP_DAEMON_POLICY_SIZE];
};

static struct json_object *policy_to_json(const struct gp_policy_ops *p, const struct in_force *f)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array(),
			   *attributes = json_object_new_array();

	gp_field_put_text(o, "name", p->name);
	gp_field_put_text(o, "summary", p->summary);
	for (unsigned i = 0; gp_attr_use_names[i]; i++)
		if (p->uses & 1u << i)
			json_object_array_add(attributes,
					      json_object_new_string(gp_attr_use_names[i]));
	json_object_object_add(o, "attributes", attributes);
	if (f->ndevices >= 0) {
		struct json_object *devices = json_object_new_array();

		for (int i = 0; i < f->ndevices; i++)
			if (!strcmp(f->policy[i], p->name))
				json_object_array_add(devices, json_object_new_int(i));
		json_object_object_add(o, "in_force", devices);
	}
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct gp_param *q = &p->param[i];
		struct json_object *param = json_object_new_object();

		gp_field_put_text(param, "name", q->name);
		json_object_object_add(param, "default", json_object_new_int64(q->def));
		json_object_object_add(param, "min", json_object_new_int64(q->min));
		json_object_object_add(param, "max", json_object_new_int64(q->max));
		gp_field_put_text(param, "unit", q->unit);
		gp_field_put_text(param, "summary", q->summary);
		json_object_array_add(list, param);
	}
	json_object_object_add(o, "parameters", list);
	return o;
}

static void list_json(void)
{
	struct json_object *all = json_object_new_array();
	struct in_force f;

	f.ndevices = gp_daemon_policies(f.policy, GP_DEVICES_MAX);
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
		json_object_array_add(all, policy_to_json(*p, &f));
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

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[NAME[:PARAM=VALUE...]]",
		.doc = "List the scheduling policies with their parameters (name, default, range, "
		       "meaning) and the policy in force, or set another policy in the daemon.\v"
		       "Parameters follow the name: priority:quantum=50:age_after=200\n",
	};

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (env.policy || env.configured)
		return gp_daemon_set_policy(env.policy, env.device, env.json);
	list();
	if (!env.json && !env.names)
		gp_daemon_show_policy();
	return GP_EXIT_DONE;
}

const struct gp_verb gp_verb_policy = {
	.name = "policy",
	.summary = "list the policies, show the one in force, or set another",
	.run = run,
};
