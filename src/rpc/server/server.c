/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rpc/server/internal.h"

static void or_default(unsigned *value, unsigned default_value)
{
	if (!*value)
		*value = default_value;
}

/* The caller has set the other limits. */
static void fill_limits(struct gp_rpc_limits *l)
{
	or_default(&l->reserved, 16);
	or_default(&l->burst, 200);
	or_default(&l->in_flight, 16);
	or_default(&l->output, 256u << 10);
	or_default(&l->reply_output, 2u << 20);
	if (l->reserved >= l->clients)
		l->reserved = l->clients - 1;
}

/* The server owns the passed file descriptors from here on, even if it fails to start. */
static void fill_listeners(struct gp_rpc_server *server)
{
	for (unsigned i = 0; i < server->config.nsockets; i++) {
		struct gp_rpc_listener *l = &server->listener[i];

		*l = (struct gp_rpc_listener){.server = server, .config = server->config.socket[i]};
		l->fd = l->config.path ? -1 : l->config.fd;
		if (!l->config.mode)
			l->config.mode = 0600;
		fill_limits(&l->config.limits);
	}
}

static int open_all(struct gp_rpc_server *server, struct gp_error *err)
{
	int r = server->tokener ? gp_rpc_turns_open(server) : -ENOMEM;

	if (!r)
		r = gp_rpc_closer_open(server);

	if (r)
		return gp_fail(err, r, "cannot start the RPC server: %s", gp_error_name(r));
	for (unsigned i = 0; !r && i < server->config.nsockets; i++)
		r = gp_rpc_listener_open(&server->listener[i], err);
	server->config.socket = NULL; /* belongs to the caller */
	return r;
}

int gp_rpc_server_new(sd_event *event, const struct gp_rpc_config *config,
		      struct gp_rpc_server **server, struct gp_error *err)
{
	struct gp_rpc_server *s = calloc(1, sizeof *s);
	int r;

	*server = NULL;
	if (s)
		s->listener = calloc(config->nsockets, sizeof *s->listener);
	if (!s || !s->listener) {
		free(s);
		return gp_fail(err, -ENOMEM, "no memory");
	}
	s->event = sd_event_ref(event);
	s->config = *config;
	s->turns.fd = -1;
	s->tokener = gp_json_tokener();
	fill_listeners(s);
	r = open_all(s, err);
	if (r) {
		gp_rpc_server_free(s);
		return r;
	}
	*server = s;
	return 0;
}

void gp_rpc_server_free(struct gp_rpc_server *server)
{
	if (!server)
		return;
	while (server->conns) {
		struct gp_rpc_conn *c = server->conns;

		gp_rpc_calls_end(c);
		gp_rpc_output_flush(c);
		gp_rpc_conn_close(c);
	}
	gp_rpc_turns_close(server);
	for (unsigned i = 0; i < server->config.nsockets; i++)
		gp_rpc_listener_close(&server->listener[i]);
	gp_rpc_closer_end(server);
	free(server->listener);
	if (server->tokener)
		json_tokener_free(server->tokener);
	sd_event_unref(server->event);
	free(server);
}

int gp_rpc_server_add(struct gp_rpc_server *server, unsigned index, int fd)
{
	server->counters.accepted++;
	return gp_rpc_conn_new(&server->listener[index], fd, geteuid());
}

void gp_rpc_server_counters(const struct gp_rpc_server *server, struct gp_rpc_counters *counters)
{
	*counters = server->counters;
	counters->output = server->output_bytes;
}

uint64_t gp_rpc_wanted(const struct gp_rpc_server *server)
{
	uint64_t bits = 0;

	for (const struct gp_rpc_conn *c = server->conns; c; c = c->next)
		bits |= c->subscription;
	return bits;
}

void gp_rpc_notify(struct gp_rpc_server *server, uint64_t bits, const char *method,
		   struct json_object *params)
{
	struct json_object *json;
	struct gp_rpc_message *m;

	if (!(gp_rpc_wanted(server) & bits)) {
		json_object_put(params);
		return;
	}
	json = json_object_new_object();
	gp_json_add(json, "jsonrpc", json_object_new_string("2.0"));
	gp_json_add(json, "method", json_object_new_string(method));
	gp_json_add(json, "params", params);
	m = gp_rpc_message_new(json);
	for (struct gp_rpc_conn *c = server->conns; c; c = c->next)
		if (c->subscription & bits)
			gp_rpc_output_notify(c, m);
	gp_rpc_message_unref(m);
}
