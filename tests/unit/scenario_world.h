/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scenario that a test builds from tasks and runs under policies, and the result of its run.
 * Both are global; begin and finish free the ones before.
 */
#ifndef TESTS_UNIT_SCENARIO_WORLD_H
#define TESTS_UNIT_SCENARIO_WORLD_H

#include "support/test.h"

#include "sim/scenario/scenario.h"
#include "sim_tasks.h"

extern struct gp_scenario scenario;
extern struct gp_run run;

/* An empty scenario on the simulated H200. */
void begin(uint64_t duration_ns);
void add(struct gp_sim_task task, struct gp_task_attr attr);

/* A scenario of the folder scenarios; the test is skipped if it cannot be read. */
void shipped_load(const char *name, struct gp_scenario *s);

/* Attributes with the default weight. */
#define ATTR(kind, ...) ((struct gp_task_attr){.class = (kind), .weight = 100, __VA_ARGS__})

/* Runs any scenario. An error or an ejected policy fails the test. The caller frees the result. */
struct gp_run run_scenario(struct gp_scenario *s, const char *policy,
			   const struct gp_run_options *options);

/* Runs the scenario into `run` and frees the scenario. */
void finish(const char *policy);

/* Its part of the time in percent, as work that was done. */
static inline double part(const struct gp_run *r, uint32_t task)
{
	return 100.0 * (double)r->task[task].work_ns / (double)r->duration_ns;
}

/* Its work in percent of its work alone. */
static inline double kept(const struct gp_run *r, uint32_t task)
{
	return 100.0 * (double)r->task[task].work_ns / (double)r->task[task].alone_ns;
}

#endif
