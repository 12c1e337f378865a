/* SPDX-License-Identifier: Apache-2.0 */
/* The PID arguments of a verb, and --container. */
#ifndef GP_CLI_LIB_TARGETS_H
#define GP_CLI_LIB_TARGETS_H

#include <argp.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct gp_devices;

#define GP_TARGETS_MAX 256

struct gp_targets {
	unsigned max; /* set before parsing */
	unsigned n;
	const char *container; /* the pids are those of this container; NULL = of this namespace */
	pid_t pid[GP_TARGETS_MAX];
};

/* A child parser, and a list of children with only that one. Its input is a struct gp_targets. A
 * verb that takes at most one process needs one. */
extern const struct argp gp_targets_argp;
extern const struct argp_child gp_targets_children[];
#define GP_TARGETS_ARGP(arguments) .args_doc = (arguments), .children = gp_targets_children

/* For a verb's parser at ARGP_KEY_INIT. The targets must be its first child. */
static inline void gp_targets_init(struct gp_targets *t, unsigned max, struct argp_state *state)
{
	t->max = max;
	state->child_inputs[0] = t;
}

/* Translates the pids of a container into those of this pid namespace. */
int gp_targets_resolve(struct gp_targets *t, struct gp_error *err);

/* The same, and opens all devices. */
int gp_targets_open(struct gp_targets *t, struct gp_devices *devices, struct gp_error *err);

/* Parse the value of an option, or end the program with a usage message. */
uint64_t gp_option_duration(struct argp_state *state, const char *option, const char *text);
uint64_t gp_option_number(struct argp_state *state, const char *option, const char *text,
			  uint64_t min, uint64_t max);

#endif
