/* SPDX-License-Identifier: Apache-2.0 */
/* Input from a client: bytes become lines. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "rpc/server/internal.h"

static void no_room(struct gp_rpc_conn *c, int why)
{
	char sentence[80] = "no memory";

	if (why == -EMSGSIZE)
		snprintf(sentence, sizeof sentence,
			 "the line is too long; a line may have at most %u bytes",
			 c->listener->config.limits.line);
	gp_rpc_conn_cut_off(c, why == -EMSGSIZE ? GP_RPC_INVALID_REQUEST : GP_RPC_INTERNAL, why,
			    sentence);
}

void gp_rpc_input_receive(struct gp_rpc_conn *c)
{
	size_t size;
	char *bytes;
	ssize_t n;
	int r = gp_lines_room(&c->lines, c->listener->config.limits.line, &bytes, &size);

	if (r) {
		no_room(c, r);
		return;
	}
	if (c->no_files) {
		n = recv(c->fd, bytes, size, MSG_DONTWAIT);
		n = n < 0 ? -errno : n;
	} else {
		n = gp_rpc_receive(c->fd, bytes, size);
	}
	if (n > 0) {
		gp_lines_added(&c->lines, (size_t)n);
	} else if (n == -EBADMSG) {
		gp_rpc_conn_cut_off(c, GP_RPC_INVALID_REQUEST, -EBADMSG,
				    "the daemon takes no files; name a process by its pid and "
				    "start_time");
	} else if (n != -EAGAIN && n != -EINTR) {
		c->hung |= n < 0; /* reset: the client closed without reading all its answers */
		c->eof = true;
	}
}

static bool is_blank(const char *line)
{
	return !line[strspn(line, " \t\r")];
}

void gp_rpc_input_line(struct gp_rpc_conn *c, const char *line, size_t length)
{
	gp_rpc_conn_charge(c, length);
	if (length != strlen(line) || !is_blank(line))
		gp_rpc_request_line(c, line, length);
}
