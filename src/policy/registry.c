/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/registry.h"

/* One policy per line, so that a new policy changes one line. */
/* clang-format off */
const struct gp_policy_ops *const gp_policies[] = {
	&gp_policy_none,
	&gp_policy_priority,
	&gp_policy_rr,
	&gp_policy_fair,
	&gp_policy_share,
	&gp_policy_mlfq,
	&gp_policy_edf,
	&gp_policy_lax,
	&gp_policy_qos,
	NULL,
};
/* clang-format on */

const char *const gp_attr_use_names[] = {"class",   "priority", "weight", "share",
					 "ceiling", "deadline", "budget", NULL};

const struct gp_policy_ops *gp_policy_find(const char *name)
{
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	return NULL;
}

void gp_policy_defaults(const struct gp_policy_ops *ops, struct gp_policy_choice *choice)
{
	*choice = (struct gp_policy_choice){.ops = ops};
	for (uint32_t i = 0; i < ops->nparam; i++)
		choice->param[i] = ops->param[i].def;
}

static int parse_param(const char *text, size_t length, struct gp_policy_choice *choice,
		       struct gp_error *err)
{
	const struct gp_policy_ops *ops = choice->ops;
	const char *equals = memchr(text, '=', length);
	size_t name = equals ? (size_t)(equals - text) : length;
	const struct gp_param *p;
	long long value;
	char *end;
	uint32_t i;

	for (i = 0; i < ops->nparam; i++)
		if (strlen(ops->param[i].name) == name && !memcmp(ops->param[i].name, text, name))
			break;
	if (i == ops->nparam)
		return gp_fail(err, -EINVAL,
			       "policy %s has no parameter '%.*s'; see gpreempt policy --list",
			       ops->name, (int)name, text);
	p = &ops->param[i];
	if (!equals || equals + 1 == text + length)
		return gp_fail(err, -EINVAL,
			       "parameter '%s' of policy %s needs a value, for example %s=%lld",
			       p->name, ops->name, p->name, (long long)p->def);
	errno = 0;
	value = strtoll(equals + 1, &end, 10);
	if (errno || end != text + length || value < p->min || value > p->max)
		return gp_fail(
			err, -EINVAL,
			"parameter '%s' of policy %s takes a whole number from %lld to %lld %s",
			p->name, ops->name, (long long)p->min, (long long)p->max, p->unit);
	choice->param[i] = value;
	return 0;
}

static int unknown_policy(const char *name, size_t length, struct gp_error *err)
{
	char all[160] = "";

	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++) {
		strncat(all, all[0] ? ", " : "", sizeof all - strlen(all) - 1);
		strncat(all, (*p)->name, sizeof all - strlen(all) - 1);
	}
	return gp_fail(err, -EINVAL, "there is no policy '%.*s'; the policies are: %s", (int)length,
		       name, all);
}

int gp_policy_parse(const char *text, struct gp_policy_choice *choice, struct gp_error *err)
{
	size_t length = strcspn(text, ":");
	char name[32];

	if (length >= sizeof name)
		return unknown_policy(text, length, err);
	memcpy(name, text, length);
	name[length] = '\0';
	if (!gp_policy_find(name))
		return unknown_policy(text, length, err);
	gp_policy_defaults(gp_policy_find(name), choice);
	for (text += length; *text; text += length) {
		int r;

		length = strcspn(++text, ":");
		r = parse_param(text, length, choice, err);
		if (r)
			return r;
	}
	return 0;
}
