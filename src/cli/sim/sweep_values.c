/* SPDX-License-Identifier: Apache-2.0 */
/* Parses --sweep NAME=A:B:N into values. Uses integer arithmetic, so that 0.1 stays 0.1. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/sim/sweep.h"
#include "yaml/value.h"

#define SCALE 1000000000ull /* a number without a unit is stored multiplied by this */

/* A or B. */
struct end {
	bool is_time;
	uint64_t value; /* ns, or SCALE times the number */
	uint64_t step;  /* value of 1 in its last digit */
};

static uint64_t unit_of(const char *unit)
{
	uint64_t ns;
	char one[16];

	if (!*unit)
		return SCALE;
	snprintf(one, sizeof one, "1%s", unit);
	return gp_value_duration(one, &ns) ? 0 : ns;
}

static int parse_end(const char *text, struct end *end)
{
	const char *unit = text + strspn(text, "0123456789."), *point = strchr(text, '.');
	const char *rest = "";
	int r;

	end->is_time = *unit != '\0';
	end->step = unit_of(unit);
	if (end->is_time)
		r = gp_value_duration(text, &end->value);
	else
		r = gp_value_decimal(text, SCALE, &end->value, &rest);
	if (r || !end->step || (!end->is_time && *rest))
		return -EINVAL;
	for (const char *digit = point ? point + 1 : unit; digit < unit && end->step > 1; digit++)
		end->step /= 10;
	return 0;
}

static uint64_t between(const struct end *a, const struct end *b, unsigned i, unsigned n)
{
	uint64_t step = a->step < b->step ? a->step : b->step;
	__int128 from = a->value, to = b->value, value = from + (to - from) * i / (n - 1);

	if (!i || i == n - 1) /* A and B are not rounded */
		return i ? b->value : a->value;
	return (uint64_t)((value + step / 2) / step * step);
}

static void fill_values(struct gp_sweep *s, const struct end *a, const struct end *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t value = between(a, b, i, n);
		struct gp_value_text shown = a->is_time ? gp_value_show_duration(value)
							: gp_value_show_decimal(value, SCALE);

		if (s->n && !strcmp(s->value[s->n - 1], shown.text))
			continue;
		memcpy(s->value[s->n++], shown.text, sizeof shown.text);
	}
}

static int wrong(const char *text, struct gp_error *err)
{
	return gp_fail(err, -EINVAL,
		       "--sweep takes NAME=A:B:N, as inference.rate=100:1000:10 or "
		       "device.switch=50us:500us:4, not '%s'",
		       text);
}

static int parse_values(struct gp_sweep *s, char *values, const char *text, struct gp_error *err)
{
	char *from = strsep(&values, ":"), *to = strsep(&values, ":"), *count = values;
	struct end a, b;
	uint64_t n;

	if (!to || !count || parse_end(from, &a) || parse_end(to, &b) ||
	    !gp_cli_number(count, UINT64_MAX, &n))
		return wrong(text, err);
	if (a.is_time != b.is_time)
		return gp_fail(err, -EINVAL, "--sweep %s: either both ends need a unit or neither",
			       s->name);
	if (n < 2 || n > GP_SWEEP_MAX)
		return gp_fail(err, -EINVAL, "--sweep %s: N must be from 2 to %d, not %s", s->name,
			       GP_SWEEP_MAX, count);
	if (a.value == b.value)
		return gp_fail(err, -EINVAL, "--sweep %s: the two ends are the same", s->name);
	fill_values(s, &a, &b, (unsigned)n);
	return 0;
}

int gp_sweep_parse(struct gp_sweep *s, const char *text, struct gp_error *err)
{
	const char *equals = strchr(text, '='), *dot;
	size_t length = equals ? (size_t)(equals - text) : 0;
	char *values;
	int r;

	*s = (struct gp_sweep){0};
	if (!length || length >= sizeof s->name)
		return wrong(text, err);
	memcpy(s->name, text, length);
	dot = strrchr(s->name, '.');
	if (dot && ((size_t)(dot - s->name) >= sizeof s->of || dot == s->name))
		return wrong(text, err);
	if (dot)
		memcpy(s->of, s->name, (size_t)(dot - s->name));
	dot = dot ? dot + 1 : s->name;
	if (!*dot || strlen(dot) >= sizeof s->key)
		return wrong(text, err);
	memcpy(s->key, dot, strlen(dot));
	values = strdup(equals + 1);
	r = values ? parse_values(s, values, text, err)
		   : gp_fail(err, -ENOMEM, "no memory for --sweep");
	free(values);
	return r;
}
