/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the key `limits`: how far users may raise their own processes. Also looks up users and
 * groups by name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/parse_config.h"

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

int gp_config_find_user(const struct gp_yaml *y, const struct gp_config_reading *r, unsigned line,
			const char *name, uid_t *uid)
{
	int failed = r->names->user(name, uid);

	if (failed != -ENOENT || parse_id(name, uid))
		return failed == -ENOENT ? 0 : failed;
	return gp_yaml_fail(y, line,
			    "there is no user %s on this machine; 'getent passwd' lists all users",
			    gp_yaml_show_text(name).text);
}

int gp_config_find_group(const struct gp_yaml *y, const struct gp_config_reading *r, unsigned line,
			 const char *name, gid_t *gid)
{
	int failed = r->names->group(name, gid);

	if (failed != -ENOENT || parse_id(name, gid))
		return failed == -ENOENT ? 0 : failed;
	return gp_yaml_fail(y, line,
			    "there is no group %s on this machine; 'getent group' lists all groups",
			    gp_yaml_show_text(name).text);
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

static int read_user(struct gp_yaml *y, const char *name, unsigned line, void *target)
{
	struct gp_config_reading *r = target;
	uid_t uid = 0;
	int failed = gp_config_find_user(y, r, line, name, &uid);

	return failed ? failed : add_limit(y, name, line, uid, &r->config.user, &r->config.nusers);
}

static int read_group(struct gp_yaml *y, const char *name, unsigned line, void *target)
{
	struct gp_config_reading *r = target;
	gid_t gid = 0;
	int failed = gp_config_find_group(y, r, line, name, &gid);

	return failed ? failed
		      : add_limit(y, name, line, gid, &r->config.group, &r->config.ngroups);
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
