/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a scenario file may say (man gpreempt-scenario(5)): shared by the files that read its parts,
 * and by nobody else.
 */
#ifndef GP_SIM_SCENARIO_PARSE_SCENARIO_H
#define GP_SIM_SCENARIO_PARSE_SCENARIO_H

#include "sim/scenario/scenario.h"
#include "yaml/keys.h"

struct reading {
	struct gp_scenario scenario;
	const char *path;
	struct gp_error *err;
	uint32_t entries; /* of the list `tasks`: a task with copies is one */
	void *gangs;      /* a tree of gangs, by name: tsearch(3) */
	uint64_t ngangs;
	const struct gp_scenario_change *change; /* NULL: none */
	bool changed;                            /* what it is about was found */
	char names[128];                         /* of the tasks so far, for a sentence */
};

/* `of` was read into `target` and `line`: if the change is about it, it is made now. */
int gp_scenario_change(struct reading *r, struct gp_yaml *y, const char *of,
                       const struct gp_yaml_map *map, void *target,
                       unsigned line[GP_YAML_KEYS_MAX]);

/* -EINVAL with a sentence for a change that was not about anything. */
int gp_scenario_check_change(const struct reading *r, struct gp_error *err);

/* Each gets a struct reading. */
gp_yaml_read gp_scenario_read_device, gp_scenario_read_tasks;

/* A file that says nothing about the device. */
gp_yaml_read gp_scenario_no_device;

/* Times of arrival, as they are read. */
struct arrivals {
	uint64_t *at_ns;
	uint32_t n, room;
};

#define ARRIVAL_MAX DAY

int gp_arrivals_add(struct arrivals *a, uint64_t at_ns);

/*
 * Reads the file `name` in the folder of the file `scenario`: a time a line, never falling; empty
 * lines and what stands behind a # are passed over. 0 or -errno, with a sentence.
 */
int gp_arrivals_load(struct arrivals *a, const char *scenario, const char *name,
                     struct gp_error *err);

/* Up to `size` bytes of a file. Returns how many, or -errno. */
ssize_t gp_scenario_read_file(const char *path, char *text, size_t size);

#endif
