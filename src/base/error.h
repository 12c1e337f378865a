/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: every call returns 0 or -errno. A call that can explain itself also takes a
 * struct gp_error and leaves one sentence there; the caller decides whether to show it.
 */
#ifndef GP_BASE_ERROR_H
#define GP_BASE_ERROR_H

#include <stdarg.h>

struct gp_error {
	int code; /* 0 or -errno, the same value the call returned */
	char text[256];
};

/*
 * Writes the sentence and returns `code`, so that a failing path is one line:
 *     return gp_fail(err, -EINVAL, "%s: unknown policy", name);
 * `err` may be NULL, and starts zeroed otherwise. The first sentence wins: a caller that adds to
 * it uses gp_error_prefix. The code is the last one, which is what the outermost call returned.
 */
int gp_fail(struct gp_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Puts "prefix: " before the sentence that is there; a text that no longer fits is cut. Does
 * nothing when there is no error.
 */
void gp_error_prefix(struct gp_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "Invalid argument" for -EINVAL; never NULL, safe in every thread. */
const char *gp_error_name(int code);

#endif
