/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of policies that share the device: simulated devices of each kind, tasks on them,
 * and the part of the time that each of them got.
 */
#ifndef GP_TESTS_SHARING_H
#define GP_TESTS_SHARING_H

#include "base/rng.h"
#include "scenario_world.h"

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

static inline bool knows_at_once(const struct device_kind *kind)
{
	return kind->activity == GP_ACTIVITY_EXACT || kind->activity == GP_ACTIVITY_EVENTS;
}

const struct device_kind *device_named(const char *name);
void begin_on(const struct device_kind *kind, uint64_t duration_ns);
struct gp_task_attr be_attr(uint32_t weight);

/* A test that runs on a device of each kind, `kind`. */
#define DEVICE_TEST(function)                                                           \
	static void function##_on(const struct device_kind *kind);                      \
	TEST(function)                                                                  \
	{                                                                               \
		for (const struct device_kind *kind = device_kinds; kind->name; kind++) \
			function##_on(kind);                                            \
	}                                                                               \
	static void function##_on(const struct device_kind *kind)

/* A task that always has work. */
static inline struct gp_sim_task busy(uint64_t kernel_ns)
{
	return (struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = kernel_ns};
}

static inline uint64_t between(struct gp_rng *rng, uint64_t low, uint64_t high)
{
	return low + gp_rng_below(rng, high - low + 1);
}

/* The part of a task in the last run, in percent. */
void assert_part(const struct device_kind *kind, uint32_t task, double wanted, double within);

/* The same for the tasks 0, 1, 2 ... */
#define ASSERT_PARTS(kind, within, ...)                           \
	assert_parts(kind, within, (const double[]){__VA_ARGS__}, \
		     sizeof((double[]){__VA_ARGS__}) / sizeof(double))
void assert_parts(const struct device_kind *kind, double within, const double *wanted, size_t n);

#endif
