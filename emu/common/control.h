/* SPDX-License-Identifier: Apache-2.0 */
/* The file `control` of an emulator: a command and its words on each line. */
#ifndef EMU_COMMON_CONTROL_H
#define EMU_COMMON_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

/* word[0] is the name; behind the last word there is NULL. Returns 0 or -errno. */
struct control_command {
	const char *name;
	int (*run)(char **word);
};

/* Runs one line between lock() and unlock(). An empty line or a comment does nothing. -EINVAL: no
 * such command, or too many words. The table ends with a name that is NULL. */
int control_run(char *line, const struct control_command *commands, void (*lock)(void),
		void (*unlock)(void));

/* Words; NULL is none of these. A number is decimal, or hexadecimal after 0x. */
bool control_number(const char *text, uint64_t *value);
/* 5us, 5ms, 5s or 5ns. A number without a unit counts in `bare_ns`; if that is 0, only 0 can. */
bool control_time(const char *text, uint64_t bare_ns, uint64_t *ns);
/* One of two words; true: the second. */
bool control_choice(const char *text, const char *first, const char *second, bool *is_second);

#endif
