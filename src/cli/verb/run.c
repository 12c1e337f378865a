/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt run: starts a command under the scheduler. This process registers itself and then
 * becomes the command with exec, so signals, files and the exit status are those of the command.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "gpu/backends.h"
#include "hold/devices.h"

static const char *name_of(struct json_object *device)
{
	const char *name = gp_field_text(device, "name");

	return name ? name : "this GPU";
}

/* `index`: the device's number among those of its back end. */
static int choose(struct json_object *device, unsigned index, struct gp_error *err)
{
	const char *backend = gp_field_text(device, "backend");
	const struct gp_gpu_ops *ops = backend ? gp_backend_find(backend) : NULL;
	int r = ops ? gp_backend_make_visible(ops, index, name_of(device),
					      gp_field_text(device, "bus"), err)
		    : -ENOTSUP;

	return r == -ENOTSUP ? gp_fail(err, r, "no environment variable makes a program use %s",
				       name_of(device))
			     : r;
}

static struct json_object *find(struct json_object *devices, unsigned device, unsigned *index)
{
	struct json_object *found = NULL;

	*index = 0;
	for (size_t i = 0; i < json_object_array_length(devices); i++) {
		struct json_object *d = json_object_array_get_idx(devices, i);

		if (gp_field_number_or(d, "device", i) == device)
			found = d;
	}
	for (size_t i = 0; found && i < json_object_array_length(devices); i++) {
		struct json_object *d = json_object_array_get_idx(devices, i);
		const char *a = gp_field_text(d, "backend"), *b = gp_field_text(found, "backend");

		*index += gp_field_number_or(d, "device", i) < device && a && b && !strcmp(a, b);
	}
	return found;
}

/* Sets the environment variables that select a GPU to the daemon's device of this number, for this
 * process and the command it becomes. -ENODEV: there is no such device; -ENOTSUP: no variable can
 * select it. */
static int choose_gpu(struct gp_client *client, unsigned device, struct gp_error *err)
{
	struct json_object *devices, *found;
	unsigned index;
	int r = gp_ask_devices(client, &devices, err);

	if (r)
		return r;
	found = find(devices, device, &index);
	r = found ? choose(found, index, err)
		  : gp_fail(err, -ENODEV, "there is no GPU %u; gpreempt ps lists them", device);
	json_object_put(devices);
	return r;
}

/* As in env(1) and nice(1): outside the range that commands use themselves. */
enum { RUN_FAILED = 125, RUN_CANNOT = 126, RUN_NOT_FOUND = 127 };

static struct {
	struct gp_given_attrs given;
	bool anyway, json;
	int gpu; /* -1 = any */
	char **command;
} env = {.gpu = -1};

static const struct gp_option options[] = {
	{"gpu", 'g', "N", "Show the command only this GPU (number as in gpreempt ps)",
	 .device = &env.gpu},
	{"anyway", 'a', NULL, "Run the command also if no daemon runs, or if the daemon refuses",
	 .flag = &env.anyway},
	{"json", 'j', NULL, "Write the attributes as JSON on standard error", .flag = &env.json},
	{0},
};

/* All that follows is the command's. */
static void take_command(struct argp_state *state, char *arg)
{
	(void)arg;
	env.command = &state->argv[state->next - 1];
	state->next = state->argc;
}

static void check(struct argp_state *state)
{
	if (!env.command)
		argp_error(state, "give a command: gpreempt run --class be -- COMMAND");
	if (!env.given.given)
		argp_error(state, "give a class: --class lc or --class be");
}

/* On standard error: standard output belongs to the command. */
static void print_unused(struct json_object *answer)
{
	char unused[512];

	if (*gp_ask_unused_text(answer, &env.given, unused, sizeof unused))
		fprintf(stderr, "gpreempt: %s; gpreempt policy lists the policies\n", unused);
}

static void print_json(struct json_object *attr)
{
	struct json_object *o = json_object_new_object();

	gp_field_put(o, "pid", (uint64_t)getpid());
	json_object_object_add(o, "attr", json_object_get(attr));
	fprintf(stderr, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

static int register_self(struct gp_error *err)
{
	struct json_object *params, *target, *answer = NULL;
	struct gp_client *client;
	int r = gp_client_connect(NULL, &client, err);

	if (r)
		return r;
	if (env.gpu >= 0)
		r = choose_gpu(client, (unsigned)env.gpu, err);
	if (r) {
		gp_client_close(client);
		return r;
	}
	params = json_object_new_object();
	target = json_object_new_object();
	json_object_object_add(params, "target", target);
	json_object_object_add(target, "self", json_object_new_boolean(true));
	json_object_object_add(params, "inherit", json_object_new_boolean(true));
	gp_ask_put_attrs(params, &env.given);
	r = gp_client_call(client, "set", params, &answer, err);
	gp_client_close(client);
	if (!r && env.json)
		print_json(gp_field(answer, "attr"));
	else if (!r)
		print_unused(answer);
	json_object_put(answer);
	return r;
}

static int run(struct gp_error *err)
{
	if (register_self(err)) {
		fprintf(stderr, "gpreempt: %s\n", err->text);
		if (!env.anyway)
			return RUN_FAILED;
		fprintf(stderr, "gpreempt: %s runs without a class\n", env.command[0]);
	}
	fflush(NULL);
	execvp(env.command[0], env.command);
	fprintf(stderr, "gpreempt: cannot run %s: %s\n", env.command[0], gp_error_name(-errno));
	return errno == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT;
}

const struct gp_verb gp_verb_run = {
	.name = "run",
	.summary = "start a command under the scheduler",
	.arguments = "[--] COMMAND [ARGUMENT...]",
	.argument = take_command,
	.in_order = true,
	.options = options,
	.more = {.argp = &gp_attrs_argp},
	.more_input = &env.given,
	.check = check,
	.usage_exit = RUN_FAILED,
	.doc = "Start a command under the scheduler. The command and its children have these "
	       "attributes from their first queue on.\v"
	       "Exit status: 125 gpreempt failed, 126 the command cannot be run, 127 there is no "
	       "such command; else the command's own.\n\n"
	       "Examples:\n"
	       "  gpreempt run --class be -- python3 train.py\n"
	       "  gpreempt run --class lc --deadline 5ms -- ./serve --port 8000\n",
	.run = run,
};
