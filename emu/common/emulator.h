/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: what the emulators have in common. Each is a program that mounts a folder, with files
 * to look at (`state`, `counts`) and to disturb (`control`) what is behind it; and there are loads
 * on it. What was started dies with the test, however that ends.
 */
#ifndef EMU_COMMON_EMULATOR_H
#define EMU_COMMON_EMULATOR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define EMULATOR_WORDS_MAX 32

void emulator_sleep_ms(unsigned ms);

/* Programs. */

/* A command line: the program, and the words of the list up to NULL. There is room for one more. */
void emulator_collect(char *words[EMULATOR_WORDS_MAX], char *program, va_list list);

/* `out`: what it prints. 0 or -errno. */
int emulator_spawn(char **words, int death_signal, pid_t *pid, int *out);
/* Waits for a line that begins with `ready`. The rest stays in the pipe. -ENODEV: it ended. */
int emulator_wait_ready(int out);
/* Exit status, or -1: a signal ended it. Kills what does not end. */
int emulator_wait_end(pid_t pid);

/* Loads. */

struct emulator_load {
	pid_t pid;
	int out; /* what it prints after `ready` */
};

/* Options up to NULL. Returns when the load is ready: 0 or -errno. */
int emulator_load_start(struct emulator_load *load, const char *program, ...);
/* The same, but does not wait until it is ready. */
int emulator_load_spawn(struct emulator_load *load, const char *program, ...);
/* Asks it to end (unless it does by itself) and returns its exit status; -1: killed by a signal. */
int emulator_load_stop(struct emulator_load *load);
int emulator_load_wait(struct emulator_load *load);
void emulator_load_kill(struct emulator_load *load); /* if it still runs */

/* The folder. */

/* Makes the folder (`dir` ends with XXXXXX) and starts the emulator in it. -ENODEV: there is no
 * FUSE here, and stderr says why. */
int emulator_start(char **words, char *dir, pid_t *pid);
/* 0, or -1 when the emulator itself failed. */
int emulator_stop(const char *dir, pid_t *pid);

/* One command for the file `control`. 0 or -errno. */
__attribute__((format(printf, 2, 3))) int emulator_control(const char *dir, const char *format,
							   ...);
/* The file `state`; the caller frees it. NULL: it cannot be read. */
char *emulator_state(const char *dir);
/* Of the file `counts`; 0 if there is none. */
uint64_t emulator_count(const char *dir, const char *name);

/* Lines of the state that have "key":wanted and, if there is a second key, "second":wanted_second.
 */
struct emulator_search {
	const char *key, *second, *field;
	uint64_t wanted, wanted_second;
	/* The result: how many lines, and of the field the first value (UINT64_MAX: there is none)
	 * and the sum. */
	uint32_t lines;
	uint64_t first, sum;
};
struct emulator_search emulator_find(const char *dir, struct emulator_search search);

/* Calls `add` for every line of the state. */
void emulator_each_line(const char *dir, void (*add)(const char *line, void *arg), void *arg);
/* The first "name":number of a line; true is 1. False: there is none. */
bool emulator_number(const char *line, const char *name, uint64_t *value);

#endif
