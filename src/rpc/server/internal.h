/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of the server. Replies and notifications are only queued. conn.c
 * sends, continues reading or closes when the loop serves the connection. A method can therefore
 * never free the connection that it works for.
 */
#ifndef GP_RPC_SERVER_INTERNAL_H
#define GP_RPC_SERVER_INTERNAL_H

#include <sys/un.h>

#include "rpc/server/server.h"

#define GP_RPC_CALL_FDS    4   /* pidfds of the targets of one call */
#define GP_RPC_CLOSING_MAX 512 /* more than both sockets have clients */
#define GP_RPC_CLOSERS     64  /* child processes at the same time */

/* One line to be sent to one or more clients. */
struct gp_rpc_message {
	unsigned refs;
	size_t length;
	char bytes[];
};

struct gp_rpc_out_link {
	struct gp_rpc_out_link *next;
	struct gp_rpc_message *message;
};

/* Lines that are queued for one client. */
struct gp_rpc_output {
	struct gp_rpc_out_link *first, **last;
	size_t sent;  /* bytes of the first message that were already sent */
	size_t bytes; /* cost of all queued messages: text and list entries */
};

struct gp_rpc_listener {
	struct gp_rpc_server *server;
	struct gp_rpc_socket config; /* with the default limits filled in */
	int fd;
	char made[sizeof((struct sockaddr_un *)0)->sun_path]; /* socket file that the server created
								 and removes; or "" */
	sd_event_source *io;
	sd_event_source *retry; /* set while no file descriptor is free for accept(2) */
	unsigned clients;
};

struct gp_rpc_conn {
	unsigned refs; /* one until closed, one for each call, one while queued */
	struct gp_rpc_conn *next, *prev;
	struct gp_rpc_conn *next_turn;
	bool queued;                  /* is in struct gp_rpc_turns */
	struct gp_rpc_server *server; /* NULL: closed */
	struct gp_rpc_listener *listener;
	int fd;
	struct gp_rpc_peer peer;
	uid_t account; /* that the client counts for */
	gid_t *groups;

	sd_event_source *io, *timer;
	uint64_t timer_us; /* UINT64_MAX: not set */
	uint64_t active_us;
	uint64_t rate_us;   /* when the last line is due at the steady rate; see conn.c */
	uint64_t linger_us; /* the time of the forced close; 0: not closing */

	struct gp_lines lines;
	bool no_files; /* the kernel refuses files of this client */

	struct gp_rpc_output out;
	uint64_t lost; /* notifications that were lost and not yet reported */
	uint64_t subscription;
	struct gp_rpc_call *calls;
	unsigned in_flight;
	bool eof;    /* the client sends nothing more */
	bool hung;   /* the client neither sends nor reads any more */
	bool doomed; /* is closed at the next turn */
};

/*
 * Connections with work that no epoll event announces: lines that are already buffered, or answers
 * to send. The queue is one event source among those of the connections, so that each connection
 * gets an equal share. (One deferred sd-event source per connection would run before all others.)
 */
struct gp_rpc_turns {
	struct gp_rpc_conn *first, **last;
	int fd; /* eventfd; readable while the queue is not empty */
	sd_event_source *io;
};

struct gp_rpc_call {
	struct gp_rpc_call *next, *prev;
	struct gp_rpc_conn *conn;
	struct json_object *request; /* owns id and params */
	struct json_object *id;      /* NULL: a notification */
	struct gp_error err;
	int fd[GP_RPC_CALL_FDS];
	unsigned nfds;
};

/* Sockets with files of clients, and the children that close them (closing.c). */
struct gp_rpc_closer {
	struct gp_rpc_closing {
		int fd;
		uid_t account;
	} socket[GP_RPC_CLOSING_MAX]; /* they wait for a child */
	unsigned n;
	struct {
		pid_t pid; /* 0: none */
		uid_t account;
	} child[GP_RPC_CLOSERS];
	sd_event_source *timer;
};

struct gp_rpc_server {
	sd_event *event;
	struct gp_rpc_config config;
	struct gp_rpc_listener *listener;
	struct gp_rpc_conn *conns;
	struct gp_rpc_turns turns;
	struct gp_rpc_closer closer;
	struct json_tokener *tokener;
	uint64_t output_bytes; /* queued for all clients */
	struct gp_rpc_counters counters;
};

/* listen.c */
int gp_rpc_listener_open(struct gp_rpc_listener *l, struct gp_error *err);
void gp_rpc_listener_close(struct gp_rpc_listener *l);

/* peer.c: fills c->peer. 0 or -errno. */
int gp_rpc_peer_read(struct gp_rpc_conn *c);

/* conn.c */
int gp_rpc_conn_new(struct gp_rpc_listener *l, int fd, uid_t account);
void gp_rpc_conn_close(struct gp_rpc_conn *c);
void gp_rpc_conn_unref(struct gp_rpc_conn *c);
/* Charges a line of `length` bytes to the client's rate limit. */
void gp_rpc_conn_charge(struct gp_rpc_conn *c, size_t length);
/* Sends an error and closes the connection after the client has read it, or after 2 s. */
void gp_rpc_conn_cut_off(struct gp_rpc_conn *c, int code, int error, const char *sentence);
/* Handles a few lines, sends, and then either sets what to wait for or closes. Returns 0. */
int gp_rpc_conn_take_turn(struct gp_rpc_conn *c);
uint64_t gp_rpc_conn_now_us(const struct gp_rpc_conn *c);

/* fairness.c */
int gp_rpc_turns_open(struct gp_rpc_server *server);
void gp_rpc_turns_close(struct gp_rpc_server *server);
/* Queues the connection to be served, and restarts its idle time. */
void gp_rpc_conn_wake(struct gp_rpc_conn *c);

/* input.c: gp_rpc_input_receive reads once; gp_rpc_input_line handles one line. */
void gp_rpc_input_receive(struct gp_rpc_conn *c);
void gp_rpc_input_line(struct gp_rpc_conn *c, const char *line, size_t length);

/*
 * closing.c. gp_rpc_receive returns the number of bytes, 0 at the end of the connection, -EBADMSG
 * if files are among the next bytes, or another -errno.
 */
ssize_t gp_rpc_receive(int fd, char *bytes, size_t size);
/* Whether files are among the unread bytes. */
bool gp_rpc_has_files(int fd);
/* Closes the socket of a client of this account, perhaps later. (uid_t)-1: it is not known. */
void gp_rpc_close_socket(struct gp_rpc_server *server, int fd, uid_t account);
/* Makes the kernel refuse files of clients that connect from now on, if it can. */
void gp_rpc_refuse_files(int fd);
bool gp_rpc_files_refused(int fd);
int gp_rpc_closer_open(struct gp_rpc_server *server);
void gp_rpc_closer_end(struct gp_rpc_server *server);

/* request.c: handles one line. */
void gp_rpc_request_line(struct gp_rpc_conn *c, const char *line, size_t length);
/* Sends an error that belongs to no request. */
void gp_rpc_request_refused(struct gp_rpc_conn *c, int code, int error, const char *sentence);

/* call.c */
struct gp_rpc_call *gp_rpc_call_new(struct gp_rpc_conn *c, struct json_object *request,
				    struct json_object *id);
/*
 * Answers all open calls with an error. The connection is closed next, so later answers are
 * dropped.
 */
void gp_rpc_calls_end(struct gp_rpc_conn *c);

/*
 * output.c. gp_rpc_message_new and gp_rpc_output_reply take ownership of `json`; NULL means that
 * there was no memory for it.
 */
struct gp_rpc_message *gp_rpc_message_new(struct json_object *json);
void gp_rpc_message_unref(struct gp_rpc_message *m);
void gp_rpc_output_reply(struct gp_rpc_conn *c, struct json_object *json);
void gp_rpc_output_notify(struct gp_rpc_conn *c, struct gp_rpc_message *m);
void gp_rpc_output_flush(struct gp_rpc_conn *c);
void gp_rpc_output_drop(struct gp_rpc_conn *c);

#endif
