/* SPDX-License-Identifier: Apache-2.0 */
/* Short macros for the entries of key tables. Only files with such tables include this header,
 * because its names have no prefix. */
#ifndef GP_YAML_KEYS_H
#define GP_YAML_KEYS_H

#include "base/clock.h"
#include "yaml/yaml.h"

#define HOUR               (3600 * GP_NS_PER_S)
#define DAY                (24 * HOUR)

#define AT(type, member)   .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define TEXT               .type = GP_YAML_TEXT
#define WORD(list)         .type = GP_YAML_WORD, .words = (list)
#define BOOL               .type = GP_YAML_BOOL
#define SIZE(from, to)     .type = GP_YAML_SIZE, .min = (from), .max = (to)
#define NESTED(call)       .type = GP_YAML_NESTED, .read = (call)
#define WHOLE(from, to)    .type = GP_YAML_NUMBER, .min = (from), .max = (to), .scale = 1
#define PERCENT            .type = GP_YAML_NUMBER, .max = 1000, .scale = 10, .unit = "percent"
#define DURATION(from, to) .type = GP_YAML_DURATION, .min = (from), .max = (to), .scale = 1
#define MICROSECONDS(from, to) \
	.type = GP_YAML_DURATION, .min = (from), .max = (to), .scale = GP_NS_PER_US

#endif
