/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON-RPC 2.0 server on Unix sockets, one object per line (docs/protocol.md). All functions and
 * callbacks run in the thread of one sd-event loop. No client can delay another: no call blocks,
 * and every resource that a client can use up has a limit.
 *
 * The server answers `hello` itself. The caller provides all other methods.
 */
#ifndef GP_RPC_SERVER_SERVER_H
#define GP_RPC_SERVER_SERVER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "rpc/wire.h"

struct gp_rpc_server;
struct gp_rpc_call;

/*
 * The client process, as the kernel recorded it at connect(2). A connection that is passed to
 * another process keeps the peer of its creator.
 */
struct gp_rpc_peer {
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* supplementary */
	unsigned ngroups;
	pid_t pid;           /* 0: in a pid namespace that is not visible from here */
	uint64_t start_time; /* 0: unknown; pidfd is -1 then */
	int pidfd;           /* refers to exactly this process; -1: not available. Borrowed */
	bool same_pidns;     /* known to be in the daemon's pid namespace */
};

bool gp_rpc_peer_in_group(const struct gp_rpc_peer *peer, gid_t gid);

enum gp_rpc_method_flag {
	GP_RPC_MAY_NOTIFY = 1u << 0, /* a request without an id is allowed; it gets no answer */
};

/*
 * A method answers `call` exactly once, by gp_rpc_reply or gp_rpc_fail, at once or later. The
 * answer is dropped if the client or the server is gone by then. The method returns 0 if it has
 * answered or will answer. If it returns -errno, the server answers with the message in
 * gp_rpc_error(call) and, for -EINVAL, with GP_RPC_INVALID_PARAMS. `params` is an object (empty if
 * the client sent none), borrowed until the call is answered.
 */
struct gp_rpc_method {
	const char *name;
	int (*call)(void *arg, struct gp_rpc_call *call, struct json_object *params);
	unsigned flags; /* GP_RPC_* */
};

const struct gp_rpc_peer *gp_rpc_peer(const struct gp_rpc_call *call);

/* The request has no id, so the client expects no answer. */
bool gp_rpc_is_notification(const struct gp_rpc_call *call);

/* The error message of the call, zeroed at first; see struct gp_rpc_method. */
struct gp_error *gp_rpc_error(struct gp_rpc_call *call);

/*
 * Makes `fd` owned by the call, which closes it at its end. Returns -EMFILE, and closes `fd`, if
 * the call has no room.
 */
int gp_rpc_fd_give(struct gp_rpc_call *call, int fd);

/*
 * Takes ownership of `result` (NULL = null). Always returns 0, so that a method can return its
 * value.
 */
int gp_rpc_reply(struct gp_rpc_call *call, struct json_object *result);

/*
 * Answers with an error. `error` is -errno; its name goes into data.errno. `code` 0 selects the
 * code for `error`. The message says what to do next. gp_rpc_fail_data takes ownership of `data`,
 * which may have more members. Both always return 0.
 */
int gp_rpc_fail(struct gp_rpc_call *call, int code, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int gp_rpc_fail_data(struct gp_rpc_call *call, int code, int error, struct json_object *data,
		     const char *sentence);

/*
 * Sets the event bits that this client subscribes to; the caller defines their meaning. 0
 * unsubscribes.
 */
void gp_rpc_subscribe(struct gp_rpc_call *call, uint64_t bits);

/* The union of all clients' subscriptions. Events outside it need not be created. */
uint64_t gp_rpc_wanted(const struct gp_rpc_server *server);

/*
 * Sends a notification to all clients that subscribe to one of `bits`. The text is made once. Takes
 * ownership of `params` (an object). A client with a full output queue loses the notification. It
 * gets the notification `lost` with {"count": N} later.
 */
void gp_rpc_notify(struct gp_rpc_server *server, uint64_t bits, const char *method,
		   struct json_object *params);

/*
 * Limits of one socket; each socket counts its own clients. The caller sets the first group. In the
 * second group 0 selects the default.
 */
struct gp_rpc_limits {
	unsigned clients;  /* connected at the same time */
	unsigned per_user; /* clients of one account; root has no such limit */
	unsigned line;     /* bytes; a longer line ends the connection */
	unsigned rate;     /* lines per second of one client; 4 KiB count as a line */
	unsigned idle_s;   /* seconds without a request, an open call or a subscription */

	unsigned reserved;     /* 16: part of `clients`, kept for root and the daemon's user */
	unsigned burst;        /* 200: lines that a client may send ahead of its rate */
	unsigned in_flight;    /* 16: open calls of one client; more have to wait */
	unsigned output;       /* 256 KiB unread: further notifications are lost */
	unsigned reply_output; /* 2 MiB unread: the next reply ends the connection */
};

struct gp_rpc_socket {
	const char *path; /* NULL: use fd */
	int fd;           /* already listens (socket activation); the server owns it */
	mode_t mode;      /* 0: 0600 */
	gid_t gid;        /* (gid_t)-1: unchanged */
	const struct gp_rpc_method *method;
	unsigned nmethods;
	struct gp_rpc_limits limits;
};

struct gp_rpc_config {
	const char *name; /* name and version of the server for `hello`; must outlive it */
	const struct gp_rpc_socket *socket;
	unsigned nsockets;
	uid_t (*account)(void *arg, uid_t uid); /* the user that a client's uid counts for; NULL:
						   itself. Called once for each client */
	void *arg;                              /* for the methods and `account` */
};

/* Counted since the server started, unless noted. */
struct gp_rpc_counters {
	uint64_t clients;  /* connected now */
	uint64_t accepted; /* connections */
	uint64_t refused;  /* connections above a limit */
	uint64_t requests;
	uint64_t errors;     /* error answers */
	uint64_t cut_off;    /* connections closed because of a limit or an unreadable request */
	uint64_t idle;       /* connections closed because they were idle */
	uint64_t paused;     /* how often a client had to wait for its rate limit */
	uint64_t sent;       /* notifications, counted for each client */
	uint64_t lost;       /* notifications, counted for each client */
	uint64_t output;     /* unread bytes of all clients now */
	uint64_t with_files; /* connections that were closed with files of the client unread */
};

/*
 * Listens on all sockets of the configuration, or fails and listens on none. An existing socket
 * file on which no server answers is replaced; otherwise the result is -EADDRINUSE. `config`, its
 * sockets and their paths are copied. Methods and the name must outlive the server.
 */
int gp_rpc_server_new(sd_event *event, const struct gp_rpc_config *config,
		      struct gp_rpc_server **server, struct gp_error *err);

/*
 * Answers open calls with GP_RPC_ENDING, as far as clients read at once. A method that still keeps
 * a call must still answer it. Removes the socket files that the server created. `server` may be
 * NULL.
 */
void gp_rpc_server_free(struct gp_rpc_server *server);

/*
 * For tests: adds a connected socket as a client of socket `index`. The server owns `fd`. 0 or
 * -errno.
 */
int gp_rpc_server_add(struct gp_rpc_server *server, unsigned index, int fd);

void gp_rpc_server_counters(const struct gp_rpc_server *server, struct gp_rpc_counters *counters);

#endif
