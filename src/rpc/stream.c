/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/stream.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define LINE_MAX_BYTES (64u << 20) /* bounds the memory that an answer can use */

uint64_t gp_stream_deadline(int timeout_ms)
{
	uint64_t now_ns = gp_monotonic_ns();

	return timeout_ms < 0 ? GP_NEVER
			      : gp_time_add(now_ns, (uint64_t)(unsigned)timeout_ms * GP_NS_PER_MS);
}

/* 0 or -errno; -ETIMEDOUT at the deadline. A signal does not end the wait. */
static int wait_for(const struct gp_stream *stream, short events, uint64_t until_ns)
{
	struct pollfd p = {.fd = stream->fd, .events = events};
	int n;

	do {
		uint64_t now = gp_monotonic_ns();
		struct timespec left = gp_timespec(until_ns > now ? until_ns - now : 0);

		n = ppoll(&p, 1, until_ns == GP_NEVER ? NULL : &left, NULL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n ? 0 : -ETIMEDOUT;
}

static int connection_closed(struct gp_error *err)
{
	return gp_fail(err, -ECONNRESET, "the daemon has closed the connection");
}

int gp_stream_late(struct gp_error *err)
{
	return gp_fail(err, -ETIMEDOUT,
		       "the daemon does not answer; journalctl -u gpreemptd may show why");
}

int gp_stream_send(struct gp_stream *stream, const char *bytes, size_t length, uint64_t until_ns,
		   struct gp_error *err)
{
	while (length) {
		ssize_t n = send(stream->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			bytes += n;
			length -= (size_t)n;
		} else if (errno == EAGAIN) {
			if (wait_for(stream, POLLOUT, until_ns))
				return gp_stream_late(err);
		} else if (errno == EPIPE || errno == ECONNRESET) {
			return 0; /* the daemon may have sent its reason; it is read next */
		} else if (errno != EINTR) {
			return gp_fail(err, -errno, "cannot write to the daemon: %s",
				       gp_error_name(-errno));
		}
	}
	return 0;
}

int gp_stream_receive(struct gp_stream *stream, uint64_t until_ns, struct json_object **json,
		      struct gp_error *err)
{
	size_t length, size;
	char *line, *room;
	ssize_t n;
	int r;

	while (!(line = gp_lines_next(&stream->lines, &length))) {
		r = wait_for(stream, POLLIN, until_ns);
		if (r)
			return r == -ETIMEDOUT ? -EAGAIN
					       : gp_fail(err, r, "cannot wait for the daemon: %s",
							 gp_error_name(r));
		r = gp_lines_room(&stream->lines, LINE_MAX_BYTES, &room, &size);
		if (r)
			return gp_fail(
				err, r,
				"the daemon's answer is too long; this program accepts 64 MiB");
		n = recv(stream->fd, room, size, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n > 0)
			gp_lines_added(&stream->lines, (size_t)n);
		else if (!n || (errno != EAGAIN && errno != EINTR))
			return connection_closed(err);
	}
	r = gp_json_read(stream->tokener, line, length, json, NULL);
	if (!r && !json_object_is_type(*json, json_type_object)) {
		json_object_put(*json);
		r = -EBADMSG;
	}
	return r ? gp_fail(err, -EPROTO,
			   "the program at this socket is not gpreemptd; check GPREEMPT_SOCKET")
		 : 0;
}

void gp_stream_close(struct gp_stream *stream)
{
	close(stream->fd);
	gp_lines_free(&stream->lines);
	if (stream->tokener)
		json_tokener_free(stream->tokener);
}
