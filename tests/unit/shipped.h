/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped scenarios, for tests that compare them with measurements. */
#ifndef TESTS_UNIT_SHIPPED_H
#define TESTS_UNIT_SHIPPED_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "sim/scenario/scenario.h"

/* Skips the test if it cannot be read. */
static inline void shipped_load(const char *name, struct gp_scenario *s)
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

/* An ejected policy fails the test. */
static inline void shipped_run_watched(struct gp_scenario *s, const char *policy,
                                       const struct gp_run_options *options, struct gp_run *run)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	if (gp_policy_parse(policy, &choice, &err) ||
	    gp_scenario_run(s, &choice, options, run, &err)) {
		fail_msg("%s", err.text);
		abort(); /* fail_msg does not return, but some analysers do not know that */
	}
	assert_int_equal(run->ejections, 0);
}

static inline void shipped_run(struct gp_scenario *s, const char *policy, struct gp_run *run)
{
	shipped_run_watched(s, policy, NULL, run);
}

#endif
