/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a client sends: the first byte says in pieces of which length, the second which
 * piece has files with it, which the server refuses. Whatever comes, every answer is a line of
 * JSON-RPC, and nothing is left of the client when it has gone.
 */
#include "build_config.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#if GP_HAVE_DAEMON

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/process.h"
#include "rpc/params.h"
#include "rpc/server/target_process.h"

#define KEPT 8

struct fuzz {
	sd_event *event;
	struct gp_rpc_server *server;
	struct json_tokener *tokener;
	struct gp_rpc_call *kept[KEPT];
	unsigned nkept;
	int file[2]; /* a pidfd, and one that is none */
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

static int echo(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	(void)arg;
	return gp_rpc_reply(call, json_object_get(params));
}

static void let_go(struct fuzz *f)
{
	while (f->nkept)
		gp_rpc_fail(f->kept[--f->nkept], 0, -EBUSY, "later");
}

static int keep(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct fuzz *f = arg;

	(void)params;
	if (f->nkept == KEPT)
		let_go(f);
	f->kept[f->nkept++] = call;
	return 0;
}

static int target(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_error *err = gp_rpc_error(call);
	struct gp_target t;
	int r = gp_target_param(call, params, &t, err);

	(void)arg;
	require(r == err->code && !r == !err->text[0]);
	require(r || (t.pid > 0 && t.start_time && t.pidfd >= 0));
	return r ? r : gp_rpc_reply(call, json_object_new_int(t.pid));
}

static int typed(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	static const char *const word[] = {"lc", "be", "unmanaged"};
	struct gp_error *err = gp_rpc_error(call);
	struct json_object *json = NULL;
	const char *text = "";
	uint64_t n = 1;
	unsigned choice = 0;
	bool b, has;
	int r = GP_PARAMS_KNOWN(params, err, "u64", "bool", "string", "class", "map", "list");

	(void)arg;
	r = r ? r : gp_params_u64(params, "u64", 1, 99, &n, &has, err);
	r = r ? r : gp_params_bool(params, "bool", &b, &has, err);
	r = r ? r : gp_params_string(params, "string", 8, &text, &has, err);
	r = r ? r : gp_params_choice(params, "class", word, 3, &choice, &has, err);
	r = r ? r : gp_params_object(params, "map", &json, &has, err);
	r = r ? r : gp_params_array(params, "list", 4, &json, &has, err);
	require(r == err->code && !r == !err->text[0]);
	require(r || (n >= 1 && n <= 99 && strlen(text) <= 8 && choice < 3));
	return r ? r : gp_rpc_reply(call, NULL);
}

static int emit(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct fuzz *f = arg;

	gp_rpc_subscribe(call, 1);
	gp_rpc_notify(f->server, 1, "event", json_object_get(params));
	return gp_rpc_reply(call, NULL);
}

static const struct gp_rpc_method methods[] = {
	{"echo", echo, GP_RPC_MAY_NOTIFY},
	{"keep", keep, GP_RPC_MAY_NOTIFY},
	{"target", target, 0},
	{"typed", typed, 0},
	{"emit", emit, 0},
};

static struct fuzz *begin(void)
{
	static struct fuzz f;
	struct gp_rpc_socket listener = {.gid = (gid_t)-1,
					 .method = methods,
					 .nmethods = sizeof methods / sizeof *methods,
					 .limits = {.clients = 1024,
						    .per_user = 256,
						    .line = 4096,
						    .rate = 1000000,
						    .burst = 1000000,
						    .idle_s = 300}};
	struct gp_rpc_config config = {
		.name = "fuzz", .socket = &listener, .nsockets = 1, .arg = &f};
	struct gp_error err = {0};

	if (f.server)
		return &f;
	require(sd_event_new(&f.event) >= 0);
	/* No client connects to it: the kernel chose its name. */
	listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	require(!bind(listener.fd, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)));
	require(!listen(listener.fd, 1));
	require(!gp_rpc_server_new(f.event, &config, &f.server, &err));
	f.tokener = gp_json_tokener();
	f.file[0] = gp_pidfd_open(getpid());
	f.file[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return &f;
}

static void run_loop(struct fuzz *f)
{
	while (sd_event_run(f->event, 0) > 0)
		;
}

static void send_piece(struct fuzz *f, int fd, const uint8_t *bytes, size_t length, bool files)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {.align = {.cmsg_len = CMSG_LEN(2 * sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS}};
	struct iovec part = {(void *)(uintptr_t)bytes, length};
	struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};

	memcpy(CMSG_DATA(&control.align), f->file, sizeof f->file);
	if (files) {
		head.msg_control = control.bytes;
		head.msg_controllen = sizeof control.bytes;
	}
	(void)!sendmsg(fd, &head, MSG_DONTWAIT | MSG_NOSIGNAL);
	run_loop(f);
}

/* Every answer is a line with an object that JSON-RPC knows. */
static void read_answers(struct fuzz *f, int fd, struct gp_lines *lines)
{
	char *room, *line;
	size_t size, length;
	ssize_t n;

	do {
		require(!gp_lines_room(lines, 1 << 20, &room, &size));
		n = recv(fd, room, size, MSG_DONTWAIT);
		gp_lines_added(lines, n > 0 ? (size_t)n : 0);
		while ((line = gp_lines_next(lines, &length))) {
			struct json_object *json;
			struct gp_error err = {0};

			require(!gp_json_read(f->tokener, line, length, &json, &err));
			require(json_object_object_get_ex(json, "jsonrpc", NULL));
			require(json_object_object_get_ex(json, "result", NULL) ||
				json_object_object_get_ex(json, "error", NULL) ||
				json_object_object_get_ex(json, "method", NULL));
			json_object_put(json);
		}
		run_loop(f);
	} while (n > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *f = begin();
	struct gp_rpc_counters counters;
	struct gp_lines lines = {0};
	size_t piece, n = 0;
	uint8_t with_files;
	int pair[2];

	if (size < 2)
		return 0;
	piece = data[0] ? data[0] : 4096;
	with_files = data[1];
	require(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	require(!gp_rpc_server_add(f->server, 0, pair[0]));
	for (size_t at = 2; at < size; at += piece, n++) {
		send_piece(f, pair[1], data + at, piece < size - at ? piece : size - at,
			   n == with_files);
		read_answers(f, pair[1], &lines);
	}
	if (with_files & 1) { /* half of them wait for the last answers */
		shutdown(pair[1], SHUT_WR);
		run_loop(f);
		read_answers(f, pair[1], &lines);
	}
	close(pair[1]);
	run_loop(f);
	let_go(f);
	run_loop(f);
	gp_rpc_server_counters(f->server, &counters);
	/* A child of the server that closes files was forked with both ends, and closes them. */
	for (unsigned i = 0; i < 100 && counters.clients; i++) {
		sd_event_run(f->event, 100000);
		gp_rpc_server_counters(f->server, &counters);
	}
	require(!counters.clients && !counters.output);
	gp_lines_free(&lines);
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
