/* SPDX-License-Identifier: Apache-2.0 */
/* What a client can fill or use up has a limit, and only that client meets it. */
#include "support/test.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "rpc_world.h"

#define ECHO   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n"
#define NOBODY 65534

static struct world *with_limits(void **state, struct gp_rpc_limits limits)
{
	struct world *w = calloc(1, sizeof *w);

	w->limits = limits;
	world_start(w);
	*state = w;
	return w;
}

TEST_WITH(who_asks_too_fast_waits_and_loses_nothing, NULL, world_teardown)
{
	struct world *w = with_limits(state, (struct gp_rpc_limits){.rate = 100, .burst = 10});
	uint64_t begin_ns = gp_monotonic_ns();
	int fd = raw_connect(w->path), other = raw_connect(w->path);

	for (unsigned i = 0; i < 60; i++)
		raw_send(fd, ECHO, strlen(ECHO));
	raw_send(other, ECHO, strlen(ECHO));
	raw_hear_result(other, 1); /* has its own rate */
	for (unsigned i = 0; i < 60; i++)
		raw_hear_result(fd, 1);
	/* 49 after the burst and the first one, 10 ms each. */
	assert_true(gp_monotonic_ns() - begin_ns >= 480 * GP_NS_PER_MS);
}

TEST_WITH(long_lines_count_for_more, NULL, world_teardown)
{
	struct world *w = with_limits(state, (struct gp_rpc_limits){.rate = 100, .burst = 1});
	uint64_t begin_ns = gp_monotonic_ns();
	int fd = raw_connect(w->path);
	char *line = malloc(40961);

	snprintf(line, 40961, "%s", ECHO);
	memset(line + strlen(ECHO) - 1, ' ', 40960 - (strlen(ECHO) - 1));
	line[40960] = '\n';
	for (unsigned i = 0; i < 4; i++)
		raw_send(fd, line, 40961);
	for (unsigned i = 0; i < 4; i++)
		raw_hear_result(fd, 1);
	/* Three times eleven lines' worth, less the burst. */
	assert_true(gp_monotonic_ns() - begin_ns >= 300 * GP_NS_PER_MS);
	free(line);
}

WORLD_TEST(a_flood_slows_nobody_else)
{
	struct bystander beside;
	int flood[8];

	bystander_start(&beside, w);
	for (unsigned i = 0; i < 8; i++) {
		flood[i] = raw_connect(w->path);
		fcntl(flood[i], F_SETFL, O_NONBLOCK);
	}
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 8; i++)
			while (send(flood[i], ECHO, strlen(ECHO), MSG_NOSIGNAL) > 0)
				;
		assert_int_equal(errno, EAGAIN); /* waits; is not cut off */
		bystander_goes_on(&beside, 5);
	}
	for (unsigned i = 0; i < 8; i++)
		raw_close(flood[i]);
	bystander_stop(&beside);
}

WORLD_TEST(who_has_much_to_ask_does_not_come_first)
{
	static const char ticket[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ticket\"}\n";
	int stalls = raw_connect(w->path), much = raw_connect(w->path);
	int little = raw_connect(w->path);
	struct json_object *json;

	for (unsigned i = 0; i < 2; i++) { /* they are known to the server */
		raw_send(i ? much : little, ECHO, strlen(ECHO));
		raw_hear_result(i ? much : little, 1);
	}
	raw_say(stalls, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"stall\"}");
	for (unsigned i = 0; i < 150; i++) /* less than the burst */
		raw_send(much, ticket, strlen(ticket));
	raw_send(little, ticket, strlen(ticket));
	eventfd_write(w->gate, 1);
	json = raw_hear(little);
	assert_in_range(number(json, "result"), 0, 30);
	json_object_put(json);
	for (unsigned i = 0; i < 150; i++)
		raw_hear_result(much, 2);
}

/* 48 clients with 24 lines of 2 ms each: sources with a higher priority do not wait for a round. */
WORLD_TEST(a_round_of_much_work_is_not_done_at_once)
{
	int stalls = raw_connect(w->path), fd[48];
	struct gp_client *client = client_of(w);
	struct json_object *most;

	raw_say(stalls, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"stall\"}");
	for (unsigned i = 0; i < 48; i++) {
		fd[i] = raw_connect(w->path);
		for (unsigned n = 1; n <= 24; n++)
			raw_say(fd[i], "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"toil\"}");
	}
	eventfd_write(w->gate, 1);
	raw_hear_result(stalls, 1);
	json_object_put(ask(client, "most_toils", NULL)); /* forget the stall */
	for (unsigned i = 0; i < 48; i++) {
		for (unsigned n = 1; n <= 24; n++)
			raw_hear_result(fd[i], 1);
		raw_close(fd[i]);
	}
	most = ask(client, "most_toils", NULL);
	assert_in_range(json_object_get_int(most), 1, 40); /* a round has 8 of each client */
	json_object_put(most);
}

TEST_WITH(open_calls_are_limited_by_waiting, NULL, world_teardown)
{
	struct world *w = with_limits(state, (struct gp_rpc_limits){.in_flight = 2});
	struct gp_client *other = client_of(w);
	int fd = raw_connect(w->path);

	for (unsigned i = 0; i < 3; i++)
		raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"keep\"}");
	raw_send(fd, ECHO, strlen(ECHO));
	await_counter(other, "kept", 2);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(ask_counter(other, "kept"), 2);
	json_object_put(ask(other, "let_go", object("{\"count\":2}")));
	raw_hear_result(fd, 5);
	raw_hear_result(fd, 5);
	raw_hear_result(fd, 1);
	await_counter(other, "kept", 1);
}

/* How many events came, and how many it says were lost: just there where they are missing. */
static void read_events(struct gp_client *reader, uint64_t first, uint64_t all, uint64_t *came,
			uint64_t *lost)
{
	*came = *lost = 0;
	while (*came + *lost < all) {
		struct json_object *event;
		struct gp_error err = {0};

		if (gp_client_next(reader, WAIT_MS, &event, &err))
			fail_msg("after %llu and %llu lost: %s", (unsigned long long)*came,
				 (unsigned long long)*lost, err.text);
		if (strcmp(json_object_get_string(json_object_object_get(event, "method")),
			   "lost") == 0)
			*lost += number(json_object_object_get(event, "params"), "count");
		else
			assert_int_equal(number(json_object_object_get(event, "params"), "serial"),
					 first + (*came)++ + *lost);
		json_object_put(event);
	}
}

WORLD_TEST(a_slow_reader_loses_events_and_is_told)
{
	struct gp_client *slow = client_of(w), *quick = client_of(w);
	struct bystander beside;
	uint64_t came, lost;

	json_object_put(ask(slow, "subscribe", object("{\"bits\":1}")));
	bystander_start(&beside, w);
	for (unsigned i = 0; i < 20; i++) { /* small ones would still fit where large ones do not */
		json_object_put(ask(quick, "emit", object("{\"count\":25,\"bytes\":2000}")));
		json_object_put(ask(quick, "emit", object("{\"count\":25}")));
		bystander_goes_on(&beside, 2);
	}
	assert_in_range(ask_counter(quick, "output"), 1, (256u << 10) + 4096);
	assert_true(ask_counter(quick, "lost") > 0);
	read_events(slow, 0, 1000, &came, &lost);
	assert_int_equal(came + lost, 1000);
	assert_true(came > 100 && lost > 100);
	/* From now on it hears everything again. */
	json_object_put(ask(quick, "emit", object("{\"count\":50}")));
	read_events(slow, 1000, 50, &came, &lost);
	assert_int_equal(lost, 0);
	bystander_stop(&beside);
}

WORLD_TEST(who_does_not_read_answers_is_no_longer_asked_for_more)
{
	struct gp_client *other = client_of(w);
	int fd = raw_connect(w->path);

	for (unsigned i = 0; i < 100; i++)
		raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"blob\",\"params\":"
			    "{\"bytes\":100000}}");
	await_counter(other, "output", 100000);
	assert_in_range(ask_counter(other, "output"), 0, 400000);
	for (unsigned i = 0; i < 100; i++) /* and when it reads, gets all of them */
		raw_hear_result(fd, 1);
}

WORLD_TEST(an_answer_that_nobody_could_keep_ends_the_connection)
{
	struct gp_client *other = client_of(w);
	int fd = raw_connect(w->path);

	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"blob\",\"params\":"
		    "{\"bytes\":4000000}}");
	raw_hear_end(fd);
	assert_int_equal(ask_counter(other, "cut_off"), 1);
}

TEST_WITH(more_clients_than_allowed_are_told_so, NULL, world_teardown)
{
	struct world *w = with_limits(
		state, (struct gp_rpc_limits){.clients = 4, .reserved = 1, .per_user = 4});
	struct gp_client *client[4];
	int fd;

	for (unsigned i = 0; i < 4; i++)
		client[i] = client_of(w);
	fd = raw_connect(w->path);
	assert_error(fd, GP_RPC_LIMIT);
	raw_hear_end(fd);
	fd = raw_connect(w->hint_path); /* counts its own */
	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hint\"}");
	raw_hear_result(fd, 1);
	raw_close(fd);
	client_close(client[3]);
	await_counter(client[0], "gone", 1);
	client[3] = client_of(w);
}

/* As the users `first` to `last` in turn: how many of `n` connections are served. */
static unsigned served_as(const char *path, unsigned n, uid_t first, uid_t last)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		unsigned served = 0;

		if (setgid(NOBODY))
			_exit(255);
		for (unsigned i = 0; i < n; i++) { /* they stay open */
			struct json_object *json;
			int fd;

			if (setresuid(first + i % (last - first + 1),
				      first + i % (last - first + 1), 0))
				_exit(255);
			fd = raw_connect(path);
			if (setresuid(0, 0, 0))
				_exit(255);

			(void)!send(fd, ECHO, strlen(ECHO), MSG_NOSIGNAL);
			json = raw_hear(fd);
			served += json_object_object_get_ex(json, "result", NULL) ? 1 : 0;
		}
		_exit((int)served);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return (unsigned)WEXITSTATUS(status);
}

static unsigned served_as_nobody(const char *path, unsigned n)
{
	return served_as(path, n, NOBODY, NOBODY);
}

static uid_t mapped(void *arg, uid_t uid)
{
	(void)arg;
	return uid >= 100000 && uid < 165536 ? 100000 : uid;
}

/* As a user with entries in /etc/subuid can have. */
TEST_WITH(uids_that_count_for_the_same_user_share_its_limit, NULL, world_teardown)
{
	struct world *w = calloc(1, sizeof *w);

	if (geteuid())
		skip();
	*state = w;
	w->limits = (struct gp_rpc_limits){.clients = 16, .reserved = 2, .per_user = 3};
	w->account = mapped;
	world_start(w);
	chmod(w->folder, 0755);
	chmod(w->path, 0666);
	assert_int_equal(served_as(w->path, 8, 100000, 100007), 3);
	assert_int_equal(served_as(w->path, 4, 200000, 200003), 4);
}

TEST_WITH(a_user_has_a_limit_and_root_is_let_in, NULL, world_teardown)
{
	struct world *w = with_limits(
		state, (struct gp_rpc_limits){.clients = 8, .reserved = 2, .per_user = 3});
	struct gp_client *client;

	if (geteuid())
		skip();
	chmod(w->folder, 0755);
	chmod(w->path, 0666);
	assert_int_equal(served_as_nobody(w->path, 5), 3);
	client = client_of(w);
	await_counter(client, "gone", 3);
	for (unsigned i = 0; i < 5; i++)
		raw_connect(w->path); /* with the first one 6 of 8: the rest is reserved */
	await_counter(client, "clients", 6);
	assert_int_equal(served_as_nobody(w->path, 1), 0);
	client_close(client);
	client = client_of(w);
}

TEST_WITH(who_says_nothing_is_closed_but_not_who_waits, NULL, world_teardown)
{
	struct world *w = with_limits(state, (struct gp_rpc_limits){.idle_s = 1});
	int idle = raw_connect(w->path), half = raw_connect(w->path);
	int listens = raw_connect(w->path), waits = raw_connect(w->path);
	char byte;

	raw_send(half, ECHO, 10);
	raw_say(listens, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\",\"params\":"
			 "{\"bits\":1}}");
	raw_hear_result(listens, 1);
	raw_say(waits, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"keep\"}");
	raw_hear_end(idle);
	raw_hear_end(half);
	idle = raw_connect(w->path);
	raw_hear_end(idle); /* another second later */
	assert_int_equal(recv(listens, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(recv(waits, &byte, 1, MSG_DONTWAIT), -1);
}

WORLD_TEST(without_files_left_it_waits_and_goes_on)
{
	struct gp_client *client = client_of(w);
	struct rlimit old, tight;
	int fd = raw_connect(w->path), waiting;

	raw_send(fd, ECHO, strlen(ECHO));
	raw_hear_result(fd, 1);
	waiting = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	raw_close(waiting); /* the number that a connection would get next */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = old;
	tight.rlim_cur = (rlim_t)waiting + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	waiting = raw_connect(w->path); /* takes the last one: none to accept it with */
	raw_send(waiting, ECHO, strlen(ECHO));
	assert_sleeps(client);
	json_object_put(ask(client, "echo", NULL));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	raw_hear_result(waiting, 1);
}
