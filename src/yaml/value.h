/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and durations as people write them, in integers: "6.3us" is 6300 ns and nothing near it.
 */
#ifndef GP_YAML_VALUE_H
#define GP_YAML_VALUE_H

#include <stdint.h>

/*
 * Digits, perhaps a point and more digits; gives the number times `scale` and where it ends.
 * -EINVAL: not a number, -ERANGE: too large, -EDOM: finer than 1/scale.
 */
int gp_value_decimal(const char *text, uint64_t scale, uint64_t *value, const char **end);

/*
 * A number and one of ns, us, ms, s, m, h. -EINVAL: not a duration, -ENODATA: the unit is missing,
 * -ERANGE: too large, -EDOM: finer than 1 ns.
 */
int gp_value_duration(const char *text, uint64_t *ns);

/*
 * A number and one of B, KiB, MiB, GiB, TiB, in bytes. -EINVAL: not a size, -ENODATA: the unit is
 * missing, -ERANGE: too large, -EDOM: finer than 1 byte.
 */
int gp_value_size(const char *text, uint64_t *bytes);

/* The other way, in the largest unit that leaves a whole number. */
struct gp_value_text {
	char text[32];
};
struct gp_value_text gp_value_show_duration(uint64_t ns);
struct gp_value_text gp_value_show_size(uint64_t bytes);
struct gp_value_text gp_value_show_decimal(uint64_t value, uint64_t scale);

#endif
