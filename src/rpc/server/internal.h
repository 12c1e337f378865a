/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the server. Answers and notifications only queue: what they change for a connection
 * (sending, reading on, closing) happens when the loop comes to it, in conn.c. So nothing that a
 * method calls can take a connection away under it.
 */
#ifndef GP_RPC_SERVER_INTERNAL_H
#define GP_RPC_SERVER_INTERNAL_H

#include <sys/un.h>

#include "rpc/server/server.h"

#define GP_RPC_CALL_FDS 8 /* those that came with the line, and those of its targets */

/* One line on its way to one or many clients. */
struct gp_rpc_message {
	unsigned refs;
	size_t length;
	char bytes[];
};

struct gp_rpc_out_link {
	struct gp_rpc_out_link *next;
	struct gp_rpc_message *message;
};

/* What a client has not read yet. */
struct gp_rpc_output {
	struct gp_rpc_out_link *first, **last;
	size_t sent;  /* of the first */
	size_t bytes; /* of all, without those */
};

/* A file that came with byte `at` of what is in `lines`. */
struct gp_rpc_passed_fd {
	int fd;
	size_t at;
};

struct gp_rpc_listener {
	struct gp_rpc_server *server;
	struct gp_rpc_socket config; /* with all limits filled in */
	unsigned index;
	int fd;
	char made[sizeof((struct sockaddr_un *)0)->sun_path]; /* by us, to be removed; or "" */
	sd_event_source *io;
	sd_event_source *retry; /* while there are no files left to accept with */
	unsigned clients;
};

struct gp_rpc_conn {
	unsigned refs; /* one until it is closed, one for each of its calls, one while it is queued
	                */
	struct gp_rpc_conn *next, *prev;
	struct gp_rpc_conn *next_turn;
	bool queued;                  /* for a turn */
	struct gp_rpc_server *server; /* NULL: closed */
	struct gp_rpc_listener *listener;
	unsigned socket_index;
	uint64_t id;
	int fd;
	struct gp_rpc_peer peer;
	gid_t *groups;

	sd_event_source *io, *timer;
	uint64_t timer_us; /* UINT64_MAX: off */
	uint64_t active_us;
	uint64_t rate_us;   /* when the last line would have been due at the allowed rate */
	uint64_t linger_us; /* when to close what the client does not read; 0: not closing */

	struct gp_lines lines;
	struct gp_rpc_passed_fd passed[2 * GP_RPC_FDS_MAX];
	unsigned npassed;
	bool passed_over; /* more came than may, with byte `passed_over_at` */
	size_t passed_over_at;

	struct gp_rpc_output out;
	uint64_t lost; /* notifications, not told yet */
	uint64_t subscription;
	struct gp_rpc_call *calls;
	unsigned in_flight;
	bool eof;    /* nothing more comes */
	bool hung;   /* and nothing more is read */
	bool doomed; /* to be closed at once */
};

/*
 * Connections that have something to do without anything having come: more lines than could be
 * taken, or answers to send. Each gets one turn for one of each connection from which something
 * comes. (A deferred source of sd-event for each would come before all of these.)
 */
struct gp_rpc_turns {
	struct gp_rpc_conn *first, **last;
	int fd; /* an eventfd, readable while somebody is queued */
	sd_event_source *io;
};

struct gp_rpc_call {
	struct gp_rpc_call *next, *prev;
	struct gp_rpc_conn *conn;
	struct json_object *request; /* holds id and params */
	struct json_object *id;      /* NULL: a notification */
	struct gp_error err;
	int fd[GP_RPC_CALL_FDS]; /* -1: taken */
	unsigned nfds;           /* that came with the line */
	unsigned nfds_all;
};

struct gp_rpc_server {
	sd_event *event;
	struct gp_rpc_config config;
	struct gp_rpc_listener *listener;
	struct gp_rpc_conn *conns;
	struct gp_rpc_turns turns;
	struct json_tokener *tokener;
	uint64_t next_id;
	uint64_t output_bytes; /* of all clients */
	struct gp_rpc_counters counters;
};

/* listen.c */
int gp_rpc_listener_open(struct gp_rpc_listener *l, struct gp_error *err);
void gp_rpc_listener_close(struct gp_rpc_listener *l);

/* peer.c: 0 or -errno. */
int gp_rpc_peer_read(struct gp_rpc_conn *c);

/* conn.c */
int gp_rpc_conn_new(struct gp_rpc_listener *l, int fd);
void gp_rpc_conn_close(struct gp_rpc_conn *c);
void gp_rpc_conn_unref(struct gp_rpc_conn *c);
/* A line of that length has been taken. */
void gp_rpc_conn_charge(struct gp_rpc_conn *c, size_t length);
/* An error, and then the end, once the client has read it or has had time to. */
void gp_rpc_conn_cut_off(struct gp_rpc_conn *c, int code, int error, const char *sentence);
/* Sends, takes a few lines, and settles what to wait for next, or closes. 0. */
int gp_rpc_conn_take_turn(struct gp_rpc_conn *c);
uint64_t gp_rpc_conn_now_us(const struct gp_rpc_conn *c);

/* turns.c */
int gp_rpc_turns_open(struct gp_rpc_server *server);
void gp_rpc_turns_close(struct gp_rpc_server *server);
/* Has the loop come to it soon: it is in use. */
void gp_rpc_conn_wake(struct gp_rpc_conn *c);

/* input.c: reads once; one line of what was read. */
void gp_rpc_input_receive(struct gp_rpc_conn *c);
void gp_rpc_input_line(struct gp_rpc_conn *c, const char *line, size_t length);

/* request.c: one line. The files are taken. */
void gp_rpc_request_line(struct gp_rpc_conn *c, const char *line, size_t length, const int *fds,
                         unsigned nfds);
/* An error that belongs to no request. */
void gp_rpc_request_refused(struct gp_rpc_conn *c, int code, int error, const char *sentence);

/* call.c */
struct gp_rpc_call *gp_rpc_call_new(struct gp_rpc_conn *c, struct json_object *request,
                                    struct json_object *id, const int *fds, unsigned nfds);
/* Tells the client of its open calls; the connection is closed next, so that later answers go
 * nowhere. */
void gp_rpc_calls_end(struct gp_rpc_conn *c);
struct json_object *gp_rpc_error_object(int code, int error, struct json_object *data,
                                        const char *sentence);

/* output.c. They take `json`; NULL stands for one that there was no memory for. */
struct gp_rpc_message *gp_rpc_message_new(struct json_object *json);
void gp_rpc_message_unref(struct gp_rpc_message *m);
void gp_rpc_output_reply(struct gp_rpc_conn *c, struct json_object *json);
void gp_rpc_output_notify(struct gp_rpc_conn *c, struct gp_rpc_message *m);
void gp_rpc_output_flush(struct gp_rpc_conn *c);
void gp_rpc_output_drop(struct gp_rpc_conn *c);

#endif
