/* SPDX-License-Identifier: Apache-2.0 */
/* Names of processes and files are bytes; what is sent to others is UTF-8. */
#ifndef GP_BASE_UTF8_H
#define GP_BASE_UTF8_H

#define GP_UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for a byte that belongs to no character */

/* Bytes of the character at `text`; 0: it is none. A 0 ends the text, and every character. */
unsigned gp_utf8_length(const char *text);

#endif
