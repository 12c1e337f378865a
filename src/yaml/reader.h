/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the reader; private to src/yaml. */
#ifndef GP_YAML_READER_H
#define GP_YAML_READER_H

#include <stdbool.h>
#include <yaml.h>

#include "yaml/yaml.h"

struct gp_yaml {
	yaml_parser_t parser;
	yaml_event_t event; /* the event at the current position */
	const struct gp_yaml_kind *kind;
	const char *path;
	const char *text;
	size_t length;
	struct gp_error *err;
};

static inline const char *gp_yaml_scalar(const struct gp_yaml *y)
{
	return (const char *)y->event.data.scalar.value;
}

bool gp_yaml_is_control(const char *c);

struct gp_yaml_shown gp_yaml_show_event(const struct gp_yaml *y);

/* "'priority' must be a whole number from 0 to 15, not '16'" */
int gp_yaml_wrong_value(const struct gp_yaml *y, const struct gp_yaml_key *k);
int gp_yaml_unknown_key(const struct gp_yaml *y, const struct gp_yaml_map *map);

#endif
