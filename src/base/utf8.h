/* SPDX-License-Identifier: Apache-2.0 */
/* Names of processes and files are arbitrary bytes; output for other programs must be UTF-8. */
#ifndef GP_BASE_UTF8_H
#define GP_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define GP_UTF8_REPLACEMENT \
	"\xef\xbf\xbd" /* U+FFFD, replaces a byte that belongs to no character */

/* Length in bytes of the character at `text`; 0: not a valid character. Reads no further than the
 * terminating 0. */
unsigned gp_utf8_length(const char *text);

/*
 * Copies a name that another user chose, so that it can go into JSON, a log and a terminal. Bytes
 * that are not UTF-8, control characters, line separators and characters that change the direction
 * of the text become \xNN, one for each byte. The result is cut between characters. Returns `out`.
 */
const char *gp_utf8_clean(char *out, size_t size, const char *name);

/* Whether gp_utf8_clean would copy the text unchanged. */
bool gp_utf8_is_clean(const char *text);

#endif
