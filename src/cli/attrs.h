/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line can say about a task: the same options for every verb that takes them. */
#ifndef GP_CLI_ATTRS_H
#define GP_CLI_ATTRS_H

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

#endif
