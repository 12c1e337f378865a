/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/attrs.h"

#include <string.h>

#include "cli/cli.h"

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

static uint64_t number(struct argp_state *state, int key, const char *arg, uint64_t min,
		       uint64_t max)
{
	uint64_t value;

	if (!gp_cli_number(arg, max, &value) || value < min)
		argp_error(state, "--%s takes a number from %lu to %lu, not '%s'", name_of(key),
			   min, max, arg);
	return value;
}

/* "none" removes an optional attribute; 0 stands for that. */
static uint32_t permille(struct argp_state *state, int key, const char *arg)
{
	return strcmp(arg, "none") ? (uint32_t)number(state, key, arg, 1, 100) * 10 : 0;
}

static uint64_t duration(struct argp_state *state, int key, const char *arg)
{
	uint64_t ns = 0;

	if (!strcmp(arg, "none"))
		return 0;
	if (!gp_cli_duration_parse(arg, &ns) || !ns)
		argp_error(state, "--%s takes a time such as 500us, 2ms or 1s, not '%s'",
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
	case 'P': attr->priority = (uint8_t)number(state, key, arg, 0, GP_PRIORITY_MAX); break;
	case WEIGHT: attr->weight = (uint32_t)number(state, key, arg, 1, 10000); break;
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

static error_t parse_number(int key, char *arg, struct argp_state *state)
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
static const struct argp numbers = {.options = gp_attr_options, .parser = parse_number};
static const struct argp_child children[] = {{.argp = &numbers}, {0}};

const struct argp gp_attrs_argp = {.options = words, .parser = parse_word, .children = children};
