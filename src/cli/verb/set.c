/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt set: changes the attributes of running processes, and prints their effect. */

#include "base/process.h"
#include "cli/cli.h"
#include "cli/ask/ask.h"

static struct {
	struct gp_targets targets;
	struct gp_given_attrs given;
	bool inherit, force, json;
} env;

static const struct gp_option options[] = {
	{"inherit", 'i', NULL, "Also for the children that the process starts",
	 .flag = &env.inherit},
	{"force", 'F', NULL, "Also for a server that works for many programs", .flag = &env.force},
	{"json", 'j', NULL, "Write JSON: one object per line for each process", .flag = &env.json},
	{0},
};

static void check(struct argp_state *state)
{
	if (!env.targets.n)
		argp_error(state, "give a PID: gpreempt set PID --class be");
	if (!env.given.given)
		argp_error(state, "give at least one attribute: --class, --priority, ...");
}

static void print_result(pid_t pid, struct json_object *answer)
{
	char name[32], attr[256], effect[1024];

	gp_process_name(pid, name, sizeof name);
	if (env.json) {
		gp_field_put(answer, "pid", (uint64_t)pid);
		json_object_object_add(answer, "name", json_object_new_string(name));
		gp_print_json(answer);
		return;
	}
	printf("%d (%s): %s; %s\n", pid, name,
	       gp_ask_attr_text(gp_field(answer, "attr"), attr, sizeof attr),
	       gp_ask_effect_text(answer, &env.given, effect, sizeof effect));
}

static int set(struct gp_client *client, pid_t pid, struct gp_error *err)
{
	struct json_object *params = json_object_new_object(), *answer = NULL;
	int r;

	gp_ask_put_attrs(params, &env.given);
	if (env.inherit)
		gp_field_put_bool(params, "inherit", true);
	if (env.force)
		gp_field_put_bool(params, "force", true);
	r = gp_ask_about(client, "set", pid, params, &answer, err);
	if (!r)
		print_result(pid, answer);
	json_object_put(answer);
	return r;
}

static int run(struct gp_error *err)
{
	struct gp_client *client = NULL;
	int exit = GP_EXIT_DONE, r = gp_targets_resolve(&env.targets, err);

	if (!r)
		r = gp_client_connect(NULL, &client, err);
	if (r)
		return r;
	/* Goes on after a failure: the other processes are changed all the same. */
	for (unsigned i = 0; i < env.targets.n; i++) {
		*err = (struct gp_error){0};
		if (set(client, env.targets.pid[i], err)) {
			int code = gp_cli_fail(err);

			exit = exit ? exit : code;
		}
	}
	gp_client_close(client);
	return exit;
}

const struct gp_verb gp_verb_set = {
	.name = "set",
	.summary = "change class, priority and other attributes of running processes",
	.arguments = "PID...",
	.targets = &env.targets,
	.options = options,
	.more = {.argp = &gp_attrs_argp},
	.more_input = &env.given,
	.check = check,
	.doc = "Change the attributes of running processes through the daemon, and print which of "
	       "them have an effect under the present policy.\v"
	       "Attributes that are not given stay as they are. The value none removes a share, "
	       "ceiling, deadline, budget or gang.\n\n"
	       "Examples:\n"
	       "  gpreempt set 4711 --class lc\n"
	       "  gpreempt set 4712 4713 --class be --weight 50\n"
	       "  gpreempt set 1 --container trainer --class be --inherit\n",
	.run = run,
};
