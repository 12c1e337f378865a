/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log: the form of a record, the level filter, the sink, one write(2) a record even from many
 * threads, interrupted and short writes, records too long, and values that try to forge fields.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "base/log.h"

/*
 * Standard error as this test sees it: write(2) below takes the place of the C library's, keeps
 * what is written to descriptor 2, and can be told to misbehave.
 */
static struct {
	atomic_uint writes;
	unsigned interrupts; /* the number of writes that fail with EINTR first */
	unsigned longest;    /* bytes a write takes at most; 0 = all */
	int error;           /* every write fails with this */
	int real_fd;         /* where the bytes go instead of `text`, if above 0 */
	char text[8192];
	size_t size;
} seen;

ssize_t write(int fd, const void *bytes, size_t size)
{
	if (fd != STDERR_FILENO || seen.real_fd > 0)
		return syscall(SYS_write, fd == STDERR_FILENO ? seen.real_fd : fd, bytes, size);
	atomic_fetch_add(&seen.writes, 1);
	if (seen.interrupts > 0) {
		seen.interrupts--;
		errno = EINTR;
		return -1;
	}
	if (seen.error) {
		errno = seen.error;
		return -1;
	}
	if (seen.longest && size > seen.longest)
		size = seen.longest;
	if (size > sizeof(seen.text) - 1 - seen.size)
		abort();
	memcpy(seen.text + seen.size, bytes, size);
	seen.size += size;
	return (ssize_t)size;
}

static int start_afresh(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	gp_log_set_level(GP_LOG_INFO);
	gp_log_set_sink(NULL, NULL);
	return 0;
}

TEST(the_default_level_is_info)
{
	/* Runs first, before a level was set. */
	assert_false(gp_log_wants(GP_LOG_DEBUG));
	assert_true(gp_log_wants(GP_LOG_INFO));
}

TEST_WITH(a_record_is_level_event_fields_in_one_write, start_afresh, NULL)
{
	gp_log(GP_LOG_WARN, "hold.failed", "task=%llu errno=%d", 7ull, 16);
	assert_string_equal(seen.text, "warn hold.failed task=7 errno=16\n");
	assert_int_equal(seen.writes, 1);
	gp_log(GP_LOG_ERROR, "a", "b=1");
	gp_log(GP_LOG_INFO, "c", "d=2");
	assert_string_equal(seen.text,
			    "warn hold.failed task=7 errno=16\nerror a b=1\ninfo c d=2\n");
	assert_int_equal(seen.writes, 3);
}

TEST_WITH(a_record_without_fields_ends_after_its_event, start_afresh, NULL)
{
	gp_log(GP_LOG_INFO, "daemon.ready", "%s", "");
	assert_string_equal(seen.text, "info daemon.ready\n");
}

static int evaluate(int *times)
{
	return ++*times;
}

TEST_WITH(records_below_the_level_are_neither_written_nor_evaluated, start_afresh, NULL)
{
	for (int lowest = GP_LOG_DEBUG; lowest <= GP_LOG_ERROR; lowest++) {
		gp_log_set_level((enum gp_log_level)lowest);
		for (int level = GP_LOG_DEBUG; level <= GP_LOG_ERROR; level++) {
			int times = 0;
			seen.writes = 0;
			seen.size = 0;
			gp_log((enum gp_log_level)level, "e", "n=%d", evaluate(&times));
			assert_int_equal(seen.writes, level >= lowest);
			assert_int_equal(times, level >= lowest);
			assert_int_equal(!!gp_log_wants((enum gp_log_level)level), level >= lowest);
		}
	}
}

struct caught {
	int records;
	enum gp_log_level level;
	char line[2 * GP_LOG_LINE_MAX];
};

static void catch_record(void *arg, enum gp_log_level level, const char *line)
{
	struct caught *caught = arg;
	caught->records++;
	caught->level = level;
	snprintf(caught->line, sizeof(caught->line), "%s", line);
}

TEST_WITH(a_sink_gets_the_record_instead_of_standard_error, start_afresh, NULL)
{
	struct caught caught = {0};
	gp_log_set_sink(catch_record, &caught);
	gp_log(GP_LOG_ERROR, "task.lost", "task=%d", 3);
	assert_int_equal(caught.records, 1);
	assert_int_equal(caught.level, GP_LOG_ERROR);
	assert_string_equal(caught.line, "error task.lost task=3");
	assert_int_equal(seen.writes, 0);

	gp_log_set_sink(NULL, NULL);
	gp_log(GP_LOG_ERROR, "task.found", "task=%d", 3);
	assert_int_equal(caught.records, 1);
	assert_string_equal(seen.text, "error task.found task=3\n");
}

TEST_WITH(a_record_too_long_is_cut_and_keeps_its_newline, start_afresh, NULL)
{
	char value[3 * GP_LOG_LINE_MAX];
	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';

	gp_log(GP_LOG_INFO, "long", "v=%s", value);
	assert_int_equal(seen.writes, 1);
	assert_int_equal(seen.size, GP_LOG_LINE_MAX);
	assert_memory_equal(seen.text, "info long v=xxx", 15);
	assert_int_equal(seen.text[GP_LOG_LINE_MAX - 2], 'x');
	assert_int_equal(seen.text[GP_LOG_LINE_MAX - 1], '\n');
	assert_int_equal(strlen(seen.text), GP_LOG_LINE_MAX);
}

TEST_WITH(the_longest_record_is_not_cut, start_afresh, NULL)
{
	/* "info e " and the newline take 8 bytes. */
	for (int n = GP_LOG_LINE_MAX - 10; n <= GP_LOG_LINE_MAX - 6; n++) {
		seen.size = 0;
		gp_log(GP_LOG_INFO, "e", "%*d", n, 5);
		int whole = n + 8 <= GP_LOG_LINE_MAX;
		assert_int_equal(seen.size, whole ? n + 8 : GP_LOG_LINE_MAX);
		assert_int_equal(seen.text[seen.size - 2], whole ? '5' : ' ');
		assert_int_equal(seen.text[seen.size - 1], '\n');
	}
}

TEST_WITH(an_event_too_long_is_cut_as_well, start_afresh, NULL)
{
	char event[2 * GP_LOG_LINE_MAX];
	memset(event, 'e', sizeof(event) - 1);
	event[sizeof(event) - 1] = '\0';
	gp_log(GP_LOG_INFO, event, "v=%d", 1);
	assert_in_range(seen.size, GP_LOG_LINE_MAX - 1, GP_LOG_LINE_MAX);
	assert_int_equal(seen.text[seen.size - 1], '\n');
}

TEST_WITH(a_field_that_was_not_quoted_cannot_make_a_line, start_afresh, NULL)
{
	gp_log(GP_LOG_INFO, "e", "name=%s", "a\nerror forged\r\x1b[2J\x7f");
	assert_string_equal(seen.text, "info e name=a?error forged??[2J?\n");
}

TEST_WITH(interrupted_and_short_writes_are_completed, start_afresh, NULL)
{
	seen.interrupts = 3;
	seen.longest = 5;
	gp_log(GP_LOG_INFO, "slow", "value=%d", 123456789);
	assert_string_equal(seen.text, "info slow value=123456789\n");
	assert_int_equal(seen.writes, 3 + (seen.size + 4) / 5);
}

TEST_WITH(a_standard_error_that_fails_is_given_up_at_once, start_afresh, NULL)
{
	seen.error = EAGAIN;
	gp_log(GP_LOG_INFO, "lost", "v=%d", 1);
	assert_int_equal(seen.writes, 1);
}

TEST_WITH(logging_leaves_errno_alone, start_afresh, NULL)
{
	seen.error = EPIPE;
	errno = ERANGE;
	gp_log(GP_LOG_INFO, "e", "v=%d", 1);
	assert_int_equal(errno, ERANGE);
}

static void assert_quoted(const char *value, const char *expected)
{
	char out[128];
	assert_ptr_equal(gp_log_quote(out, sizeof(out), value), out);
	assert_string_equal(out, expected);
}

TEST_WITH(hostile_values_are_escaped, start_afresh, NULL)
{
	assert_quoted("", "\"\"");
	assert_quoted("python3 -m x", "\"python3 -m x\"");
	assert_quoted("a\nwarn forged", "\"a\\nwarn forged\"");
	assert_quoted("\r\t", "\"\\r\\t\"");
	assert_quoted("x\" uid=0 y=\"", "\"x\\\" uid=0 y=\\\"\"");
	assert_quoted("\\", "\"\\\\\"");
	assert_quoted("\x01\x1b[2J\x7f", "\"\\x01\\x1b[2J\\x7f\"");
	assert_quoted("\xff\x9b\xc3\xa9", "\"\\xff\\x9b\\xc3\\xa9\"");
	assert_quoted(" !~", "\" !~\"");
}

/* Undoes the quoting; false when it is not one well-formed quoted word. */
static int unquote(const char *in, char *out)
{
	if (*in++ != '"')
		return 0;
	while (*in != '"') {
		if (*in < 0x20 || *in > 0x7e)
			return 0;
		if (*in != '\\') {
			*out++ = *in++;
			continue;
		}
		in++;
		unsigned byte;
		switch (*in++) {
		case 'n': *out++ = '\n'; break;
		case 'r': *out++ = '\r'; break;
		case 't': *out++ = '\t'; break;
		case '"': *out++ = '"'; break;
		case '\\': *out++ = '\\'; break;
		case 'x':
			if (sscanf(in, "%2x", &byte) != 1)
				return 0;
			*out++ = (char)byte;
			in += 2;
			break;
		default: return 0;
		}
	}
	*out = '\0';
	return in[1] == '\0';
}

TEST_WITH(a_quoted_value_can_be_read_back_whatever_its_bytes, start_afresh, NULL)
{
	char value[256], out[4 * 256 + 3], back[256];
	for (int i = 0; i < 255; i++)
		value[i] = (char)(i + 1);
	value[255] = '\0';
	gp_log_quote(out, sizeof(out), value);
	assert_true(unquote(out, back));
	assert_string_equal(back, value);
}

TEST_WITH(a_quoted_value_is_cut_between_escapes_and_keeps_its_closing_quote, start_afresh, NULL)
{
	const char *value = "a\n\x01\"z";
	/* Of the value's 5 bytes, how many fit: as written they take 1, 2, 4, 2 and 1. */
	const size_t fits[] = {0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5, 5};
	for (unsigned size = 0; size < sizeof(fits) / sizeof(fits[0]); size++) {
		char out[32], back[32];
		memset(out, '#', sizeof(out));
		gp_log_quote(out, size, value);
		assert_int_equal(out[size], '#');
		if (size < 3) {
			assert_true(size == 0 || out[0] == '\0');
			continue;
		}
		assert_true(unquote(out, back));
		assert_int_equal(strlen(back), fits[size]);
		assert_memory_equal(back, value, fits[size]);
	}
}

#define THREADS 4
#define RECORDS 2000

static void *log_many(void *arg)
{
	int self = *(int *)arg;
	char filler[GP_LOG_LINE_MAX];
	for (int i = 0; i < RECORDS; i++) {
		size_t n = (size_t)(i * 7 % 900);
		memset(filler, 'a' + self, n);
		filler[n] = '\0';
		gp_log(GP_LOG_INFO, "t", "%d %d %s.", self, i, filler);
		gp_log(GP_LOG_DEBUG, "t", "never %d", i);
		gp_log_set_level(GP_LOG_INFO); /* a level may change at any time */
	}
	return NULL;
}

/* Checks "info t <thread> <number> <filler>." and that numbers follow each other. */
static void assert_intact(const char *line, int next[THREADS])
{
	int self, i, at = 0;
	assert_int_equal(sscanf(line, "info t %d %d %n", &self, &i, &at), 2);
	assert_in_range(self, 0, THREADS - 1);
	assert_int_equal(i, next[self]++);
	size_t filler = (size_t)(i * 7 % 900);
	for (size_t k = 0; k < filler; k++)
		assert_int_equal(line[(size_t)at + k], 'a' + self);
	assert_string_equal(line + at + filler, ".\n");
}

TEST_WITH(threads_do_not_mix_their_lines, start_afresh, NULL)
{
	FILE *file = tmpfile();
	assert_non_null(file);
	seen.real_fd = fileno(file);

	pthread_t thread[THREADS];
	int self[THREADS];
	for (int i = 0; i < THREADS; i++) {
		self[i] = i;
		assert_int_equal(pthread_create(&thread[i], NULL, log_many, &self[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);

	int next[THREADS] = {0};
	char line[2 * GP_LOG_LINE_MAX];
	rewind(file);
	while (fgets(line, sizeof(line), file))
		assert_intact(line, next);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(next[i], RECORDS);
	fclose(file);
}
