/* SPDX-License-Identifier: Apache-2.0 */
/* Names of processes and files are arbitrary bytes; output for other programs must be UTF-8. */
#ifndef GP_BASE_UTF8_H
#define GP_BASE_UTF8_H

#define GP_UTF8_REPLACEMENT \
	"\xef\xbf\xbd" /* U+FFFD, replaces a byte that belongs to no character */

/* Length in bytes of the character at `text`; 0: not a valid character. Reads no further than the
 * terminating 0. */
unsigned gp_utf8_length(const char *text);

#endif
