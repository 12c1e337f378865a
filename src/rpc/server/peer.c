/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of the client process, as the kernel recorded it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/process.h"
#include "rpc/server/internal.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

static int read_groups(struct gp_rpc_conn *c)
{
	socklen_t size = 0;

	/* The first call returns the size. The list does not change after connect(2). */
	if (!getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) || !size)
		return 0;
	if (errno != ERANGE)
		return -errno;
	c->groups = malloc(size);
	if (!c->groups)
		return -ENOMEM;
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, c->groups, &size))
		return -errno;
	c->peer.groups = c->groups;
	c->peer.ngroups = size / (unsigned)sizeof *c->groups;
	return 0;
}

/* Without SO_PEERPIDFD the pid may have been reused, so at least the user must match. */
static int open_pidfd(const struct gp_rpc_peer *peer)
{
	int fd = gp_pidfd_open(peer->pid);
	uid_t uid;

	if (fd >= 0 && (!gp_process_uid(peer->pid, &uid) || uid != peer->uid)) {
		close(fd);
		return -ESRCH;
	}
	return fd;
}

int gp_rpc_peer_read(struct gp_rpc_conn *c)
{
	struct gp_rpc_peer *peer = &c->peer;
	struct ucred cred;
	socklen_t size = sizeof cred;
	int fd = -1, r;

	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &size))
		return -errno;
	peer->uid = cred.uid;
	peer->gid = cred.gid;
	peer->pid = cred.pid;
	r = read_groups(c);
	if (r || peer->pid <= 0)
		return r;
	size = sizeof fd;
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size))
		fd = errno == ENOPROTOOPT ? open_pidfd(peer) : -1;
	if (fd < 0)
		return 0;
	/*
	 * The process still lives after these reads, so they describe it. They happen once, here,
	 * because the pid may be reused later.
	 */
	peer->start_time = gp_process_start_time(peer->pid);
	peer->same_pidns = gp_process_same_pidns(peer->pid, getpid());
	if (!peer->start_time || gp_pidfd_ended(fd)) {
		peer->start_time = 0;
		peer->same_pidns = false;
		close(fd);
		return 0;
	}
	peer->pidfd = fd;
	return 0;
}
