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

/* `target` of each is a struct gp_config_reading. */
gp_yaml_read gp_config_read_sockets, gp_config_read_clients, gp_config_read_metrics;
gp_yaml_read gp_config_read_rules, gp_config_read_limits;

/* Looks up a user or group; `name` may be a number. An unknown name is an error with a message. */
int gp_config_find_id(const struct gp_yaml *y, const struct gp_config_reading *r, unsigned line,
		      bool group, const char *name, uint32_t *id);

/*
 * Enlarges `list`, which has `n` elements of `size` bytes, by one zeroed element; NULL: no memory.
 */
void *gp_config_grow(void *list, uint32_t n, size_t size);

#endif
