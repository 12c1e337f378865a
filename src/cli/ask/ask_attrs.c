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

/* Appends text, after `between` if there is text already. */
__attribute__((format(printf, 3, 4))) static void append(struct sentence *s, const char *between,
							 const char *format, ...)
{
	va_list args;

	if (s->used)
		s->used += (size_t)snprintf(s->out + s->used, s->size - s->used, "%s", between);
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
		append(s, ", ", "%s %g %%", name, (double)value / 10);
}

static void add_time(struct sentence *s, struct json_object *attr, const char *key,
		     const char *name)
{
	uint64_t ns = gp_field_number_or(attr, key, 0);

	if (ns)
		append(s, ", ", "%s %s", name, gp_cli_duration(ns).text);
}

const char *gp_ask_attr_text(struct json_object *attr, char *out, size_t size)
{
	struct sentence s = {.out = out, .size = size};
	const char *class = gp_field_text(attr, "class"), *gang = gp_field_text(attr, "gang");
	uint64_t value;

	*out = 0;
	if (class)
		append(&s, ", ", "class %s", class);
	if (gp_field_number(attr, "priority", &value))
		append(&s, ", ", "priority %llu", (unsigned long long)value);
	if (gp_field_number(attr, "weight", &value))
		append(&s, ", ", "weight %llu", (unsigned long long)value);
	add_permille(&s, attr, "share_permille", "share");
	add_permille(&s, attr, "ceiling_permille", "ceiling");
	add_time(&s, attr, "deadline_ns", "deadline");
	add_time(&s, attr, "budget_ns", "budget");
	if (gang && *gang)
		append(&s, ", ", "gang %s", gang);
	return out;
}

/* The attributes by GP_GIVEN_*: name in the daemon's list, key of the answer, and default. */
static const struct {
	const char *name, *key;
	uint64_t usual;
} attributes[] = {
	{"class", "class", 0},
	{"priority", "priority", 0},
	{"weight", "weight", 100},
	{"share", "share_permille", 0},
	{"ceiling", "ceiling_permille", 0},
	{"deadline", "deadline_ns", 0},
	{"budget", "budget_ns", 0},
	{"gang", "gang", 0},
};
#define ATTRIBUTES (sizeof attributes / sizeof *attributes)

static bool has_word(struct json_object *list, const char *word)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		if (!strcmp(json_object_get_string(json_object_array_get_idx(list, i)), word))
			return true;
	return false;
}

/*
 * The attributes (GP_GIVEN_*) that the effect is told of: those that were given, and those that
 * differ from the default. Class be has an effect under every policy: the process is managed.
 */
static unsigned chosen_attributes(struct json_object *attr, unsigned given)
{
	const char *class = gp_field_text(attr, "class");
	unsigned chosen = 0;

	if (class && !strcmp(class, gp_class_name(GP_LATENCY_CRITICAL)))
		chosen |= GP_GIVEN_CLASS;
	for (unsigned i = 1; i < ATTRIBUTES; i++) {
		struct json_object *value = gp_field(attr, attributes[i].key);

		if (value &&
		    (given & 1u << i || json_object_get_uint64(value) != attributes[i].usual))
			chosen |= 1u << i;
	}
	return chosen;
}

/* Which attributes of `chosen` have no effect on a device. */
static unsigned without_effect(struct json_object *device, unsigned chosen)
{
	struct json_object *in_force = gp_field(device, "in_force");
	unsigned unused = 0;

	for (unsigned i = 0; i < ATTRIBUTES && in_force; i++)
		if (chosen & 1u << i && !has_word(in_force, attributes[i].name))
			unused |= 1u << i;
	return unused;
}

/* One clause for each policy that does not use all of `chosen`. */
static void append_unused(struct sentence *s, struct json_object *answer, unsigned chosen)
{
	const char *class = gp_field_text(gp_field(answer, "attr"), "class"), *told = "";

	for (size_t i = 0; i < gp_field_count(answer, "devices"); i++) {
		struct json_object *device =
			json_object_array_get_idx(gp_field(answer, "devices"), i);
		const char *policy = gp_field_text(device, "policy"), *between = " ";
		unsigned unused = without_effect(device, chosen);

		if (!unused || !policy || !strcmp(policy, told))
			continue;
		if (class && !strcmp(class, gp_class_name(GP_UNMANAGED))) {
			append(s, "; ", "an unmanaged process is left alone");
			return;
		}
		told = policy;
		append(s, "; ", "policy %s does not use", policy);
		for (unsigned k = 0; k < ATTRIBUTES; k++)
			if (unused & 1u << k) {
				append(s, between, k ? "%s" : "%s lc", attributes[k].name);
				between = ", ";
			}
	}
}

const char *gp_ask_unused_text(struct json_object *answer, const struct gp_given_attrs *given,
			       char *out, size_t size)
{
	struct sentence s = {.out = out, .size = size};
	unsigned chosen = chosen_attributes(gp_field(answer, "attr"), given->given);

	*out = 0;
	append_unused(&s, answer, chosen & given->given);
	return out;
}

const char *gp_ask_effect_text(struct json_object *answer, const struct gp_given_attrs *given,
			       char *out, size_t size)
{
	struct sentence s = {.out = out, .size = size};
	struct json_object *devices = gp_field(answer, "devices");
	uint64_t tasks = gp_field_number_or(answer, "tasks", 0);
	unsigned chosen = chosen_attributes(gp_field(answer, "attr"), given->given);
	unsigned asked = chosen & given->given;
	size_t n = gp_field_count(answer, "devices"), idle = 0;

	for (size_t i = 0; i < n && asked && !(given->given & GP_GIVEN_CLASS); i++)
		idle += without_effect(json_object_array_get_idx(devices, i), asked) == asked;
	*out = 0;
	if (n && idle == n)
		append(&s, "", "kept without effect");
	else if (tasks)
		append(&s, "", "in force on %llu device%s", (unsigned long long)tasks,
		       tasks == 1 ? "" : "s");
	else
		append(&s, "", "not using a GPU yet; takes effect as soon as it does");
	append_unused(&s, answer, chosen);
	return out;
}
