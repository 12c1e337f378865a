/* SPDX-License-Identifier: Apache-2.0 */
/* Output to a client: queued here, sent when the loop serves the connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "rpc/server/internal.h"

#define SEND_AT_ONCE 16                             /* messages per system call */
#define OUTPUT_ALL   (64ull << 20)                  /* unread bytes of all clients together */
#define LINK_COST    sizeof(struct gp_rpc_out_link) /* tiny messages are not free */

struct gp_rpc_message *gp_rpc_message_new(struct json_object *json)
{
	struct gp_rpc_message *m = NULL;
	size_t length = 0;
	const char *text = json ? gp_json_text(json, &length) : NULL;

	if (text)
		m = malloc(sizeof *m + length + 1);
	if (m) {
		m->refs = 1;
		m->length = length + 1;
		memcpy(m->bytes, text, length);
		m->bytes[length] = '\n';
	}
	json_object_put(json);
	return m;
}

void gp_rpc_message_unref(struct gp_rpc_message *m)
{
	if (m && !--m->refs)
		free(m);
}

/* Takes one reference if it returns true. */
static bool append(struct gp_rpc_conn *c, struct gp_rpc_message *m, size_t limit)
{
	size_t cost = m->length + LINK_COST;
	struct gp_rpc_out_link *link;

	if (c->out.bytes + cost > limit || c->server->output_bytes + cost > OUTPUT_ALL)
		return false;
	link = malloc(sizeof *link);
	if (!link)
		return false;
	*link = (struct gp_rpc_out_link){.message = m};
	if (!c->out.first)
		c->out.last = &c->out.first;
	*c->out.last = link;
	c->out.last = &link->next;
	c->out.bytes += cost;
	c->server->output_bytes += cost;
	gp_rpc_conn_wake(c);
	return true;
}

void gp_rpc_output_reply(struct gp_rpc_conn *c, struct json_object *json)
{
	struct gp_rpc_message *m;

	if (!c->server || c->hung) {
		json_object_put(json);
		return;
	}
	m = gp_rpc_message_new(json);
	if (m && append(c, m, c->listener->config.limits.reply_output))
		return;
	gp_rpc_message_unref(m);
	if (!c->doomed)
		c->server->counters.cut_off++;
	c->doomed = true;
	gp_rpc_conn_wake(c);
}

/* Sends the number of lost notifications before any notification that follows the gap. */
static void report_lost(struct gp_rpc_conn *c)
{
	struct json_object *json = gp_json_begin(), *params = json_object_new_object();
	struct gp_rpc_message *m;

	gp_json_add(json, "jsonrpc", json_object_new_string("2.0"));
	gp_json_add(json, "method", json_object_new_string("lost"));
	gp_json_add(params, "count", json_object_new_uint64(c->lost));
	gp_json_add(json, "params", params);
	m = gp_rpc_message_new(json);
	if (m && append(c, m, c->listener->config.limits.output))
		c->lost = 0;
	else
		gp_rpc_message_unref(m);
}

void gp_rpc_output_notify(struct gp_rpc_conn *c, struct gp_rpc_message *m)
{
	if (!c->server || c->hung)
		return;
	if (!m || c->lost || !append(c, m, c->listener->config.limits.output)) {
		c->lost++;
		c->server->counters.lost++;
		return;
	}
	m->refs++;
	c->server->counters.sent++;
}

static void pop(struct gp_rpc_conn *c)
{
	struct gp_rpc_out_link *link = c->out.first;
	size_t cost = link->message->length + LINK_COST;

	c->out.first = link->next;
	c->out.sent = 0;
	c->out.bytes -= cost;
	c->server->output_bytes -= cost;
	gp_rpc_message_unref(link->message);
	free(link);
}

/* 0 or -errno. -EAGAIN: the socket buffer of the client is full. */
static int send_some(struct gp_rpc_conn *c)
{
	struct iovec part[SEND_AT_ONCE];
	struct msghdr head = {.msg_iov = part};
	ssize_t n;

	for (struct gp_rpc_out_link *l = c->out.first; l && head.msg_iovlen < SEND_AT_ONCE;
	     l = l->next)
		part[head.msg_iovlen++] = (struct iovec){l->message->bytes, l->message->length};
	part[0].iov_base = (char *)part[0].iov_base + c->out.sent;
	part[0].iov_len -= c->out.sent;
	n = sendmsg(c->fd, &head, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (size_t left = (size_t)n; left && c->out.first;) {
		size_t rest = c->out.first->message->length - c->out.sent;

		if (left < rest) {
			c->out.sent += left;
			break;
		}
		left -= rest;
		pop(c);
	}
	return 0;
}

void gp_rpc_output_flush(struct gp_rpc_conn *c)
{
	int r = 0;

	while (!r && c->out.first)
		r = send_some(c);
	if (r && r != -EAGAIN) { /* the client is gone; its earlier input may still be read */
		c->hung = true;
		gp_rpc_output_drop(c);
	}
	if (c->lost && !c->hung && c->out.bytes <= c->listener->config.limits.output / 2)
		report_lost(c);
}

void gp_rpc_output_drop(struct gp_rpc_conn *c)
{
	while (c->out.first)
		pop(c);
}
