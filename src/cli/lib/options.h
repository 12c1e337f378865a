/* SPDX-License-Identifier: Apache-2.0 */
/* The options of verbs, and those that several verbs take: PIDs, --container, attributes. */
#ifndef GP_CLI_LIB_OPTIONS_H
#define GP_CLI_LIB_OPTIONS_H

#include <argp.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "engine/engine.h"

struct gp_devices;
struct gp_verb;

/*
 * An option of a verb. The pointer that is set says how its value is parsed and stored. An option
 * without a help text is another name of the option before it.
 */
struct gp_option {
	const char *name;
	int letter;        /* 0: none */
	const char *value; /* the name of its value in --help; NULL: it has none */
	const char *help;

	bool *flag; /* becomes true */
	const char **text;
	int *device; /* a number below GP_DEVICES_MAX */
	uint64_t *time_ns;
	uint64_t *number;
	uint32_t *number32;
	void (*call)(struct argp_state *state, char *arg);

	uint64_t min, max; /* of a number; `min` also of a time */
	bool *given;       /* also becomes true; may be NULL */
};

/* Parses the options and arguments of a verb, or ends the program with a usage message. */
void gp_options_parse(const struct gp_verb *verb, int argc, char **argv);

#define GP_TARGETS_MAX 256

struct gp_targets {
	bool single; /* the verb takes exactly one process */
	unsigned n;
	const char *container; /* the pids are those of this container; NULL = of this namespace */
	pid_t pid[GP_TARGETS_MAX];
};

/* Translates the pids of a container into those of this pid namespace. */
int gp_targets_resolve(struct gp_targets *t, struct gp_error *err);

/* The same, and opens all devices. */
int gp_targets_open(struct gp_targets *t, struct gp_devices *devices, struct gp_error *err);

/* Parses the value of an option (its name has no dashes), or ends the program with a usage message.
 */
uint64_t gp_option_duration(struct argp_state *state, const char *option, const char *text);

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
