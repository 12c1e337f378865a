/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files that parse the configuration. */
#ifndef GP_CONFIG_PARSE_CONFIG_H
#define GP_CONFIG_PARSE_CONFIG_H

#include "config/config.h"
#include "yaml/keys.h"

struct gp_config_reading {
	struct gp_config config;
	const struct gp_config_names *names;
};

/* In the order of enum gp_class. */

/* `target` of each is a struct gp_config_reading. */
gp_yaml_read gp_config_read_sockets, gp_config_read_clients, gp_config_read_metrics;
gp_yaml_read gp_config_read_rules, gp_config_read_limits;

/* Look up a user or group; `name` may be a number. An unknown name is an error with a message. */
int gp_config_find_user(const struct gp_yaml *y, const struct gp_config_reading *r, unsigned line,
			const char *name, uid_t *uid);
int gp_config_find_group(const struct gp_yaml *y, const struct gp_config_reading *r, unsigned line,
			 const char *name, gid_t *gid);

/*
 * Enlarges `list`, which has `n` elements of `size` bytes, by one zeroed element; NULL: no memory.
 */
void *gp_config_grow(void *list, uint32_t n, size_t size);

/* Refuses a rule that can never match, by itself or because of an earlier rule. */
int gp_config_check_rule(const struct gp_yaml *y, const struct gp_config *c,
			 const struct gp_rule *rule, const unsigned line[]);

/* The keys of `match`, in the order of GP_ASKS_*. */
enum {
	GP_MATCH_USER,
	GP_MATCH_GROUP,
	GP_MATCH_CGROUP,
	GP_MATCH_EXE,
	GP_MATCH_COMM,
	GP_MATCH_CMDLINE,
	GP_MATCH_ENV,
	GP_MATCH_ANYONE,
	GP_MATCH_KEYS
};

#endif
