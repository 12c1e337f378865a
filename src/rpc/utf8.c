/* SPDX-License-Identifier: Apache-2.0 */
/* Names of processes and files are bytes; JSON is UTF-8. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/wire.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Length of the sequence that begins with this byte; 0: none does. */
static unsigned length_of(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2) /* in the middle of one, or a longer form of ASCII */
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* Length of the character at `p`; 0: it is none. A 0 ends the text, and every sequence. */
static unsigned character(const unsigned char *p)
{
	unsigned n = length_of(p[0]);
	uint32_t c = p[0] & (0xffu >> (n + 1));

	for (unsigned i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (n == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000)))
		return 0;
	if (n == 4 && (c < 0x10000 || c > 0x10ffff))
		return 0;
	return n;
}

bool gp_utf8_valid(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned n = 1;

	while (*p && n) {
		n = character(p);
		p += n;
	}
	return !*p;
}

struct json_object *gp_json_from_bytes(const char *bytes)
{
	const unsigned char *p = (const unsigned char *)bytes;
	char *text = malloc(strlen(bytes) * strlen(REPLACEMENT) + 1);
	struct json_object *json;
	char *out = text;

	if (!text)
		return NULL;
	while (*p) {
		unsigned n = character(p);

		memcpy(out, n ? (const char *)p : REPLACEMENT, n ? n : strlen(REPLACEMENT));
		out += n ? n : strlen(REPLACEMENT);
		p += n ? n : 1;
	}
	*out = 0;
	json = json_object_new_string(text);
	free(text);
	return json;
}
