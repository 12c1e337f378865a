/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "cli/cli.h"
#include "hold/devices.h"
#include "yaml/value.h"

static void add_pid(struct gp_targets *t, const char *text, struct argp_state *state)
{
	uint64_t pid;

	if (!gp_cli_number(text, INT32_MAX, &pid) || !pid)
		argp_error(state, "'%s' is not a process id", text);
	for (unsigned i = 0; i < t->n; i++)
		if (t->pid[i] == (pid_t)pid)
			return;
	if (t->n == (t->single ? 1 : GP_TARGETS_MAX))
		argp_error(state,
			   t->single ? "give one process; '%s' is one too many"
				     : "too many processes: '%s'",
			   text);
	t->pid[t->n++] = (pid_t)pid;
}

static error_t parse_target(int key, char *arg, struct argp_state *state)
{
	struct gp_targets *t = state->input;

	switch (key) {
	case 'C': t->container = arg; break;
	case ARGP_KEY_ARG: add_pid(t, arg, state); break;
	case ARGP_KEY_END:
		if (t->single && !t->n)
			argp_error(state, "give a PID; gpreempt ps lists them");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_option target_options[] = {
	{"container", 'C', "NAME", 0, "PID is a number inside this container (name or id)", 0},
	{0},
};

static const struct argp targets_argp = {.options = target_options, .parser = parse_target};

int gp_targets_resolve(struct gp_targets *t, struct gp_error *err)
{
	for (unsigned i = 0; t->container && i < t->n; i++) {
		int r = gp_process_in_container(t->container, t->pid[i], &t->pid[i], err);

		if (r)
			return r;
	}
	return 0;
}

int gp_targets_open(struct gp_targets *t, struct gp_devices *devices, struct gp_error *err)
{
	int r = gp_targets_resolve(t, err);

	return r ? r : gp_devices_open(devices, 0, err);
}

uint64_t gp_option_duration(struct argp_state *state, const char *option, const char *text)
{
	uint64_t ns = 0;

	if (!gp_cli_duration_parse(text, &ns))
		argp_error(state, "--%s takes a time such as 500ms, 10s or 2m, not '%s'", option,
			   text);
	return ns;
}

static uint64_t parse_number(struct argp_state *state, const char *option, const char *text,
			     uint64_t min, uint64_t max)
{
	uint64_t value = 0;

	if (gp_cli_number(text, max, &value) && value >= min)
		return value;
	if (max == UINT64_MAX)
		argp_error(state, "--%s takes a whole number, not '%s'", option, text);
	argp_error(state, "--%s takes a whole number from %llu to %llu, not '%s'", option,
		   (unsigned long long)min, (unsigned long long)max, text);
	return value;
}

static uint64_t parse_time(struct argp_state *state, const struct gp_option *o, const char *arg)
{
	uint64_t ns = gp_option_duration(state, o->name, arg);

	if (ns < o->min)
		argp_error(state, "--%s takes %s or more, not '%s'", o->name,
			   gp_value_show_duration(o->min).text, arg);
	return ns;
}

static void take_option(const struct gp_option *o, char *arg, struct argp_state *state)
{
	if (o->flag)
		*o->flag = true;
	else if (o->text)
		*o->text = arg;
	else if (o->device)
		*o->device = (int)parse_number(state, o->name, arg, 0, GP_DEVICES_MAX - 1);
	else if (o->time_ns)
		*o->time_ns = parse_time(state, o, arg);
	else if (o->number)
		*o->number = parse_number(state, o->name, arg, o->min, o->max);
	else if (o->number32)
		*o->number32 = (uint32_t)parse_number(state, o->name, arg, o->min, o->max);
	else
		o->call(state, arg);
	if (o->given)
		*o->given = true;
}

/* The key of an option for argp. Options without a letter are numbered from here. */
#define LONG_KEY 0x2000

static int key_of(const struct gp_option *options, unsigned i)
{
	while (!options[i].help) /* another name of the option before it */
		i--;
	return options[i].letter ? options[i].letter : LONG_KEY + (int)i;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	const struct gp_verb *verb = *(const struct gp_verb *const *)state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		if (verb->targets)
			state->child_inputs[0] = verb->targets;
		if (verb->more.argp)
			state->child_inputs[verb->targets ? 1 : 0] = verb->more_input;
		return 0;
	case ARGP_KEY_ARG:
		if (verb->targets)
			return ARGP_ERR_UNKNOWN; /* the parser of targets takes it */
		if (verb->argument)
			verb->argument(state, arg);
		else
			argp_error(state, "takes no arguments, but '%s' was given", arg);
		return 0;
	case ARGP_KEY_END:
		if (verb->check)
			verb->check(state);
		return 0;
	default: break;
	}
	for (unsigned i = 0; verb->options[i].name; i++)
		if (key_of(verb->options, i) == key) {
			take_option(&verb->options[i], arg, state);
			return 0;
		}
	return ARGP_ERR_UNKNOWN;
}

#define OPTIONS_MAX 24

void gp_options_parse(const struct gp_verb *verb, int argc, char **argv)
{
	struct argp_option options[OPTIONS_MAX + 1] = {0};
	struct argp_child children[3] = {0};
	struct argp argp = {.options = options,
			    .parser = parse_option,
			    .args_doc = verb->arguments,
			    .doc = verb->doc,
			    .children = children};
	unsigned n = 0;

	if (!verb->doc)
		return;
	for (unsigned i = 0; verb->options[i].name && i < OPTIONS_MAX; i++)
		options[i] = (struct argp_option){.name = verb->options[i].name,
						  .key = key_of(verb->options, i),
						  .arg = verb->options[i].value,
						  .flags = verb->options[i].help ? 0 : OPTION_ALIAS,
						  .doc = verb->options[i].help};
	if (verb->targets)
		children[n++].argp = &targets_argp;
	if (verb->more.argp)
		children[n] = verb->more;
	argp_err_exit_status = verb->usage_exit ? verb->usage_exit : GP_EXIT_USAGE;
	argp_parse(&argp, argc, argv, verb->in_order ? ARGP_IN_ORDER : 0, NULL, &verb);
}

enum { WEIGHT = GP_ATTR_KEY, SHARE, CEILING, DEADLINE, BUDGET, GANG };

#define GANG_MAX 63

const struct argp_option gp_attr_options[] = {
	{"priority", 'P', "N", 0, "Priority, 0 to 15, in its class", 0},
	{"weight", WEIGHT, "N", 0, "Weight, 1 to 10000 (default: 100)", 0},
	{"share", SHARE, "PERCENT", 0, "Guaranteed part of the GPU", 0},
	{"ceiling", CEILING, "PERCENT", 0, "Maximum part of the GPU", 0},
	{"deadline", DEADLINE, "TIME", 0, "Deadline of each request, from its arrival", 0},
	{"budget", BUDGET, "TIME", 0, "Maximum GPU time of a request", 0},
	{0},
};

static const char *name_of(int key)
{
	const struct argp_option *o = gp_attr_options;

	while (o->key != key)
		o++;
	return o->name;
}

/* "none" removes an optional attribute; 0 stands for that. */
static uint32_t permille(struct argp_state *state, int key, const char *arg)
{
	return strcmp(arg, "none") ? (uint32_t)parse_number(state, name_of(key), arg, 1, 100) * 10
				   : 0;
}

static uint64_t duration(struct argp_state *state, int key, const char *arg)
{
	uint64_t ns = 0;

	if (!strcmp(arg, "none"))
		return 0;
	if (!gp_cli_duration_parse(arg, &ns) || !ns)
		argp_error(state,
			   "--%s takes a time above 0 such as 500us, 2ms or 1s, or none; not '%s'",
			   name_of(key), arg);
	return ns;
}

error_t gp_attr_parse(int key, const char *arg, struct argp_state *state, struct gp_task_attr *attr)
{
	if (key != 'P' && (key < WEIGHT || key > BUDGET))
		return ARGP_ERR_UNKNOWN;
	if (!attr) {
		argp_error(state, "--%s must follow the process that it is for", name_of(key));
		return EINVAL; /* argp_error returns only with ARGP_NO_EXIT */
	}
	switch (key) {
	case 'P':
		attr->priority =
			(uint8_t)parse_number(state, name_of(key), arg, 0, GP_PRIORITY_MAX);
		break;
	case WEIGHT:
		attr->weight = (uint32_t)parse_number(state, name_of(key), arg, 1, 10000);
		break;
	case SHARE: attr->share_permille = permille(state, key, arg); break;
	case CEILING: attr->ceiling_permille = permille(state, key, arg); break;
	case DEADLINE: attr->deadline_ns = duration(state, key, arg); break;
	default: attr->budget_ns = duration(state, key, arg); break;
	}
	return 0;
}

static uint8_t parse_class(struct argp_state *state, const char *text)
{
	int class = gp_class_find(text);

	if (class < 0)
		argp_error(state, "--class takes lc, be or unmanaged, not '%s'", text);
	return class < 0 ? GP_UNMANAGED : (uint8_t) class;
}

static const char *parse_gang(struct argp_state *state, const char *text)
{
	if (!*text || strlen(text) > GANG_MAX)
		argp_error(state, "--gang takes a name of 1 to %d characters, or none", GANG_MAX);
	return strcmp(text, "none") ? text : "";
}

static error_t parse_attr_number(int key, char *arg, struct argp_state *state)
{
	static const unsigned whats[] = {GP_GIVEN_WEIGHT, GP_GIVEN_SHARE, GP_GIVEN_CEILING,
					 GP_GIVEN_DEADLINE, GP_GIVEN_BUDGET};
	struct gp_given_attrs *given = state->input;
	error_t r = gp_attr_parse(key, arg, state, &given->attr);

	if (!r)
		given->given |= key == 'P' ? GP_GIVEN_PRIORITY : whats[key - WEIGHT];
	return r;
}

static error_t parse_word(int key, char *arg, struct argp_state *state)
{
	struct gp_given_attrs *given = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = given; break;
	case 'c':
		given->attr.class = parse_class(state, arg);
		given->given |= GP_GIVEN_CLASS;
		break;
	case GANG:
		given->gang = parse_gang(state, arg);
		given->given |= GP_GIVEN_GANG;
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_option words[] = {
	{"class", 'c', "CLASS", 0, "lc: latency-critical, be: best-effort, or unmanaged", 0},
	{"gang", GANG, "NAME", 0, "Hold and release together with other processes of this name", 0},
	{0},
};
static const struct argp numbers = {.options = gp_attr_options, .parser = parse_attr_number};
static const struct argp_child attr_children[] = {{.argp = &numbers}, {0}};

const struct argp gp_attrs_argp = {
	.options = words, .parser = parse_word, .children = attr_children};
