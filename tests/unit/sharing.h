/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of policies that share the device: simulated devices of each kind, tasks on them,
 * and the part of the time that each of them got.
 */
#ifndef GP_TESTS_SHARING_H
#define GP_TESTS_SHARING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rng.h"
#include "sim/scenario/scenario.h"

#define US   GP_NS_PER_US
#define MS   GP_NS_PER_MS
#define S    GP_NS_PER_S

#define SETS 25u /* random sets of tasks that are tried on each device */

struct device_kind {
	const char *name;
	bool slices;
	enum gp_sim_activity activity;
	enum gp_sim_model model;
	enum gp_sim_scheduler scheduler;
};

static const struct device_kind device_kinds[] = {
	{.name = "slices, sampled activity", .slices = true, .activity = GP_ACTIVITY_SAMPLED},
	{.name = "slices, no activity", .slices = true, .activity = GP_ACTIVITY_NONE},
	{.name = "slices, exact activity", .slices = true, .activity = GP_ACTIVITY_EXACT},
	{.name = "slices, events", .slices = true, .activity = GP_ACTIVITY_EVENTS},
	{.name = "no slices, exact activity", .activity = GP_ACTIVITY_EXACT},
	{.name = "no slices, events", .activity = GP_ACTIVITY_EVENTS},
	{.name = "cwsr, HWS", .activity = GP_ACTIVITY_EVENTS, .model = GP_SIM_CWSR},
	{"cwsr, MES", false, GP_ACTIVITY_EVENTS, GP_SIM_CWSR, GP_SIM_MES},
	{.name = NULL},
};

static struct gp_scenario scenario;

static inline bool knows_at_once(const struct device_kind *kind)
{
	return kind->activity == GP_ACTIVITY_EXACT || kind->activity == GP_ACTIVITY_EVENTS;
}

static inline const struct device_kind *device_named(const char *name)
{
	for (const struct device_kind *kind = device_kinds; kind->name; kind++)
		if (!strcmp(kind->name, name))
			return kind;
	fail_msg("there is no device '%s'", name);
	return NULL;
}

static inline void begin(const struct device_kind *kind, uint64_t duration_ns)
{
	gp_scenario_init(&scenario);
	scenario.duration_ns = duration_ns;
	if (kind->model == GP_SIM_CWSR)
		scenario.device = gp_sim_mi300x;
	scenario.device.scheduler = kind->scheduler;
	scenario.device.slices = kind->slices;
	scenario.device.activity = kind->activity;
}

static inline struct gp_task_attr be_attr(uint32_t weight)
{
	struct gp_task_attr attr = GP_TASK_ATTR_DEFAULT;

	attr.class = GP_BEST_EFFORT;
	attr.weight = weight;
	return attr;
}

static inline void add(struct gp_sim_task task, struct gp_task_attr attr)
{
	snprintf(task.name, sizeof task.name, "task%u", scenario.ntasks);
	task.stop_ns = task.stop_ns ? task.stop_ns : GP_NEVER;
	assert_int_equal(gp_scenario_add(&scenario, &task, &attr), 0);
}

/* A task that always has work. */
static inline struct gp_sim_task busy(uint64_t kernel_ns)
{
	return (struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = kernel_ns};
}

static inline uint64_t between(struct gp_rng *rng, uint64_t low, uint64_t high)
{
	return low + gp_rng_below(rng, high - low + 1);
}

/* The caller frees the run; the scenario is freed here. */
static inline struct gp_run finish(const char *policy)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};
	struct gp_run run;

	if (gp_policy_parse(policy, &choice, &err) ||
	    gp_scenario_run(&scenario, &choice, NULL, &run, &err)) {
		fail_msg("%s", err.text);
		abort(); /* fail_msg does not return, but some analysers do not know that */
	}
	gp_scenario_free(&scenario);
	if (run.ejections)
		fail_msg("%s was ejected: %s", policy, run.ejected);
	return run;
}

/* Its part of the time in percent, as work that was done. */
static inline double part(const struct gp_run *run, uint32_t task)
{
	return 100.0 * (double)run->task[task].work_ns / (double)run->duration_ns;
}

static inline void assert_part(const struct device_kind *kind, const struct gp_run *run,
                               uint32_t task, double wanted, double within)
{
	double got = part(run, task);

	if (getenv("GPREEMPT_SHOW"))
		print_message("%-28s task %u: %5.1f %%, wanted %5.1f\n", kind->name, task, got,
		              wanted);
	else if (got < wanted - within || got > wanted + within)
		fail_msg("%s: task %u got %.1f %% of the time, not %.1f", kind->name, task, got,
		         wanted);
}

#endif
