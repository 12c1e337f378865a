/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/params.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/utf8.h"

#define WORDS_SIZE 160

/* Appends a word to a list such as "lc, be, unmanaged". */
static void append_word(char *all, size_t size, const char *word)
{
	size_t n = strlen(all);

	snprintf(all + n, size - n, "%s%s", n ? ", " : "", word);
}

/*
 * An untrusted name, shortened and without control characters, so that it cannot forge a log line.
 */
struct shown {
	char text[48];
};

static struct shown show(const char *text)
{
	struct shown s;
	size_t n = strnlen(text, sizeof s.text - 4);

	for (size_t i = 0; i < n; i++)
		s.text[i] = (char)(text[i] < ' ' || text[i] > '~' ? '?' : text[i]);
	snprintf(s.text + n, sizeof s.text - n, "%s", text[n] ? "..." : "");
	return s;
}

static int not_one_of(const char *what, const char *word, const char *const *name, unsigned n,
		      struct gp_error *err)
{
	struct gp_suggest suggest;
	char all[WORDS_SIZE] = "";

	gp_suggest_begin(&suggest, word);
	for (unsigned i = 0; i < n; i++) {
		gp_suggest_offer(&suggest, name[i]);
		append_word(all, sizeof all, name[i]);
	}
	if (suggest.nearest)
		return gp_fail(err, -EINVAL, "%s '%s' is not known; perhaps '%s' is meant", what,
			       show(word).text, suggest.nearest);
	return gp_fail(err, -EINVAL, "%s '%s' is not known; there %s %s", what, show(word).text,
		       n == 1 ? "is" : "are", n ? all : "none");
}

int gp_params_known(struct json_object *params, const char *const *key, unsigned nkeys,
		    struct gp_error *err)
{
	json_object_object_foreach(params, name, value)
	{
		unsigned i = 0;

		(void)value;
		while (i < nkeys && strcmp(name, key[i]) != 0)
			i++;
		if (i == nkeys)
			return not_one_of("parameter", name, key, nkeys, err);
	}
	return 0;
}

/* `*value` is NULL if the key is missing and not required. */
static int find_param(struct json_object *params, const char *key, struct json_object **value,
		      bool *present, struct gp_error *err)
{
	*value = json_object_object_get(params, key);
	if (present)
		*present = *value != NULL;
	else if (!*value)
		return gp_fail(err, -EINVAL, "parameter '%s' is missing", key);
	return 0;
}

int gp_params_u64(struct json_object *params, const char *key, uint64_t min, uint64_t max,
		  uint64_t *value, bool *present, struct gp_error *err)
{
	struct json_object *json;
	int r = find_param(params, key, &json, present, err);
	uint64_t n;

	if (r || !json)
		return r;
	n = json_object_get_uint64(json); /* 0 if negative */
	if (!json_object_is_type(json, json_type_int) || json_object_get_int64(json) < 0 ||
	    n < min || n > max)
		return max == UINT64_MAX
			       ? gp_fail(err, -EINVAL,
					 "parameter '%s' must be a whole number, %" PRIu64
					 " or more",
					 key, min)
			       : gp_fail(err, -EINVAL,
					 "parameter '%s' must be a whole number from %" PRIu64
					 " to %" PRIu64,
					 key, min, max);
	*value = n;
	return 0;
}

int gp_params_bool(struct json_object *params, const char *key, bool *value, bool *present,
		   struct gp_error *err)
{
	struct json_object *json;
	int r = find_param(params, key, &json, present, err);

	if (r || !json)
		return r;
	if (!json_object_is_type(json, json_type_boolean))
		return gp_fail(err, -EINVAL, "parameter '%s' must be true or false", key);
	*value = json_object_get_boolean(json);
	return 0;
}

int gp_params_string(struct json_object *params, const char *key, size_t max, const char **value,
		     bool *present, struct gp_error *err)
{
	struct json_object *json;
	int r = find_param(params, key, &json, present, err);
	const char *text;
	size_t n;

	if (r || !json)
		return r;
	if (!json_object_is_type(json, json_type_string))
		return gp_fail(err, -EINVAL, "parameter '%s' must be a string", key);
	text = json_object_get_string(json);
	n = strlen(text);
	if (!n || n > max)
		return gp_fail(err, -EINVAL, "parameter '%s' must have 1 to %zu bytes", key, max);
	if (!gp_utf8_is_clean(text))
		return gp_fail(err, -EINVAL, "parameter '%s' contains a control character", key);
	*value = text;
	return 0;
}

int gp_params_choice(struct json_object *params, const char *key, const char *const *word,
		     unsigned nwords, unsigned *value, bool *present, struct gp_error *err)
{
	struct json_object *json;
	int r = find_param(params, key, &json, present, err);
	const char *text;

	if (r || !json)
		return r;
	if (!json_object_is_type(json, json_type_string))
		return gp_fail(err, -EINVAL, "parameter '%s' must be a string", key);
	text = json_object_get_string(json);
	for (unsigned i = 0; i < nwords; i++)
		if (strcmp(text, word[i]) == 0) {
			*value = i;
			return 0;
		}
	return not_one_of(key, text, word, nwords, err);
}

int gp_params_object(struct json_object *params, const char *key, struct json_object **value,
		     bool *present, struct gp_error *err)
{
	struct json_object *json;
	int r = find_param(params, key, &json, present, err);

	if (r || !json)
		return r;
	if (!json_object_is_type(json, json_type_object))
		return gp_fail(err, -EINVAL, "parameter '%s' must be a JSON object", key);
	*value = json;
	return 0;
}

int gp_params_array(struct json_object *params, const char *key, unsigned max,
		    struct json_object **value, bool *present, struct gp_error *err)
{
	struct json_object *json;
	int r = find_param(params, key, &json, present, err);

	if (r || !json)
		return r;
	if (!json_object_is_type(json, json_type_array) || json_object_array_length(json) > max)
		return gp_fail(err, -EINVAL, "parameter '%s' must be a list of at most %u items",
			       key, max);
	*value = json;
	return 0;
}
