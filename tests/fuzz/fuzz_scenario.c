/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a scenario file; what is accepted and small also runs for a moment. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/scenario/scenario.h"

#define RUN_NS      (20 * GP_NS_PER_MS)
#define STEP_MIN_NS (10 * GP_NS_PER_US) /* shorter ones make a run slow and show nothing more */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_quick(const struct gp_scenario *s)
{
	for (uint32_t i = 0; i < s->ntasks; i++) {
		const struct gp_sim_task *t = &s->task[i];
		bool arrives = t->load == GP_LOAD_PERIODIC || t->load == GP_LOAD_POISSON;

		if ((t->load != GP_LOAD_IDLE && t->kernel_ns < STEP_MIN_NS) ||
		    (arrives && t->every_ns < STEP_MIN_NS) ||
		    (t->gap_ns && t->gap_ns < STEP_MIN_NS))
			return false;
	}
	return s->ntasks <= 8 && s->devices <= 2;
}

static void run(struct gp_scenario *s)
{
	struct gp_policy_choice policy;
	struct gp_error err = {0};
	struct gp_run result;

	if (s->duration_ns > RUN_NS)
		s->duration_ns = RUN_NS;
	gp_policy_defaults(&gp_policy_priority, &policy);
	if (!gp_scenario_run(s, &policy, NULL, &result, &err))
		gp_run_free(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_error err = {0};
	struct gp_scenario s;
	int r = gp_scenario_parse(&s, "fuzz.yaml", (const char *)data, size, &err);

	if (r != err.code || (r && !err.text[0]))
		abort(); /* a failure without its sentence */
	if (r)
		return 0;
	if (is_quick(&s))
		run(&s);
	gp_scenario_free(&s);
	return 0;
}
