/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured log: one line an event, a word for what happened, then fields.
 *     gp_log(GP_LOG_WARN, "hold.failed", "task=%llu errno=%d", id, code);
 * writes
 *     warn hold.failed task=7 errno=16
 * Each record is written with one write(2), so threads do not mix lines. The log is the only
 * global state of the project.
 */
#ifndef GP_BASE_LOG_H
#define GP_BASE_LOG_H

#include <stdint.h>

enum gp_log_level { GP_LOG_DEBUG, GP_LOG_INFO, GP_LOG_WARN, GP_LOG_ERROR };

#define GP_LOG_LINE_MAX 1024 /* longer records are cut, the newline stays */

/* Gets the finished record, without newline. Called from any thread that logs. */
typedef void gp_log_sink(void *arg, enum gp_log_level level, const char *line);

/* Records below `level` cost one comparison. The default is GP_LOG_INFO to standard error. */
void gp_log_set_level(enum gp_log_level level);

/* NULL puts standard error back. Not to be called while others log. */
void gp_log_set_sink(gp_log_sink *sink, void *arg);

/* A sink: standard error, if that takes a line at this moment; else the line is lost. For who must
 * not hang with a reader of the log that hangs. */
void gp_log_if_possible(void *arg, enum gp_log_level level, const char *line);

/* "debug", "info", "warn", "error" -> level; -EINVAL for anything else. */
int gp_log_level_parse(const char *name, enum gp_log_level *level);

/*
 * Does not look at the level: gp_log below does, before it evaluates the fields. Control
 * characters in the record become '?', so that an event is one line whatever its fields hold.
 * Leaves errno alone.
 */
void gp_log_write(enum gp_log_level level, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Whether a record of that level would be written. */
int gp_log_wants(enum gp_log_level level);

#define gp_log(level, event, ...)                                \
	do {                                                     \
		if (gp_log_wants(level))                         \
			gp_log_write(level, event, __VA_ARGS__); \
	} while (0)

/*
 * Writes a value that somebody else chose (a process name) so that it cannot forge fields or
 * lines: quoted, with quotes, backslashes and everything but printable ASCII escaped. What does
 * not fit is cut, the closing quote stays; `size` below 3 gives "". Returns `out`.
 */
const char *gp_log_quote(char *out, unsigned size, const char *value);

#endif
