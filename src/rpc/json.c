/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json-c parses the line. A scan of the text before it finds what json-c accepts or does not
 * report: single quotes, NaN, numbers that it truncates to 64 bits, duplicate keys.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/wire.h"

struct json_tokener *gp_json_tokener(void)
{
	struct json_tokener *tokener = json_tokener_new_ex(GP_RPC_DEPTH);

	if (tokener)
		json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	return tokener;
}

struct json_object *gp_json_begin(void)
{
	errno = 0;
	return json_object_new_object();
}

void gp_json_add(struct json_object *into, const char *key, struct json_object *value)
{
	if (!into || json_object_object_add(into, key, value))
		json_object_put(value);
}

void gp_json_append(struct json_object *into, struct json_object *value)
{
	if (!into || json_object_array_add(into, value))
		json_object_put(value);
}

const char *gp_json_text(struct json_object *json, size_t *length)
{
	const char *text = json_object_to_json_string_length(
		json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, length);

	if (errno != ENOMEM)
		return text;
	errno = 0; /* concerns this object only */
	return NULL;
}

/* Returns the position after the string with its text at `p`, or NULL with a message. */
static const char *skip_string(const char *p, struct gp_error *err)
{
	for (; *p != '"'; p++) {
		if ((unsigned char)*p < ' ') { /* includes the end of the line */
			gp_fail(err, -EBADMSG,
				*p ? "a string contains a control character"
				   : "a string is not terminated");
			return NULL;
		}
		if (*p != '\\')
			continue;
		if (strncmp(p + 1, "u0000", 5) == 0) {
			gp_fail(err, -EBADMSG, "a string contains a zero byte");
			return NULL;
		}
		if (p[1] == '"' || p[1] == '\\')
			p++;
	}
	return p + 1;
}

/* Returns the position after the number at `p`, or NULL if it does not fit into 64 bits. */
static const char *skip_number(const char *p)
{
	const char *end = p + strspn(p, "+-.0123456789eE");
	bool whole = !memchr(p, '.', (size_t)(end - p)) && !memchr(p, 'e', (size_t)(end - p)) &&
		     !memchr(p, 'E', (size_t)(end - p));

	errno = 0;
	if (whole && *p == '-')
		(void)strtoll(p, NULL, 10);
	else if (whole)
		(void)strtoull(p, NULL, 10);
	return errno == ERANGE ? NULL : end;
}

/* Returns the number of keys, which is the number of colons outside strings, or -EBADMSG. */
static int check_text(const char *p, struct gp_error *err)
{
	int keys = 0;

	while (*p) {
		if (*p == '"') {
			p = skip_string(p + 1, err);
			if (!p)
				return -EBADMSG;
		} else if (*p == '-' || isdigit((unsigned char)*p)) {
			p = skip_number(p);
			if (!p)
				return gp_fail(err, -EBADMSG, "a number does not fit into 64 bits");
		} else if (*p == '\'' || isupper((unsigned char)*p)) {
			return gp_fail(err, -EBADMSG, "unexpected character %c", *p);
		} else {
			keys += *p++ == ':';
		}
	}
	return keys;
}

static int check_value(struct json_object *json, int *keys)
{
	int r = 0;

	switch (json_object_get_type(json)) {
	case json_type_double: return isfinite(json_object_get_double(json)) ? 0 : -ERANGE;
	case json_type_array:
		for (size_t i = 0; !r && i < json_object_array_length(json); i++)
			r = check_value(json_object_array_get_idx(json, i), keys);
		return r;
	case json_type_object: {
		json_object_object_foreach(json, key, value)
		{
			(void)key;
			++*keys;
			r = check_value(value, keys);
			if (r)
				return r;
		}
		return 0;
	}
	default: return 0;
	}
}

static int check_tree(struct json_object *json, int keys, struct gp_error *err)
{
	int kept = 0;

	if (check_value(json, &kept))
		return gp_fail(err, -EBADMSG, "a number is too large");
	if (kept != keys)
		return gp_fail(err, -EBADMSG, "an object contains a key twice");
	return 0;
}

/* Parses a text that has `keys` keys. */
static int parse(struct json_tokener *tokener, const char *line, size_t length, int keys,
		 struct json_object **json, struct gp_error *err)
{
	enum json_tokener_error e;
	int r;

	json_tokener_reset(tokener);
	errno = 0;
	*json = json_tokener_parse_ex(tokener, line, (int)length + 1);
	e = json_tokener_get_error(tokener);
	if (errno == ENOMEM)
		r = gp_fail(err, -ENOMEM, "no memory");
	else if (e != json_tokener_success)
		r = gp_fail(err, -EBADMSG, "this is not JSON: %s, at byte %zu",
			    json_tokener_error_desc(e), json_tokener_get_parse_end(tokener));
	else
		r = check_tree(*json, keys, err);
	if (r) {
		json_object_put(*json);
		*json = NULL;
	}
	return r;
}

/* Trap: without memory json-c leaves a key out and reports no error, and the next number that it
 * reads resets errno. So the text is blamed only if it is wrong twice. */
int gp_json_read(struct json_tokener *tokener, const char *line, size_t length,
		 struct json_object **json, struct gp_error *err)
{
	int keys, r;

	*json = NULL;
	if (strnlen(line, length) != length)
		return gp_fail(err, -EBADMSG, "this is not JSON: it contains a zero byte");
	if (!gp_utf8_valid(line))
		return gp_fail(err, -EBADMSG, "this is not JSON: it is not valid UTF-8");
	keys = check_text(line, err);
	if (keys < 0) {
		gp_error_prefix(err, "this is not JSON");
		return keys;
	}
	r = parse(tokener, line, length, keys, json, NULL);
	return r ? parse(tokener, line, length, keys, json, err) : 0;
}
