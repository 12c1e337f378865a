/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_world.h"

#include "base/log.h"

struct gp_scenario scenario;
struct gp_run run;

void begin(uint64_t duration_ns)
{
	gp_scenario_init(&scenario);
	scenario.duration_ns = duration_ns;
}

void shipped_load(const char *name, struct gp_scenario *s)
{
	const char *source = getenv("SRC");
	struct gp_error err = {0};
	char path[512];

	if (!source)
		skip();
	snprintf(path, sizeof path, "%s/scenarios/%s.yaml", source, name);
	if (gp_scenario_load(s, path, &err))
		fail_msg("%s", err.text);
}

void add(struct gp_sim_task task, struct gp_task_attr attr)
{
	if (!task.name[0])
		snprintf(task.name, sizeof task.name, "task%u", scenario.ntasks);
	task.stop_ns = task.stop_ns ? task.stop_ns : GP_NEVER;
	assert_int_equal(gp_scenario_add(&scenario, &task, &attr), 0);
}

struct gp_run run_scenario(struct gp_scenario *s, const char *policy,
			   const struct gp_run_options *options)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};
	struct gp_run result;

	gp_log_set_level(GP_LOG_ERROR);
	if (gp_policy_parse(policy, &choice, &err) ||
	    gp_scenario_run(s, &choice, options, &result, &err)) {
		fail_msg("%s", err.text);
		abort(); /* fail_msg does not return, but some analysers do not know that */
	}
	if (result.ejections)
		fail_msg("%s was ejected: %s", policy, result.ejected);
	return result;
}

void finish(const char *policy)
{
	gp_run_free(&run);
	run = run_scenario(&scenario, policy, NULL);
	gp_scenario_free(&scenario);
}
