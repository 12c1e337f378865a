/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes one value of a scenario. The change is made while the file is read, right after the value
 * in the file. So the same checks (ranges, units, combinations) apply to it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/scenario/parse_scenario.h"

static void note_name(struct reading *r, const char *name)
{
	size_t used = strlen(r->names);

	snprintf(r->names + used, sizeof r->names - used, "%s%s", used ? ", " : "", name);
}

int gp_scenario_change(struct reading *r, struct gp_yaml *y, const char *of,
		       const struct gp_yaml_map *map, void *target, unsigned line[GP_YAML_KEYS_MAX])
{
	const struct gp_scenario_change *c = r->change;

	if (!c)
		return 0;
	if (of[0] && strcmp(of, "device") != 0)
		note_name(r, of);
	if (strcmp(of, c->of) != 0)
		return 0;
	r->changed = true;
	return gp_yaml_set(y, map, target, line, c->key, c->value);
}

int gp_scenario_check_change(const struct reading *r, struct gp_error *err)
{
	if (!r->change || r->changed)
		return 0;
	return gp_fail(err, -EINVAL, "there is no task '%s' in %s; there are: %s", r->change->of,
		       r->path, r->names);
}
