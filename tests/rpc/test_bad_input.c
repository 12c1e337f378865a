/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid input gets an error reply or a clean close, however it is split; and another client is
 * answered all the time.
 */
#include "support/test.h"

#include <sys/socket.h>

#include "base/rng.h"
#include "rpc_world.h"

#define GIGABYTE (1ull << 30)

static const char request[] =
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"echo\",\"params\":{\"a\":\"\xc3\xa9\"}}\n";

#define P    GP_RPC_PARSE_ERROR
#define R    GP_RPC_INVALID_REQUEST
#define HEAD "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\""

static const struct {
	int code;
	const char *line;
} bad_lines[] = {
	{P, "x"},
	{P, "{"},
	{P, "}"},
	{P, "\"unended"},
	{P, "{\"a\":1,}"},
	{P, "{'a':1}"},
	{P, "{\"a\":NaN}"},
	{P, "{\"a\":-Infinity}"},
	{P, "{\"a\":01}"},
	{P, "{\"a\":1} {}"},
	{P, "/* c */ {}"},
	{P, "\xef\xbb\xbf{}"},               /* a byte order mark */
	{P, "{\"a\":\"\xff\"}"},             /* not UTF-8 */
	{P, "{\"a\":\"\xc0\x80\"}"},         /* not UTF-8: a longer form */
	{P, "{\"\xed\xa0\x80\":1}"},         /* not UTF-8: half a pair */
	{P, "{\"a\":\"\x01\"}"},             /* a control character */
	{P, "{\"a\":\"\\u0000\"}"},          /* a zero byte in a value */
	{P, HEAD ",\"params\\u0000\":{}}"},  /* a zero byte in a key */
	{P, "{\"a\":18446744073709551616}"}, /* 2^64 */
	{P, "{\"a\":-9223372036854775809}"}, /* -2^63 - 1 */
	{P, "{\"a\":1e999}"},                /* infinite */
	{P, HEAD ",\"method\":\"keep\"}"},   /* which one? */
	{P, HEAD ",\"params\":{\"a\":{\"b\":1,\"b\":1}}}"},
	{R, "1"},
	{R, "null"},
	{R, "\"echo\""},
	{R, "[]"},
	{R, "[" HEAD "}]"}, /* a batch */
	{R, "{}"},
	{R, "{\"jsonrpc\":\"2.0\",\"id\":1}"},
	{R, "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"echo\"}"},
	{R, "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"echo\"}"},
	{R, "{\"id\":1,\"method\":\"echo\"}"},
	{R, "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"echo\"}"},
	{R, "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"echo\"}"},
	{R, "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"echo\"}"},
	{R, "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"echo\"}"},
	{R, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":1}"},
	{R, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}"},
	{R, HEAD ",\"params\":[1]}"},
	{R, HEAD ",\"params\":1}"},
	{R, HEAD ",\"params\":null}"},
	{R, HEAD ",\"parms\":{}}"},
	{GP_RPC_UNKNOWN_METHOD, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}"},
	{GP_RPC_UNKNOWN_METHOD, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xe2\x82\xac\\n\"}"},
	{GP_RPC_INVALID_PARAMS,
	 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{\"version\":\"1\"}}"},
	{GP_RPC_INVALID_PARAMS,
	 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{\"version\":-1}}"},
	{GP_RPC_INVALID_PARAMS,
	 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{\"version\":1,\"v\":1}}"},
};

WORLD_TEST(a_bad_line_gets_an_error_and_the_next_one_an_answer)
{
	int fd = raw_connect(w->path);

	for (unsigned i = 0; i < sizeof bad_lines / sizeof *bad_lines; i++) {
		raw_say(fd, bad_lines[i].line);
		assert_error(fd, bad_lines[i].code);
		raw_send(fd, request, strlen(request));
		raw_hear_result(fd, 7);
	}
	raw_send(fd, "{\"a\":\0}\n", 8);
	assert_error(fd, GP_RPC_PARSE_ERROR);
	raw_send(fd, HEAD "}\0\n", sizeof HEAD + 2); /* a request, and then a zero byte */
	assert_error(fd, GP_RPC_PARSE_ERROR);
	raw_send(fd, "\n \r\n\t\n", 6); /* nothing at all: no answer */
	raw_send(fd, request, strlen(request));
	raw_hear_result(fd, 7);
}

static void raw_say_id(int fd, int length)
{
	char line[256];

	snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":\"%0*d\",\"method\":\"echo\"}",
		 length, 0);
	raw_say(fd, line);
}

WORLD_TEST(an_error_says_to_which_request_it_belongs)
{
	int fd = raw_connect(w->path);
	struct json_object *json;

	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":41,\"method\":\"echo\",\"params\":[]}");
	json = raw_hear_error(fd, GP_RPC_INVALID_REQUEST);
	assert_int_equal(number(json, "id"), 41);
	json_object_put(json);
	raw_say_id(fd, 128);
	json = raw_hear(fd);
	assert_int_equal(json_object_get_string_len(json_object_object_get(json, "id")), 128);
	json_object_put(json);
	raw_say_id(fd, 129); /* too long to be sent back */
	json = raw_hear_error(fd, GP_RPC_INVALID_REQUEST);
	assert_null(json_object_object_get(json, "id"));
	json_object_put(json);
	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":41");
	json = raw_hear_error(fd, GP_RPC_PARSE_ERROR);
	assert_true(json_object_object_get_ex(json, "id", NULL)); /* null */
	assert_null(json_object_object_get(json, "id"));
	json_object_put(json);
}

WORLD_TEST(nesting_is_refused_at_its_limit)
{
	int fd = raw_connect(w->path);
	char *deep = malloc(20001);

	for (size_t n = GP_RPC_DEPTH - 4; n <= 10000; n = n < 40 ? n + 1 : n * 250) {
		memset(deep, '[', n);
		memset(deep + n, ']', n);
		deep[2 * n] = '\n';
		raw_send(fd, HEAD ",\"params\":{\"a\":", strlen(HEAD ",\"params\":{\"a\":"));
		raw_send(fd, deep, 2 * n);
		raw_send(fd, "}}\n", 3);
		if (n + 2 <= GP_RPC_DEPTH)
			raw_hear_result(fd, 1);
		else
			assert_error(fd, GP_RPC_PARSE_ERROR);
	}
	memset(deep, '[', 10000); /* and without an end */
	deep[10000] = '\n';
	raw_send(fd, deep, 10001);
	assert_error(fd, GP_RPC_PARSE_ERROR);
	free(deep);
}

WORLD_TEST(any_bytes_are_survived)
{
	static const char spice[] = "{}[]\",:\\u0019-eE.truefalsn \n\n";
	struct gp_client *beside = client_of(w);
	struct gp_rng rng;

	gp_rng_init(&rng, 1, 0);
	for (unsigned round = 0; round < 200; round++) {
		int fd = raw_connect(w->path);
		char bytes[512];

		for (unsigned i = 0; i < sizeof bytes; i++) {
			bytes[i] = (char)gp_rng_next(&rng);
			if (gp_rng_below(&rng, 4))
				bytes[i] = spice[gp_rng_below(&rng, sizeof spice)];
		}
		raw_send(fd, bytes, sizeof bytes);
		raw_close(fd);
		json_object_put(ask(beside, "echo", NULL));
	}
	await_counter(beside, "gone", 200);
}

/* The answer to the first request shows that the first part was read on its own. */
WORLD_TEST(every_split_of_a_request_is_answered)
{
	for (size_t cut = 1; cut < strlen(request); cut++) {
		int fd = raw_connect(w->path);
		char first[256];
		int n = snprintf(first, sizeof first, HEAD "}\n%.*s", (int)cut, request);

		raw_send(fd, first, (size_t)n);
		raw_hear_result(fd, 1);
		raw_send(fd, request + cut, strlen(request) - cut);
		raw_hear_result(fd, 7);
		raw_close(fd);
	}
}

WORLD_TEST(a_request_byte_by_byte_is_answered)
{
	int fd = raw_connect(w->path);

	for (const char *p = request; *p; p++)
		raw_send(fd, p, 1);
	raw_hear_result(fd, 7);
}

WORLD_TEST(a_disconnect_at_every_byte_is_clean)
{
	struct gp_client *beside = client_of(w);
	unsigned n = 0;

	for (size_t cut = 0; cut <= strlen(request); cut++) {
		int fd = raw_connect(w->path);

		raw_send(fd, request, cut);
		raw_close(fd);
		fd = raw_connect(w->path); /* the same with the other half still open */
		raw_send(fd, request, cut);
		shutdown(fd, SHUT_WR);
		if (cut == strlen(request))
			raw_hear_result(fd, 7);
		else if (cut)
			assert_error(fd, GP_RPC_PARSE_ERROR);
		raw_hear_end(fd);
		n += 2;
	}
	await_counter(beside, "gone", n);
	assert_int_equal(ask_counter(beside, "clients"), 1);
}

WORLD_TEST(a_line_is_taken_up_to_its_limit)
{
	int fd = raw_connect(w->path);
	size_t n = strlen(HEAD "}");
	char *line = malloc(WORLD_LINE_MAX + 2);

	snprintf(line, WORLD_LINE_MAX, HEAD "}");
	memset(line + n, ' ', WORLD_LINE_MAX - n);
	line[WORLD_LINE_MAX] = '\n';
	raw_send(fd, line, WORLD_LINE_MAX + 1);
	raw_hear_result(fd, 1);
	line[WORLD_LINE_MAX] = ' ';
	line[WORLD_LINE_MAX + 1] = '\n';
	raw_send(fd, line, WORLD_LINE_MAX + 2);
	assert_error(fd, GP_RPC_INVALID_REQUEST);
	raw_hear_end(fd);
	free(line);
}

static size_t resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long all = 0, resident = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &all, &resident), 2);
	fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

WORLD_TEST(a_line_of_a_gigabyte_costs_nothing)
{
	struct bystander beside;
	size_t before, size = 1 << 20;
	char *bytes = malloc(size);
	uint64_t sent = 0;
	int fd = raw_connect(w->path);

	memset(bytes, 'x', size);
	bystander_start(&beside, w);
	bystander_goes_on(&beside, 10);
	before = resident_kib();
	while (sent < GIGABYTE) {
		ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);

		if (n < 0)
			break;
		sent += (uint64_t)n;
	}
	assert_true(sent < GIGABYTE); /* it is told, and cut off */
	assert_error(fd, GP_RPC_INVALID_REQUEST);
	raw_hear_end(fd);
	bystander_goes_on(&beside, 10);
	assert_in_range(resident_kib(), 0, before + (32 << 10)); /* sanitizers keep what is freed */
	bystander_stop(&beside);
	free(bytes);
}

/* A million short lines are no less. */
WORLD_TEST(a_flood_of_rubbish_slows_nobody_else)
{
	struct bystander beside;
	char bytes[4096];
	int fd = raw_connect(w->path);
	unsigned stuck = 0;

	memset(bytes, '\n', sizeof bytes);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	bystander_start(&beside, w);
	while (stuck < 20) { /* its bytes are no longer taken, and the other one is served */
		if (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
			continue;
		assert_int_equal(errno, EAGAIN);
		bystander_goes_on(&beside, 5);
		stuck++;
	}
	bystander_stop(&beside);
}
