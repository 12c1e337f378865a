/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line can say about a task: the same options for every verb that takes them. */
#ifndef GP_CLI_LIB_ATTRS_H
#define GP_CLI_LIB_ATTRS_H

#include <argp.h>

#include "engine/engine.h"

/* A list for argp, ended as usual; keys from GP_ATTR_KEY on. */
extern const struct argp_option gp_attr_options[];

#define GP_ATTR_KEY 0x1000

/*
 * Sets what option `key` says in `attr`, or ends with usage and a sentence. NULL: nobody was named
 * before it. ARGP_ERR_UNKNOWN: the key is not one of these.
 */
error_t gp_attr_parse(int key, const char *arg, struct argp_state *state,
                      struct gp_task_attr *attr);

/* ---- for who passes on what was said, and leaves the rest as it is ----------------------------
 */

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

struct gp_attr_source {
	unsigned given;           /* GP_GIVEN_*; the rest of this is 0 */
	struct gp_task_attr attr; /* without the gang: a daemon goes by its name */
	const char *gang;         /* "" = none */
};

/* A child parser with --class, --gang and the options above: its input is a struct gp_attr_source.
 */
extern const struct argp gp_attrs_argp;

#endif
