/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of gpreemptd. The command line waits for its answers; programs with an event loop use
 * the calls that do not wait (below). One thread at a time.
 */
#ifndef GP_RPC_CLIENT_H
#define GP_RPC_CLIENT_H

#include <stdint.h>

#include "rpc/wire.h"

struct gp_client;

#define GP_CLIENT_TIMEOUT_MS 10000 /* default time limit of a call */
#define GP_CLIENT_EVENTS_MAX 65536 /* kept while a call waits for its answer */

/*
 * Connects and sends `hello`. `path` NULL: the default sockets (rpc/connect.h). -ECONNREFUSED: no
 * daemon answers; the message says how to start one. -ETIMEDOUT: a daemon exists but does not
 * answer.
 */
int gp_client_connect(const char *path, struct gp_client **client, struct gp_error *err);

/*
 * The same with a time limit of `timeout_ms` for the connection and for each later call.
 * -ETIMEDOUT: a daemon exists but does not answer.
 */
int gp_client_connect_within(const char *path, int timeout_ms, struct gp_client **client,
			     struct gp_error *err);

/* For tests: uses a connected socket and sends `hello`. Closes `fd` also on failure. */
int gp_client_adopt(int fd, struct gp_client **client, struct gp_error *err);

/* `client` may be NULL. */
void gp_client_close(struct gp_client *client);

/* Sets the time limit of each later call. */
void gp_client_set_timeout(struct gp_client *client, int timeout_ms);

/*
 * Sends the request and waits for its answer. Takes ownership of `params` (NULL = none). The caller
 * owns `*result`, which is NULL where the answer is null. `result` may be NULL. Errors of the
 * daemon are returned as -errno with the daemon's message. -ETIMEDOUT: no answer. -ECONNRESET: the
 * daemon closed the connection. After these two and -EPROTO the client can only be closed.
 */
int gp_client_call(struct gp_client *client, const char *method, struct json_object *params,
		   struct json_object **result, struct gp_error *err);

/*
 * The following calls do not wait; they are for programs with an event loop. Poll gp_client_fd,
 * then read the answers. Notifications are dropped, so a subscriber cannot use these calls.
 */

/* Connects without `hello`. The caller sends `hello` as its first request. */
int gp_client_begin(const char *path, struct gp_client **client, struct gp_error *err);

/* Sends the request; `*id` is the id of its answer. -ETIMEDOUT: the daemon does not read. */
int gp_client_ask(struct gp_client *client, const char *method, struct json_object *params,
		  int64_t *id, struct gp_error *err);

struct gp_client_answer {
	int64_t id; /* 0: the reason why the daemon closes the connection */
	struct json_object
		*result;     /* owned by the caller; NULL if the result is null or an error */
	struct gp_error err; /* .code 0: success */
};

/*
 * Reads the next answer; -EAGAIN: there is none (no message). Other errors are those of
 * gp_client_call.
 */
int gp_client_answer(struct gp_client *client, struct gp_client_answer *answer,
		     struct gp_error *err);

/*
 * Returns the next notification, an object with `method` and `params`, owned by the caller. Waits
 * at most `timeout_ms` (-1 = no limit). -EAGAIN: none came (no message). Other errors: the daemon
 * has closed the connection or reports why it will.
 */
int gp_client_next(struct gp_client *client, int timeout_ms, struct json_object **event,
		   struct gp_error *err);

/*
 * A file descriptor that is readable when input is available. Then call gp_client_next(client, 0,
 * ...) until it returns -EAGAIN.
 */
int gp_client_fd(const struct gp_client *client);

#endif
