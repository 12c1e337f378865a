/* SPDX-License-Identifier: Apache-2.0 */
/* What a case says goes to its standard output at once: then it is known even if it hangs. */
#include <stdarg.h>

#include "cases.h"

void say(const char *format, ...)
{
	static bool said_something;
	char text[512];
	va_list args;
	size_t n = 0;

	if (said_something)
		text[n++] = ' ';
	said_something = true;
	va_start(args, format);
	n += (size_t)vsnprintf(text + n, sizeof(text) - n, format, args);
	va_end(args);
	if (write(STDOUT_FILENO, text, n < sizeof(text) ? n : sizeof(text) - 1) < 0)
		_exit(1);
}

const char *answer(long rc)
{
	static char text[8][24];
	static unsigned next;
	const char *name = rc < 0 ? strerrorname_np((int)-rc) : NULL;
	char *to = text[next++ % 8];

	if (name)
		return name;
	snprintf(to, sizeof(text[0]), "%ld", rc);
	return to;
}

void say_answer(long rc)
{
	say("%s", answer(rc));
}

void cannot(const char *reason)
{
	say("%s", reason);
	_exit(77);
}

void broken(const char *what, long rc)
{
	say("(%s: %s)", what, answer(rc));
	_exit(1);
}

long must(const char *what, long rc)
{
	if (rc < 0)
		broken(what, rc);
	return rc;
}
