/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/fields.h"

#include <string.h>

#include "cli/cli.h"

struct json_object *gp_field(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) ? value : NULL;
}

const char *gp_field_text(struct json_object *object, const char *key)
{
	struct json_object *value = gp_field(object, key);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

bool gp_field_number(struct json_object *object, const char *key, uint64_t *number)
{
	struct json_object *value = gp_field(object, key);

	if (!json_object_is_type(value, json_type_int))
		return false;
	/* json-c turns negative numbers into 0; the protocol has none. */
	*number = json_object_get_uint64(value);
	return true;
}

uint64_t gp_field_number_or(struct json_object *object, const char *key, uint64_t otherwise)
{
	uint64_t value;

	return gp_field_number(object, key, &value) ? value : otherwise;
}

bool gp_field_true(struct json_object *object, const char *key)
{
	return json_object_get_boolean(gp_field(object, key));
}

size_t gp_field_count(struct json_object *object, const char *key)
{
	struct json_object *value = gp_field(object, key);

	return json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
}

const char *gp_field_words(struct json_object *object, const char *key, char *out, size_t size)
{
	struct json_object *list = gp_field(object, key);
	size_t n = gp_field_count(object, key), used = 0;

	for (size_t i = 0; i < n && used < size; i++) {
		const char *word = json_object_get_string(json_object_array_get_idx(list, i));

		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "," : "",
					 word ? word : "");
	}
	return n ? out : NULL;
}

void gp_field_put(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

void gp_field_put_text(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, json_object_new_string(value));
}

void gp_field_put_bool(struct json_object *object, const char *key, bool value)
{
	json_object_object_add(object, key, json_object_new_boolean(value));
}

void gp_field_put_decimal(struct json_object *object, const char *key, double value, int digits)
{
	char text[64];

	snprintf(text, sizeof text, "%.*f", digits, value);
	json_object_object_add(object, key, json_object_new_double_s(value, text));
}

void gp_field_put_us(struct json_object *object, const char *key, uint64_t ns)
{
	gp_field_put_decimal(object, key, (double)ns / 1e3, 1);
}

struct json_object *gp_field_put_list(struct json_object *object, const char *key)
{
	struct json_object *list = json_object_new_array();

	json_object_object_add(object, key, list);
	return list;
}

struct json_object *gp_field_put_object(struct json_object *object, const char *key)
{
	struct json_object *inner = json_object_new_object();

	json_object_object_add(object, key, inner);
	return inner;
}

struct json_object *gp_list_object(struct json_object *list)
{
	struct json_object *object = json_object_new_object();

	json_object_array_add(list, object);
	return object;
}

void gp_field_put_known(struct json_object *object, const char *key, uint64_t value)
{
	if (value)
		gp_field_put(object, key, value);
}

void gp_field_put_address(struct json_object *object, const char *key, uint64_t value)
{
	char text[32];

	if (!value)
		return;
	snprintf(text, sizeof text, "0x%llx", (unsigned long long)value);
	gp_field_put_text(object, key, text);
}

const char *gp_json_line(struct json_object *object)
{
	return json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
							      JSON_C_TO_STRING_NOSLASHESCAPE);
}

void gp_print_json(struct json_object *object)
{
	puts(gp_json_line(object));
	fflush(stdout);
}

void gp_print_json_once(struct json_object *object)
{
	gp_print_json(object);
	json_object_put(object);
}

struct gp_eviction gp_field_eviction(struct json_object *o)
{
	const char *by = gp_field_text(o, "evicted_by");

	return (struct gp_eviction){gp_field_number_or(o, "evicted_ns", 0),
				    by && !strcmp(by, "reset")};
}

void gp_field_put_eviction(struct json_object *o, const struct gp_eviction *evicted)
{
	if (evicted->ns)
		gp_field_put_us(o, evicted->by_reset ? "reset_us" : "evicted_us", evicted->ns);
}

void gp_print_eviction(const struct gp_eviction *evicted)
{
	if (evicted->ns)
		printf("; evicted by %s %s ago: it runs %s",
		       evicted->by_reset ? "a GPU reset" : "the driver",
		       gp_cli_duration(evicted->ns).text,
		       evicted->by_reset ? "only after a restart of the program"
					 : "when the driver restores it");
}

enum gp_evidence gp_field_evidence(struct json_object *o)
{
	const char *by = gp_field_text(o, "confirmed_by");

	if (!by)
		return GP_EVIDENCE_ENOUGH;
	return !strcmp(by, "driver") ? GP_EVIDENCE_DRIVER : GP_EVIDENCE_NONE;
}

void gp_print_evidence(enum gp_evidence evidence, bool held)
{
	if (evidence == GP_EVIDENCE_NONE)
		fputs(" (not confirmed: the driver accepted it, and does not tell the state of "
		      "queues)",
		      stdout);
	else if (evidence == GP_EVIDENCE_DRIVER)
		fputs(held ? " (only the driver confirms it, no work was seen to stand still)"
			   : " (only the driver confirms it, not every queue was seen to work "
			     "since)",
		      stdout);
}
