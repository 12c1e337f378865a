/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const level_name[] = {
	[GP_LOG_DEBUG] = "debug",
	[GP_LOG_INFO] = "info",
	[GP_LOG_WARN] = "warn",
	[GP_LOG_ERROR] = "error",
};

static atomic_int lowest_level = GP_LOG_INFO;

/* Not atomic: gp_log_set_sink must not run while other threads log. */
static gp_log_sink *current_sink;
static void *current_sink_arg;

void gp_log_set_level(enum gp_log_level level)
{
	atomic_store_explicit(&lowest_level, (int)level, memory_order_relaxed);
}

int gp_log_wants(enum gp_log_level level)
{
	/* Relaxed: the level publishes no other data. */
	return (int)level >= atomic_load_explicit(&lowest_level, memory_order_relaxed);
}

void gp_log_set_sink(gp_log_sink *sink, void *arg)
{
	current_sink = sink;
	current_sink_arg = arg;
}

gp_log_sink *gp_log_get_sink(void **arg)
{
	*arg = current_sink_arg;
	return current_sink;
}

/* One write(2) is enough unless a signal or a full device interrupts it. */
static void write_all(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* a failure of the log cannot be logged */
		bytes += n;
		size -= (size_t)n;
	}
}

void gp_log_if_possible(void *arg, enum gp_log_level level, const char *line)
{
	static pthread_mutex_t lock =
		PTHREAD_MUTEX_INITIALIZER; /* POLLOUT promises room for one line, not for two */
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	(void)arg;
	(void)level;
	pthread_mutex_lock(&lock);
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
		dprintf(STDERR_FILENO, "%s\n", line);
	pthread_mutex_unlock(&lock);
}

/* Prevents forged lines if a caller did not use gp_log_quote. */
static void replace_controls(char *line)
{
	for (unsigned char *c = (unsigned char *)line; *c; c++) {
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
	}
}

/* Writes "level event fields" in at most size - 1 bytes and returns the length. */
static size_t compose(char *line, size_t size, enum gp_log_level level, const char *event,
		      const char *format, va_list args)
{
	snprintf(line, size, "%s %s ", level_name[level], event);
	size_t head = strlen(line);
	/* If printf fails on the fields (EILSEQ), the record keeps only the event. */
	if (vsnprintf(line + head, size - head, format, args) < 0)
		line[head] = '\0';

	size_t length = strlen(line);
	if (length == head) /* no fields: remove the trailing blank */
		line[--length] = '\0';
	replace_controls(line);
	return length;
}

void gp_log_write(enum gp_log_level level, const char *event, const char *format, ...)
{
	/* Error paths log before they return errno. */
	int saved_errno = errno;
	char line[GP_LOG_LINE_MAX];
	va_list args;
	va_start(args, format);
	size_t length = compose(line, sizeof(line), level, event, format, args);
	va_end(args);

	if (current_sink) {
		current_sink(current_sink_arg, level, line);
	} else {
		line[length] = '\n'; /* replaces the terminating 0 */
		write_all(STDERR_FILENO, line, length + 1);
	}
	errno = saved_errno;
}

/* Writes one byte of a quoted value and returns the number of characters, at most 4. */
static size_t escape(char out[4], unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	char letter = 0;

	switch (c) {
	case '\n': letter = 'n'; break;
	case '\r': letter = 'r'; break;
	case '\t': letter = 't'; break;
	case '"':
	case '\\': letter = (char)c; break;
	default: break;
	}
	if (letter) {
		out[0] = '\\';
		out[1] = letter;
		return 2;
	}
	if (c >= 0x20 && c < 0x7f) {
		out[0] = (char)c;
		return 1;
	}
	/* Non-ASCII bytes are escaped too: a terminal may treat 0x9b as the start of a command. */
	out[0] = '\\';
	out[1] = 'x';
	out[2] = hex[c >> 4];
	out[3] = hex[c & 15];
	return 4;
}

const char *gp_log_quote(char *out, unsigned size, const char *value)
{
	if (size < sizeof("\"\"")) {
		if (size > 0)
			out[0] = '\0';
		return out;
	}

	size_t length = 0;
	out[length++] = '"';
	for (; *value; value++) {
		char piece[4];
		size_t n = escape(piece, (unsigned char)*value);
		/* Cut only between escapes, so that the closing quote is not escaped. */
		if (length + n + sizeof("\"") > size)
			break;
		memcpy(out + length, piece, n);
		length += n;
	}
	out[length++] = '"';
	out[length] = '\0';
	return out;
}
