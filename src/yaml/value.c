/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "yaml/value.h"

#define DIGITS "0123456789"

/* clang-format off */
struct unit {
	const char *name;
	uint64_t size;
};

/* Largest unit first: a value is shown in the first unit that divides it. Lists end with NULL. */
static const struct unit times[] = {
	{"h",  3600 * GP_NS_PER_S},
	{"m",  60 * GP_NS_PER_S},
	{"s",  GP_NS_PER_S},
	{"ms", GP_NS_PER_MS},
	{"us", GP_NS_PER_US},
	{"ns", 1},
	{NULL, 0},
};

static const struct unit sizes[] = {
	{"TiB", 1ull << 40},
	{"GiB", 1ull << 30},
	{"MiB", 1ull << 20},
	{"KiB", 1ull << 10},
	{"B",   1},
	{NULL,  0},
};
/* clang-format on */

int gp_value_decimal(const char *text, uint64_t scale, uint64_t *value, const char **end)
{
	size_t whole = strspn(text, DIGITS);
	size_t part = text[whole] == '.' ? strspn(text + whole + 1, DIGITS) : 0;
	uint64_t sum = 0;

	if (!whole || (text[whole] == '.' && !part))
		return -EINVAL;
	for (; whole; whole--, text++)
		if (__builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum))
			return -ERANGE;
	if (__builtin_mul_overflow(sum, scale, &sum))
		return -ERANGE;
	for (text += part != 0; part; part--, text++) {
		if (*text != '0' && (scale < 10 || scale % 10))
			return -EDOM;
		scale /= 10;
		if (__builtin_add_overflow(sum, scale * (uint64_t)(*text - '0'), &sum))
			return -ERANGE;
	}
	*value = sum;
	*end = text;
	return 0;
}

static int value_with_unit(const struct unit *units, const char *text, uint64_t *value)
{
	const char *unit = text + strspn(text, DIGITS "."), *end = NULL;
	uint64_t found;
	int r = -EINVAL;

	for (const struct unit *u = units; u->name; u++)
		if (!strcmp(unit, u->name))
			r = gp_value_decimal(text, u->size, &found, &end);
	if (!*unit && !gp_value_decimal(text, GP_NS_PER_S, &found, &end))
		return -ENODATA;
	if (!r && end != unit) /* 1.2.3s */
		r = -EINVAL;
	if (!r)
		*value = found;
	return r;
}

int gp_value_duration(const char *text, uint64_t *ns)
{
	return value_with_unit(times, text, ns);
}

int gp_value_size(const char *text, uint64_t *bytes)
{
	return value_with_unit(sizes, text, bytes);
}

/* 0 is shown in the unit of the size `zero`. */
static struct gp_value_text show_with_unit(const struct unit *u, uint64_t value, uint64_t zero)
{
	struct gp_value_text shown;

	while (value ? value % u->size != 0 : u->size != zero)
		u++;
	snprintf(shown.text, sizeof shown.text, "%" PRIu64 "%s", value / u->size, u->name);
	return shown;
}

struct gp_value_text gp_value_show_duration(uint64_t ns)
{
	return show_with_unit(times, ns, GP_NS_PER_S);
}

struct gp_value_text gp_value_show_size(uint64_t bytes)
{
	return show_with_unit(sizes, bytes, 1);
}

struct gp_value_text gp_value_show_decimal(uint64_t value, uint64_t scale)
{
	struct gp_value_text shown;
	int n = snprintf(shown.text, sizeof shown.text, "%" PRIu64, value / scale);
	size_t at = (size_t)n;

	if (value % scale)
		shown.text[at++] = '.';
	while ((value %= scale) && at < sizeof shown.text - 1) {
		scale /= 10;
		shown.text[at++] = (char)('0' + value / scale);
	}
	shown.text[at] = '\0';
	return shown;
}
