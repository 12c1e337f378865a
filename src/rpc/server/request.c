/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a line as a request and calls its method. Answers `hello`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "rpc/params.h"
#include "rpc/server/internal.h"

#define ID_MAX 128 /* bytes of a string id, which the answer repeats */

/* What is wrong with `request`, or NULL. Sets `*id` and `*has_id`. */
static const char *find_flaw(struct json_object *request, struct json_object **id, bool *has_id)
{
	struct json_object *version = json_object_object_get(request, "jsonrpc");
	struct json_object *method = json_object_object_get(request, "method");
	struct json_object *params;

	*has_id = json_object_object_get_ex(request, "id", id);
	if (json_object_is_type(*id, json_type_string)
		    ? json_object_get_string_len(*id) > ID_MAX
		    : *has_id && !json_object_is_type(*id, json_type_int)) {
		*id = NULL;
		return "id must be a whole number or a string of at most 128 bytes";
	}
	if (!json_object_is_type(version, json_type_string) ||
	    strcmp(json_object_get_string(version), "2.0") != 0)
		return "the member \"jsonrpc\":\"2.0\" is missing";
	if (!json_object_is_type(method, json_type_string))
		return "method must be a string";
	if (json_object_object_get_ex(request, "params", &params) &&
	    !json_object_is_type(params, json_type_object))
		return "params must be an object with named members";
	json_object_object_foreach(request, key, value)
	{
		(void)value;
		if (strcmp(key, "jsonrpc") != 0 && strcmp(key, "id") != 0 &&
		    strcmp(key, "method") != 0 && strcmp(key, "params") != 0)
			return "the request has an unknown member; only jsonrpc, id, method and "
			       "params are allowed";
	}
	return NULL;
}

static struct json_object *versions(void)
{
	struct json_object *list = json_object_new_array();

	gp_json_append(list, json_object_new_int(GP_RPC_VERSION));
	return list;
}

static int hello(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	const struct gp_rpc_conn *c = call->conn;
	struct json_object *result, *names, *data;
	uint64_t version = 0;
	int r;

	(void)arg; /* for the caller's methods */
	r = GP_PARAMS_KNOWN(params, &call->err, "version");
	if (!r)
		r = gp_params_u64(params, "version", 0, UINT64_MAX, &version, NULL, &call->err);
	if (r)
		return r;
	if (version != GP_RPC_VERSION) {
		data = gp_json_begin();
		gp_json_add(data, "versions", versions());
		return gp_rpc_fail_data(call, GP_RPC_VERSION_UNKNOWN, -EPROTONOSUPPORT, data,
					"this daemon supports version 1 of the protocol; use a "
					"client of the same release");
	}
	result = gp_json_begin();
	names = json_object_new_array();
	gp_json_add(result, "version", json_object_new_int(GP_RPC_VERSION));
	gp_json_add(result, "server", json_object_new_string(c->server->config.name));
	for (unsigned i = 0; i < c->listener->config.nmethods; i++)
		gp_json_append(names, json_object_new_string(c->listener->config.method[i].name));
	gp_json_add(result, "methods", names);
	return gp_rpc_reply(call, result);
}

static const struct gp_rpc_method method_hello = {"hello", hello, 0};

static const struct gp_rpc_method *find_method(const struct gp_rpc_listener *l, const char *name)
{
	if (strcmp(name, method_hello.name) == 0)
		return &method_hello;
	for (unsigned i = 0; i < l->config.nmethods; i++)
		if (strcmp(name, l->config.method[i].name) == 0)
			return &l->config.method[i];
	return NULL;
}

static int unknown_method(struct gp_rpc_call *call, const char *name)
{
	const struct gp_rpc_socket *s = &call->conn->listener->config;
	struct gp_suggest suggest;

	gp_suggest_begin(&suggest, name);
	for (unsigned i = 0; i < s->nmethods; i++)
		gp_suggest_offer(&suggest, s->method[i].name);
	gp_suggest_offer(&suggest, method_hello.name);
	if (suggest.nearest)
		return gp_rpc_fail(call, GP_RPC_UNKNOWN_METHOD, -ENOSYS,
				   "method '%.40s' is not known; perhaps '%s' is meant", name,
				   suggest.nearest);
	return gp_rpc_fail(call, GP_RPC_UNKNOWN_METHOD, -ENOSYS,
			   "method '%.40s' is not known; hello lists the available methods", name);
}

static void invoke(struct gp_rpc_call *call)
{
	const char *name = json_object_get_string(json_object_object_get(call->request, "method"));
	const struct gp_rpc_method *m = find_method(call->conn->listener, name);
	struct json_object *params = json_object_object_get(call->request, "params");
	int r;

	call->conn->server->counters.requests++;
	if (!m) {
		unknown_method(call, name);
		return;
	}
	if (!params) {
		params = json_object_new_object();
		gp_json_add(call->request, "params", params);
	}
	r = m->call(call->conn->server->config.arg, call, params);
	if (r)
		gp_rpc_fail(call, 0, r, "%s", call->err.text);
}

/* Only some methods may come without an id. For the others the client must learn the result. */
static bool may_notify(const struct gp_rpc_conn *c, struct json_object *request)
{
	const struct gp_rpc_method *m = find_method(
		c->listener, json_object_get_string(json_object_object_get(request, "method")));

	return m && (m->flags & GP_RPC_MAY_NOTIFY);
}

static void refuse(struct gp_rpc_conn *c, struct json_object *id, const char *sentence)
{
	struct gp_rpc_call *call = id ? gp_rpc_call_new(c, NULL, id) : NULL;

	if (call)
		gp_rpc_fail(call, GP_RPC_INVALID_REQUEST, -EBADMSG, "%s", sentence);
	else
		gp_rpc_request_refused(c, GP_RPC_INVALID_REQUEST, -EBADMSG, sentence);
}

static void request_object(struct gp_rpc_conn *c, struct json_object *request)
{
	struct gp_rpc_call *call;
	struct json_object *id = NULL;
	const char *wrong;
	bool has_id;

	if (json_object_is_type(request, json_type_array)) {
		refuse(c, NULL,
		       "batch requests are not supported; send each request as a line of its own");
		return;
	}
	if (!json_object_is_type(request, json_type_object)) {
		refuse(c, NULL, "a request must be a JSON object");
		return;
	}
	wrong = find_flaw(request, &id, &has_id);
	if (!wrong && !has_id && !may_notify(c, request))
		wrong = "id is missing; this method cannot be sent as a notification";
	if (wrong) {
		refuse(c, id, wrong);
		return;
	}
	call = gp_rpc_call_new(c, request, id);
	if (call)
		invoke(call);
	else
		gp_rpc_request_refused(c, GP_RPC_INTERNAL, -ENOMEM, "no memory");
}

void gp_rpc_request_line(struct gp_rpc_conn *c, const char *line, size_t length)
{
	struct json_object *request = NULL;
	struct gp_error err = {0};
	int r = gp_json_read(c->server->tokener, line, length, &request, &err);

	if (r)
		gp_rpc_request_refused(c, r == -ENOMEM ? GP_RPC_INTERNAL : GP_RPC_PARSE_ERROR, r,
				       err.text);
	else
		request_object(c, request);
	json_object_put(request);
}
