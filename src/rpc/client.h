/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of gpreemptd: for the command line, which waits for its answers, and for who polls and
 * cannot wait (below). One thread at a time.
 */
#ifndef GP_RPC_CLIENT_H
#define GP_RPC_CLIENT_H

#include <stdint.h>

#include "rpc/wire.h"

struct gp_client;

#define GP_CLIENT_TIMEOUT_MS 10000 /* of a call, unless told */
#define GP_CLIENT_EVENTS_MAX 65536 /* that came while an answer was waited for */

/*
 * Connects and says hello. `path` NULL: the usual ones (rpc/connect.h). -ECONNREFUSED: no daemon
 * answers; the sentence says how to start one. -ETIMEDOUT: one is there, but hangs.
 */
int gp_client_connect(const char *path, struct gp_client **client, struct gp_error *err);

/* The same for who can do without: no longer than this for the connection, and for each call from
 * then on. -ETIMEDOUT: there is a daemon, and it does not answer. */
int gp_client_connect_within(const char *path, int timeout_ms, struct gp_client **client,
                             struct gp_error *err);

/* Takes a connection made elsewhere; says hello. `fd` is closed also when it fails. */
int gp_client_adopt(int fd, struct gp_client **client, struct gp_error *err);

/* NULL is fine. */
void gp_client_close(struct gp_client *client);

/* Of each call from now on. */
void gp_client_set_timeout(struct gp_client *client, int timeout_ms);

/*
 * Sends the request and waits for its answer. Takes `params` (NULL = none); the files stay the
 * caller's. `*result` is the caller's, and NULL where the answer is null; `result` may be NULL.
 * The daemon's errors come back as -errno with the daemon's sentence. -ETIMEDOUT: no answer;
 * -ECONNRESET: the daemon has gone. After these two and -EPROTO, nothing but closing is of use.
 */
int gp_client_call(struct gp_client *client, const char *method, struct json_object *params,
                   const int *fds, unsigned nfds, struct json_object **result,
                   struct gp_error *err);

/* Sends it without waiting: for methods that may come without an id. */
int gp_client_notify(struct gp_client *client, const char *method, struct json_object *params,
                     const int *fds, unsigned nfds, struct gp_error *err);

/* ---- without waiting --------------------------------------------------------------------------
 * For those who have other things to wait for, too: poll on gp_client_fd, and take what has come.
 * Nothing of this waits. Notifications are thrown away: not for who subscribes.
 */

/* Connects, and says nothing yet: who does that asks `hello` first. */
int gp_client_begin(const char *path, struct gp_client **client, struct gp_error *err);

/* Sends the request; its answer will have this id. -ETIMEDOUT: the daemon does not read. */
int gp_client_ask(struct gp_client *client, const char *method, struct json_object *params,
                  int64_t *id, struct gp_error *err);

struct gp_client_answer {
	int64_t id;                 /* 0: to nobody; it says why the daemon hangs up */
	struct json_object *result; /* the caller's; NULL where it is null or a failure */
	struct gp_error err;        /* .code 0: it was done */
};

/* The next answer that has come; -EAGAIN: none (no sentence). The others are as gp_client_call's.
 */
int gp_client_answer(struct gp_client *client, struct gp_client_answer *answer,
                     struct gp_error *err);

/* ---- events -----------------------------------------------------------------------------------
 */

/*
 * The next notification, an object with `method` and `params`: the caller's. Waits up to
 * `timeout_ms` (-1 = for ever). -EAGAIN: none came (no sentence). Others: the daemon has closed the
 * connection, or says why it will.
 */
int gp_client_next(struct gp_client *client, int timeout_ms, struct json_object **event,
                   struct gp_error *err);

/* Readable when something has come; call gp_client_next(client, 0, ...) until -EAGAIN then. */
int gp_client_fd(const struct gp_client *client);

/* What hello said of the daemon: name and version. "" when it said nothing. */
const char *gp_client_server_name(const struct gp_client *client);

#endif
