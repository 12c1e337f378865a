/* SPDX-License-Identifier: Apache-2.0 */
/* A call: one request from its line to its answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/server/internal.h"

struct gp_rpc_call *gp_rpc_call_new(struct gp_rpc_conn *c, struct json_object *request,
				    struct json_object *id)
{
	struct gp_rpc_call *call = calloc(1, sizeof *call);

	if (!call)
		return NULL;
	call->conn = c;
	call->request = json_object_get(request);
	call->id = id;
	call->next = c->calls;
	if (call->next)
		call->next->prev = call;
	c->calls = call;
	c->in_flight++;
	c->refs++;
	return call;
}

static void call_free(struct gp_rpc_call *call)
{
	struct gp_rpc_conn *c = call->conn;

	for (unsigned i = 0; i < call->nfds; i++)
		close(call->fd[i]);
	*(call->prev ? &call->prev->next : &c->calls) = call->next;
	if (call->next)
		call->next->prev = call->prev;
	c->in_flight--;
	json_object_put(call->request);
	free(call);
	if (c->server)
		gp_rpc_conn_wake(c);
	gp_rpc_conn_unref(c);
}

/* {"jsonrpc":"2.0","id":ID,KEY:VALUE}; NULL: no memory. */
static struct json_object *envelope(struct json_object *id, const char *key,
				    struct json_object *value)
{
	struct json_object *json = json_object_new_object();

	if (!json) {
		json_object_put(value);
		return NULL;
	}
	gp_json_add(json, "jsonrpc", json_object_new_string("2.0"));
	gp_json_add(json, "id", json_object_get(id));
	gp_json_add(json, key, value);
	return json;
}

static struct json_object *error_object(int code, int error, struct json_object *data,
					const char *sentence)
{
	struct json_object *json = data ? json_object_new_object() : gp_json_begin();

	gp_json_add(json, "code", json_object_new_int(code ? code : (int)gp_rpc_code_of(error)));
	gp_json_add(json, "message",
		    gp_json_from_bytes(*sentence ? sentence : gp_error_name(error)));
	if (error && !data)
		data = json_object_new_object();
	if (error)
		gp_json_add(data, "errno", json_object_new_string(gp_rpc_errno_name(error)));
	if (data)
		gp_json_add(json, "data", data);
	return json;
}

static void send_error(struct gp_rpc_call *call, struct json_object *error)
{
	struct gp_rpc_conn *c = call->conn;

	if (c->server)
		c->server->counters.errors++;
	if (call->id)
		gp_rpc_output_reply(c, envelope(call->id, "error", error));
	else
		json_object_put(error);
}

int gp_rpc_reply(struct gp_rpc_call *call, struct json_object *result)
{
	if (call->id)
		gp_rpc_output_reply(call->conn, envelope(call->id, "result", result));
	else
		json_object_put(result);
	call_free(call);
	return 0;
}

int gp_rpc_fail_data(struct gp_rpc_call *call, int code, int error, struct json_object *data,
		     const char *sentence)
{
	send_error(call, error_object(code, error, data, sentence));
	call_free(call);
	return 0;
}

int gp_rpc_fail(struct gp_rpc_call *call, int code, int error, const char *format, ...)
{
	char sentence[sizeof call->err.text];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof sentence, format, args);
	va_end(args);
	return gp_rpc_fail_data(call, code, error, NULL, sentence);
}

void gp_rpc_calls_end(struct gp_rpc_conn *c)
{
	for (struct gp_rpc_call *call = c->calls; call; call = call->next)
		send_error(call, error_object(0, -ECANCELED, NULL,
					      "the daemon is shutting down; repeat the "
					      "request when it runs again"));
}

void gp_rpc_request_refused(struct gp_rpc_conn *c, int code, int error, const char *sentence)
{
	c->server->counters.errors++;
	gp_rpc_output_reply(c, envelope(NULL, "error", error_object(code, error, NULL, sentence)));
}

const struct gp_rpc_peer *gp_rpc_peer(const struct gp_rpc_call *call)
{
	return &call->conn->peer;
}

bool gp_rpc_peer_in_group(const struct gp_rpc_peer *peer, gid_t gid)
{
	bool in = peer->gid == gid;

	for (unsigned i = 0; !in && i < peer->ngroups; i++)
		in = peer->groups[i] == gid;
	return in;
}

bool gp_rpc_is_notification(const struct gp_rpc_call *call)
{
	return !call->id;
}

struct gp_error *gp_rpc_error(struct gp_rpc_call *call)
{
	return &call->err;
}

int gp_rpc_fd_give(struct gp_rpc_call *call, int fd)
{
	if (call->nfds == GP_RPC_CALL_FDS) {
		close(fd);
		return -EMFILE;
	}
	call->fd[call->nfds++] = fd;
	return 0;
}

void gp_rpc_subscribe(struct gp_rpc_call *call, uint64_t bits)
{
	call->conn->subscription = bits;
}
