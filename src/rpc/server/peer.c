/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end, as the kernel noted it. */
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

	/* The first call says how many there are; they do not change any more. */
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

/* Without SO_PEERPIDFD the pid may be another process's by now: at least the user must be right. */
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
	/* Still there afterwards: so this was about the process itself. Once and now, because later
	 * it may have ended and its pid be another's. */
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
