/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Length of the sequence that begins with this byte; 0: no sequence begins with it. */
static unsigned length_of(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2) /* a continuation byte, or an overlong form of ASCII */
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

unsigned gp_utf8_length(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
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

/* Length of the character at `text`; 0 if a terminal would do more than display it. */
static unsigned printable_length(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned n = gp_utf8_length(text);

	if (n == 1)
		return p[0] >= 0x20 && p[0] != 0x7f;
	if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0) /* U+0080 to U+009F: control characters */
		return 0;
	if (n == 2 && p[0] == 0xd8 && p[1] == 0x9c) /* U+061C: a direction mark */
		return 0;
	/* U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F: separators and directions */
	if (n == 3 && p[0] == 0xe2 &&
	    ((p[1] == 0x80 && ((p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
	     (p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf)))
		return 0;
	return n;
}

const char *gp_utf8_clean(char *out, size_t size, const char *name)
{
	size_t length = 0;

	while (*name && size) {
		unsigned n = printable_length(name);
		char escaped[sizeof "\\xff"];

		snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned char)*name);
		if (length + (n ? n : strlen(escaped)) >= size)
			break;
		memcpy(out + length, n ? name : escaped, n ? n : strlen(escaped));
		length += n ? n : strlen(escaped);
		name += n ? n : 1;
	}
	if (size)
		out[length] = 0;
	return out;
}

bool gp_utf8_is_clean(const char *text)
{
	unsigned n;

	while (*text && (n = printable_length(text)))
		text += n;
	return !*text;
}
