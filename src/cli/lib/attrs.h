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

enum gp_said_what {
	GP_SAID_CLASS = 1u << 0,
	GP_SAID_PRIORITY = 1u << 1,
	GP_SAID_WEIGHT = 1u << 2,
	GP_SAID_SHARE = 1u << 3,
	GP_SAID_CEILING = 1u << 4,
	GP_SAID_DEADLINE = 1u << 5,
	GP_SAID_BUDGET = 1u << 6,
	GP_SAID_GANG = 1u << 7,
};

struct gp_said {
	unsigned said;            /* GP_SAID_*; the rest of this is 0 */
	struct gp_task_attr attr; /* without the gang: a daemon goes by its name */
	const char *gang;         /* "" = none */
};

/* A child parser with --class, --gang and the options above: its input is a struct gp_said. */
extern const struct argp gp_said_argp;

#endif
