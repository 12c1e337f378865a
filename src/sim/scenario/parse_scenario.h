/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files that parse the parts of a scenario file (man
 * gpreempt-scenario(5)); not used elsewhere.
 */
#ifndef GP_SIM_SCENARIO_PARSE_SCENARIO_H
#define GP_SIM_SCENARIO_PARSE_SCENARIO_H

#include "sim/scenario/scenario.h"
#include "yaml/keys.h"

struct reading {
	struct gp_scenario scenario;
	const char *path;
	struct gp_error *err;
	uint32_t entries; /* entries of the list `tasks`; a task with copies is one entry */
	void *gangs;      /* a tree of gangs by name; see tsearch(3) */
	uint64_t ngangs;
	const struct gp_scenario_change *change; /* NULL = none */
	bool changed;                            /* the change was applied */
	char names[128]; /* names of the tasks that were read, for a message */
};

/* Applies r->change if it changes the object `of`: a task's name, "device", or "" for the scenario.
 * To be called after that object was read into `target` and `line`. */
int gp_scenario_change(struct reading *r, struct gp_yaml *y, const char *of,
		       const struct gp_yaml_map *map, void *target,
		       unsigned line[GP_YAML_KEYS_MAX]);

/* Each gets a struct reading. */
gp_yaml_read gp_scenario_read_device, gp_scenario_read_tasks;

/* Used if the file has no key `device`. */
gp_yaml_read gp_scenario_no_device;

/* Reads up to `size` bytes of a file. Returns their number, or -errno. */
ssize_t gp_scenario_read_file(const char *path, char *text, size_t size);

#endif
