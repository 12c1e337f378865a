/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>

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
