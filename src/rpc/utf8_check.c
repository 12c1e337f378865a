/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/wire.h"

bool gp_utf8_valid(const char *text)
{
	unsigned n = 1;

	while (*text && n) {
		n = gp_utf8_length(text);
		text += n;
	}
	return !*text;
}

struct json_object *gp_json_from_bytes(const char *bytes)
{
	char *text = malloc(strlen(bytes) * strlen(GP_UTF8_REPLACEMENT) + 1);
	struct json_object *json;
	char *out = text;

	if (!text)
		return NULL;
	while (*bytes) {
		unsigned n = gp_utf8_length(bytes);

		memcpy(out, n ? bytes : GP_UTF8_REPLACEMENT, n ? n : strlen(GP_UTF8_REPLACEMENT));
		out += n ? n : strlen(GP_UTF8_REPLACEMENT);
		bytes += n ? n : 1;
	}
	*out = 0;
	json = json_object_new_string(text);
	free(text);
	return json;
}
