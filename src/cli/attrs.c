/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attrs.h"

#include "cli/cli.h"

enum { WEIGHT = GP_ATTR_KEY, SHARE, CEILING, DEADLINE, BUDGET };

const struct argp_option gp_attr_options[] = {
	{0, 0, NULL, 0, "Of the process named before:", 1},
	{"priority", 'P', "N", 0, "Priority, 0 to 15, in its class", 1},
	{"weight", WEIGHT, "N", 0, "Weight, 1 to 10000 (default: 100)", 1},
	{"share", SHARE, "PERCENT", 0, "Part of the GPU that it is guaranteed", 1},
	{"ceiling", CEILING, "PERCENT", 0, "Part of the GPU that it gets at most", 1},
	{"deadline", DEADLINE, "TIME", 0, "How soon a request of it is to be answered", 1},
	{"budget", BUDGET, "TIME", 0, "GPU time that a request of it takes at most", 1},
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

static uint64_t duration(struct argp_state *state, int key, const char *arg)
{
	uint64_t ns;

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
		argp_error(state, "--%s comes after the process it is for", name_of(key));
		return EINVAL; /* argp_error does not come back unless it is told to */
	}
	switch (key) {
	case 'P': attr->priority = (uint8_t)number(state, key, arg, 0, GP_PRIORITY_MAX); break;
	case WEIGHT: attr->weight = (uint32_t)number(state, key, arg, 1, 10000); break;
	case SHARE: attr->share_permille = (uint32_t)number(state, key, arg, 1, 100) * 10; break;
	case CEILING:
		attr->ceiling_permille = (uint32_t)number(state, key, arg, 1, 100) * 10;
		break;
	case DEADLINE: attr->deadline_ns = duration(state, key, arg); break;
	default: attr->budget_ns = duration(state, key, arg); break;
	}
	return 0;
}
