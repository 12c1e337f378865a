/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's methods with any parameters. Each line of the input is a request: its first byte
 * says which method and whether files go with it, the rest is `params`. Whatever comes, each gets
 * one answer, and an error says what is wrong. Files are refused and end the connection. The daemon
 * has no device here.
 */
#include "build_config.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#if GP_HAVE_DAEMON

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "daemon/control.h"

#define WITH_FILES 0x80u
#define LINE_MAX   8192u

struct fuzz {
	struct gp_control control;
	struct json_tokener *tokener;
	int file[2]; /* a pidfd, and one that is none */
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void forget(void *arg, struct gp_proc *proc)
{
	struct gp_control *c = arg;

	gp_assignments_drop(c->assignments, proc->pid, proc->start_time);
}

static void start_server(struct gp_control *c)
{
	struct gp_rpc_socket listener = {.gid = (gid_t)-1,
					 .method = gp_control_methods,
					 .nmethods = gp_control_nmethods,
					 .limits = {.clients = 1024,
						    .per_user = 256,
						    .line = LINE_MAX + 200,
						    .rate = 1000000,
						    .burst = 1000000,
						    .idle_s = 300}};
	struct gp_rpc_config config = {
		.name = "fuzz", .socket = &listener, .nsockets = 1, .arg = c};
	struct gp_error err = {0};

	/* No client connects to it: the kernel chose its name. */
	listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	require(!bind(listener.fd, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)));
	require(!listen(listener.fd, 1));
	require(!gp_rpc_server_new(c->loop, &config, &c->server, &err));
}

static struct fuzz *begin(void)
{
	static struct fuzz f;
	struct gp_control *c = &f.control;

	if (c->server)
		return &f;
	gp_log_set_level(GP_LOG_ERROR + 1);
	c->options.config = "/does/not/exist"; /* reload: always an error */
	c->group = (gid_t)-1;
	c->wake_fd = -1;
	require(!gp_config_default(&c->config));
	c->policy[0] = c->config->policy.choice;
	require(sd_event_new(&c->loop) >= 0);
	start_server(c);
	f.tokener = gp_json_tokener();
	f.file[0] = gp_pidfd_open(getpid());
	f.file[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return &f;
}

static void run_loop(struct fuzz *f)
{
	while (sd_event_run(f->control.loop, 0) > 0)
		;
}

static void send_line(struct fuzz *f, int fd, char *line, size_t length, bool files)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {.align = {.cmsg_len = CMSG_LEN(2 * sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS}};
	struct iovec part = {line, length};
	struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};

	memcpy(CMSG_DATA(&control.align), f->file, sizeof f->file);
	if (files) {
		head.msg_control = control.bytes;
		head.msg_controllen = sizeof control.bytes;
	}
	(void)!sendmsg(fd, &head, MSG_DONTWAIT | MSG_NOSIGNAL);
	run_loop(f);
}

/* Whether it is an answer; if it is an error, one that a person can read, and a program. */
static bool check_answer(struct json_object *json)
{
	struct json_object *error, *data;

	if (json_object_object_get_ex(json, "method", NULL))
		return false; /* an event */
	if (json_object_object_get_ex(json, "result", NULL))
		return true;
	require(json_object_object_get_ex(json, "error", &error));
	require(json_object_object_get_ex(error, "data", &data));
	require(json_object_get_string_len(json_object_object_get(error, "message")) > 0);
	require(json_object_get_string_len(json_object_object_get(data, "errno")) > 0);
	return true;
}

static unsigned read_answers(struct fuzz *f, int fd, struct gp_lines *lines)
{
	char *room, *line;
	size_t size, length;
	unsigned answers = 0;
	ssize_t n;

	do {
		require(!gp_lines_room(lines, 1 << 20, &room, &size));
		n = recv(fd, room, size, MSG_DONTWAIT);
		gp_lines_added(lines, n > 0 ? (size_t)n : 0);
		while ((line = gp_lines_next(lines, &length))) {
			struct json_object *json;
			struct gp_error err = {0};

			require(!gp_json_read(f->tokener, line, length, &json, &err));
			answers += check_answer(json);
			json_object_put(json);
		}
		run_loop(f);
	} while (n > 0);
	return answers;
}

static void ask(struct fuzz *f, int fd, struct gp_lines *lines, const uint8_t *data, size_t size)
{
	static char line[LINE_MAX + 200];
	unsigned method = (data[0] & ~WITH_FILES) % gp_control_nmethods, answers = 0;
	int n;

	if (size > LINE_MAX)
		return;
	n = snprintf(line, sizeof line,
		     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":",
		     gp_control_methods[method].name);
	memcpy(line + n, data + 1, size - 1);
	line[(size_t)n + size - 1] = '}';
	line[(size_t)n + size] = '\n';
	send_line(f, fd, line, (size_t)n + size + 1, data[0] & WITH_FILES);
	for (unsigned i = 0; !answers && i < 100;
	     i++) { /* a thread may have to read a file first */
		if (i)
			sd_event_run(f->control.loop, 100000);
		answers = read_answers(f, fd, lines);
	}
	require(answers == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *f = begin();
	struct gp_control *c = &f->control;
	struct gp_rpc_counters counters;
	struct gp_lines lines = {0};
	const uint8_t *end = data + size;
	bool refused = false;
	int pair[2];

	require(!gp_assignments_open(NULL, &c->assignments, NULL));
	gp_procs_init(&c->procs, c->loop, forget, c);
	require(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	require(!gp_rpc_server_add(c->server, 0, pair[0]));
	while (data < end && !refused) {
		const uint8_t *next = memchr(data, '\n', (size_t)(end - data));

		next = next ? next : end;
		if (next > data) {
			ask(f, pair[1], &lines, data, (size_t)(next - data));
			refused = data[0] & WITH_FILES;
		}
		data = next + 1;
	}
	close(pair[1]);
	run_loop(f);
	gp_rpc_server_counters(c->server, &counters);
	/* A child of the server that closes files was forked with both ends, and closes them. */
	for (unsigned i = 0; i < 100 && counters.clients; i++) {
		sd_event_run(c->loop, 100000);
		gp_rpc_server_counters(c->server, &counters);
	}
	require(!counters.clients && !counters.output && !c->gathers);
	gp_lines_free(&lines);
	gp_procs_free(&c->procs);
	gp_assignments_close(c->assignments);
	return 0;
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)data;
	(void)size;
	return 0;
}

#endif
