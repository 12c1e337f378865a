/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives from clients and closes their sockets without ever releasing a file of a client.
 *
 * A client can attach files to its bytes (SCM_RIGHTS). The daemon uses none. The thread that
 * receives the bytes, or closes the socket with the bytes unread, releases the files, and that can
 * take for ever: a TCP socket with SO_LINGER waits for its peer, and a file in FUSE for its server.
 * Linux 6.16 has SO_PASSRIGHTS, by which the listener refuses files. On older kernels, and for
 * clients that connected before the option was set:
 *
 * - Bytes are peeked first. The kernel reports with MSG_CTRUNC that files are among them, and
 *   releases none. Bytes with files are not received, and the connection is cut off.
 * - Before a socket is closed it is shut down, so that nothing more can come, and emptied in the
 *   same way. If files are left, a child process keeps the socket until the daemon has closed it,
 *   and exits. An exiting process does not linger. Whatever hangs there hangs without the daemon.
 *   An account with PER_ACCOUNT children that hang gets another only for BATCH sockets at once; the
 *   sockets wait until then. The last children and places are kept for other accounts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
/* after those it needs */
#include <linux/sockios.h>

#include "base/clock.h"
#include "base/log.h"
#include "rpc/server/internal.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

#define DISCARD_SIZE 16384u
#define BATCH        64u /* sockets of one account for which a child is started at once */
#define PER_ACCOUNT  2u  /* children */
/* Places that only accounts with fewer than PER_ACCOUNT children can take. */
#define CHILDREN_KEPT 16u
#define SOCKETS_KEPT  (2 * BATCH)
#define ANY           ((uid_t)-1) /* also the account of a client that is not known */
#define BATCH_US      (100 * GP_NS_PER_MS / GP_NS_PER_US)

void gp_rpc_refuse_files(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int));
}

bool gp_rpc_files_refused(int fd)
{
	socklen_t size = sizeof(int);
	int value = 1;

	return !getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, &size) && !value;
}

ssize_t gp_rpc_receive(int fd, char *bytes, size_t size)
{
	struct iovec room = {.iov_base = bytes, .iov_len = size};
	struct msghdr head = {.msg_iov = &room, .msg_iovlen = 1};
	ssize_t n = recvmsg(fd, &head, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0 && head.msg_flags & MSG_CTRUNC)
		return -EBADMSG;
	if (n > 0) /* exactly the bytes that were peeked: what follows them may have files */
		n = recv(fd, bytes, (size_t)n, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

bool gp_rpc_has_files(int fd)
{
	struct iovec room = {0};
	struct msghdr head = {.msg_iov = &room, .msg_iovlen = 1};
	int unread = 0;
	bool has;

	if (ioctl(fd, SIOCINQ, &unread) || unread <= 0)
		return false;
	room = (struct iovec){.iov_base = malloc((size_t)unread), .iov_len = (size_t)unread};
	has = room.iov_base && recvmsg(fd, &head, MSG_PEEK | MSG_DONTWAIT) > 0 &&
	      head.msg_flags & MSG_CTRUNC;
	free(room.iov_base);
	return has;
}

/* Whether nothing is left that the close would release. */
static bool empty(int fd)
{
	char bytes[DISCARD_SIZE];
	int unread = 0;
	ssize_t n;

	do
		n = gp_rpc_receive(fd, bytes, sizeof bytes);
	while (n > 0);
	return n != -EBADMSG && !ioctl(fd, SIOCINQ, &unread) && !unread;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes all descriptors but those of `fd`, which is sorted. */
static void close_others(const int *fd, unsigned n)
{
	unsigned from = 0;

	for (unsigned i = 0; i < n; i++) {
		if ((unsigned)fd[i] > from)
			close_range(from, (unsigned)fd[i] - 1, 0);
		from = (unsigned)fd[i] + 1;
	}
	close_range(from, ~0u, 0);
}

static bool is_of(const struct gp_rpc_closing *s, uid_t account)
{
	return account == ANY || s->account == account;
}

/*
 * Until the pipe is closed the child keeps the sockets. Then it exits with them. It keeps none of
 * the daemon's other files: a child that hangs at its exit must not keep connections of other
 * clients, or the GPU memory of a target, alive.
 */
static pid_t start_child(const struct gp_rpc_closer *closer, uid_t account, const int pipe[2])
{
	int keep[GP_RPC_CLOSING_MAX + 1];
	unsigned n = 0;
	pid_t pid;
	char byte;

	for (unsigned i = 0; i < closer->n; i++)
		if (is_of(&closer->socket[i], account))
			keep[n++] = closer->socket[i].fd;
	keep[n++] = pipe[0];
	qsort(keep, n, sizeof *keep, by_number);
	pid = fork();
	if (pid)
		return pid;
	close_others(keep, n);
	(void)!read(pipe[0], &byte, 1);
	_exit(0);
}

static void reap(struct gp_rpc_closer *closer)
{
	for (unsigned i = 0; i < GP_RPC_CLOSERS; i++)
		if (closer->child[i].pid && waitpid(closer->child[i].pid, NULL, WNOHANG))
			closer->child[i].pid = 0;
}

static unsigned count_children(const struct gp_rpc_closer *closer, uid_t account)
{
	unsigned n = 0;

	for (unsigned i = 0; i < GP_RPC_CLOSERS; i++)
		n += closer->child[i].pid &&
		     (account == ANY || closer->child[i].account == account);
	return n;
}

static unsigned count_sockets(const struct gp_rpc_closer *closer, uid_t account)
{
	unsigned n = 0;

	for (unsigned i = 0; i < closer->n; i++)
		n += closer->socket[i].account == account;
	return n;
}

static bool may_start(const struct gp_rpc_closer *closer, uid_t account)
{
	unsigned children = count_children(closer, ANY);

	if (count_children(closer, account) < PER_ACCOUNT)
		return children < GP_RPC_CLOSERS;
	return count_sockets(closer, account) >= BATCH && children < GP_RPC_CLOSERS - CHILDREN_KEPT;
}

/* Closes the sockets of the account. After a failure they stay open. */
static void close_by_child(struct gp_rpc_closer *closer, uid_t account)
{
	unsigned slot = 0, kept = 0;
	int pipe[2];
	pid_t pid;

	if (pipe2(pipe, O_CLOEXEC))
		return;
	pid = start_child(closer, account, pipe);
	for (unsigned i = 0; pid > 0 && i < closer->n; i++)
		if (is_of(&closer->socket[i], account))
			close(closer->socket[i].fd);
		else
			closer->socket[kept++] = closer->socket[i];
	close(pipe[0]);
	close(pipe[1]);
	if (pid < 0)
		return;
	closer->n = kept;
	while (slot < GP_RPC_CLOSERS && closer->child[slot].pid)
		slot++;
	if (slot < GP_RPC_CLOSERS) { /* else the daemon ends */
		closer->child[slot].pid = pid;
		closer->child[slot].account = account;
	}
}

/* One child for each account that may have one. */
static void close_waiting(struct gp_rpc_closer *closer)
{
	for (unsigned i = 0; i < closer->n;) {
		uid_t account = closer->socket[i].account;
		unsigned before = closer->n;

		if (may_start(closer, account))
			close_by_child(closer, account);
		i = closer->n < before ? 0 : i + 1;
	}
}

static int on_time(sd_event_source *source, uint64_t at_us, void *arg)
{
	struct gp_rpc_closer *closer = arg;

	(void)at_us;
	reap(closer);
	close_waiting(closer);
	if (closer->n || count_children(closer, ANY)) {
		sd_event_source_set_time_relative(source, BATCH_US);
		sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	}
	return 0;
}

/* An account whose children hang does not take the last places. */
static bool has_room(const struct gp_rpc_closer *closer, uid_t account)
{
	bool hangs = count_children(closer, account) >= PER_ACCOUNT;

	return closer->n < GP_RPC_CLOSING_MAX - (hangs ? SOCKETS_KEPT : 0);
}

void gp_rpc_close_socket(struct gp_rpc_server *server, int fd, uid_t account)
{
	struct gp_rpc_closer *closer = &server->closer;

	shutdown(fd, SHUT_RDWR);
	if (empty(fd)) {
		close(fd);
		return;
	}
	server->counters.with_files++;
	if (!has_room(closer, account)) {
		gp_log(GP_LOG_WARN, "rpc.socket-leaked",
		       "fd=%d account=%u; no child process can be started", fd, account);
		return;
	}
	closer->socket[closer->n++] = (struct gp_rpc_closing){fd, account};
	if (count_sockets(closer, account) >= BATCH && may_start(closer, account))
		close_by_child(closer, account);
	sd_event_source_set_time_relative(closer->timer, BATCH_US);
	sd_event_source_set_enabled(closer->timer, SD_EVENT_ONESHOT);
}

int gp_rpc_closer_open(struct gp_rpc_server *server)
{
	struct gp_rpc_closer *closer = &server->closer;
	int r = sd_event_add_time_relative(server->event, &closer->timer, CLOCK_MONOTONIC, 0, 0,
					   on_time, closer);

	if (r >= 0)
		r = sd_event_source_set_enabled(closer->timer, SD_EVENT_OFF);
	return r < 0 ? r : 0;
}

void gp_rpc_closer_end(struct gp_rpc_server *server)
{
	struct gp_rpc_closer *closer = &server->closer;

	if (closer->n)
		close_by_child(closer, ANY);
	reap(closer);
	closer->timer = sd_event_source_disable_unref(closer->timer);
}
