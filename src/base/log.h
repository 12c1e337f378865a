/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured log: one line per event, an event name, then fields.
 *     gp_log(GP_LOG_WARN, "hold.failed", "task=%llu errno=%d", id, code);
 * writes
 *     warn hold.failed task=7 errno=16
 * Each record is written with one write(2), so that lines of several threads do not mix. The log is
 * the only global state of the project besides the helpers for inquiries (inquiry.h).
 */
#ifndef GP_BASE_LOG_H
#define GP_BASE_LOG_H

#include <stdint.h>

enum gp_log_level { GP_LOG_DEBUG, GP_LOG_INFO, GP_LOG_WARN, GP_LOG_ERROR };

#define GP_LOG_LINE_MAX 1024 /* longer records are cut; the newline is kept */

/* Receives the finished record without its newline. Called in the thread that logs. */
typedef void gp_log_sink(void *arg, enum gp_log_level level, const char *line);

/* Sets the lowest level that is written. A record below it costs one comparison. The default is
 * GP_LOG_INFO; the default sink is standard error. */
void gp_log_set_level(enum gp_log_level level);

/* Sets the sink; NULL selects standard error. Must not be called while other threads log. */
void gp_log_set_sink(gp_log_sink *sink, void *arg);
/* The sink, for one that filters and passes records on; NULL: standard error. */
gp_log_sink *gp_log_get_sink(void **arg);

/*
 * A sink that writes to standard error if it can take a line without blocking, and drops the line
 * otherwise. For processes that must not block when the reader of the log hangs.
 */
void gp_log_if_possible(void *arg, enum gp_log_level level, const char *line);

/*
 * Writes a record without checking the level; the macro gp_log checks it before it evaluates the
 * fields. Control characters in the record become '?', so that a record is always one line.
 * Preserves errno.
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
 * Quotes a value from outside (a process name), so that it cannot forge fields or lines. Quotes,
 * backslashes and everything except printable ASCII are escaped. A value that does not fit is cut;
 * the closing quote stays. A `size` below 3 gives "". Returns `out`.
 */
const char *gp_log_quote(char *out, unsigned size, const char *value);

#endif
