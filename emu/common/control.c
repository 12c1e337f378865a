/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/common/control.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define MAX_WORDS 8

int control_run(char *line, const struct control_command *commands, void (*lock)(void),
		void (*unlock)(void))
{
	char *word[MAX_WORDS + 1] = {0}, *rest = NULL;
	int count = 0, result;

	for (char *w = strtok_r(line, " \t\n", &rest); w; w = strtok_r(NULL, " \t\n", &rest)) {
		if (count == MAX_WORDS)
			return -EINVAL;
		word[count++] = w;
	}
	if (!count || word[0][0] == '#')
		return 0;
	while (commands->name && strcmp(commands->name, word[0]) != 0)
		commands++;
	if (!commands->name)
		return -EINVAL;
	lock();
	result = commands->run(word);
	unlock();
	return result;
}

bool control_number(const char *text, uint64_t *value)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return !*end && !errno;
}

bool control_time(const char *text, uint64_t bare_ns, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", GP_NS_PER_US}, {"ms", GP_NS_PER_MS}, {"s", GP_NS_PER_S}};
	uint64_t value;
	char *unit;

	if (!text || *text < '0' || *text > '9')
		return false;
	value = strtoull(text, &unit, 10);
	*ns = value * bare_ns;
	if (!*unit)
		return bare_ns || !value;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(unit, units[i].name)) {
			*ns = value * units[i].ns;
			return true;
		}
	return false;
}

bool control_choice(const char *text, const char *first, const char *second, bool *is_second)
{
	if (!text || (strcmp(text, first) != 0 && strcmp(text, second) != 0))
		return false;
	*is_second = !strcmp(text, second);
	return true;
}
