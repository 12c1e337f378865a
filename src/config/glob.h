/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Globs for untrusted text: `*` matches any bytes, also a slash; `?` one byte; `[a-z]` and `[!a-z]`
 * one byte of a set; `\` quotes the next byte.
 */
#ifndef GP_CONFIG_GLOB_H
#define GP_CONFIG_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns what is wrong with a pattern, as the end of a message, or NULL. */
const char *gp_glob_mistake(const char *pattern);

/*
 * True if the pattern matches all of `text`. Each comparison uses one of `steps`; without steps
 * left the result is false. Lengths n and m need at most n * m steps.
 */
bool gp_glob(const char *pattern, const char *text, size_t length, uint32_t *steps);

/*
 * True if the pattern matches exactly one text, which is written to `text` (as large as the
 * pattern).
 */
bool gp_glob_is_plain(const char *pattern, char *text);

/* Length in bytes of the shortest text that matches. */
size_t gp_glob_least(const char *pattern);

#endif
