/* SPDX-License-Identifier: Apache-2.0 */
/* How connections, calls, sockets and servers end, and what is left then. */
#include "support/test.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "rpc_world.h"

#define KEEP "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"keep\"}"

WORLD_TEST(an_answer_for_a_client_that_has_gone_is_dropped)
{
	struct gp_client *other = client_of(w);
	int fd = raw_connect(w->path);

	raw_say(fd, KEEP);
	raw_say(fd, KEEP);
	await_counter(other, "kept", 2);
	raw_close(fd);
	await_counter(other, "gone", 1);
	json_object_put(ask(other, "let_go", object("{\"count\":2}")));
	assert_int_equal(ask_counter(other, "clients"), 1);
}

WORLD_TEST(a_client_that_has_gone_with_open_calls_costs_nothing)
{
	struct gp_client *other = client_of(w);
	int fd = raw_connect(w->path);

	for (unsigned i = 0; i < 20; i++) /* more than may be open: the rest is not read yet */
		raw_say(fd, KEEP);
	await_counter(other, "kept", 16);
	raw_close(fd);
	assert_sleeps(other);
	json_object_put(ask(other, "let_go", object("{\"count\":16}")));
	await_counter(other, "kept", 4); /* said before it left */
	await_counter(other, "gone", 1);
}

WORLD_TEST(nothing_is_left_of_clients_that_have_gone)
{
	struct gp_client *other = client_of(w);
	unsigned before = open_files();

	for (unsigned i = 0; i < 50; i++) {
		int fd = raw_connect(w->path);

		raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\",\"params\":"
			    "{\"bits\":1}}");
		raw_send(fd, "{\"jsonrpc\"", 10);
		raw_hear_result(fd, 1);
		raw_close(fd);
	}
	await_counter(other, "gone", 50);
	await_files(before);
}

TEST(when_the_server_ends_open_calls_fail)
{
	struct world w = {0};
	struct gp_client *other;
	struct json_object *json;
	unsigned before = open_files();
	int fd;

	world_start(&w);
	other = client_of(&w);
	fd = raw_connect(w.path);
	raw_say(fd, KEEP);
	raw_say(fd, KEEP);
	await_counter(other, "kept", 2);
	world_stop(&w); /* answers both once more, when the server has gone */
	for (unsigned i = 0; i < 2; i++) {
		json = raw_hear_error(fd, GP_RPC_ENDING);
		assert_int_equal(number(json, "id"), 5);
		json_object_put(json);
	}
	raw_hear_end(fd);
	client_close(other);
	await_files(before);
}

TEST(a_client_hears_that_the_server_has_gone)
{
	struct world w = {0};
	struct gp_client *client;
	struct json_object *event;
	struct gp_error err = {0};

	world_start(&w);
	client = client_of(&w);
	world_stop(&w);
	assert_int_equal(gp_client_next(client, WAIT_MS, &event, &err), -ECONNRESET);
	err = (struct gp_error){0};
	assert_int_equal(gp_client_call(client, "echo", NULL, NULL, &err), -ECONNRESET);
	assert_true(strlen(err.text) > 5);
	client_close(client);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* blocks */

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* A folder and names for a world that is not started. */
static void place(struct world *w)
{
	*w = (struct world){.folder = "/tmp/gp-rpc-XXXXXX"};
	assert_non_null(mkdtemp(w->folder));
	snprintf(w->path, sizeof w->path, "%s/control.sock", w->folder);
	snprintf(w->hint_path, sizeof w->hint_path, "%s/hint.sock", w->folder);
}

TEST(a_socket_that_nobody_answers_is_replaced)
{
	struct world w;
	struct stat s;

	place(&w);
	raw_close(listen_at(w.path));
	assert_int_equal(stat(w.path, &s), 0);
	world_start(&w);
	client_close(client_of(&w));
	assert_int_equal(stat(w.path, &s), 0);
	assert_int_equal(s.st_mode & 0777, 0600);
	assert_int_equal(stat(w.hint_path, &s), 0);
	assert_int_equal(s.st_mode & 0777, 0666);
	world_stop(&w);
	assert_int_equal(stat(w.path, &s),
			 -1); /* nor is the folder there: nothing was left in it */
	assert_int_equal(stat(w.folder, &s), -1);
}

WORLD_TEST(a_socket_that_somebody_answers_is_left_alone)
{
	struct world second = {0};

	memcpy(second.folder, w->folder, sizeof second.folder);
	memcpy(second.path, w->path, sizeof second.path);
	snprintf(second.hint_path, sizeof second.hint_path, "%s/other.sock", w->folder);
	assert_int_equal(world_try_start(&second), -EADDRINUSE);
	assert_non_null(strstr(second.err.text, "another daemon answers"));
	pthread_join(second.thread, NULL);
	raw_close(second.stop);
	raw_close(second.gate);
	client_close(client_of(w));
	assert_int_equal(access(second.hint_path, F_OK), -1);
}

TEST(a_file_that_is_no_socket_is_left_alone)
{
	struct world w;
	int fd;

	place(&w);
	fd = open(w.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_return_code(fd, errno);
	raw_close(fd);
	assert_int_equal(world_try_start(&w), -EADDRINUSE);
	assert_non_null(strstr(w.err.text, "is not a socket"));
	pthread_join(w.thread, NULL);
	assert_int_equal(access(w.path, F_OK), 0);
	unlink(w.path);
	rmdir(w.folder);
	raw_close(w.stop);
	raw_close(w.gate);
}

TEST(a_socket_that_was_handed_in_is_used_and_stays)
{
	struct world w;
	struct stat s;

	place(&w);
	w.fd = listen_at(w.path);
	world_start(&w);
	client_close(client_of(&w));
	world_stop(&w);
	assert_int_equal(stat(w.path, &s), 0);
	unlink(w.path);
	rmdir(w.folder);
}

TEST(only_a_unix_socket_that_listens_may_be_handed_in)
{
	const int made[] = {
		socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
		socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
		open("/dev/null", O_RDONLY | O_CLOEXEC),
	};

	listen(made[0], 1);
	for (unsigned i = 0; i < sizeof made / sizeof *made; i++) {
		struct world w;

		place(&w);
		w.fd = made[i];
		assert_int_equal(world_try_start(&w), -EINVAL);
		assert_non_null(strstr(w.err.text, "is not a listening Unix stream socket"));
		pthread_join(w.thread, NULL);
		raw_close(w.stop);
		raw_close(w.gate);
		rmdir(w.folder);
		assert_int_equal(fcntl(made[i], F_GETFD), -1); /* taken, and closed */
	}
}

WORLD_TEST(a_client_hears_why_it_is_cut_off)
{
	struct gp_client *client = client_of(w);
	struct json_object *event;
	struct gp_error err = {0};
	char *line = calloc(1, WORLD_LINE_MAX + 2);

	raw_send(gp_client_fd(client), line, WORLD_LINE_MAX + 2);
	assert_int_equal(gp_client_next(client, WAIT_MS, &event, &err), -EMSGSIZE);
	assert_non_null(strstr(err.text, "too long"));
	assert_null(event);
	free(line);
}

TEST(a_daemon_that_hangs_is_not_waited_for)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct gp_client *client;
	struct gp_error err = {0};
	struct world w;
	int listener, fd;

	place(&w);
	listener = listen_at(w.path);
	memcpy(address.sun_path, w.path, strlen(w.path));
	do /* until the listener has no room */
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	while (!connect(fd, (struct sockaddr *)&address, sizeof address));
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(gp_client_connect_within(w.path, 200, &client, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "does not answer"));
	unlink(w.path);
	rmdir(w.folder);
	raw_close(listener);
	for (; fd > listener; fd--)
		raw_close(fd);
}

TEST(a_path_that_is_too_long_is_refused)
{
	struct world w = {.folder = "/tmp"};

	memset(w.path, 'x', sizeof w.path - 1);
	w.path[0] = '/';
	assert_int_equal(world_try_start(&w), -ENAMETOOLONG);
	assert_non_null(strstr(w.err.text, "too long"));
	pthread_join(w.thread, NULL);
	raw_close(w.stop);
	raw_close(w.gate);
}
