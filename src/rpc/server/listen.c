/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets: creation, limits on the number of clients, accept. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "rpc/server/internal.h"

#define BACKLOG          128
#define ACCEPTS_PER_TURN 4
#define RETRY_US         (200 * GP_NS_PER_MS / GP_NS_PER_US)

static int address_of(const char *path, struct sockaddr_un *address, struct gp_error *err)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof address->sun_path)
		return gp_fail(err, -ENAMETOOLONG,
			       "socket path %s is too long; it may have at most %zu bytes", path,
			       sizeof address->sun_path - 1);
	memcpy(address->sun_path, path, strlen(path) + 1);
	return 0;
}

/* Removes a leftover socket file; -EADDRINUSE if a server still uses it. */
static int remove_stale(const struct sockaddr_un *address, struct gp_error *err)
{
	const char *path = address->sun_path;
	struct stat s;
	int fd, r;

	if (lstat(path, &s))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(s.st_mode))
		return gp_fail(err, -EADDRINUSE,
			       "%s exists and is not a socket; remove it, or choose another path",
			       path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = connect(fd, (const struct sockaddr *)address, sizeof *address) ? -errno : 0;
	close(fd);
	if (r != -ECONNREFUSED) /* a full backlog also means that a server listens */
		return gp_fail(err, -EADDRINUSE, "another daemon answers at %s; stop it first",
			       path);
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

static int bind_at(const struct gp_rpc_listener *l, int fd, struct gp_error *err)
{
	const struct gp_rpc_socket *config = &l->config;
	struct sockaddr_un address;
	int r = address_of(config->path, &address, err);

	if (!r)
		r = remove_stale(&address, err);
	if (!r && bind(fd, (const struct sockaddr *)&address, sizeof address))
		r = -errno;
	if (r)
		return r;
	gp_rpc_refuse_files(fd);
	/* No client can connect before listen(2). */
	if ((config->gid != (gid_t)-1 && chown(config->path, (uid_t)-1, config->gid)) ||
	    chmod(config->path, config->mode) || listen(fd, BACKLOG)) {
		r = -errno;
		unlink(config->path);
	}
	return r;
}

static int make_socket(struct gp_rpc_listener *l, struct gp_error *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : bind_at(l, fd, err);

	if (!r) {
		l->fd = fd;
		snprintf(l->made, sizeof l->made, "%s", l->config.path);
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return gp_fail(err, r, "cannot listen at %s: %s", l->config.path, gp_error_name(r));
}

static uid_t account_of(const struct gp_rpc_server *server, uid_t uid)
{
	const struct gp_rpc_config *config = &server->config;

	return uid && config->account ? config->account(config->arg, uid) : uid;
}

static bool has_room(const struct gp_rpc_listener *l, uid_t uid, uid_t account)
{
	const struct gp_rpc_limits *limits = &l->config.limits;
	bool ours = !uid || uid == geteuid();
	unsigned same = 0;

	if (l->clients >= limits->clients - (ours ? 0 : limits->reserved))
		return false;
	for (const struct gp_rpc_conn *c = l->server->conns; uid && c; c = c->next)
		same += c->listener == l && c->account == account;
	return same < limits->per_user;
}

static void refuse(struct gp_rpc_listener *l, int fd, uid_t account)
{
	static const char line[] =
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32007,\"message\":"
		"\"too many clients; close some, or try again\",\"data\":{\"errno\":\"EUSERS\"}}}"
		"\n";

	l->server->counters.refused++;
	(void)!send(fd, line, sizeof line - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	gp_rpc_close_socket(l->server, fd, account);
}

static int on_retry(sd_event_source *source, uint64_t at_us, void *arg)
{
	struct gp_rpc_listener *l = arg;

	(void)source;
	(void)at_us;
	sd_event_source_set_enabled(l->io, SD_EVENT_ON);
	return 0;
}

/*
 * The usual cause is that no file descriptor is free. epoll would report the waiting clients again
 * and again.
 */
static void pause_listening(struct gp_rpc_listener *l, int code)
{
	gp_log(GP_LOG_WARN, "rpc.accept-failed", "error=%s", gp_error_name(code));
	sd_event_source_set_enabled(l->io, SD_EVENT_OFF);
	sd_event_source_set_time_relative(l->retry, RETRY_US);
	sd_event_source_set_enabled(l->retry, SD_EVENT_ONESHOT);
}

static int on_connect(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct gp_rpc_listener *l = arg;

	(void)source;
	(void)fd;
	(void)events;
	for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
		int client = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct ucred cred;
		socklen_t size = sizeof cred;
		uid_t account;

		if (client < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				pause_listening(l, -errno);
			break;
		}
		l->server->counters.accepted++;
		if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &cred, &size)) {
			refuse(l, client, (uid_t)-1);
			continue;
		}
		account = account_of(l->server, cred.uid);
		if (has_room(l, cred.uid, account))
			gp_rpc_conn_new(l, client, account);
		else
			refuse(l, client, account);
	}
	return 0;
}

static int option(int fd, int name)
{
	int value = 0;
	socklen_t size = sizeof value;

	return getsockopt(fd, SOL_SOCKET, name, &value, &size) ? -errno : value;
}

/* systemd passes blocking sockets. Only Unix sockets report the identity of the peer. */
static int adopt_socket(struct gp_rpc_listener *l, struct gp_error *err)
{
	l->fd = l->config.fd;
	if (option(l->fd, SO_DOMAIN) != AF_UNIX || option(l->fd, SO_TYPE) != SOCK_STREAM ||
	    option(l->fd, SO_ACCEPTCONN) != 1)
		return gp_fail(err, -EINVAL,
			       "file descriptor %d is not a listening Unix stream socket; check "
			       "ListenStream= of the socket unit",
			       l->fd);
	gp_rpc_refuse_files(l->fd);
	if (fcntl(l->fd, F_SETFL, O_NONBLOCK) || fcntl(l->fd, F_SETFD, FD_CLOEXEC))
		return gp_fail(err, -errno, "cannot configure socket %d: %s", l->fd,
			       gp_error_name(-errno));
	return 0;
}

int gp_rpc_listener_open(struct gp_rpc_listener *l, struct gp_error *err)
{
	sd_event *event = l->server->event;
	int r = l->config.path ? make_socket(l, err) : adopt_socket(l, err);

	if (r)
		return r;
	r = sd_event_add_io(event, &l->io, l->fd, EPOLLIN, on_connect, l);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &l->retry, CLOCK_MONOTONIC, 0, 0, on_retry,
					       l);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->retry, SD_EVENT_OFF);
	return r < 0 ? gp_fail(err, r, "cannot add a socket to the event loop: %s",
			       gp_error_name(r))
		     : 0;
}

/* Clients that were not accepted may have sent files, which close(2) would release. */
static void refuse_waiting(struct gp_rpc_listener *l)
{
	int client;

	shutdown(l->fd, SHUT_RD);
	while ((client = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		gp_rpc_close_socket(l->server, client, (uid_t)-1);
}

void gp_rpc_listener_close(struct gp_rpc_listener *l)
{
	l->io = sd_event_source_disable_unref(l->io);
	l->retry = sd_event_source_disable_unref(l->retry);
	if (*l->made) {
		unlink(l->made);
		refuse_waiting(l);
	}
	if (l->fd >= 0)
		close(l->fd);
}
