/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds rules that can never match, by themselves or because an earlier rule matches all their
 * processes.
 */
#include <ctype.h>
#include <string.h>

#include "config/glob.h"
#include "config/parse_config.h"

#define COMM_MAX  15u        /* bytes; the kernel truncates longer names */
#define STEPS_MAX (1u << 20) /* more than two patterns of the allowed length need */

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
		return gp_yaml_fail(y, line[GP_MATCH_ANYONE],
				    "'anyone: true' must be the only key of 'match'; remove it or "
				    "the other keys");
	r = check_path(y, line[GP_MATCH_CGROUP], "cgroup", m->cgroup);
	if (!r)
		r = check_path(y, line[GP_MATCH_EXE], "exe", m->exe);
	if (!r)
		r = check_glob(y, line[GP_MATCH_COMM], "comm", m->comm);
	if (!r)
		r = check_glob(y, line[GP_MATCH_CMDLINE], "cmdline", m->cmdline);
	if (!r && m->asks & GP_ASKS_ENV)
		r = check_env(y, line[GP_MATCH_ENV], m);
	if (!r && gp_glob_least(m->comm) > COMM_MAX)
		return gp_yaml_fail(y, line[GP_MATCH_COMM],
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

int gp_config_check_rule(const struct gp_yaml *y, const struct gp_config *c,
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
