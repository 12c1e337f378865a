/* SPDX-License-Identifier: Apache-2.0 */
/* A device: opening it, sending packets, and noticing the end of the server. */
#include "gpu/simclient/simclient_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu/simclient/simclient_backend.h"

void gp_simclient_free(struct gp_simclient_gpu *d)
{
	gp_simclient_state_unmap(d);
	if (d->fd >= 0)
		close(d->fd);
	if (d->event_fd >= 0)
		close(d->event_fd);
	free(d);
}

/* Stores the absolute path: a process that replays the undo record may have another folder. */
static int take_path(struct gp_simclient_gpu *d, const char *path)
{
	char *full = *path == '/' ? NULL : realpath(path, NULL);
	int n = snprintf(d->path, sizeof d->path, "%s", full ? full : path);

	free(full);
	return n < 0 || (size_t)n >= sizeof d->path ? -ENAMETOOLONG : 0;
}

int gp_simclient_open(const char *path, unsigned index, struct gp_simclient_gpu **gpu,
		      struct gp_error *err)
{
	struct gp_simgpu_hello hello = {.kind = GP_SIMGPU_HELLO,
					.version = GP_SIMGPU_VERSION,
					.role = GP_SIMGPU_CONTROLS,
					.device = index};
	struct gp_simgpu_welcome welcome;
	struct gp_simclient_gpu *d = calloc(1, sizeof *d);
	int fd[2] = {-1, -1}, r;

	if (!d)
		return gp_fail(err, -ENOMEM, "no memory");
	d->base.ops = &gp_simgpu_ops;
	d->index = index;
	d->fd = d->event_fd = -1;
	r = take_path(d, path);
	if (r) {
		free(d);
		return gp_fail(err, r, "the absolute path of %s is too long for a socket", path);
	}
	d->fd = gp_simgpu_connect(path, &hello, &welcome, fd, err);
	if (d->fd < 0) {
		r = d->fd;
		gp_simclient_free(d);
		return r;
	}
	d->event_fd = fd[1];
	d->controller = welcome.controller;
	r = welcome.controller < GP_SIMGPU_CONTROLLERS ? gp_simclient_state_map(d, fd[0]) : -EPROTO;
	close(fd[0]);
	if (r) {
		gp_simclient_free(d);
		return gp_fail(err, r, "the simulated GPU at %s has an invalid state", path);
	}
	*gpu = d;
	return 0;
}

bool gp_simclient_is_lost(struct gp_simclient_gpu *d)
{
	char byte;

	/* The server sends nothing on this socket: any data is treated like its end. */
	if (!d->lost && (recv(d->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
			 (errno != EAGAIN && errno != EINTR)))
		d->lost = true;
	return d->lost;
}

int gp_simclient_send(struct gp_simclient_gpu *d, enum gp_simgpu_kind kind, unsigned n, bool wait)
{
	if (d->lost)
		return -EIO;
	d->packet.kind = kind;
	d->packet.count = n;
	d->packet.serial = d->serial + 1;
	if (send(d->fd, &d->packet, GP_SIMGPU_CONTROL_BYTES(n),
		 MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return -EAGAIN;
		d->lost = true;
		return -EIO;
	}
	d->serial++;
	return 0;
}
