/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that a verb is about: PID arguments and --container, parsed in one place. */
#ifndef GP_CLI_LIB_TARGETS_H
#define GP_CLI_LIB_TARGETS_H

#include <argp.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define GP_TARGETS_MAX 256

struct gp_targets {
	unsigned max; /* how many the verb takes; set before parsing */
	unsigned n;
	const char *container; /* the pids are numbers in there; NULL = ours */
	pid_t pid[GP_TARGETS_MAX];
};

/* A child parser: its input is a struct gp_targets. */
extern const struct argp gp_targets_argp;

/* Inside a verb's parser, on ARGP_KEY_INIT: the child is the first. */
static inline void gp_targets_init(struct gp_targets *t, unsigned max, struct argp_state *state)
{
	t->max = max;
	state->child_inputs[0] = t;
}

/* Turns the numbers of a container into ours. */
int gp_targets_resolve(struct gp_targets *t, struct gp_error *err);

/* Values of options; they do not return when the text is not one. */
uint64_t gp_option_duration(struct argp_state *state, const char *option, const char *text);
uint64_t gp_option_number(struct argp_state *state, const char *option, const char *text,
                          uint64_t min, uint64_t max);

#endif
