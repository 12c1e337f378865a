/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strerrordesc_np */
#endif
#include "base/error.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

int gp_fail(struct gp_error *err, int code, const char *format, ...)
{
	if (!err)
		return code;

	/* The innermost call knows best what went wrong: only the code follows the outer ones. */
	if (err->code == 0) {
		va_list args;
		va_start(args, format);
		vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
	}
	err->code = code;
	return code;
}

void gp_error_prefix(struct gp_error *err, const char *format, ...)
{
	if (!err || err->code == 0)
		return;

	char prefix[sizeof(err->text)];
	va_list args;
	va_start(args, format);
	vsnprintf(prefix, sizeof(prefix), format, args);
	va_end(args);

	/* Room for both and ": ", so that the cut happens in one place. */
	char joined[2 * sizeof(err->text) + 2];
	snprintf(joined, sizeof(joined), "%s: %s", prefix, err->text);
	snprintf(err->text, sizeof(err->text), "%.*s", (int)sizeof(err->text) - 1, joined);
}

const char *gp_error_name(int code)
{
	/* INT_MIN has no positive counterpart; strerror is not safe in threads. */
	const char *name = code <= 0 && code != INT_MIN ? strerrordesc_np(-code) : NULL;
	return name ? name : "Unknown error";
}
