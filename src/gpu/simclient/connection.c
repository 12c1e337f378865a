/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/simclient/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/run_dir.h"

#define ANSWER_S 2

const char *gp_simgpu_path(char *out, size_t size)
{
	const char *path = secure_getenv("GPREEMPT_SIMGPU");
	char folder[GP_RUN_DIR_SIZE];
	int n;

	if (path && *path)
		n = snprintf(out, size, "%s", path);
	else
		n = snprintf(out, size, "%s/" GP_SIMGPU_SOCKET, gp_run_dir(folder, sizeof folder));
	if (n < 0 || (size_t)n >= size || n >= GP_SIMGPU_PATH_SIZE)
		*out = 0;
	return out;
}

static int connect_to(const char *path, int flags, struct gp_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = ANSWER_S};
	int fd, r;

	if (!*path || strlen(path) >= sizeof address.sun_path)
		return gp_fail(
			err, -ENAMETOOLONG,
			"the path of the simulated GPU's socket is too long; set a shorter one "
			"with GPREEMPT_SIMGPU");
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
	if (fd < 0)
		return gp_fail(err, -errno, "cannot make a socket: %s", gp_error_name(-errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	if (!connect(fd, (struct sockaddr *)&address, sizeof address))
		return fd;
	r = errno == ENOENT || errno == ECONNREFUSED ? -ENODEV : -errno;
	close(fd);
	if (r == -ENODEV)
		return gp_fail(err, r,
			       "there is no simulated GPU at %s: start one with gpreempt-simgpu",
			       path);
	return gp_fail(err, r, "cannot reach the simulated GPU at %s: %s", path, gp_error_name(r));
}

/* Takes the first two descriptors of the message and closes all others. */
static void take_files(struct msghdr *m, int fd[2])
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int file;

			memcpy(&file, CMSG_DATA(c) + at, sizeof file);
			if (n < 2)
				fd[n++] = file;
			else
				close(file);
		}
	}
}

static ssize_t receive(int s, struct gp_simgpu_welcome *w, int fd[2])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec data = {.iov_base = w, .iov_len = sizeof *w};
	struct msghdr m = {.msg_iov = &data,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof control};
	ssize_t n;

	do
		n = recvmsg(s, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	take_files(&m, fd);
	return m.msg_flags & MSG_TRUNC ? -EPROTO : n;
}

int gp_simgpu_ask(const char *path, const struct gp_simgpu_hello *hello, bool wait,
		  struct gp_error *err)
{
	int s = connect_to(path, wait ? 0 : SOCK_NONBLOCK, err), r;

	if (s < 0 || send(s, hello, sizeof *hello, MSG_NOSIGNAL) >= 0)
		return s;
	r = errno == EAGAIN ? -ETIMEDOUT : -errno;
	close(s);
	return gp_fail(err, r, "the simulated GPU at %s does not answer: %s", path,
		       gp_error_name(r));
}

static int take_welcome(int s, const char *path, struct gp_simgpu_welcome *w, int fd[2],
			struct gp_error *err)
{
	ssize_t n;

	*w = (struct gp_simgpu_welcome){0};
	n = receive(s, w, fd);
	if (n < 0)
		return gp_fail(err, n == -EAGAIN ? -ETIMEDOUT : (int)n,
			       "the simulated GPU at %s does not answer: %s", path,
			       gp_error_name(n == -EAGAIN ? -ETIMEDOUT : (int)n));
	if (n != sizeof *w || w->kind != GP_SIMGPU_WELCOME || w->version != GP_SIMGPU_VERSION ||
	    w->devices > GP_SIMGPU_DEVICES || w->status > 0)
		return gp_fail(err, -EPROTO,
			       "the server at %s is not a gpreempt-simgpu, or one of another "
			       "version; start the gpreempt-simgpu of this installation",
			       path);
	w->text[sizeof w->text - 1] = 0;
	if (w->status)
		return gp_fail(err, w->status, "%s", *w->text ? w->text : gp_error_name(w->status));
	return 0;
}

int gp_simgpu_welcomed(int s, const char *path, struct gp_simgpu_welcome *welcome, int fd[2],
		       struct gp_error *err)
{
	int got[2] = {-1, -1}, r = take_welcome(s, path, welcome, got, err);

	if (!r && fd && (got[0] < 0 || got[1] < 0))
		r = gp_fail(err, -EPROTO, "the simulated GPU at %s did not send its state", path);
	for (unsigned i = 0; i < 2; i++) {
		if (!r && fd)
			fd[i] = got[i];
		else if (got[i] >= 0)
			close(got[i]);
	}
	return r;
}

int gp_simgpu_connect(const char *path, const struct gp_simgpu_hello *hello,
		      struct gp_simgpu_welcome *welcome, int fd[2], struct gp_error *err)
{
	int s = gp_simgpu_ask(path, hello, true, err), r;

	if (s < 0)
		return s;
	r = gp_simgpu_welcomed(s, path, welcome, fd, err);
	if (!r)
		return s;
	close(s);
	return r;
}

int gp_simgpu_devices(const char *path, struct gp_error *err)
{
	struct gp_simgpu_hello hello = {
		.kind = GP_SIMGPU_HELLO, .version = GP_SIMGPU_VERSION, .role = GP_SIMGPU_ASKS};
	struct gp_simgpu_welcome welcome = {0};
	int s = gp_simgpu_connect(path, &hello, &welcome, NULL, err);

	if (s < 0)
		return s;
	close(s);
	return (int)welcome.devices;
}

/* The side of a program. */

int gp_simgpu_join(const char *path, struct gp_simgpu_hello *hello, struct gp_error *err)
{
	struct gp_simgpu_welcome welcome;

	hello->kind = GP_SIMGPU_HELLO;
	hello->version = GP_SIMGPU_VERSION;
	hello->role = GP_SIMGPU_PROGRAM;
	return gp_simgpu_connect(path, hello, &welcome, NULL, err);
}

static int lost_or(int code)
{
	return code == EAGAIN || code == EINTR ? -EAGAIN : -EIO;
}

int gp_simgpu_submit(int fd, uint64_t tag, uint32_t kernels, uint64_t kernel_ns, uint64_t gap_ns)
{
	struct gp_simgpu_submit m = {.kind = GP_SIMGPU_SUBMIT,
				     .kernels = kernels,
				     .tag = tag,
				     .kernel_ns = kernel_ns,
				     .gap_ns = gap_ns};

	return send(fd, &m, sizeof m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? lost_or(errno) : 0;
}

int gp_simgpu_take(int fd, struct gp_simgpu_done *done)
{
	ssize_t n = recv(fd, done, sizeof *done, MSG_DONTWAIT);

	if (n < 0)
		return lost_or(errno);
	return n == sizeof *done && done->kind == GP_SIMGPU_DONE ? 0 : -EIO;
}
