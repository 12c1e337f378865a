/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json-c reads the line; before that, one pass over the text for what json-c lets through or does
 * not tell: 'single quotes', NaN, numbers that it cuts to 64 bits, keys that come twice.
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

const char *gp_json_text(struct json_object *json, size_t *length)
{
	return json_object_to_json_string_length(
		json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, length);
}

/* ---- the text ---------------------------------------------------------------------------------
 */

/* Behind the string that begins after `p`, or NULL with a sentence. */
static const char *pass_string(const char *p, struct gp_error *err)
{
	for (; *p != '"'; p++) {
		if ((unsigned char)*p < ' ') { /* also the end of the line */
			gp_fail(err, -EBADMSG,
			        *p ? "a control character stands in a string"
			           : "a string has no end");
			return NULL;
		}
		if (*p != '\\')
			continue;
		if (strncmp(p + 1, "u0000", 5) == 0) {
			gp_fail(err, -EBADMSG, "a string holds a zero byte");
			return NULL;
		}
		if (p[1] == '"' || p[1] == '\\')
			p++;
	}
	return p + 1;
}

/* Behind the number at `p`, or NULL: it does not fit into 64 bits. */
static const char *pass_number(const char *p)
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

/* How many keys the line has: as many as colons outside strings. Or -EBADMSG. */
static int look_at_text(const char *p, struct gp_error *err)
{
	int keys = 0;

	while (*p) {
		if (*p == '"') {
			p = pass_string(p + 1, err);
			if (!p)
				return -EBADMSG;
		} else if (*p == '-' || isdigit((unsigned char)*p)) {
			p = pass_number(p);
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

/* ---- the tree: not deeper than the tokener allows ----------------------------------------------
 */

static int look_at_value(struct json_object *json, int *keys)
{
	int r = 0;

	switch (json_object_get_type(json)) {
	case json_type_double: return isfinite(json_object_get_double(json)) ? 0 : -ERANGE;
	case json_type_array:
		for (size_t i = 0; !r && i < json_object_array_length(json); i++)
			r = look_at_value(json_object_array_get_idx(json, i), keys);
		return r;
	case json_type_object: {
		json_object_object_foreach(json, key, value)
		{
			(void)key;
			++*keys;
			r = look_at_value(value, keys);
			if (r)
				return r;
		}
		return 0;
	}
	default: return 0;
	}
}

static int look_at_tree(struct json_object *json, int keys, struct gp_error *err)
{
	int kept = 0;

	if (look_at_value(json, &kept))
		return gp_fail(err, -EBADMSG, "a number is too large");
	if (kept != keys)
		return gp_fail(err, -EBADMSG, "a key comes twice in an object");
	return 0;
}

/* -----------------------------------------------------------------------------------------------
 */

int gp_json_read(struct json_tokener *tokener, const char *line, size_t length,
                 struct json_object **json, struct gp_error *err)
{
	enum json_tokener_error e;
	int keys, r;

	*json = NULL;
	if (strnlen(line, length) != length)
		return gp_fail(err, -EBADMSG, "this is not JSON: it holds a zero byte");
	if (!gp_utf8_valid(line))
		return gp_fail(err, -EBADMSG, "this is not JSON: it is not UTF-8");
	keys = look_at_text(line, err);
	if (keys < 0) {
		gp_error_prefix(err, "this is not JSON");
		return keys;
	}
	json_tokener_reset(tokener);
	*json = json_tokener_parse_ex(tokener, line, (int)length + 1);
	e = json_tokener_get_error(tokener);
	if (e != json_tokener_success)
		r = gp_fail(err, -EBADMSG, "this is not JSON: %s, at byte %zu",
		            json_tokener_error_desc(e), json_tokener_get_parse_end(tokener));
	else
		r = look_at_tree(*json, keys, err);
	if (r) {
		json_object_put(*json);
		*json = NULL;
	}
	return r;
}
