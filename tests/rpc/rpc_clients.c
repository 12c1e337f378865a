/* SPDX-License-Identifier: Apache-2.0 */
/* The clients of the tests, and what they wait for. */
#include "rpc_world.h"

#include "support/test.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"

static void *go_on(void *arg)
{
	struct bystander *b = arg;
	struct gp_error err = {0};

	while (!b->stop && !gp_client_call(b->client, "echo", NULL, NULL, &err))
		b->answered++;
	return NULL;
}

void bystander_start(struct bystander *b, const struct world *w)
{
	*b = (struct bystander){.client = client_of(w)};
	assert_int_equal(pthread_create(&b->thread, NULL, go_on, b), 0);
}

void bystander_stop(struct bystander *b)
{
	b->stop = true;
	pthread_join(b->thread, NULL);
	client_close(b->client);
}

void bystander_goes_on(struct bystander *b, unsigned n)
{
	uint64_t until_ns = gp_monotonic_ns() + WAIT_MS * GP_NS_PER_MS;
	unsigned from = b->answered;

	while (b->answered - from < n) {
		if (gp_monotonic_ns() > until_ns)
			fail_msg("the client beside is no longer answered");
		usleep(1000);
	}
}

/* What is open: clients, and connections that speak bytes. */
#define CLIENTS_MAX 256

static struct gp_client *clients[CLIENTS_MAX];
static int connections[256];

int raw_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	assert_return_code(fd, errno);
	assert_return_code(connect(fd, (struct sockaddr *)&address, sizeof address), errno);
	for (unsigned i = 0; i < sizeof connections / sizeof *connections; i++)
		if (!connections[i]) {
			connections[i] = fd;
			break;
		}
	return fd;
}

void raw_close(int fd)
{
	for (unsigned i = 0; i < sizeof connections / sizeof *connections; i++)
		if (connections[i] == fd)
			connections[i] = 0;
	close(fd);
}

void raw_send(int fd, const void *bytes, size_t length)
{
	assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
}

void raw_say(int fd, const char *text)
{
	char line[4096];
	int n = snprintf(line, sizeof line, "%s\n", text);

	assert_in_range(n, 1, sizeof line - 1);
	raw_send(fd, line, (size_t)n);
}

int raw_send_files(int fd, const char *bytes, const int *fds, unsigned nfds, int flags)
{
	size_t space = CMSG_SPACE(nfds * sizeof(int));
	struct cmsghdr *control = calloc(1, space);
	struct iovec part = {(char *)(uintptr_t)bytes, strlen(bytes)};
	struct msghdr head = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = space};
	ssize_t n;
	int r;

	control->cmsg_len = CMSG_LEN(nfds * sizeof(int));
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(control), fds, nfds * sizeof(int));
	n = sendmsg(fd, &head, MSG_NOSIGNAL | flags);
	r = n < 0 ? -errno : 0;
	free(control);
	assert_true(n < 0 || n == (ssize_t)strlen(bytes));
	return r;
}

/* As recv(2), but waits; a reset is an end too. */
static size_t hear(int fd, char *bytes, size_t size, int flags)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, WAIT_MS) != 1)
		fail_msg("nothing comes");
	n = recv(fd, bytes, size, flags);
	if (n < 0)
		assert_int_equal(errno, ECONNRESET);
	return n < 0 ? 0 : (size_t)n;
}

struct json_object *raw_hear(int fd)
{
	struct json_object *json = NULL;
	size_t length = 0, size = 0, n;
	char *line = NULL;
	bool whole = false;

	do {
		char *newline;

		line = realloc(line, size = length + 65536);
		n = hear(fd, line + length, size - length, MSG_PEEK);
		newline = memchr(line + length, '\n', n);
		whole = newline != NULL;
		if (whole)
			n = (size_t)(newline - line) + 1 - length;
		length += hear(fd, line + length, n, 0);
	} while (n && !whole);
	if (whole) {
		line[length - 1] = 0;
		json = json_tokener_parse(line);
		assert_non_null(json);
	}
	free(line);
	return json;
}

void raw_hear_end(int fd)
{
	char byte;

	assert_int_equal(hear(fd, &byte, 1, 0), 0);
	raw_close(fd);
}

void raw_hear_result(int fd, uint64_t id)
{
	struct json_object *json = raw_hear(fd);

	assert_non_null(json);
	assert_true(json_object_object_get_ex(json, "result", NULL));
	assert_int_equal(number(json, "id"), id);
	json_object_put(json);
}

struct json_object *raw_hear_error(int fd, int code)
{
	struct json_object *json = raw_hear(fd), *error, *message;

	assert_non_null(json);
	assert_true(json_object_object_get_ex(json, "error", &error));
	assert_int_equal(json_object_get_int(json_object_object_get(error, "code")), code);
	assert_true(json_object_object_get_ex(error, "message", &message));
	assert_true(json_object_get_string_len(message) > 5);
	return json;
}

struct gp_client *client_of(const struct world *w)
{
	struct gp_client *client;
	struct gp_error err = {0};

	if (gp_client_connect(w->path, &client, &err))
		fail_msg("%s", err.text);
	gp_client_set_timeout(client, WAIT_MS);
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		if (!clients[i]) {
			clients[i] = client;
			break;
		}
	return client;
}

void client_close(struct gp_client *client)
{
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		if (clients[i] == client)
			clients[i] = NULL;
	gp_client_close(client);
}

void close_all_clients(void)
{
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		if (clients[i])
			client_close(clients[i]);
	for (unsigned i = 0; i < sizeof connections / sizeof *connections; i++)
		if (connections[i])
			raw_close(connections[i]);
}

struct json_object *ask(struct gp_client *client, const char *method, struct json_object *params)
{
	struct json_object *result;
	struct gp_error err = {0};

	if (gp_client_call(client, method, params, &result, &err))
		fail_msg("%s: %s", method, err.text);
	return result;
}

uint64_t ask_counter(struct gp_client *client, const char *name)
{
	struct json_object *all = ask(client, "counters", NULL);
	uint64_t value = number(all, name);

	json_object_put(all);
	return value;
}

void await_counter(struct gp_client *client, const char *name, uint64_t least)
{
	uint64_t until_ns = gp_monotonic_ns() + WAIT_MS * GP_NS_PER_MS;

	while (ask_counter(client, name) < least) {
		if (gp_monotonic_ns() > until_ns)
			fail_msg("%s does not come to %llu", name, (unsigned long long)least);
		usleep(2000);
	}
}

void assert_sleeps(struct gp_client *client)
{
	uint64_t before = ask_counter(client, "iterations");

	usleep(300000);
	assert_in_range(ask_counter(client, "iterations") - before, 1, 30);
}

unsigned open_files(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

void await_files(unsigned n)
{
	uint64_t until_ns = gp_monotonic_ns() + WAIT_MS * GP_NS_PER_MS;

	while (open_files() != n) {
		if (gp_monotonic_ns() > until_ns)
			fail_msg("%u files are open, not %u", open_files(), n);
		usleep(2000);
	}
}
