/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the key `rules`. A new rule key is a line in rule_keys (what a rule gives) or in
 * read_match (which processes it matches), and a member of struct gp_rule or gp_criteria.
 */
#include <errno.h>
#include <string.h>

#include "config/parse_config.h"
#include "task/attr_keys.h"

struct rule_entry {
	struct gp_rule rule;
	const struct gp_config_reading *reading;
	unsigned match_line[GP_YAML_KEYS_MAX];
};

static int find_names(const struct gp_yaml *y, struct rule_entry *e)
{
	struct gp_criteria *m = &e->rule.match;
	int r = 0;

	if (e->match_line[GP_MATCH_USER])
		r = gp_config_find_user(y, e->reading, e->match_line[GP_MATCH_USER], m->user_name,
					&m->user);
	if (!r && e->match_line[GP_MATCH_GROUP])
		r = gp_config_find_group(y, e->reading, e->match_line[GP_MATCH_GROUP],
					 m->group_name, &m->group);
	return r;
}

static int read_match(struct gp_yaml *y, void *target)
{
	/* clang-format off */
#define IN(member) AT(struct rule_entry, rule.match.member)
	static const struct gp_yaml_key keys[] = {
		[GP_MATCH_USER]    = {"user",    TEXT, IN(user_name)},
		[GP_MATCH_GROUP]   = {"group",   TEXT, IN(group_name)},
		[GP_MATCH_CGROUP]  = {"cgroup",  TEXT, IN(cgroup)},
		[GP_MATCH_EXE]     = {"exe",     TEXT, IN(exe)},
		[GP_MATCH_COMM]    = {"comm",    TEXT, IN(comm)},
		[GP_MATCH_CMDLINE] = {"cmdline", TEXT, IN(cmdline)},
		[GP_MATCH_ENV]     = {"env",     TEXT, IN(env)},
		[GP_MATCH_ANYONE]  = {"anyone",  BOOL, IN(anyone)},
	};
#undef IN
	/* clang-format on */
	static const struct gp_yaml_map map = {"'match'", GP_MATCH_KEYS, keys};
	struct rule_entry *e = target;
	unsigned at = gp_yaml_line(y);
	int r = gp_yaml_read_map(y, &map, e, e->match_line);

	if (r)
		return r;
	for (unsigned i = 0; i < GP_MATCH_KEYS; i++)
		if (e->match_line[i])
			e->rule.match.asks |= 1u << i;
	e->rule.match.env_name = (uint32_t)strcspn(e->rule.match.env, "=");
	if (!e->rule.match.asks)
		return gp_yaml_fail(
			y, at, "'match' is empty; name the processes, or write 'anyone: true'");
	return find_names(y, e);
}

static const char *const memory_words[] = {
	[GP_MEMORY_EVENT] = "event", [GP_MEMORY_HOLD] = "hold", NULL};

/* clang-format off */
enum {
	KEY_MATCH, KEY_CLASS, KEY_PRIORITY, KEY_WEIGHT, KEY_SHARE, KEY_CEILING, KEY_DEADLINE,
	KEY_BUDGET, KEY_GANG, KEY_MEMORY, KEY_ON_MEMORY, RULE_KEYS
};

#define IN(member) AT(struct rule_entry, rule.member)
static const struct gp_yaml_key rule_keys[] = {
	[KEY_MATCH]     = {"match",    NESTED(read_match)},
	GP_ATTR_KEYS,
	[KEY_MEMORY]    = {"memory_limit", SIZE(1 << 20, 1ull << 50), IN(memory_limit)},
	[KEY_ON_MEMORY] = {"on_memory_limit", WORD(memory_words), IN(on_memory_limit)},
};
#undef IN
/* clang-format on */

static const struct gp_yaml_map rule_map = {"a rule", RULE_KEYS, rule_keys};

/* Refuses keys that have no effect on an unmanaged process. */
static int check_class(const struct gp_yaml *y, const struct gp_rule *rule, const unsigned line[])
{
	if (rule->attr.class != GP_UNMANAGED)
		return 0;
	for (unsigned i = KEY_PRIORITY; i <= KEY_GANG; i++)
		if (line[i])
			return gp_yaml_fail(y, line[i],
					    "'%s' has no effect on an unmanaged process; add "
					    "'class: be' or 'class: lc'",
					    rule_keys[i].name);
	if (rule->on_memory_limit == GP_MEMORY_HOLD)
		return gp_yaml_fail(
			y, line[KEY_ON_MEMORY],
			"an unmanaged process is never held; add 'class: be' or 'class: lc'");
	return 0;
}

static int check_values(const struct gp_yaml *y, const struct gp_rule *rule, const unsigned line[])
{
	const struct gp_task_attr *a = &rule->attr;

	if (a->ceiling_permille && a->ceiling_permille < a->share_permille)
		return gp_yaml_fail(y, line[KEY_CEILING],
				    "'ceiling' must not be less than 'share', which is guaranteed");
	if (line[KEY_BUDGET] && !line[KEY_DEADLINE])
		return gp_yaml_fail(y, line[KEY_BUDGET],
				    "'budget' has no effect without 'deadline'; add 'deadline'");
	if (a->budget_ns > a->deadline_ns)
		return gp_yaml_fail(y, line[KEY_BUDGET],
				    "'budget' must not be longer than 'deadline'");
	if (line[KEY_ON_MEMORY] && !line[KEY_MEMORY])
		return gp_yaml_fail(y, line[KEY_ON_MEMORY],
				    "'on_memory_limit' has no effect without 'memory_limit'; add "
				    "'memory_limit'");
	return check_class(y, rule, line);
}

static int check_complete(const struct gp_yaml *y, const unsigned line[], unsigned at)
{
	if (!line[KEY_MATCH])
		return gp_yaml_fail(y, at,
				    "the rule needs 'match', which selects its processes; 'match: "
				    "{anyone: true}' selects all");
	for (unsigned i = KEY_CLASS; i < RULE_KEYS; i++)
		if (line[i])
			return 0;
	return gp_yaml_fail(y, at,
			    "the rule gives nothing; add for example 'class: be', or 'class: "
			    "unmanaged' to exempt its processes");
}

static void name_gang(struct gp_rule *rule)
{
	if (!strcmp(rule->gang, "cgroup"))
		rule->gang_kind = GP_GANG_CGROUP;
	else if (!strcmp(rule->gang, "process"))
		rule->gang_kind = GP_GANG_PROCESS;
	else if (rule->gang[0])
		rule->gang_kind = GP_GANG_NAMED;
}

static int read_rule(struct gp_yaml *y, void *target)
{
	struct gp_config_reading *r = target;
	struct gp_config *c = &r->config;
	unsigned line[GP_YAML_KEYS_MAX], at = gp_yaml_line(y);
	struct rule_entry e = {.rule = {.line = at, .attr = GP_TASK_ATTR_DEFAULT}, .reading = r};
	struct gp_rule *list;
	int failed = gp_yaml_read_map(y, &rule_map, &e, line);

	if (!failed)
		failed = check_complete(y, line, at);
	if (!failed)
		failed = check_values(y, &e.rule, line);
	if (!failed)
		failed = gp_config_check_rule(y, c, &e.rule, e.match_line);
	if (failed)
		return failed;
	if (c->nrules == GP_CONFIG_RULES_MAX)
		return gp_yaml_fail(
			y, at, "there are more than %u rules; combine some with globs or groups",
			GP_CONFIG_RULES_MAX);
	name_gang(&e.rule);
	list = gp_config_grow(c->rule, c->nrules, sizeof e.rule);
	if (!list)
		return -ENOMEM;
	c->rule = list;
	list[c->nrules++] = e.rule;
	return 0;
}

int gp_config_read_rules(struct gp_yaml *y, void *target)
{
	return gp_yaml_read_list(y, "rules", read_rule, target);
}
