/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of policies that share the device: simulated devices of each kind, tasks on them,
 * and the part of the time that each of them got.
 */
#ifndef GP_TESTS_SHARING_H
#define GP_TESTS_SHARING_H

#include "support/test.h"

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

extern struct gp_scenario scenario;

static inline bool knows_at_once(const struct device_kind *kind)
{
	return kind->activity == GP_ACTIVITY_EXACT || kind->activity == GP_ACTIVITY_EVENTS;
}

const struct device_kind *device_named(const char *name);
void begin(const struct device_kind *kind, uint64_t duration_ns);
struct gp_task_attr be_attr(uint32_t weight);
void add(struct gp_sim_task task, struct gp_task_attr attr);

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
struct gp_run finish(const char *policy);

/* Its part of the time in percent, as work that was done. */
static inline double part(const struct gp_run *run, uint32_t task)
{
	return 100.0 * (double)run->task[task].work_ns / (double)run->duration_ns;
}

void assert_part(const struct device_kind *kind, const struct gp_run *run, uint32_t task,
		 double wanted, double within);

#endif
