/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of connections that have work without a new epoll event. See struct gp_rpc_turns. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "rpc/server/internal.h"

#define ROUND_NS (5 * GP_NS_PER_MS)

void gp_rpc_conn_wake(struct gp_rpc_conn *c)
{
	struct gp_rpc_turns *turns = &c->server->turns;

	c->active_us = gp_rpc_conn_now_us(c);
	if (c->queued)
		return;
	if (!turns->first) {
		turns->last = &turns->first;
		eventfd_write(turns->fd, 1);
	}
	c->queued = true;
	c->refs++;
	c->next_turn = NULL;
	*turns->last = c;
	turns->last = &c->next_turn;
}

/*
 * Other event sources share this loop. The rest of the queue goes to the next round, before
 * connections that were queued meanwhile.
 */
static void defer_rest(struct gp_rpc_turns *turns, struct gp_rpc_conn *c, struct gp_rpc_conn **last)
{
	if (turns->first)
		*last = turns->first;
	else
		turns->last = last;
	turns->first = c;
	eventfd_write(turns->fd, 1);
}

static int on_turns(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	uint64_t until_ns = gp_monotonic_ns() + ROUND_NS;
	struct gp_rpc_turns *turns = arg;
	struct gp_rpc_conn *c = turns->first, **last = turns->last;
	eventfd_t value;

	(void)source;
	(void)events;
	eventfd_read(fd, &value);
	turns->first = NULL; /* connections that are queued from here on wait for the next round */
	while (c) {
		struct gp_rpc_conn *next = c->next_turn;

		c->queued = false;
		if (c->server)
			gp_rpc_conn_take_turn(c);
		gp_rpc_conn_unref(c);
		c = next;
		if (c && gp_monotonic_ns() >= until_ns) {
			defer_rest(turns, c, last);
			break;
		}
	}
	return 0;
}

int gp_rpc_turns_open(struct gp_rpc_server *server)
{
	struct gp_rpc_turns *turns = &server->turns;
	int r;

	turns->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (turns->fd < 0)
		return -errno;
	r = sd_event_add_io(server->event, &turns->io, turns->fd, EPOLLIN, on_turns, turns);
	return r < 0 ? r : 0;
}

void gp_rpc_turns_close(struct gp_rpc_server *server)
{
	struct gp_rpc_turns *turns = &server->turns;

	while (turns->first) {
		struct gp_rpc_conn *c = turns->first;

		turns->first = c->next_turn;
		gp_rpc_conn_unref(c);
	}
	turns->io = sd_event_source_disable_unref(turns->io);
	if (turns->fd >= 0)
		close(turns->fd);
}
