/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes as parameters of a call, and as text. */
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ask/ask.h"

void gp_ask_put_attrs(struct json_object *params, const struct gp_given_attrs *given)
{
	const struct gp_task_attr *a = &given->attr;

	if (given->given & GP_GIVEN_CLASS)
		json_object_object_add(params, "class",
				       json_object_new_string(gp_class_name(a->class)));
	if (given->given & GP_GIVEN_PRIORITY)
		gp_field_put(params, "priority", a->priority);
	if (given->given & GP_GIVEN_WEIGHT)
		gp_field_put(params, "weight", a->weight);
	if (given->given & GP_GIVEN_SHARE)
		gp_field_put(params, "share_permille", a->share_permille);
	if (given->given & GP_GIVEN_CEILING)
		gp_field_put(params, "ceiling_permille", a->ceiling_permille);
	if (given->given & GP_GIVEN_DEADLINE)
		gp_field_put(params, "deadline_ns", a->deadline_ns);
	if (given->given & GP_GIVEN_BUDGET)
		gp_field_put(params, "budget_ns", a->budget_ns);
	if (given->given & GP_GIVEN_GANG)
		json_object_object_add(params, "gang", json_object_new_string(given->gang));
}

struct sentence {
	char *out;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct sentence *s, const char *format, ...)
{
	va_list args;

	if (s->used)
		s->used += (size_t)snprintf(s->out + s->used, s->size - s->used, ", ");
	if (s->used >= s->size)
		s->used = s->size - 1;
	va_start(args, format);
	s->used += (size_t)vsnprintf(s->out + s->used, s->size - s->used, format, args);
	va_end(args);
	if (s->used >= s->size)
		s->used = s->size - 1;
}

static void add_permille(struct sentence *s, struct json_object *attr, const char *key,
			 const char *name)
{
	uint64_t value = gp_field_number_or(attr, key, 0);

	if (value)
		add(s, "%s %g %%", name, (double)value / 10);
}

static void add_time(struct sentence *s, struct json_object *attr, const char *key,
		     const char *name)
{
	uint64_t ns = gp_field_number_or(attr, key, 0);
	char text[32];

	if (ns)
		add(s, "%s %s", name, gp_cli_duration(text, sizeof text, ns));
}

const char *gp_ask_attr_text(struct json_object *attr, char *out, size_t size)
{
	struct sentence s = {.out = out, .size = size};
	const char *class = gp_field_text(attr, "class"), *gang = gp_field_text(attr, "gang");
	uint64_t value;

	*out = 0;
	if (class)
		add(&s, "class %s", class);
	if (gp_field_number(attr, "priority", &value))
		add(&s, "priority %llu", (unsigned long long)value);
	if (gp_field_number(attr, "weight", &value))
		add(&s, "weight %llu", (unsigned long long)value);
	add_permille(&s, attr, "share_permille", "share");
	add_permille(&s, attr, "ceiling_permille", "ceiling");
	add_time(&s, attr, "deadline_ns", "deadline");
	add_time(&s, attr, "budget_ns", "budget");
	if (gang && *gang)
		add(&s, "gang %s", gang);
	return out;
}
