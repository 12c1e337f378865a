/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON-RPC 2.0 over Unix sockets, one object a line (docs/protocol.md), in one thread on an
 * sd-event loop: everything here is called in that thread. No client can make another one wait:
 * nothing blocks, and everything a client can fill or use up has a limit.
 *
 * `hello` is answered here; all other methods are the caller's.
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

/* ---- who asks ---------------------------------------------------------------------------------
 */

/* As the kernel noted it when the client connected. A connection that is handed on keeps it. */
struct gp_rpc_peer {
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* supplementary */
	unsigned ngroups;
	pid_t pid;           /* 0: in a pid namespace that cannot be named here */
	uint64_t start_time; /* 0: not known, and pidfd is -1 */
	int pidfd;           /* of that process for certain; -1: it cannot be had. Borrowed */
	bool same_pidns;     /* is in our pid namespace, for certain */
};

bool gp_rpc_peer_in_group(const struct gp_rpc_peer *peer, gid_t gid);

/* ---- methods ----------------------------------------------------------------------------------
 */

enum gp_rpc_method_flag {
	GP_RPC_MAY_NOTIFY = 1u << 0, /* may come without an id, and then gets no answer */
};

/*
 * `call` is answered once: by gp_rpc_reply or gp_rpc_fail, here or later, whatever has become of
 * the client (the answer is then dropped) and of the server. The method returns 0 when it has
 * answered or will; -errno lets the server answer, with the sentence in gp_rpc_error(call) and,
 * for -EINVAL, GP_RPC_INVALID_PARAMS. `params` is an object, empty where the client gave none, and
 * borrowed: valid until the call is answered.
 */
struct gp_rpc_method {
	const char *name;
	int (*call)(void *arg, struct gp_rpc_call *call, struct json_object *params);
	unsigned flags; /* GP_RPC_* */
};

const struct gp_rpc_peer *gp_rpc_peer(const struct gp_rpc_call *call);

/* Never reused. */
uint64_t gp_rpc_client_id(const struct gp_rpc_call *call);

/* Which of the configuration's sockets it came through. */
unsigned gp_rpc_socket_index(const struct gp_rpc_call *call);

/* Nobody waits for the answer: it came without an id. */
bool gp_rpc_is_notification(const struct gp_rpc_call *call);

/* The client is still there. */
bool gp_rpc_client_is_there(const struct gp_rpc_call *call);

/* For the helpers that explain themselves; see `call` above. Zeroed at first. */
struct gp_error *gp_rpc_error(struct gp_rpc_call *call);

/*
 * File `index` of those that came with the line, close-on-exec, or -1. They are closed when the
 * call ends, but for those that are taken: these are the caller's.
 */
int gp_rpc_fd(const struct gp_rpc_call *call, unsigned index);
int gp_rpc_fd_take(struct gp_rpc_call *call, unsigned index);

/* A file that ends with the call. -EMFILE (and closed): it has as many as it can. */
int gp_rpc_fd_give(struct gp_rpc_call *call, int fd);

/* Takes `result` (NULL = null). Always 0, so that a method can return it. */
int gp_rpc_reply(struct gp_rpc_call *call, struct json_object *result);

/*
 * `code` 0: what goes with `error` (-errno, said to the client by name in data.errno). The sentence
 * says what to do. gp_rpc_fail_data: with other members of `data`, which is taken. Always 0.
 */
int gp_rpc_fail(struct gp_rpc_call *call, int code, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int gp_rpc_fail_data(struct gp_rpc_call *call, int code, int error, struct json_object *data,
                     const char *sentence);

/* ---- events -----------------------------------------------------------------------------------
 */

/* What this client wants to be told: bits of the caller's choice. 0 ends it. */
void gp_rpc_subscribe(struct gp_rpc_call *call, uint64_t bits);
uint64_t gp_rpc_subscription(const struct gp_rpc_call *call);

/* All that somebody wants: what nobody wants need not be made. */
uint64_t gp_rpc_wanted(const struct gp_rpc_server *server);

/*
 * A notification to all clients that want one of `bits`, written once. Takes `params` (an object).
 * A client that does not read loses it and hears later how many it lost (`lost`, {"count": N}).
 */
void gp_rpc_notify(struct gp_rpc_server *server, uint64_t bits, const char *method,
                   struct json_object *params);

/* ---- the server -------------------------------------------------------------------------------
 */

/* 0 stands for what is said here. Each socket has its own, and counts its own clients. */
struct gp_rpc_limits {
	unsigned clients;      /* 1024 */
	unsigned per_user;     /* 256 clients; root has no limit of its own */
	unsigned reserved;     /* 16 of `clients` are for root and the daemon's own user */
	unsigned line;         /* 64 KiB: a longer line ends the connection */
	unsigned rate;         /* 1000 lines a second, one more for each 4 KiB; then it waits */
	unsigned burst;        /* 200 lines */
	unsigned in_flight;    /* 16 calls, then it waits */
	unsigned output;       /* 256 KiB that were not read: notifications are lost */
	unsigned reply_output; /* 2 MiB that were not read: the next reply ends the connection */
	unsigned idle_s;       /* 300 without a request, an open call or a subscription */
};

struct gp_rpc_socket {
	const char *path; /* NULL: see fd */
	int fd;           /* listens already (socket activation); taken */
	mode_t mode;      /* 0: 0600 */
	gid_t gid;        /* (gid_t)-1: as it is */
	const struct gp_rpc_method *method;
	unsigned nmethods;
	struct gp_rpc_limits limits;
};

struct gp_rpc_config {
	const char *name; /* of the server and its version, for hello; must outlive it */
	const struct gp_rpc_socket *socket;
	unsigned nsockets;
	void *arg;                                   /* for the methods */
	void (*gone)(void *arg, uint64_t client_id); /* optional: that client has gone */
};

/* Since the server began. */
struct gp_rpc_counters {
	uint64_t clients;  /* now */
	uint64_t accepted; /* connections */
	uint64_t refused;  /* connections: too many */
	uint64_t requests;
	uint64_t errors;  /* answers that say so */
	uint64_t cut_off; /* connections closed for a limit or for what nobody can read */
	uint64_t idle;    /* connections closed because nothing came */
	uint64_t paused;  /* times a client had to wait for its rate */
	uint64_t sent;    /* notifications, each client's */
	uint64_t lost;    /* notifications, each client's */
	uint64_t output;  /* bytes that wait to be read, of all */
};

/*
 * Listens on all sockets of the configuration, or on none and says why. A file at a path is
 * replaced if it is a socket on which nobody answers (-EADDRINUSE otherwise). `config` is copied,
 * with its sockets and their paths; methods and the name must outlive the server.
 */
int gp_rpc_server_new(sd_event *event, const struct gp_rpc_config *config,
                      struct gp_rpc_server **server, struct gp_error *err);

/*
 * Open calls are answered with GP_RPC_ENDING as far as clients take it at once; they stay with who
 * keeps them until they answer, as always. Sockets that were made here are removed. NULL is fine.
 */
void gp_rpc_server_free(struct gp_rpc_server *server);

/* A connection made elsewhere (socketpair) as a client of socket `index`; taken. 0 or -errno. */
int gp_rpc_server_add(struct gp_rpc_server *server, unsigned index, int fd);

void gp_rpc_server_counters(const struct gp_rpc_server *server, struct gp_rpc_counters *counters);

#endif
