/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page over HTTP: who asks for it gets it, who asks for something else is told so, and nobody
 * can keep others from it, neither by silence nor by numbers nor by asking too often.
 */
#include "support/test.h"

#include <netinet/in.h>

#include "base/clock.h"
#include "daemon/http.h"

#define LIMIT_NS (20 * GP_NS_PER_S) /* nothing here takes that long */

struct world {
	sd_event *loop;
	struct gp_http *http;
	unsigned written;
};

static void write_page(FILE *out, void *arg)
{
	struct world *w = arg;

	fprintf(out, "written %u\n", ++w->written);
	for (unsigned i = 0; i < 4000; i++)
		fputs("# a page is longer than what a socket takes at once\n", out);
}

static struct sockaddr_in loopback(unsigned port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static struct world *world_new(unsigned idle_s)
{
	struct world *w = calloc(1, sizeof *w);
	struct sockaddr_in address = loopback(0);
	struct gp_http_config config = {.address = (struct sockaddr *)&address,
					.type = "text/test",
					.idle_s = idle_s,
					.write = write_page,
					.arg = w};
	struct gp_error err = {0};

	assert_non_null(w);
	assert_true(sd_event_new(&w->loop) >= 0);
	if (gp_http_begin(w->loop, &config, &w->http, &err))
		fail_msg("%s", err.text);
	assert_true(gp_http_port(w->http) > 0);
	return w;
}

static void world_free(struct world *w)
{
	gp_http_end(w->http);
	sd_event_unref(w->loop);
	free(w);
}

/* A test with a server that closes idle connections after idle_s; 0 = by default. */
#define HTTP_TEST(function, idle_s)                  \
	static void function##_in(struct world *w);  \
	TEST(function)                               \
	{                                            \
		struct world *w = world_new(idle_s); \
                                                     \
		function##_in(w);                    \
		world_free(w);                       \
	}                                            \
	static void function##_in(struct world *w)

static int dial(const struct world *w)
{
	struct sockaddr_in address = loopback(gp_http_port(w->http));
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What comes until the connection ends or, if that is there before, `until`. */
static char *hear(struct world *w, int fd, const char *until)
{
	uint64_t give_up_ns = gp_monotonic_ns() + LIMIT_NS;
	size_t size = 0, capacity = 1 << 20;
	char *text = calloc(1, capacity);

	assert_non_null(text);
	while (!until || !strstr(text, until)) {
		ssize_t n = recv(fd, text + size, capacity - size - 1, MSG_DONTWAIT);

		assert_true(gp_monotonic_ns() < give_up_ns);
		if (!n || (n < 0 && errno == ECONNRESET))
			break;
		if (n > 0)
			size += (size_t)n;
		else
			sd_event_run(w->loop, 10000);
		assert_true(size < capacity - 1);
	}
	return text;
}

/* One request on a connection of its own. */
static char *ask(struct world *w, const char *request)
{
	char line[200];
	int fd = dial(w);
	char *answer;

	snprintf(line, sizeof line, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", request);
	say(fd, line);
	answer = hear(w, fd, NULL);
	close(fd);
	return answer;
}

static void assert_begins(const char *answer, const char *with)
{
	if (strncmp(answer, with, strlen(with)) != 0)
		fail_msg("'%.60s...' does not begin with '%s'", answer, with);
}

HTTP_TEST(the_page_is_there_whole, 0)
{
	char *answer = ask(w, "GET /metrics");
	const char *body = strstr(answer, "\r\n\r\n"), *length;

	assert_begins(answer, "HTTP/1.1 200 ");
	assert_non_null(strcasestr(answer, "\r\nContent-Type: text/test\r\n"));
	assert_non_null(body);
	assert_begins(body + 4, "written 1\n");
	length = strcasestr(answer, "\r\nContent-Length: ");
	assert_non_null(length);
	assert_int_equal(strtoul(length + 18, NULL, 10), strlen(body + 4));
	assert_int_equal(strlen(body + 4), 10 + 4000 * 52);
	free(answer);
}

HTTP_TEST(what_is_not_there_and_what_may_not_be_done_is_said, 0)
{
	static const struct {
		const char *request, *answer;
	} cases[] = {
		{"GET /", "HTTP/1.1 200 "},
		{"HEAD /metrics", "HTTP/1.1 200 "},
		{"GET /metrics?x=1", "HTTP/1.1 200 "},
		{"GET /secret", "HTTP/1.1 404 "},
		{"GET /metrics/", "HTTP/1.1 404 "},
		{"GET /../etc/passwd", "HTTP/1.1 404 "},
		{"POST /metrics", "HTTP/1.1 405 "},
		{"DELETE /", "HTTP/1.1 405 "},
		{"BREW /metrics", "HTTP/1.1 405 "},
	};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *answer = ask(w, cases[i].request);

		assert_begins(answer, cases[i].answer);
		if (strstr(cases[i].answer, "405"))
			assert_non_null(strcasestr(answer, "\r\nAllow: GET, HEAD\r\n"));
		free(answer);
	}
}

HTTP_TEST(a_connection_serves_more_than_one_request, 0)
{
	int fd = dial(w);

	for (unsigned i = 0; i < 3; i++) {
		char *answer;

		say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
		answer = hear(w, fd, "</a>\n");
		assert_begins(answer, "HTTP/1.1 200 ");
		free(answer);
	}
	close(fd);
}

HTTP_TEST(nonsense_does_no_harm, 0)
{
	static const char *const nonsense[] = {"\r\n\r\n\r\n", "GET\r\n\r\n", "\x16\x03\x01\x02",
					       "GET /metrics HTTP/9.9\r\n\r\n", "GET /met"};
	char *answer;

	for (unsigned i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
		int fd = dial(w);

		say(fd, nonsense[i]);
		sd_event_run(w->loop, 10000);
		close(fd); /* in the middle */
		sd_event_run(w->loop, 10000);
	}
	answer = ask(w, "GET /metrics");
	assert_begins(answer, "HTTP/1.1 200 ");
	free(answer);
}

HTTP_TEST(who_says_nothing_is_cut_off, 1)
{
	int silent = dial(w), slow = dial(w);
	char *rest;

	say(slow, "GET /metrics HTTP/1.1\r\nHo");
	rest = hear(w, silent, NULL); /* ends, or this never returns */
	free(rest);
	rest = hear(w, slow, NULL);
	free(rest);
	close(silent);
	close(slow);
}

HTTP_TEST(a_crowd_is_let_in_as_places_become_free, 1)
{
	int crowd[28]; /* 16 are let in, and as many may stand in line */
	char *answer;

	for (unsigned i = 0; i < 28; i++) {
		crowd[i] = dial(w);
		sd_event_run(w->loop, 0);
	}
	answer = ask(w, "GET /metrics"); /* behind them all, who say nothing */
	assert_begins(answer, "HTTP/1.1 200 ");
	free(answer);
	for (unsigned i = 0; i < 28; i++)
		close(crowd[i]);
}

/* Without a limit of their own: these would keep their places for 1,000 s. */
HTTP_TEST(connections_that_send_slowly_do_not_keep_others_out, 1000)
{
	int slow[24];
	char *answer;

	for (unsigned i = 0; i < 24; i++) {
		slow[i] = dial(w);
		say(slow[i], "GET /metrics HTTP/1.1\r\nX: ");
		sd_event_run(w->loop, 0);
	}
	answer = ask(w, "GET /metrics");
	assert_begins(answer, "HTTP/1.1 200 ");
	free(answer);
	for (unsigned i = 0; i < 24; i++)
		close(slow[i]);
}

HTTP_TEST(a_request_whose_end_is_ambiguous_is_refused, 0)
{
	int fd = dial(w);
	char *answer;

	say(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
		"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
	answer = hear(w, fd, NULL);
	assert_begins(answer, "HTTP/1.1 400 ");
	free(answer);
	close(fd);
}

HTTP_TEST(the_page_is_made_ten_times_a_second_at_most, 0)
{
	uint64_t begin_ns = gp_monotonic_ns(), took_ns;

	for (unsigned i = 0; i < 50; i++)
		free(ask(w, "GET /metrics"));
	took_ns = gp_monotonic_ns() - begin_ns;
	assert_true(w->written <= 1 + took_ns / (100 * GP_NS_PER_MS));
}

HTTP_TEST(an_address_that_is_taken_is_said_in_a_sentence, 0)
{
	struct sockaddr_in address = loopback(gp_http_port(w->http));
	struct gp_http_config config = {.address = (struct sockaddr *)&address};
	struct gp_http *second = NULL;
	struct gp_error err = {0};

	assert_int_equal(gp_http_begin(w->loop, &config, &second, &err), -EADDRINUSE);
	assert_null(second);
	assert_non_null(strstr(err.text, "another program listens there"));
}
