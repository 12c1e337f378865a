/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages, progress, numbers, durations and sizes as text. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "yaml/value.h"

#define YEAR_NS (GP_NS_PER_S * 3600 * 24 * 365)

int gp_cli_fail(const struct gp_error *err)
{
	fprintf(stderr, "gpreempt: %s\n", err->text);
	switch (err->code) {
	case -EINVAL:
	case -EISDIR:
	case -ENOENT:
	case -ENOTDIR:
	case -ENOTUNIQ: return GP_EXIT_USAGE;
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

bool gp_cli_duration_parse(const char *text, uint64_t *ns)
{
	return !gp_value_duration(text, ns) && *ns <= YEAR_NS;
}

struct gp_short_text gp_cli_duration(uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
	struct gp_short_text out;
	size_t i = 0;
	double value;

	/* 999.6 us becomes 1 ms, not 1000 us. */
	while (i < 3 && (double)ns < 0.9995 * (double)units[i].ns)
		i++;
	value = (double)ns / (double)units[i].ns;
	snprintf(out.text, sizeof out.text, "%.*f %s",
		 value < 9.995 && i < 3   ? 2
		 : value < 99.95 && i < 3 ? 1
					  : 0,
		 value, units[i].unit);
	return out;
}

struct gp_short_text gp_cli_bytes(uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	struct gp_short_text out;
	double value = (double)bytes;
	size_t i = 0;

	while (i < 4 && value >= 1023.5) {
		value /= 1024;
		i++;
	}
	snprintf(out.text, sizeof out.text, "%.*f %s", i > 2 && value < 99.95 ? 1 : 0, value,
		 units[i]);
	return out;
}

void gp_cli_check_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return;
	fprintf(stderr, "gpreempt: cannot write the output: %s\n", strerror(errno));
	_exit(GP_EXIT_FAILED);
}

#define PAUSE_NS (100 * GP_NS_PER_MS)

static bool shown;
static uint64_t next_ns;

static bool is_wanted(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void gp_progress(const char *format, ...)
{
	uint64_t now_ns = gp_monotonic_ns();
	va_list args;

	if (now_ns < next_ns || !is_wanted())
		return;
	next_ns = now_ns + PAUSE_NS;
	shown = true;
	fputc('\r', stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\033[K", stderr);
	fflush(stderr);
}

void gp_progress_end(void)
{
	if (!shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	shown = false;
	next_ns = 0;
}
