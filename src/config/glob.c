/* SPDX-License-Identifier: Apache-2.0 */
#include "config/glob.h"

#include <string.h>

/*
 * Returns the end of the set that begins at `p` ("[a-z]"), or NULL if it has none. `within`:
 * whether `c` is in it. A ] is an ordinary byte at the first position, a - at the first or last.
 */
static const char *read_set(const char *p, unsigned char c, bool *within)
{
	bool negated = p[1] == '!', found = false;
	const char *first = p + 1 + negated;

	for (p = first; *p && (*p != ']' || p == first); p++) {
		unsigned char from, to;

		if (*p == '\\' && p[1])
			p++;
		from = to = (unsigned char)*p;
		if (p[1] == '-' && p[2] && p[2] != ']') {
			p += 2;
			if (*p == '\\' && p[1])
				p++;
			to = (unsigned char)*p;
		}
		found |= c >= from && c <= to;
	}
	*within = found != negated;
	return *p ? p + 1 : NULL;
}

/*
 * If the first element of the pattern matches the byte, returns the rest of the pattern, else NULL.
 */
static const char *fit_one(const char *p, unsigned char c, uint32_t *steps)
{
	const char *end;
	bool within;

	switch (*p) {
	case '\0': return NULL;
	case '?': return p + 1;
	case '[':
		end = read_set(p, c, &within);
		if (end) /* scanning the set counts as work */
			*steps -= *steps < (uint32_t)(end - p) ? *steps : (uint32_t)(end - p);
		return end && within ? end : NULL;
	case '\\': return (unsigned char)p[1] == c ? p + 2 : NULL;
	default: return (unsigned char)*p == c ? p + 1 : NULL;
	}
}

bool gp_glob(const char *pattern, const char *text, size_t length, uint32_t *steps)
{
	const char *p = pattern, *star = NULL; /* position after the last `*` */
	size_t at = 0, retry = 0;              /* from here that `*` takes one more byte */

	while (at < length) {
		const char *next;

		if (!*steps)
			return false;
		--*steps;
		if (*p == '*') {
			star = ++p;
			retry = at;
			if (!*p)
				return true;
			continue;
		}
		next = fit_one(p, (unsigned char)text[at], steps);
		if (next) {
			p = next;
			at++;
		} else if (star) {
			p = star;
			at = ++retry;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return !*p;
}

const char *gp_glob_mistake(const char *pattern)
{
	bool within;

	for (const char *p = pattern; *p;) {
		if (*p == '\\' && !p[1])
			return "ends with a \\, which must precede the byte that it quotes";
		if (*p == '[') {
			p = read_set(p, 0, &within);
			if (!p)
				return "has a [ without a ]; write \\[ for a literal bracket";
		} else {
			p += *p == '\\' ? 2 : 1;
		}
	}
	return NULL;
}

bool gp_glob_is_plain(const char *pattern, char *text)
{
	for (; *pattern; pattern++) {
		if (strchr("*?[", *pattern))
			return false;
		if (*pattern == '\\')
			pattern++;
		*text++ = *pattern;
	}
	*text = '\0';
	return true;
}

size_t gp_glob_least(const char *pattern)
{
	size_t least = 0;
	bool within;

	for (const char *p = pattern; p && *p;) {
		least += *p != '*';
		if (*p == '[')
			p = read_set(p, 0, &within);
		else
			p += *p == '\\' ? 2 : 1;
	}
	return least;
}
