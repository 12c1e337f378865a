/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, durations and sizes as people write them, parsed to exact integers: "6.3us" is 6300 ns.
 */
#ifndef GP_YAML_VALUE_H
#define GP_YAML_VALUE_H

#include <stdint.h>

/*
 * Parses digits with an optional fraction. Returns the number multiplied by `scale`, and where it
 * ends. -EINVAL: not a number, -ERANGE: too large, -EDOM: finer than 1/scale.
 */
int gp_value_decimal(const char *text, uint64_t scale, uint64_t *value, const char **end);

/* Parses a number with a unit: ns, us, ms, s, m or h. -EINVAL: not a duration, -ENODATA: the unit
 * is missing, -ERANGE: too large, -EDOM: finer than 1 ns. */
int gp_value_duration(const char *text, uint64_t *ns);

/* Parses a number with a unit: B, KiB, MiB, GiB or TiB. -EINVAL: not a size, -ENODATA: the unit is
 * missing, -ERANGE: too large, -EDOM: finer than 1 byte. */
int gp_value_size(const char *text, uint64_t *bytes);

/* Formats a value in the largest unit that gives an integer. */
struct gp_value_text {
	char text[32];
};
struct gp_value_text gp_value_show_duration(uint64_t ns);
struct gp_value_text gp_value_show_size(uint64_t bytes);
struct gp_value_text gp_value_show_decimal(uint64_t value, uint64_t scale);

#endif
