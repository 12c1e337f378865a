/* SPDX-License-Identifier: Apache-2.0 */
/* Options for the attributes of a task, the same for every verb that takes them. */
#ifndef GP_CLI_LIB_ATTRS_H
#define GP_CLI_LIB_ATTRS_H

#include <argp.h>

#include "engine/engine.h"

/* A list for argp; its keys begin at GP_ATTR_KEY. */
extern const struct argp_option gp_attr_options[];

#define GP_ATTR_KEY 0x1000

/*
 * Stores the value of option `key` in `attr`, or ends the program with a usage message. `attr`
 * NULL: no process was named before the option. ARGP_ERR_UNKNOWN: the key is not one of these.
 */
error_t gp_attr_parse(int key, const char *arg, struct argp_state *state,
		      struct gp_task_attr *attr);

enum gp_attr_given {
	GP_GIVEN_CLASS = 1u << 0,
	GP_GIVEN_PRIORITY = 1u << 1,
	GP_GIVEN_WEIGHT = 1u << 2,
	GP_GIVEN_SHARE = 1u << 3,
	GP_GIVEN_CEILING = 1u << 4,
	GP_GIVEN_DEADLINE = 1u << 5,
	GP_GIVEN_BUDGET = 1u << 6,
	GP_GIVEN_GANG = 1u << 7,
};

struct gp_given_attrs {
	unsigned given;           /* GP_GIVEN_*; the other attributes are 0 */
	struct gp_task_attr attr; /* .gang is unused: a gang is passed to the daemon by name */
	const char *gang;         /* "" = none */
};

/* A child parser with --class, --gang and the options above: its input is a struct gp_given_attrs.
 */
extern const struct argp gp_attrs_argp;

#endif
