/* SPDX-License-Identifier: Apache-2.0 */
/* Who has something to do without anything having come. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rpc/server/internal.h"

void conn_wake(struct conn *c)
{
	struct turns *turns = &c->server->turns;

	c->active_us = conn_now_us(c);
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

static int on_turns(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct turns *turns = arg;
	struct conn *c = turns->first;
	eventfd_t value;

	(void)source;
	(void)events;
	eventfd_read(fd, &value);
	turns->first = NULL; /* who wants another turn waits for the next round */
	while (c) {
		struct conn *next = c->next_turn;

		c->queued = false;
		if (c->server)
			conn_take_turn(c);
		conn_unref(c);
		c = next;
	}
	return 0;
}

int turns_open(struct gp_rpc_server *server)
{
	struct turns *turns = &server->turns;
	int r;

	turns->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (turns->fd < 0)
		return -errno;
	r = sd_event_add_io(server->event, &turns->io, turns->fd, EPOLLIN, on_turns, turns);
	return r < 0 ? r : 0;
}

void turns_close(struct gp_rpc_server *server)
{
	struct turns *turns = &server->turns;

	while (turns->first) {
		struct conn *c = turns->first;

		turns->first = c->next_turn;
		conn_unref(c);
	}
	turns->io = sd_event_source_disable_unref(turns->io);
	if (turns->fd >= 0)
		close(turns->fd);
}
