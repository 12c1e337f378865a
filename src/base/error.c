/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strerrordesc_np */
#endif
#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

int gp_fail(struct gp_error *err, int code, const char *format, ...)
{
	if (!err)
		return code;

	/* The innermost call has the most specific sentence; outer calls only change the code. */
	if (err->code == 0) {
		va_list args;
		va_start(args, format);
		vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
	}
	err->code = code;
	return code;
}

bool gp_error_is_local(int code)
{
	return code == -EMFILE || code == -ENFILE || code == -ENOMEM;
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

	/* Holds both parts and ": ", so that only the copy below cuts the text. */
	char joined[2 * sizeof(err->text) + 2];
	snprintf(joined, sizeof(joined), "%s: %s", prefix, err->text);
	snprintf(err->text, sizeof(err->text), "%.*s", (int)sizeof(err->text) - 1, joined);
}

const char *gp_error_name(int code)
{
	/* INT_MIN cannot be negated; strerror is not thread-safe. */
	const char *name = code <= 0 && code != INT_MIN ? strerrordesc_np(-code) : NULL;
	return name ? name : "Unknown error";
}
