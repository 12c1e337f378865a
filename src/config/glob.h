/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Globs over what somebody else wrote: `*` is anything, a slash too; `?` is one byte; `[a-z]` and
 * `[!a-z]` are one of some bytes; `\` takes the next one as it is.
 */
#ifndef GP_CONFIG_GLOB_H
#define GP_CONFIG_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is wrong with a pattern, as the end of a sentence; NULL: nothing. */
const char *gp_glob_mistake(const char *pattern);

/*
 * Whether all of `text` fits. Each comparison takes one of `steps`; when there are none left the
 * answer is false. A pattern and a text of n and m bytes need n * m at most.
 */
bool gp_glob(const char *pattern, const char *text, size_t length, uint32_t *steps);

/* The pattern fits this text only, which is written to `text` (as large as the pattern). */
bool gp_glob_is_plain(const char *pattern, char *text);

/* Bytes of the shortest text that fits. */
size_t gp_glob_least(const char *pattern);

#endif
