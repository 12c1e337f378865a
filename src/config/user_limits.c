/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far users may raise their own processes: the key `limits`, and combining and applying limits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/parse_config.h"
#include "config/rights.h"

const struct gp_limit gp_limit_default = {
	.class = GP_UNMANAGED,
	.priority = 0,
	.weight = 100,
	.share_permille = 0,
	.ceiling_permille = 1000,
	.deadline_ns = GP_NEVER,
	.memory = UINT64_MAX,
	.max_tasks = 1024,
};

const struct gp_limit gp_limit_least = {
	.class = GP_BEST_EFFORT,
	.deadline_ns = GP_NEVER,
	.memory = UINT64_MAX,
	.max_tasks = 1024,
};

const struct gp_limit gp_limit_none = {
	.class = GP_LATENCY_CRITICAL,
	.priority = GP_PRIORITY_MAX,
	.weight = UINT32_MAX,
	.share_permille = 1000,
	.ceiling_permille = 1000,
	.deadline_ns = 0,
	.memory = UINT64_MAX,
	.max_tasks = UINT32_MAX,
};

unsigned gp_class_rank(uint8_t class)
{
	switch (class) {
	case GP_BEST_EFFORT: return 0;
	case GP_LATENCY_CRITICAL: return 2;
	default: return 1;
	}
}

/* Makes `l` allow what either of the two allows or, without `widen`, only what both allow. */
static void combine(struct gp_limit *l, const struct gp_limit *by, bool widen)
{
	uint64_t (*upper)(uint64_t a, uint64_t b) = widen ? gp_most : gp_least;
	uint64_t (*lower)(uint64_t a, uint64_t b) = widen ? gp_least : gp_most;

	if ((gp_class_rank(by->class) > gp_class_rank(l->class)) == widen)
		l->class = by->class;
	l->priority = (uint8_t)upper(l->priority, by->priority);
	l->weight = (uint32_t)upper(l->weight, by->weight);
	l->share_permille = (uint32_t)upper(l->share_permille, by->share_permille);
	l->ceiling_permille = (uint32_t)upper(l->ceiling_permille, by->ceiling_permille);
	l->deadline_ns = lower(l->deadline_ns, by->deadline_ns);
	l->memory = upper(l->memory, by->memory);
	l->max_tasks = (uint32_t)upper(l->max_tasks, by->max_tasks);
}

void gp_limit_widen(struct gp_limit *limit, const struct gp_limit *by)
{
	combine(limit, by, true);
}

static void add_groups(const struct gp_config *c, const gid_t *gid, uint32_t ngids,
		       struct gp_limit *limit)
{
	for (uint32_t i = 0; i < c->ngroups; i++)
		for (uint32_t j = 0; j < ngids; j++)
			if (c->group[i].id == gid[j]) {
				gp_limit_widen(limit, &c->group[i].limit);
				break;
			}
}

static struct gp_limit limit_of_user(const struct gp_config *c, struct gp_limit limit, uid_t uid,
				     const gid_t *gid, uint32_t ngids)
{
	for (uint32_t i = 0; i < c->nusers; i++)
		if (c->user[i].id == uid)
			gp_limit_widen(&limit, &c->user[i].limit);
	add_groups(c, gid, ngids, &limit);
	return limit;
}

struct gp_limit gp_config_limit(const struct gp_config *c, uid_t uid, const gid_t *gid,
				uint32_t ngids)
{
	return limit_of_user(c, c->granted, uid, gid, ngids);
}

void gp_limit_add_given(struct gp_limit *limit, const struct gp_task_attr *given)
{
	struct gp_limit by = {
		.class = given->class,
		.priority = given->priority,
		.weight = given->weight,
		.share_permille = given->share_permille,
		.ceiling_permille = given->ceiling_permille ? given->ceiling_permille : 1000,
		.deadline_ns = given->deadline_ns ? given->deadline_ns : GP_NEVER,
	};
	uint64_t promise = gp_least(gp_promise_permille(given), 1000);

	by.share_permille = (uint32_t)gp_most(by.share_permille, promise);
	gp_limit_widen(limit, &by);
}

struct gp_limit gp_config_limit_of(const struct gp_config *c, const struct gp_procinfo *info)
{
	struct gp_limit limit = gp_limit_none;

	if (!(info->known & GP_PROCINFO_USER))
		return c->limit;
	for (unsigned i = 0; i < 3; i++) {
		struct gp_limit one;

		if (!info->uid[i] && !info->other_pidns)
			continue;
		one = limit_of_user(c, c->limit, info->uid[i], info->group, info->ngroups);
		add_groups(c, &info->gid, 1, &one);
		combine(&limit, &one, false);
	}
	return limit;
}

uint64_t gp_promise_permille(const struct gp_task_attr *attr)
{
	unsigned __int128 permille = attr->budget_ns;

	if (!attr->deadline_ns)
		return 0;
	permille = (permille * 1000 + attr->deadline_ns - 1) / attr->deadline_ns;
	return permille < UINT64_MAX ? (uint64_t)permille : UINT64_MAX;
}

/* Deadline and budget together guarantee budget / deadline of the device. */
static bool clamp_promise(const struct gp_limit *limit, struct gp_task_attr *attr)
{
	struct gp_task_attr was = *attr;

	if (!attr->deadline_ns)
		return false;
	if (attr->deadline_ns < limit->deadline_ns)
		attr->deadline_ns = limit->deadline_ns;
	if (gp_promise_permille(attr) > limit->share_permille)
		attr->budget_ns = attr->deadline_ns / 1000 * limit->share_permille;
	/* No deadline is allowed, or the budget became 0. */
	if (limit->deadline_ns == GP_NEVER || (was.budget_ns && !attr->budget_ns))
		attr->deadline_ns = attr->budget_ns = 0;
	return was.deadline_ns != attr->deadline_ns || was.budget_ns != attr->budget_ns;
}

bool gp_limit_clamp(const struct gp_limit *limit, struct gp_task_attr *attr)
{
	uint32_t ceiling = attr->ceiling_permille ? attr->ceiling_permille : 1000;
	struct gp_task_attr was = *attr;
	bool clamped = clamp_promise(limit, attr);

	if (gp_class_rank(attr->class) > gp_class_rank(limit->class))
		attr->class = limit->class;
	attr->priority = (uint8_t)gp_least(attr->priority, limit->priority);
	attr->weight = (uint32_t)gp_least(attr->weight, limit->weight);
	attr->share_permille = (uint32_t)gp_least(attr->share_permille, limit->share_permille);
	if (ceiling > limit->ceiling_permille)
		attr->ceiling_permille = limit->ceiling_permille;
	return clamped || was.class != attr->class || was.priority != attr->priority ||
	       was.weight != attr->weight || was.share_permille != attr->share_permille ||
	       was.ceiling_permille != attr->ceiling_permille;
}

/* The key `limits`, and users and groups by name. */

static bool parse_id(const char *name, uint32_t *id)
{
	size_t digits = strspn(name, "0123456789");
	unsigned long value;

	if (!digits || name[digits] || digits > 10)
		return false;
	value = strtoul(name, NULL, 10);
	*id = (uint32_t)value;
	return value < UINT32_MAX; /* reserved for "no user" */
}

int gp_config_find_id(const struct gp_yaml *y, const struct gp_config_reading *r, unsigned line,
		      bool group, const char *name, uint32_t *id)
{
	const char *what = group ? "group" : "user";
	int failed = (group ? r->names->group : r->names->user)(name, id);

	if (failed != -ENOENT || parse_id(name, id))
		return failed == -ENOENT ? 0 : failed;
	return gp_yaml_fail(y, line, "there is no %s %s on this machine; 'getent %s' lists all %ss",
			    what, gp_yaml_show_text(name).text, group ? "group" : "passwd", what);
}

/* Stores into `written`, if not NULL, only the values that the file sets. */
static int read_limit(struct gp_yaml *y, struct gp_limit *limit, struct gp_limit *written)
{
	/* clang-format off */
#define IN(member) AT(struct gp_limit, member)
	static const struct gp_yaml_key keys[] = {
		{"class",     WORD(gp_class_words), IN(class)},
		{"priority",  WHOLE(0, GP_PRIORITY_MAX), IN(priority)},
		{"weight",    WHOLE(1, 10000), IN(weight)},
		{"share",     PERCENT, IN(share_permille)},
		{"ceiling",   PERCENT, IN(ceiling_permille)},
		{"deadline",  DURATION(GP_NS_PER_US, HOUR), IN(deadline_ns)},
		{"memory",    SIZE(1 << 20, 1ull << 50), IN(memory)},
		{"max_tasks", WHOLE(0, 1000000), IN(max_tasks)},
	};
#undef IN
	/* clang-format on */
	static const struct gp_yaml_map map = {"a limit", sizeof keys / sizeof *keys, keys};
	unsigned line[GP_YAML_KEYS_MAX], at = gp_yaml_line(y);
	int r = gp_yaml_read_map(y, &map, limit, line);
	bool any = false;

	for (unsigned i = 0; !r && i < map.nkeys; i++) {
		any |= line[i] != 0;
		if (line[i] && written)
			memcpy((char *)written + keys[i].offset, (char *)limit + keys[i].offset,
			       keys[i].size);
	}
	if (!r && !any)
		return gp_yaml_fail(y, at, "the limit is empty; add for example 'class: lc'");
	if (!r && line[4] && !limit->ceiling_permille)
		return gp_yaml_fail(y, line[4], "'ceiling' must be more than 0");
	return r;
}

static int read_default(struct gp_yaml *y, void *target)
{
	struct gp_config *c = &((struct gp_config_reading *)target)->config;

	return read_limit(y, &c->limit, &c->granted);
}

/*
 * Values that the file does not set for a user or group are the smallest, so that the default limit
 * applies.
 */
static const struct gp_limit least = {.class = GP_BEST_EFFORT, .deadline_ns = GP_NEVER};

static int add_limit(struct gp_yaml *y, const char *name, unsigned line, uint32_t id,
		     struct gp_config_limit **list, uint32_t *n)
{
	struct gp_config_limit *more;

	for (uint32_t i = 0; i < *n; i++)
		if ((*list)[i].id == id)
			return gp_yaml_fail(y, line, "%s is listed twice; remove one of them",
					    gp_yaml_show_text(name).text);
	if (*n == GP_CONFIG_LIMITS_MAX)
		return gp_yaml_fail(y, line, "there are more than %u limits; use limits for groups",
				    GP_CONFIG_LIMITS_MAX);
	more = gp_config_grow(*list, *n, sizeof **list);
	if (!more)
		return -ENOMEM;
	*list = more;
	more[*n] = (struct gp_config_limit){.id = id, .limit = least};
	return read_limit(y, &more[(*n)++].limit, NULL);
}

static int read_entry(struct gp_yaml *y, const char *name, unsigned line,
		      struct gp_config_reading *r, bool group)
{
	struct gp_config *c = &r->config;
	uint32_t id = 0;
	int failed = gp_config_find_id(y, r, line, group, name, &id);

	if (failed)
		return failed;
	return group ? add_limit(y, name, line, id, &c->group, &c->ngroups)
		     : add_limit(y, name, line, id, &c->user, &c->nusers);
}

static int read_user(struct gp_yaml *y, const char *name, unsigned line, void *target)
{
	return read_entry(y, name, line, target, false);
}

static int read_group(struct gp_yaml *y, const char *name, unsigned line, void *target)
{
	return read_entry(y, name, line, target, true);
}

static int read_users(struct gp_yaml *y, void *target)
{
	return gp_yaml_read_names(y, "users", read_user, target);
}

static int read_groups(struct gp_yaml *y, void *target)
{
	return gp_yaml_read_names(y, "groups", read_group, target);
}

int gp_config_read_limits(struct gp_yaml *y, void *target)
{
	static const struct gp_yaml_key keys[] = {
		{"default", NESTED(read_default)},
		{"users", NESTED(read_users)},
		{"groups", NESTED(read_groups)},
	};
	static const struct gp_yaml_map map = {"'limits'", 3, keys};
	unsigned line[GP_YAML_KEYS_MAX];

	return gp_yaml_read_map(y, &map, target, line);
}
