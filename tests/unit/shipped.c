/* SPDX-License-Identifier: Apache-2.0 */
#include "shipped.h"

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

void shipped_run_watched(struct gp_scenario *s, const char *policy,
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
