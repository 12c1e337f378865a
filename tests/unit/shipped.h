/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped scenarios, for tests that compare them with measurements. */
#ifndef TESTS_UNIT_SHIPPED_H
#define TESTS_UNIT_SHIPPED_H

#include "support/test.h"

#include "sim/scenario/scenario.h"

/* Skips the test if it cannot be read. */
void shipped_load(const char *name, struct gp_scenario *s);

/* An ejected policy fails the test. */
void shipped_run_watched(struct gp_scenario *s, const char *policy,
			 const struct gp_run_options *options, struct gp_run *run);

static inline void shipped_run(struct gp_scenario *s, const char *policy, struct gp_run *run)
{
	shipped_run_watched(s, policy, NULL, run);
}

#endif
