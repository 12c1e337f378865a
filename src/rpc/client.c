/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "rpc/connect.h"
#include "rpc/stream.h"

struct gp_client {
	struct gp_stream stream;
	int timeout_ms;
	int64_t next_id;
	struct json_object *events; /* array of the events that came during a call */
	size_t events_taken;
};

static int send_request(struct gp_client *client, const char *method, struct json_object *params,
			int64_t id, struct gp_error *err)
{
	struct json_object *json;
	const char *text;
	char *line = NULL;
	size_t length;
	int r;

	json = gp_json_begin();
	gp_json_add(json, "jsonrpc", json_object_new_string("2.0"));
	gp_json_add(json, "id", json_object_new_int64(id));
	gp_json_add(json, "method", json_object_new_string(method));
	if (params)
		gp_json_add(json, "params", params);
	text = gp_json_text(json, &length);
	if (text)
		line = malloc(length + 1);
	if (line) {
		memcpy(line, text, length);
		line[length] = '\n';
	}
	r = line ? gp_stream_send(&client->stream, line, length + 1,
				  gp_stream_deadline(client->timeout_ms), err)
		 : gp_fail(err, -ENOMEM, "no memory");
	free(line);
	json_object_put(json);
	return r;
}

/* Converts an error of the daemon to -errno with its message. */
static int convert_error(struct json_object *error, struct gp_error *err)
{
	struct json_object *data = json_object_object_get(error, "data");
	struct json_object *name = json_object_object_get(data, "errno");
	struct json_object *sentence = json_object_object_get(error, "message");
	int code = -EIO;

	if (json_object_is_type(name, json_type_string))
		code = gp_rpc_errno_parse(json_object_get_string(name));
	return gp_fail(err, code, "%s",
		       json_object_is_type(sentence, json_type_string)
			       ? json_object_get_string(sentence)
			       : gp_error_name(code));
}

/* Takes ownership of `json`. Returns 1 if it is not the answer to `id`. */
static int take_answer(struct gp_client *client, struct json_object *json, int64_t id,
		       struct json_object **result, struct gp_error *err)
{
	struct json_object *its_id = json_object_object_get(json, "id"), *error;
	bool has_error = json_object_object_get_ex(json, "error", &error);
	int r = 1;

	if (has_error && (!its_id || json_object_get_int64(its_id) == id)) {
		r = convert_error(error, err);
	} else if (its_id && json_object_get_int64(its_id) == id) {
		if (result)
			*result = json_object_get(json_object_object_get(json, "result"));
		r = 0;
	} else if (!its_id && json_object_object_get_ex(json, "method", NULL)) {
		if (json_object_array_length(client->events) >= GP_CLIENT_EVENTS_MAX)
			r = gp_fail(err, -ENOBUFS,
				    "the daemon sends events faster than this program reads them");
		else
			gp_json_append(client->events, json_object_get(json));
	}
	json_object_put(json);
	return r;
}

int gp_client_call(struct gp_client *client, const char *method, struct json_object *params,
		   struct json_object **result, struct gp_error *err)
{
	uint64_t until_ns = gp_stream_deadline(client->timeout_ms);
	int64_t id = ++client->next_id;
	int r;

	if (result)
		*result = NULL;
	r = send_request(client, method, params, id, err);
	if (r)
		return r;
	do {
		struct json_object *json;

		r = gp_stream_receive(&client->stream, until_ns, &json, err);
		if (r == -EAGAIN)
			return gp_stream_late(err);
		if (!r)
			r = take_answer(client, json, id, result, err);
	} while (r == 1);
	return r;
}

int gp_client_ask(struct gp_client *client, const char *method, struct json_object *params,
		  int64_t *id, struct gp_error *err)
{
	int timeout_ms = client->timeout_ms, r;

	*id = ++client->next_id;
	client->timeout_ms = 0;
	r = send_request(client, method, params, *id, err);
	client->timeout_ms = timeout_ms;
	return r;
}

int gp_client_answer(struct gp_client *client, struct gp_client_answer *answer,
		     struct gp_error *err)
{
	struct json_object *json = NULL, *id;
	int r;

	do {
		json_object_put(json);
		r = gp_stream_receive(&client->stream, 0, &json, err);
	} while (!r && json_object_object_get_ex(json, "method", NULL)); /* an event */
	if (r)
		return r;
	*answer = (struct gp_client_answer){0};
	id = json_object_object_get(json, "id");
	if (json_object_is_type(id, json_type_int))
		answer->id = json_object_get_int64(id);
	if (json_object_object_get_ex(json, "error", &id))
		convert_error(id, &answer->err);
	else
		answer->result = json_object_get(json_object_object_get(json, "result"));
	json_object_put(json);
	return 0;
}

/* The oldest event that came during a call, or NULL. */
static struct json_object *queued_event(struct gp_client *client)
{
	struct json_object *event = json_object_array_get_idx(client->events, client->events_taken);

	if (!event)
		return NULL;
	json_object_get(event);
	if (++client->events_taken == json_object_array_length(client->events)) {
		json_object_array_del_idx(client->events, 0, client->events_taken);
		client->events_taken = 0;
	}
	return event;
}

int gp_client_next(struct gp_client *client, int timeout_ms, struct json_object **event,
		   struct gp_error *err)
{
	uint64_t until_ns = gp_stream_deadline(timeout_ms);
	int r = 0;

	*event = queued_event(client);
	while (!r && !*event) {
		struct json_object *error;

		r = gp_stream_receive(&client->stream, until_ns, event, err);
		if (r || json_object_object_get_ex(*event, "method", NULL))
			break;
		/* The reason why the daemon closes the connection, or a late answer. */
		if (!json_object_object_get(*event, "id") &&
		    json_object_object_get_ex(*event, "error", &error))
			r = convert_error(error, err);
		json_object_put(*event);
		*event = NULL;
	}
	return r;
}

int gp_client_fd(const struct gp_client *client)
{
	return client->stream.fd;
}

static int say_hello(struct gp_client *client, struct gp_error *err)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	int r;

	gp_json_add(params, "version", json_object_new_int(GP_RPC_VERSION));
	r = gp_client_call(client, "hello", params, &result, err);
	json_object_put(result);
	return r;
}

/* Closes `fd` also on failure. */
static int wrap(int fd, int timeout_ms, struct gp_client **client, struct gp_error *err)
{
	struct gp_client *c = calloc(1, sizeof *c);

	*client = c;
	if (!c) {
		close(fd);
		return gp_fail(err, -ENOMEM, "no memory");
	}
	c->stream.fd = fd;
	c->timeout_ms = timeout_ms;
	c->stream.tokener = gp_json_tokener();
	c->events = json_object_new_array();
	if (c->stream.tokener && c->events)
		return 0;
	gp_client_close(c);
	*client = NULL;
	return gp_fail(err, -ENOMEM, "no memory");
}

static int adopt(int fd, int timeout_ms, struct gp_client **client, struct gp_error *err)
{
	int r = wrap(fd, timeout_ms, client, err);

	if (!*client)
		return r;
	r = say_hello(*client, err);
	if (r) {
		gp_client_close(*client);
		*client = NULL;
	}
	return r;
}

int gp_client_adopt(int fd, struct gp_client **client, struct gp_error *err)
{
	return adopt(fd, GP_CLIENT_TIMEOUT_MS, client, err);
}

int gp_client_connect(const char *path, struct gp_client **client, struct gp_error *err)
{
	return gp_client_connect_within(path, GP_CLIENT_TIMEOUT_MS, client, err);
}

int gp_client_connect_within(const char *path, int timeout_ms, struct gp_client **client,
			     struct gp_error *err)
{
	int fd = gp_daemon_connect(path, timeout_ms, err);

	*client = NULL;
	return fd < 0 ? fd : adopt(fd, timeout_ms, client, err);
}

int gp_client_begin(const char *path, struct gp_client **client, struct gp_error *err)
{
	int fd = gp_daemon_connect(path, 0, err);

	*client = NULL;
	return fd < 0 ? fd : wrap(fd, GP_CLIENT_TIMEOUT_MS, client, err);
}

void gp_client_close(struct gp_client *client)
{
	if (!client)
		return;
	gp_stream_close(&client->stream);
	json_object_put(client->events);
	free(client);
}

void gp_client_set_timeout(struct gp_client *client, int timeout_ms)
{
	client->timeout_ms = timeout_ms;
}
