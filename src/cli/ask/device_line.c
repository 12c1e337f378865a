/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask/device_line.h"

#include <string.h>

void gp_show_device(struct json_object *d)
{
	const char *state = gp_field_text(d, "state"), *name = gp_field_text(d, "name");
	const char *policy = gp_field_text(d, "policy"),
		   *wanted = gp_field_text(d, "policy_wanted");

	printf("device %llu: %s, policy %s", (unsigned long long)gp_field_number_or(d, "device", 0),
	       name ? name : "?", policy ? policy : "?");
	if (policy && wanted && strcmp(policy, wanted) != 0)
		printf(" instead of %s", wanted);
	if (state && strcmp(state, "ok") != 0)
		printf(", %s", state);
}

void gp_show_ejection(struct json_object *d)
{
	struct json_object *ejection = gp_field(d, "ejection");
	const char *policy = gp_field_text(ejection, "policy"),
		   *text = gp_field_text(ejection, "text");

	if (text)
		printf("  policy %s was thrown out: %s\n", policy ? policy : "?", text);
}
