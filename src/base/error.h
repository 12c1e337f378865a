/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors. Every call returns 0 or -errno. A call that can explain a failure also takes a struct
 * gp_error and writes one sentence into it. The caller decides whether to show it.
 */
#ifndef GP_BASE_ERROR_H
#define GP_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

struct gp_error {
	int code; /* 0 or -errno: the value that the call returned */
	char text[256];
};

/*
 * Writes the sentence and returns `code`, so that an error path is one line:
 *     return gp_fail(err, -EINVAL, "%s: unknown policy", name);
 * `err` may be NULL; otherwise it must start zeroed. The first sentence is kept; a caller adds to
 * it with gp_error_prefix. Each call replaces err->code. So it is the value that the outermost call
 * returned.
 */
int gp_fail(struct gp_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the stored sentence and cuts the result to the size of the buffer. Does
 * nothing if no error is stored. */
void gp_error_prefix(struct gp_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Text for an error code: "Invalid argument" for -EINVAL. Never NULL; thread-safe. */
const char *gp_error_name(int code);

/* Whether the calling process lacks file descriptors or memory. If so, the cause is not the process
 * or driver that the call was about. */
bool gp_error_is_local(int code);

#endif
