/* SPDX-License-Identifier: Apache-2.0 */
/* The scenarios that come with the program, for tests that compare them with what was measured. */
#ifndef TESTS_UNIT_SHIPPED_H
#define TESTS_UNIT_SHIPPED_H

#include "support/test.h"

#include "build_config.h"
#include "sim/scenario/scenario.h"

/* Skips the test where it cannot be read. */
static inline void shipped_load(const char *name, struct gp_scenario *s)
{
	const char *source = getenv("SRC");
	struct gp_error err = {0};
	char path[512];

	if (!GP_HAVE_YAML || !source)
		skip();
	snprintf(path, sizeof path, "%s/scenarios/%s.yaml", source, name);
	if (gp_scenario_load(s, path, &err))
		fail_msg("%s", err.text);
}

/* A policy that is thrown out fails the test. */
static inline void shipped_run_watched(struct gp_scenario *s, const char *policy,
                                       const struct gp_run_options *options, struct gp_run *run)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	if (gp_policy_parse(policy, &choice, &err) ||
	    gp_scenario_run(s, &choice, options, run, &err)) {
		fail_msg("%s", err.text);
		abort(); /* fail_msg does not come back; not every reader knows */
	}
	assert_int_equal(run->ejections, 0);
}

static inline void shipped_run(struct gp_scenario *s, const char *policy, struct gp_run *run)
{
	shipped_run_watched(s, policy, NULL, run);
}

#endif
