/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/connect.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/run_dir.h"
#include "rpc/stream.h"

#define SOCKET_NAME "gpreemptd.sock"

static bool is_set(const char *variable)
{
	const char *value = secure_getenv(variable);

	return value && *value;
}

const char *gp_daemon_connect_path(char *out, size_t size)
{
	char folder[GP_RUN_DIR_SIZE];

	if (is_set("GPREEMPT_SOCKET"))
		snprintf(out, size, "%s", secure_getenv("GPREEMPT_SOCKET"));
	else
		snprintf(out, size, "%s/" SOCKET_NAME, gp_run_dir(folder, sizeof folder));
	return out;
}

static int no_daemon(int code, const char *path, struct gp_error *err)
{
	switch (code) {
	case -ENOENT:
	case -ECONNREFUSED:
		return gp_fail(err, -ECONNREFUSED,
			       "no daemon answers at %s; start it with systemctl start gpreemptd, "
			       "or try it without a GPU: gpreemptd --gpu sim",
			       path);
	case -EAGAIN: return gp_stream_late(err); /* the listen queue is full */
	case -EACCES:
		return gp_fail(err, code,
			       "no permission to connect to the daemon at %s; check the mode and "
			       "group of the socket",
			       path);
	default: return gp_fail(err, code, "%s: %s", path, gp_error_name(code));
	}
}

static int connect_to(const char *path, int timeout_ms, struct gp_error *err)
{
	struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000L};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r;

	if (strlen(path) >= sizeof address.sun_path)
		return no_daemon(-ENAMETOOLONG, path, err);
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (timeout_ms ? 0 : SOCK_NONBLOCK), 0);
	if (fd < 0)
		return no_daemon(-errno, path, err);
	/* connect(2) blocks if the listen queue of a stopped daemon is full. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (!connect(fd, (const struct sockaddr *)&address, sizeof address))
		return fd;
	r = -errno;
	close(fd);
	return no_daemon(r, path, err);
}

/*
 * If neither daemon answers, the error is about the user's folder if that one is unsafe, else about
 * the system's socket.
 */
static int connect_own_or_system(const char *own, int timeout_ms, struct gp_error *err)
{
	struct gp_error why = {0};
	int r = gp_run_dir_check(&why), fd;

	if (!r)
		r = connect_to(own, timeout_ms, &why);
	/* A daemon of the user that hangs is an error, not a reason to try the other one. */
	if (r >= 0 || r == -ETIMEDOUT)
		return r < 0 ? gp_fail(err, r, "%s", why.text) : r;
	if (r == -EPERM) {
		fd = connect_to(GP_RUN_DIR_SYSTEM "/" SOCKET_NAME, timeout_ms, NULL);
		return fd < 0 ? gp_fail(err, r, "%s", why.text) : fd;
	}
	return connect_to(GP_RUN_DIR_SYSTEM "/" SOCKET_NAME, timeout_ms, err);
}

int gp_daemon_connect(const char *path, int timeout_ms, struct gp_error *err)
{
	char default_path[sizeof((struct sockaddr_un *)0)->sun_path + 1];

	if (path)
		return connect_to(path, timeout_ms, err);
	gp_daemon_connect_path(default_path, sizeof default_path);
	if (is_set("GPREEMPT_SOCKET") || is_set("GPREEMPT_RUN") || geteuid() == 0)
		return connect_to(default_path, timeout_ms, err);
	return connect_own_or_system(default_path, timeout_ms, err);
}
