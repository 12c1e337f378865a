/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt policy: which policies there are, which is in force, and another. */
#include <argp.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ask/with_daemon.h"
#include "cli/lib/targets.h"
#include "hold/devices.h"
#include "policy/registry.h"

static struct {
	bool json;
	bool names;
	int device; /* -1 = all */
	const char *policy;
} env = {.device = -1};

static const struct argp_option options[] = {
	{"list", 'l', NULL, 0, "List the policies with their parameters (the default)", 0},
	{"names", 'n', NULL, 0, "List only their names", 0},
	{"device", 'd', "N", 0, "Set it on this device only", 0},
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
	case 'd':
		env.device = (int)gp_option_number(state, "--device", arg, 0, GP_DEVICES_MAX - 1);
		break;
	case ARGP_KEY_ARG:
		if (env.policy)
			argp_error(state, "one policy at a time; '%s' is one too many", arg);
		if (gp_policy_parse(arg, &choice, &err))
			argp_error(state, "%s", err.text);
		env.policy = arg;
		break;
	case ARGP_KEY_END:
		if (env.device >= 0 && !env.policy)
			argp_error(state, "--device goes with a policy to set");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void print_policy(const struct gp_policy_ops *p)
{
	printf("%s: %s\n", p->name, p->summary);
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct gp_param *q = &p->param[i];
		char range[48];

		snprintf(range, sizeof range, "%lld-%lld", (long long)q->min, (long long)q->max);
		printf("  %-15s %7lld %-2s  %-13s %s\n", q->name, (long long)q->def, q->unit, range,
		       q->summary);
	}
}

/* The policies of devices, as far as a daemon tells. */
struct in_force {
	int ndevices; /* -1: not known */
	char policy[GP_DEVICES_MAX][GP_DAEMON_POLICY_SIZE];
};

static void json_in_force(const struct in_force *f, const char *policy)
{
	const char *comma = "";

	if (f->ndevices < 0)
		return;
	fputs(",\"in_force\":[", stdout);
	for (int i = 0; i < f->ndevices; i++)
		if (!strcmp(f->policy[i], policy)) {
			printf("%s%d", comma, i);
			comma = ",";
		}
	putchar(']');
}

static void json_policy(const struct gp_policy_ops *p, const struct in_force *f)
{
	fputs("{\"name\":", stdout);
	gp_json_string(stdout, p->name);
	fputs(",\"summary\":", stdout);
	gp_json_string(stdout, p->summary);
	json_in_force(f, p->name);
	fputs(",\"parameters\":[", stdout);
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct gp_param *q = &p->param[i];

		printf("%s{\"name\":", i ? "," : "");
		gp_json_string(stdout, q->name);
		printf(",\"default\":%lld,\"min\":%lld,\"max\":%lld,\"unit\":", (long long)q->def,
		       (long long)q->min, (long long)q->max);
		gp_json_string(stdout, q->unit);
		fputs(",\"summary\":", stdout);
		gp_json_string(stdout, q->summary);
		putchar('}');
	}
	fputs("]}", stdout);
}

static void list(void)
{
	struct in_force f = {.ndevices = -1};

	if (env.json) {
		f.ndevices = gp_daemon_policies(f.policy, GP_DEVICES_MAX);
		putchar('[');
	}
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++) {
		if (env.json && p != gp_policies)
			putchar(',');
		if (env.json)
			json_policy(*p, &f);
		else if (env.names)
			puts((*p)->name);
		else
			print_policy(*p);
	}
	if (env.json)
		puts("]");
}

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[NAME[:PARAM=VALUE...]]",
		.doc = "List the scheduling policies and their parameters (name, default, range, "
		       "meaning), and which is in force; or have the daemon use another.\v"
		       "A parameter is given behind the policy: "
		       "priority:quantum=50:age_after=200\n",
	};

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (env.policy)
		return gp_daemon_set_policy(env.policy, env.device, env.json);
	list();
	if (!env.json && !env.names)
		gp_daemon_show_policy();
	return GP_EXIT_DONE;
}

const struct gp_verb gp_verb_policy = {
	.name = "policy",
	.summary = "which policies there are, which is in force, and another",
	.run = run,
};
