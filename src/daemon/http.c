/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd without its own thread: its epoll file descriptor is a source of the loop, and a
 * timer calls it at the latest time that it asks for.
 */

#include "daemon/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define CONNECTIONS_MAX 16u
#define SLOW_NS         (500 * GP_NS_PER_MS) /* after this, a connection makes room for others */
#define IDLE_MAX_S      10u                  /* seconds without input */
#define REQUEST_MAX     (16u * 1024u)        /* memory of one connection, with its headers */
#define PAGE_AGE_NS     (100 * GP_NS_PER_MS)

/* A connection, from its start or its last complete request on. */
struct place {
	int fd; /* -1: free */
	uint64_t since_ns;
	bool cut_off;
};

struct gp_http {
	struct place place[CONNECTIONS_MAX];
	struct gp_http_config config;
	struct MHD_Daemon *daemon;
	sd_event_source *io, *timer;
	unsigned port;

	char *page;
	size_t size;
	uint64_t made_ns;
};

static const char index_page[] =
	"<!doctype html><title>gpreemptd</title><p>gpreemptd: <a href=\"/metrics\">metrics</a>\n";

static enum MHD_Result answer(struct MHD_Connection *to, unsigned status, const char *type,
			      const char *text, size_t size, const char *allow)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(size, (void *)(uintptr_t)text,
								 MHD_RESPMEM_MUST_COPY);
	enum MHD_Result done = MHD_NO;

	if (!r)
		return MHD_NO;
	if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) &&
	    (!allow || MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, allow)))
		done = MHD_queue_response(to, status, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result answer_text(struct MHD_Connection *to, unsigned status, const char *text,
				   const char *allow)
{
	return answer(to, status, "text/plain; charset=utf-8", text, strlen(text), allow);
}

/* Renders the page if it is too old. */
static int make_page(struct gp_http *h)
{
	uint64_t now_ns = gp_monotonic_ns();
	char *page = NULL;
	size_t size = 0;
	FILE *out;

	if (h->page && now_ns - h->made_ns < PAGE_AGE_NS)
		return 0;
	out = open_memstream(&page, &size);
	if (!out)
		return -ENOMEM;
	h->config.write(out, h->config.arg);
	if (fclose(out)) {
		free(page);
		return -ENOMEM;
	}
	free(h->page);
	h->page = page;
	h->size = size;
	h->made_ns = now_ns;
	return 0;
}

static int fd_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

static struct place *find_place(struct gp_http *h, int fd)
{
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		if (h->place[i].fd == fd)
			return &h->place[i];
	return NULL;
}

static void on_connection(void *arg, struct MHD_Connection *c, void **state,
			  enum MHD_ConnectionNotificationCode what)
{
	struct gp_http *h = arg;
	int fd = fd_of(c);
	struct place *p = find_place(h, what == MHD_CONNECTION_NOTIFY_STARTED ? -1 : fd);

	(void)state;
	if (!p)
		return;
	*p = (struct place){.fd = -1};
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*p = (struct place){.fd = fd, .since_ns = gp_monotonic_ns()};
}

/*
 * Connections that send their request slowly, or nothing, would keep others out. While all places
 * are taken, the oldest of them is cut off.
 */
static void make_room(struct gp_http *h)
{
	uint64_t now_ns = gp_monotonic_ns();
	struct place *oldest = NULL;

	for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
		struct place *p = &h->place[i];

		if (p->fd >= 0 && !p->cut_off && now_ns - p->since_ns >= SLOW_NS &&
		    (!oldest || p->since_ns < oldest->since_ns))
			oldest = p;
	}
	if (!oldest)
		return;
	oldest->cut_off = true;
	shutdown(oldest->fd, SHUT_RDWR); /* libmicrohttpd closes it */
}

/* A body is never expected. With both headers it would be unclear where the request ends. */
static bool is_ambiguous(struct MHD_Connection *from)
{
	return MHD_lookup_connection_value(from, MHD_HEADER_KIND,
					   MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *from, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **state)
{
	struct gp_http *h = arg;
	struct place *p = find_place(h, fd_of(from));

	(void)version;
	(void)upload;
	(void)upload_size;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(from, MHD_HTTP_METHOD_NOT_ALLOWED,
				   "Only GET and HEAD are supported; use GET /metrics\n",
				   "GET, HEAD");
	if (is_ambiguous(from))
		return answer_text(from, MHD_HTTP_BAD_REQUEST,
				   "Transfer-Encoding is not supported; use GET /metrics\n", NULL);
	/*
	 * libmicrohttpd calls first before it has read the request. An answer then would end the
	 * connection.
	 */
	if (!*state) {
		*state = h;
		return MHD_YES;
	}
	if (p)
		p->since_ns = gp_monotonic_ns();
	if (!strcmp(url, "/"))
		return answer(from, MHD_HTTP_OK, "text/html; charset=utf-8", index_page,
			      sizeof index_page - 1, NULL);
	if (strcmp(url, "/metrics") != 0)
		return answer_text(from, MHD_HTTP_NOT_FOUND,
				   "Not found; the only page is /metrics\n", NULL);
	if (make_page(h))
		return answer_text(from, MHD_HTTP_INTERNAL_SERVER_ERROR, "No memory\n", NULL);
	return answer(from, MHD_HTTP_OK, h->config.type, h->page, h->size, NULL);
}

static bool is_full(const struct gp_http *h)
{
	return MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		       ->num_connections >= CONNECTIONS_MAX;
}

static void run(struct gp_http *h)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;
	bool was_full = is_full(h);

	if (was_full)
		make_room(h);
	MHD_run(h->daemon);
	/* While it is full it does not listen; it starts again only when it is called. */
	if (was_full && !is_full(h))
		MHD_run(h->daemon);
	if (MHD_get_timeout(h->daemon, &wait_ms) != MHD_YES)
		wait_ms = UINT64_MAX;
	if (is_full(h) && wait_ms > SLOW_NS / GP_NS_PER_MS / 5)
		wait_ms = SLOW_NS / GP_NS_PER_MS / 5;
	if (wait_ms == UINT64_MAX) {
		sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time_relative(h->timer, (uint64_t)wait_ms * 1000);
	sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	(void)source;
	(void)fd;
	(void)events;
	run(arg);
	return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	run(arg);
	return 0;
}

static socklen_t length_of(const struct sockaddr *a)
{
	return a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Returns the listening socket and its port, or -errno. */
static int listen_on(const struct sockaddr *address, unsigned *port)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} is = {0};
	socklen_t size = sizeof is;
	int r = 0;

	if (fd < 0)
		return -errno;
	/* Connections of a server that was just stopped would block the port. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
	    bind(fd, address, length_of(address)) || listen(fd, (int)CONNECTIONS_MAX) ||
	    getsockname(fd, &is.any, &size))
		r = -errno;
	if (r) {
		close(fd);
		return r;
	}
	*port = ntohs(is.any.sa_family == AF_INET6 ? is.v6.sin6_port : is.v4.sin_port);
	return fd;
}

static int start(struct gp_http *h, sd_event *loop, int fd)
{
	const union MHD_DaemonInfo *info;
	int r;

	h->daemon = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		h->config.idle_s ? h->config.idle_s : IDLE_MAX_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MAX,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
	if (!h->daemon) {
		close(fd);
		return -ENOMEM;
	}
	info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -ENOTSUP;
	r = sd_event_add_io(loop, &h->io, info->epoll_fd, EPOLLIN, on_io, h);
	if (r >= 0)
		r = sd_event_add_time_relative(loop, &h->timer, CLOCK_MONOTONIC, 0, 1000, on_time,
					       h);
	return r < 0 ? r : 0;
}

int gp_http_begin(sd_event *loop, const struct gp_http_config *config, struct gp_http **http,
		  struct gp_error *err)
{
	struct gp_http *h = calloc(1, sizeof *h);
	int fd, r;

	if (!h)
		return gp_fail(err, -ENOMEM, "no memory for metrics");
	h->config = *config;
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		h->place[i].fd = -1;
	fd = listen_on(config->address, &h->port);
	r = fd < 0 ? fd : start(h, loop, fd);
	if (r) {
		gp_http_end(h);
		return gp_fail(err, r, "cannot serve metrics: %s%s", gp_error_name(r),
			       r == -EADDRINUSE ? "; another program listens there; choose "
						  "another port with 'metrics: listen'"
						: "");
	}
	*http = h;
	return 0;
}

void gp_http_end(struct gp_http *h)
{
	if (!h)
		return;
	sd_event_source_disable_unref(h->timer);
	sd_event_source_disable_unref(h->io);
	if (h->daemon)
		MHD_stop_daemon(h->daemon); /* also closes the socket */
	free(h->page);
	free(h);
}

unsigned gp_http_port(const struct gp_http *h)
{
	return h->port;
}
