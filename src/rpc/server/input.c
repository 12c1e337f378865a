/* SPDX-License-Identifier: Apache-2.0 */
/* Input from a client: bytes and file descriptors become lines with their file descriptors. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/server/internal.h"

static void keep_passed(struct gp_rpc_conn *c, struct msghdr *head, size_t at)
{
	for (struct cmsghdr *m = CMSG_FIRSTHDR(head); m; m = CMSG_NXTHDR(head, m)) {
		size_t n = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fd[GP_RPC_FDS_MAX];

		if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(fd, CMSG_DATA(m), n * sizeof *fd);
		for (size_t i = 0; i < n; i++) {
			if (c->npassed < 2 * GP_RPC_FDS_MAX) {
				c->passed[c->npassed++] = (struct gp_rpc_passed_fd){fd[i], at};
				continue;
			}
			close(fd[i]);
			head->msg_flags |= MSG_CTRUNC;
		}
	}
	if (head->msg_flags & MSG_CTRUNC) {
		c->too_many_fds = true;
		c->too_many_fds_at = at;
	}
}

/*
 * recvmsg returns file descriptors with the last byte of their message: the kernel does not
 * continue to later bytes. It closes those for which there is no room.
 */
void gp_rpc_input_receive(struct gp_rpc_conn *c)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(GP_RPC_FDS_MAX * sizeof(int))];
	} control;
	struct iovec room = {0};
	struct msghdr head = {.msg_iov = &room,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof control.bytes};
	char *bytes;
	ssize_t n;
	int r = gp_lines_room(&c->lines, c->listener->config.limits.line, &bytes, &room.iov_len);

	if (r) {
		char sentence[80] = "no memory";

		if (r == -EMSGSIZE)
			snprintf(sentence, sizeof sentence,
				 "the line is too long; a line may have at most %u bytes",
				 c->listener->config.limits.line);
		gp_rpc_conn_cut_off(c, r == -EMSGSIZE ? GP_RPC_INVALID_REQUEST : GP_RPC_INTERNAL, r,
				    sentence);
		return;
	}
	room.iov_base = bytes;
	n = recvmsg(c->fd, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return;
		c->hung = true; /* reset: the client closed without reading all its answers */
	}
	if (n <= 0) {
		c->eof = true;
		return;
	}
	gp_lines_added(&c->lines, (size_t)n);
	keep_passed(c, &head, gp_lines_waiting(&c->lines) - 1);
}

/* The file descriptors of the next line, which has `length` bytes; -1: more than allowed. */
static int take_passed(struct gp_rpc_conn *c, size_t length, int fd[GP_RPC_FDS_MAX])
{
	bool over = c->too_many_fds && c->too_many_fds_at <= length;
	unsigned n = 0, kept = 0;

	for (unsigned i = 0; i < c->npassed; i++) {
		if (c->passed[i].at > length) {
			c->passed[kept] = c->passed[i];
			c->passed[kept++].at -= length + 1;
		} else if (n < GP_RPC_FDS_MAX) {
			fd[n++] = c->passed[i].fd;
		} else {
			close(c->passed[i].fd);
			over = true;
		}
	}
	c->npassed = kept;
	if (c->too_many_fds && !over)
		c->too_many_fds_at -= length + 1;
	else
		c->too_many_fds = false;
	if (!over)
		return (int)n;
	while (n)
		close(fd[--n]);
	return -1;
}

static bool is_blank(const char *line)
{
	return !line[strspn(line, " \t\r")];
}

void gp_rpc_input_line(struct gp_rpc_conn *c, const char *line, size_t length)
{
	int fd[GP_RPC_FDS_MAX];
	int n = take_passed(c, length, fd);

	gp_rpc_conn_charge(c, length);
	if (n < 0)
		gp_rpc_request_refused(c, GP_RPC_INVALID_REQUEST, -EMFILE,
				       "too many file descriptors; a line may carry at most 4");
	else if (length == strlen(line) && is_blank(line))
		while (n > 0)
			close(fd[--n]);
	else
		gp_rpc_request_line(c, line, length, fd, (unsigned)n);
}
