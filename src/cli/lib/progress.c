/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

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
