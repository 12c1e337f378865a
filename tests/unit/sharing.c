/* SPDX-License-Identifier: Apache-2.0 */
#include "sharing.h"

struct gp_scenario scenario;

const struct device_kind *device_named(const char *name)
{
	for (const struct device_kind *kind = device_kinds; kind->name; kind++)
		if (!strcmp(kind->name, name))
			return kind;
	fail_msg("there is no device '%s'", name);
	return NULL;
}

void begin(const struct device_kind *kind, uint64_t duration_ns)
{
	gp_scenario_init(&scenario);
	scenario.duration_ns = duration_ns;
	if (kind->model == GP_SIM_CWSR)
		scenario.device = gp_sim_mi300x;
	scenario.device.scheduler = kind->scheduler;
	scenario.device.slices = kind->slices;
	scenario.device.activity = kind->activity;
}

struct gp_task_attr be_attr(uint32_t weight)
{
	struct gp_task_attr attr = GP_TASK_ATTR_DEFAULT;

	attr.class = GP_BEST_EFFORT;
	attr.weight = weight;
	return attr;
}

void add(struct gp_sim_task task, struct gp_task_attr attr)
{
	snprintf(task.name, sizeof task.name, "task%u", scenario.ntasks);
	task.stop_ns = task.stop_ns ? task.stop_ns : GP_NEVER;
	assert_int_equal(gp_scenario_add(&scenario, &task, &attr), 0);
}

struct gp_run finish(const char *policy)
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

void assert_part(const struct device_kind *kind, const struct gp_run *run, uint32_t task,
		 double wanted, double within)
{
	double got = part(run, task);

	if (getenv("GPREEMPT_SHOW"))
		print_message("%-28s task %u: %5.1f %%, wanted %5.1f\n", kind->name, task, got,
			      wanted);
	else if (got < wanted - within || got > wanted + within)
		fail_msg("%s: task %u got %.1f %% of the time, not %.1f", kind->name, task, got,
			 wanted);
}
