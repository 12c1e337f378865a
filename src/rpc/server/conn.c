/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: rate limit per client, flow control, idle timeout, open and close.
 *
 * The loop serves a connection when it is readable or writable, when a timer expires or when an
 * answer was queued. A turn sends queued output, reads once, handles a few lines and sets what to
 * wait for next. The server stops reading from a client that exceeds its rate, has too many open
 * calls or does not read its answers. Only that client waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "rpc/server/internal.h"

#define LINES_PER_TURN 8
#define LINE_UNIT      4096u /* this many bytes cost as much as one line */
#define LINGER_US      (2 * GP_NS_PER_S / GP_NS_PER_US) /* for the client to read the last error */
#define US_PER_S       (GP_NS_PER_S / GP_NS_PER_US)
#define TIMER_SLACK    1000 /* us */

uint64_t gp_rpc_conn_now_us(const struct gp_rpc_conn *c)
{
	uint64_t now = 0;

	sd_event_now(c->server->event, CLOCK_MONOTONIC, &now);
	return now;
}

/*
 * The rate limit: when the next line may be handled. A client may be `burst` lines ahead of its
 * steady rate.
 */
static uint64_t next_line_due_us(const struct gp_rpc_conn *c)
{
	const struct gp_rpc_limits *l = &c->listener->config.limits;
	uint64_t ahead = (uint64_t)l->burst * US_PER_S / l->rate;

	return c->rate_us > ahead ? c->rate_us - ahead : 0;
}

void gp_rpc_conn_charge(struct gp_rpc_conn *c, size_t length)
{
	uint64_t now = gp_rpc_conn_now_us(c);
	uint64_t cost = US_PER_S / c->listener->config.limits.rate;

	if (c->rate_us < now)
		c->rate_us = now;
	c->rate_us += (cost ? cost : 1) * (1 + length / LINE_UNIT);
}

void gp_rpc_conn_unref(struct gp_rpc_conn *c)
{
	if (--c->refs)
		return;
	if (c->peer.pidfd >= 0)
		close(c->peer.pidfd);
	free(c->groups);
	free(c);
}

void gp_rpc_conn_close(struct gp_rpc_conn *c)
{
	struct gp_rpc_server *server = c->server;

	gp_rpc_output_drop(c);
	c->io = sd_event_source_disable_unref(c->io);
	c->timer = sd_event_source_disable_unref(c->timer);
	gp_lines_free(&c->lines);
	gp_rpc_close_socket(server, c->fd, c->account);
	*(c->prev ? &c->prev->next : &server->conns) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->listener->clients--;
	server->counters.clients--;
	c->server = NULL;
	c->listener = NULL;
	gp_rpc_conn_unref(c);
}

void gp_rpc_conn_cut_off(struct gp_rpc_conn *c, int code, int error, const char *sentence)
{
	if (c->linger_us)
		return;
	c->server->counters.cut_off++;
	gp_rpc_request_refused(c, code, error, sentence);
	c->linger_us = gp_rpc_conn_now_us(c) + LINGER_US;
}

/* The client has too many open calls or too much unread output. */
static bool must_wait(const struct gp_rpc_conn *c)
{
	const struct gp_rpc_limits *l = &c->listener->config.limits;

	return c->linger_us || c->in_flight >= l->in_flight || c->out.bytes > l->output / 2;
}

static bool is_finished(const struct gp_rpc_conn *c)
{
	if (c->doomed)
		return true;
	if (c->linger_us)
		return !c->out.first || c->hung;
	if (!c->eof) /* set only after all earlier lines were handled */
		return false;
	return c->hung || (!c->in_flight && !c->out.first && !c->subscription);
}

static uint64_t idle_us(const struct gp_rpc_conn *c)
{
	return c->active_us + c->listener->config.limits.idle_s * US_PER_S;
}

/*
 * A client that waits for answers or events may be idle. It may also have sent its own end of the
 * connection, which then stays open without any process. As long as it does not read its events it
 * is not read from, so this is checked here.
 */
static bool may_idle(struct gp_rpc_conn *c)
{
	if ((!c->in_flight && !c->subscription) || (!c->no_files && gp_rpc_has_files(c->fd)))
		return false;
	c->active_us = gp_rpc_conn_now_us(c);
	return true;
}

static void set_timer(struct gp_rpc_conn *c, uint64_t at_us)
{
	if (at_us >= c->timer_us) /* the earlier timer settles again */
		return;
	c->timer_us = at_us;
	sd_event_source_set_time(c->timer, at_us);
	sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

/* Closes the connection, or sets which events it waits for. */
static void settle(struct gp_rpc_conn *c)
{
	bool ready = gp_lines_ready(&c->lines), wait = must_wait(c);
	uint64_t due = next_line_due_us(c);
	bool fast = due > gp_rpc_conn_now_us(c);
	uint32_t events = 0;

	if (is_finished(c)) {
		gp_rpc_conn_close(c);
		return;
	}
	if (!c->eof && !ready && !wait && !fast)
		events |= EPOLLIN;
	if (c->out.first)
		events |= EPOLLOUT;
	/* epoll would report the hang-up again and again. */
	sd_event_source_set_enabled(c->io, c->hung && !events ? SD_EVENT_OFF : SD_EVENT_ON);
	sd_event_source_set_io_events(c->io, events);
	if (ready && !wait && !fast)
		gp_rpc_conn_wake(c);
	if (fast && !wait)
		set_timer(c, due);
	if (c->linger_us)
		set_timer(c, c->linger_us);
	else
		set_timer(c, idle_us(c));
	gp_lines_shrink(&c->lines);
}

static void take_lines(struct gp_rpc_conn *c)
{
	size_t length;

	for (unsigned i = 0; i < LINES_PER_TURN && !c->doomed; i++) {
		char *line;

		if (must_wait(c))
			return;
		if (next_line_due_us(c) > gp_rpc_conn_now_us(c)) {
			c->server->counters.paused += gp_lines_ready(&c->lines);
			return;
		}
		line = gp_lines_next(&c->lines, &length);
		if (!line)
			break;
		gp_rpc_input_line(c, line, length);
	}
	if (c->eof && !gp_lines_ready(&c->lines) && gp_lines_waiting(&c->lines) && !c->linger_us)
		gp_rpc_conn_cut_off(c, GP_RPC_PARSE_ERROR, -EBADMSG,
				    "the last line does not end with a newline");
}

int gp_rpc_conn_take_turn(struct gp_rpc_conn *c)
{
	take_lines(c);
	gp_rpc_output_flush(c);
	settle(c);
	return 0;
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct gp_rpc_conn *c = arg;

	(void)source;
	(void)fd;
	if (events & (EPOLLHUP | EPOLLERR)) {
		c->hung = true;
		gp_rpc_output_drop(c);
	}
	if ((events & EPOLLIN) && !c->eof && !gp_lines_ready(&c->lines) && !must_wait(c))
		gp_rpc_input_receive(c);
	return gp_rpc_conn_take_turn(c);
}

static int on_timer(sd_event_source *source, uint64_t at_us, void *arg)
{
	struct gp_rpc_conn *c = arg;
	uint64_t now = gp_rpc_conn_now_us(c);

	(void)source;
	(void)at_us;
	c->timer_us = UINT64_MAX;
	if (c->linger_us && c->linger_us <= now)
		c->doomed = true;
	if (!c->linger_us && idle_us(c) <= now && !may_idle(c)) {
		c->server->counters.idle++;
		c->doomed = true;
	}
	return gp_rpc_conn_take_turn(c);
}

static int watch(struct gp_rpc_conn *c)
{
	sd_event *event = c->server->event;
	int r = sd_event_add_io(event, &c->io, c->fd, EPOLLIN, on_io, c);

	if (r >= 0)
		r = sd_event_add_time(event, &c->timer, CLOCK_MONOTONIC, UINT64_MAX, TIMER_SLACK,
				      on_timer, c);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
	return r < 0 ? r : 0;
}

int gp_rpc_conn_new(struct gp_rpc_listener *l, int fd, uid_t account)
{
	struct gp_rpc_server *server = l->server;
	struct gp_rpc_conn *c = calloc(1, sizeof *c);
	int r;

	if (!c) {
		gp_rpc_close_socket(server, fd, account);
		return -ENOMEM;
	}
	*c = (struct gp_rpc_conn){.refs = 1,
				  .next = server->conns,
				  .server = server,
				  .listener = l,
				  .fd = fd,
				  .account = account,
				  .peer = {.pidfd = -1},
				  .timer_us = UINT64_MAX};
	if (c->next)
		c->next->prev = c;
	server->conns = c;
	l->clients++;
	server->counters.clients++;
	c->active_us = gp_rpc_conn_now_us(c);
	c->no_files = gp_rpc_files_refused(fd);
	/* Urgent data would be released when it is skipped; as part of the stream it is peeked. */
	r = setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &(int){1}, sizeof(int)) ? -errno : 0;
	if (!r)
		r = gp_rpc_peer_read(c);
	if (!r)
		r = watch(c);
	if (r)
		gp_rpc_conn_close(c);
	else
		settle(c);
	return r;
}
