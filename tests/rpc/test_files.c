/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that clients send (SCM_RIGHTS): the server takes none, and releases none in its own thread.
 * Clients that connect before the server starts can send files on every kernel; from Linux 6.16 on,
 * later clients cannot.
 */
#include "support/test.h"

#include <dirent.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "rpc_world.h"
#include "support/mute_fuse.h"

#define ECHO "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n"
#define KEEP "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"keep\"}\n"
#define MANY 8

/* A server with clients that may send files. */
struct crowd {
	struct world world;
	struct bystander beside;
	struct gp_client *client; /* without files */
	char folder[32], path[64];
	int fd[MANY];
};

static void connect_crowd(struct crowd *c)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	c->world.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(c->folder, sizeof c->folder, "/tmp/rpc-files-XXXXXX");
	assert_non_null(mkdtemp(c->folder));
	snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", c->folder);
	assert_return_code(bind(c->world.fd, (struct sockaddr *)&address, sizeof address), errno);
	assert_return_code(listen(c->world.fd, MANY), errno);
	for (unsigned i = 0; i < MANY; i++)
		c->fd[i] = raw_connect(address.sun_path);
	snprintf(c->path, sizeof c->path, "%s", address.sun_path);
}

static void disconnect_crowd(const struct crowd *c)
{
	for (unsigned i = 0; i < MANY; i++)
		if (c->fd[i] >= 0)
			raw_close(c->fd[i]);
	unlink(c->path);
	rmdir(c->folder);
}

static void start(struct crowd *c)
{
	connect_crowd(c);
	world_start(&c->world);
	snprintf(c->world.path, sizeof c->world.path, "%s", c->path);
	bystander_start(&c->beside, &c->world);
	c->client = client_of(&c->world);
}

static void stop(struct crowd *c)
{
	bystander_goes_on(&c->beside, 5);
	bystander_stop(&c->beside);
	client_close(c->client);
	disconnect_crowd(c);
	world_stop(&c->world);
}

/* A TCP socket with data that its peer does not read. raw_close(2) of it takes an hour. */
static int lingering(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct linger linger = {.l_onoff = 1, .l_linger = 3600};
	int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof address;
	static char bytes[65536];

	assert_return_code(bind(peer, (struct sockaddr *)&address, size), errno);
	assert_return_code(listen(peer, 1), errno);
	assert_return_code(getsockname(peer, (struct sockaddr *)&address, &size), errno);
	assert_return_code(connect(fd, (struct sockaddr *)&address, size), errno);
	while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), errno);
	return fd; /* `peer` stays open, or the data would be discarded */
}

/* Only the message has it then: this process would linger, too, if the last one were here. */
static void send_lingering(int to, const char *bytes, int flags)
{
	int fd = lingering();

	assert_int_equal(raw_send_files(to, bytes, &fd, 1, flags), 0);
	raw_close(fd);
}

static void await_with_files(struct crowd *c, unsigned n)
{
	await_counter(c->client, "with_files", n);
}

TEST(a_client_that_sends_files_is_told_so_and_cut_off)
{
	struct crowd c = {0};
	int file = memfd_create("file", MFD_CLOEXEC);

	start(&c);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(raw_send_files(c.fd[i], ECHO, &file, 1, 0), 0);
		assert_error(c.fd[i], GP_RPC_INVALID_REQUEST);
		raw_hear_end(c.fd[i]);
	}
	raw_send(c.fd[4], ECHO, strlen(ECHO)); /* without files it is served */
	raw_hear_result(c.fd[4], 1);
	await_with_files(&c, 4);
	raw_close(file);
	stop(&c);
}

TEST(a_kernel_with_the_option_refuses_files_of_later_clients)
{
	struct crowd c = {0};
	int file = memfd_create("file", MFD_CLOEXEC), fd, value;
	socklen_t size = sizeof value;
	bool has_option;

	start(&c);
	fd = raw_connect(c.world.path);
	has_option = !getsockopt(fd, SOL_SOCKET, 83 /* SO_PASSRIGHTS */, &value, &size);
	if (has_option)
		assert_int_equal(raw_send_files(fd, ECHO, &file, 1, 0), -EPERM);
	raw_close(fd);
	raw_close(file);
	stop(&c);
	if (!has_option)
		skip();
}

/* In each case the file would be released in the server's thread, which would wait for an hour. */
TEST(a_file_that_is_slow_to_close_hangs_no_other_client)
{
	struct crowd c = {.world.limits.in_flight = 2};

	start(&c);
	send_lingering(c.fd[0], ECHO, 0); /* in a line */
	send_lingering(c.fd[1], "half a li", 0);
	raw_close(c.fd[1]); /* with half a line, by a client that has gone */
	c.fd[1] = -1;
	send_lingering(c.fd[2], "!", MSG_OOB);                  /* as urgent data, before a line */
	(void)!send(c.fd[2], ECHO, strlen(ECHO), MSG_NOSIGNAL); /* it may be cut off already */
	raw_send(c.fd[3], KEEP KEEP, 2 * strlen(KEEP));         /* while nothing more is read */
	await_counter(c.client, "kept", 2);
	send_lingering(c.fd[3], ECHO, 0);
	raw_close(c.fd[3]);
	c.fd[3] = -1;
	bystander_goes_on(&c.beside, 20);
	await_with_files(&c, 3);
	bystander_goes_on(&c.beside, 20);
	json_object_put(ask(c.client, "let_go", object("{\"count\":2}")));
	await_with_files(&c, 4);
	send_lingering(c.fd[4], KEEP, 0);
	stop(&c); /* and not at the end */
}

/* Sent before the server accepts: it refuses the last two. */
TEST(a_client_over_the_limit_hangs_no_other_client)
{
	struct crowd c = {.world.limits.clients = MANY - 2};
	struct gp_client *client;
	struct gp_error err = {0};

	connect_crowd(&c);
	send_lingering(c.fd[MANY - 1], ECHO, 0);
	world_start(&c.world);
	assert_error(c.fd[MANY - 1], GP_RPC_LIMIT);
	raw_hear_end(c.fd[MANY - 1]);
	if (gp_client_connect(c.world.hint_path, &client, &err)) /* has its own limit */
		fail_msg("%s", err.text);
	json_object_put(ask(client, "hints", NULL));
	client_close(client);
	disconnect_crowd(&c);
	world_stop(&c.world);
}

/* A file in FUSE waits for its server when it is closed (FLUSH); not even SIGKILL ends that. */
TEST(a_file_of_a_file_system_that_does_not_answer_hangs_no_other_client)
{
	struct crowd c = {0};
	struct mute_fuse fuse;
	char path[64];
	int file;

	if (!mute_fuse_start(&fuse, "/mnt", NULL))
		skip();
	file = open(mute_fuse_path(&fuse, "/mnt/file", path, sizeof path), O_RDONLY | O_CLOEXEC);
	assert_return_code(file, errno);
	start(&c);
	mute_fuse_silence(&fuse);
	assert_int_equal(raw_send_files(c.fd[0], ECHO, &file, 1, 0), 0);
	assert_int_equal(raw_send_files(c.fd[1], "half", &file, 1, 0), 0);
	raw_close(c.fd[1]);
	c.fd[1] = -1;
	await_with_files(&c, 2);
	stop(&c);
	mute_fuse_stop(&fuse);
	raw_close(file);
}

/* Of all threads of this process. A shell that counts them would close `file` at its start. */
static unsigned count_children(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned n = 0;
	int child;

	assert_non_null(tasks);
	for (struct dirent *e; (e = readdir(tasks));) {
		char path[300];
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%s/children", e->d_name);
		f = *e->d_name == '.' ? NULL : fopen(path, "re");
		while (f && fscanf(f, "%d", &child) == 1)
			n++;
		if (f)
			fclose(f);
	}
	closedir(tasks);
	return n;
}

/* Each of these clients had a child process that hangs. */
TEST(an_account_whose_files_hang_keeps_two_children_and_others_are_served)
{
	struct crowd c = {0};
	struct mute_fuse fuse;
	unsigned before;
	char path[64];
	int file;

	if (!mute_fuse_start(&fuse, "/mnt", NULL))
		skip();
	file = open(mute_fuse_path(&fuse, "/mnt/file", path, sizeof path), O_RDONLY | O_CLOEXEC);
	assert_return_code(file, errno);
	start(&c);
	before = count_children();
	mute_fuse_silence(&fuse);
	for (unsigned i = 0; i < MANY - 1; i++) {
		assert_int_equal(raw_send_files(c.fd[i], ECHO, &file, 1, 0), 0);
		await_with_files(&c, i + 1);
		usleep(150000); /* longer than the server waits for more */
	}
	assert_int_equal(count_children(), before + 2);
	raw_send(c.fd[MANY - 1], ECHO, strlen(ECHO));
	raw_hear_result(c.fd[MANY - 1], 1);
	bystander_goes_on(&c.beside, 5);
	mute_fuse_stop(&fuse); /* the children end, and the other sockets are closed */
	TEST_WAIT(count_children() < before);
	stop(&c);
	raw_close(file);
}

/* The ends of the connection keep each other alive, if one is in a message to the other. */
TEST(a_client_that_sends_its_own_connection_leaves_no_ghost)
{
	struct crowd c = {0};

	start(&c);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(raw_send_files(c.fd[i], "half a li", &c.fd[i], 1, 0), 0);
		raw_close(c.fd[i]);
		c.fd[i] = -1;
	}
	await_with_files(&c, 4);
	await_counter(c.client, "gone", 4);
	stop(&c);
}

/* Its events fill the output, so the server does not read what it sent. */
TEST(a_subscriber_that_sends_its_own_connection_leaves_no_ghost)
{
	struct crowd c = {.world.limits = {.idle_s = 1}};

	start(&c);
	raw_say(c.fd[0], "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\","
			 "\"params\":{\"bits\":1}}");
	raw_hear_result(c.fd[0], 1);
	for (unsigned i = 0; i < 4; i++)
		json_object_put(
			ask(c.client, "emit", object("{\"bits\":1,\"count\":400,\"bytes\":1000}")));
	assert_int_equal(raw_send_files(c.fd[0], ECHO, &c.fd[0], 1, 0), 0);
	raw_close(c.fd[0]);
	c.fd[0] = -1;
	await_with_files(&c, 1);
	stop(&c);
}
