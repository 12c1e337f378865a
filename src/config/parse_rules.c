/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the key `rules`, and refuses rules that can never match, by themselves or because an
 * earlier rule matches all their processes. A new rule key is a line in rule_keys (what a rule
 * gives) or in read_match (which processes it matches), and a member of struct gp_rule or
 * gp_criteria.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "config/glob.h"
#include "config/parse_config.h"
#include "task/attr_keys.h"

#define COMM_MAX  15u        /* bytes; the kernel truncates longer names */
#define STEPS_MAX (1u << 20) /* more than two patterns of the allowed length need */

/* The keys of `match`, in the order of GP_ASKS_*. */
enum {
	MATCH_USER,
	MATCH_GROUP,
	MATCH_CGROUP,
	MATCH_EXE,
	MATCH_COMM,
	MATCH_CMDLINE,
	MATCH_ENV,
	MATCH_ANYONE,
	MATCH_KEYS
};

static int check_glob(const struct gp_yaml *y, unsigned line, const char *key, const char *pattern)
{
	const char *mistake = gp_glob_mistake(pattern);

	return mistake ? gp_yaml_fail(y, line, "'%s' %s", key, mistake) : 0;
}

/* The kernel reports absolute paths only. */
static int check_path(const struct gp_yaml *y, unsigned line, const char *key, const char *pattern)
{
	if (*pattern && !strchr("/*?[\\", *pattern))
		return gp_yaml_fail(
			y, line,
			"'%s' can never match: the path must begin with /; write / or * before %s",
			key, gp_yaml_show_text(pattern).text);
	return check_glob(y, line, key, pattern);
}

static int check_env(const struct gp_yaml *y, unsigned line, const struct gp_criteria *m)
{
	if (!m->env_name)
		return gp_yaml_fail(y, line, "'env' must be NAME or NAME=GLOB, not %s",
				    gp_yaml_show_text(m->env).text);
	for (uint32_t i = 0; i < m->env_name; i++)
		if (strchr("*?[]\\", m->env[i]) || isspace((unsigned char)m->env[i]))
			return gp_yaml_fail(
				y, line,
				"the name of a variable is taken as it is and must not contain "
				"globs or blanks; write NAME or NAME=GLOB, not %s",
				gp_yaml_show_text(m->env).text);
	return m->env[m->env_name] ? check_glob(y, line, "env", m->env + m->env_name + 1) : 0;
}

static int check_criteria(const struct gp_yaml *y, const struct gp_criteria *m,
			  const unsigned line[])
{
	int r;

	if (m->asks & GP_ASKS_ANYONE && (!m->anyone || m->asks != GP_ASKS_ANYONE))
		return gp_yaml_fail(y, line[MATCH_ANYONE],
				    "'anyone: true' must be the only key of 'match'; remove it or "
				    "the other keys");
	r = check_path(y, line[MATCH_CGROUP], "cgroup", m->cgroup);
	if (!r)
		r = check_path(y, line[MATCH_EXE], "exe", m->exe);
	if (!r)
		r = check_glob(y, line[MATCH_COMM], "comm", m->comm);
	if (!r)
		r = check_glob(y, line[MATCH_CMDLINE], "cmdline", m->cmdline);
	if (!r && m->asks & GP_ASKS_ENV)
		r = check_env(y, line[MATCH_ENV], m);
	if (!r && gp_glob_least(m->comm) > COMM_MAX)
		return gp_yaml_fail(y, line[MATCH_COMM],
				    "'comm' can never match: the kernel truncates names after %u "
				    "bytes; use 'exe', or * for the rest",
				    COMM_MAX);
	return r;
}

/*
 * True if every text that matches `narrow` also matches `wide`. Only simple cases are recognised.
 */
static bool covers(const char *wide, const char *narrow)
{
	char text[sizeof((struct gp_criteria *)NULL)->cmdline];
	uint32_t steps = STEPS_MAX;

	if (!strcmp(wide, narrow) || !strcmp(wide, "*"))
		return true;
	return gp_glob_is_plain(narrow, text) && gp_glob(wide, text, strlen(text), &steps);
}

static bool env_covers(const struct gp_criteria *wide, const struct gp_criteria *narrow)
{
	const char *pattern = wide->env + wide->env_name;

	if (wide->env_name != narrow->env_name ||
	    memcmp(wide->env, narrow->env, wide->env_name) != 0)
		return false;
	if (!*pattern)
		return true;
	return narrow->env[narrow->env_name] &&
	       covers(pattern + 1, narrow->env + narrow->env_name + 1);
}

/* True if every process that matches `narrow` also matches `wide`. */
static bool matches_all_of(const struct gp_criteria *wide, const struct gp_criteria *narrow)
{
	if (wide->asks == GP_ASKS_ANYONE)
		return true;
	if (wide->asks & ~narrow->asks) /* has more criteria */
		return false;
	return !(wide->asks & GP_ASKS_USER && wide->user != narrow->user) &&
	       !(wide->asks & GP_ASKS_GROUP && wide->group != narrow->group) &&
	       !(wide->asks & GP_ASKS_CGROUP && !covers(wide->cgroup, narrow->cgroup)) &&
	       !(wide->asks & GP_ASKS_EXE && !covers(wide->exe, narrow->exe)) &&
	       !(wide->asks & GP_ASKS_COMM && !covers(wide->comm, narrow->comm)) &&
	       !(wide->asks & GP_ASKS_CMDLINE && !covers(wide->cmdline, narrow->cmdline)) &&
	       !(wide->asks & GP_ASKS_ENV && !env_covers(wide, narrow));
}

/* Refuses a rule that can never match. */
static int check_rule(const struct gp_yaml *y, const struct gp_config *c,
		      const struct gp_rule *rule, const unsigned line[])
{
	int r = check_criteria(y, &rule->match, line);

	for (uint32_t i = 0; !r && i < c->nrules; i++)
		if (matches_all_of(&c->rule[i].match, &rule->match))
			return gp_yaml_fail(y, rule->line,
					    "this rule can never match: the earlier rule on line "
					    "%u matches all its processes; move this rule before "
					    "that one, or remove one of them",
					    c->rule[i].line);
	return r;
}

struct rule_entry {
	struct gp_rule rule;
	const struct gp_config_reading *reading;
	unsigned match_line[GP_YAML_KEYS_MAX];
};

static int find_names(const struct gp_yaml *y, struct rule_entry *e)
{
	struct gp_criteria *m = &e->rule.match;
	int r = 0;

	if (e->match_line[MATCH_USER])
		r = gp_config_find_id(y, e->reading, e->match_line[MATCH_USER], false, m->user_name,
				      &m->user);
	if (!r && e->match_line[MATCH_GROUP])
		r = gp_config_find_id(y, e->reading, e->match_line[MATCH_GROUP], true,
				      m->group_name, &m->group);
	return r;
}

static int read_match(struct gp_yaml *y, void *target)
{
	/* clang-format off */
#define IN(member) AT(struct rule_entry, rule.match.member)
	static const struct gp_yaml_key keys[] = {
		[MATCH_USER]    = {"user",    TEXT, IN(user_name)},
		[MATCH_GROUP]   = {"group",   TEXT, IN(group_name)},
		[MATCH_CGROUP]  = {"cgroup",  TEXT, IN(cgroup)},
		[MATCH_EXE]     = {"exe",     TEXT, IN(exe)},
		[MATCH_COMM]    = {"comm",    TEXT, IN(comm)},
		[MATCH_CMDLINE] = {"cmdline", TEXT, IN(cmdline)},
		[MATCH_ENV]     = {"env",     TEXT, IN(env)},
		[MATCH_ANYONE]  = {"anyone",  BOOL, IN(anyone)},
	};
#undef IN
	/* clang-format on */
	static const struct gp_yaml_map map = {"'match'", MATCH_KEYS, keys};
	struct rule_entry *e = target;
	unsigned at = gp_yaml_line(y);
	int r = gp_yaml_read_map(y, &map, e, e->match_line);

	if (r)
		return r;
	for (unsigned i = 0; i < MATCH_KEYS; i++)
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
		failed = check_rule(y, c, &e.rule, e.match_line);
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
