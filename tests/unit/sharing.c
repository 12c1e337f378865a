/* SPDX-License-Identifier: Apache-2.0 */
#include "sharing.h"

const struct device_kind *device_named(const char *name)
{
	for (const struct device_kind *kind = device_kinds; kind->name; kind++)
		if (!strcmp(kind->name, name))
			return kind;
	fail_msg("there is no device '%s'", name);
	return NULL;
}

void begin_on(const struct device_kind *kind, uint64_t duration_ns)
{
	begin(duration_ns);
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

void assert_part(const struct device_kind *kind, uint32_t task, double wanted, double within)
{
	double got = part(&run, task);

	if (getenv("GPREEMPT_SHOW"))
		print_message("%-28s task %u: %5.1f %%, wanted %5.1f\n", kind->name, task, got,
			      wanted);
	else if (got < wanted - within || got > wanted + within)
		fail_msg("%s: task %u got %.1f %% of the time, not %.1f", kind->name, task, got,
			 wanted);
}

void assert_parts(const struct device_kind *kind, double within, const double *wanted, size_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_part(kind, i, wanted[i], within);
}
