/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

void report_note(struct cell_result *c, const char *format, ...)
{
	va_list args;

	if (c->nnotes == NOTES_MAX)
		return;
	va_start(args, format);
	vsnprintf(c->note[c->nnotes++], sizeof c->note[0], format, args);
	va_end(args);
}

int report_write(const char *path, const struct report *r,
                 void (*write)(FILE *out, const struct report *r), struct gp_error *err)
{
	char fresh[4096];
	FILE *out;
	int code;

	if (!path)
		return 0;
	if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
		return gp_fail(err, -ENAMETOOLONG, "%s: the name is too long", path);
	out = fopen(fresh, "w");
	if (!out)
		return gp_fail(err, -errno, "cannot write %s: %s", fresh, strerror(errno));
	write(out, r);
	code = ferror(out) ? -EIO : 0;
	if (fclose(out) && !code)
		code = -errno;
	if (!code && rename(fresh, path))
		code = -errno;
	if (!code)
		return 0;
	unlink(fresh);
	return gp_fail(err, code, "cannot write %s: %s", path, strerror(-code));
}
