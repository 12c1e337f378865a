/* SPDX-License-Identifier: Apache-2.0 */
/* How things are written, for people and for programs. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

int gp_cli_fail(const struct gp_error *err)
{
	fprintf(stderr, "gpreempt: %s\n", err->text);
	switch (err->code) {
	case -EINVAL:
	case -EISDIR:
	case -ENOENT:
	case -ENOTDIR: return GP_EXIT_USAGE;
	case -EPERM:
	case -EACCES: return GP_EXIT_NOT_PERMITTED;
	case -ENODEV:
	case -ESRCH: return GP_EXIT_NO_DEVICE;
	default: return GP_EXIT_FAILED;
	}
}

bool gp_cli_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end && *value <= max;
}

const char *gp_cli_duration(char *out, size_t size, uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
	size_t i = 0;
	double value;

	/* 999.6 us is 1 ms, not 1000 us. */
	while (i < 3 && (double)ns < 0.9995 * (double)units[i].ns)
		i++;
	value = (double)ns / (double)units[i].ns;
	snprintf(out, size, "%.*f %s",
	         value < 9.995 && i < 3   ? 2
	         : value < 99.95 && i < 3 ? 1
	                                  : 0,
	         value, units[i].unit);
	return out;
}

void gp_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}

void gp_cli_check_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return;
	fprintf(stderr, "gpreempt: cannot write the output: %s\n", strerror(errno));
	_exit(GP_EXIT_FAILED);
}
