/* SPDX-License-Identifier: Apache-2.0 */
/* Every packet is checked whole before any of it is done: sizes, ranges, and who may say it. One
 * that nobody can read ends the connection. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "sim/server/sim_server.h"

#define PACKETS 1024 /* of a controller, in one round: more do not fit into a socket */

static void refuse(struct server *s, struct client *c)
{
	s->wrong++;
	client_end(c);
}

/* ---- hello --------------------------------------------------------------------------------------
 */

static void send_welcome(struct client *c, const struct simgpu_welcome *w)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec data = {.iov_base = (void *)(uintptr_t)w, .iov_len = sizeof *w};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
	int fd[2];

	if (!w->status && c->role == SIMGPU_CONTROLS && c->device) {
		fd[0] = c->device->state_fd;
		fd[1] = c->news_fd;
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd),
		                                .cmsg_level = SOL_SOCKET,
		                                .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), fd, sizeof fd);
	}
	if (sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		client_end(c);
}

static int take_role(struct server *s, struct client *c, const struct simgpu_hello *hello,
                     struct gp_error *err)
{
	struct device *d = hello->device < s->ndevices ? &s->device[hello->device] : NULL;

	if (hello->version != SIMGPU_VERSION)
		return gp_fail(err, -EPROTO, "this simulated GPU speaks version %u, not %u",
		               SIMGPU_VERSION, hello->version);
	if (hello->role == SIMGPU_ASKS)
		return 0;
	if (hello->role > SIMGPU_CONTROLS)
		return gp_fail(err, -EINVAL, "there is no role %u", hello->role);
	if (!d)
		return gp_fail(err, -ENODEV, "there is no device %u: there are %u", hello->device,
		               s->ndevices);
	device_advance(d);
	return hello->role == SIMGPU_PROGRAM ? client_becomes_program(s, c, d, hello, err)
	                                     : client_becomes_controller(s, c, d, err);
}

static void take_hello(struct server *s, struct client *c, size_t size)
{
	const struct simgpu_hello *hello = &s->packet.hello;
	struct simgpu_welcome w = {
		.kind = SIMGPU_WELCOME, .version = SIMGPU_VERSION, .devices = s->ndevices};
	struct gp_error err = {0};

	if (size != sizeof *hello || hello->kind != SIMGPU_HELLO) {
		refuse(s, c);
		return;
	}
	w.status = take_role(s, c, hello, &err);
	snprintf(w.text, sizeof w.text, "%s", err.text);
	if (!w.status && c->role == SIMGPU_PROGRAM) {
		w.slot = c->slot;
		w.key = c->device->place[c->slot].key;
	}
	w.controller = c->number;
	c->is_known = true;
	if (c->device)
		device_publish(c->device); /* who knows that it is there can be seen, too */
	send_welcome(c, &w);
	if (w.status)
		client_end(c);
}

/* ---- a program ----------------------------------------------------------------------------------
 */

static void take_submit(struct server *s, struct client *c, size_t size)
{
	const struct simgpu_submit *m = &s->packet.submit;
	struct gp_sim_request request;
	int r;

	if (size != sizeof *m || m->kind != SIMGPU_SUBMIT) {
		refuse(s, c);
		return;
	}
	request = (struct gp_sim_request){.tag = m->tag,
	                                  .kernels = m->kernels,
	                                  .kernel_ns = m->kernel_ns,
	                                  .gap_ns = m->gap_ns};
	device_advance(c->device);
	r = gp_sim_submit(c->device->sim, c->slot, &request);
	if (r)
		client_send(
			c,
			&(struct simgpu_done){.kind = SIMGPU_DONE, .status = r, .tag = request.tag},
			sizeof(struct simgpu_done));
}

/* ---- a controller -------------------------------------------------------------------------------
 */

/* Whether this is still the context that was meant. */
static bool is_meant(const struct device *d, const struct simgpu_target *t)
{
	return t->slot < SIMGPU_CONTEXTS && d->place[t->slot].program &&
	       d->place[t->slot].key == t->key;
}

static bool control_is_valid(const struct simgpu_control *m, size_t size)
{
	return size >= SIMGPU_CONTROL_HEAD && m->kind >= SIMGPU_HOLD && m->kind <= SIMGPU_RESTORE &&
	       m->count && m->count <= SIMGPU_CONTEXTS && size == SIMGPU_CONTROL_BYTES(m->count);
}

static void take_control(struct server *s, struct client *c, size_t size)
{
	const struct simgpu_control *m = &s->packet.control;
	struct device *d = c->device;
	unsigned n = 0;

	if (!control_is_valid(m, size) || m->serial != c->serial + 1) {
		refuse(s, c);
		return;
	}
	device_advance(d);
	for (uint32_t i = 0; i < m->count; i++) {
		const struct simgpu_target *t = &m->target[i];

		if (!is_meant(d, t))
			d->has_news = true; /* it is gone, and whoever asked shall look */
		else if (m->kind == SIMGPU_RESTORE)
			device_restore(d, t->slot);
		else
			s->action[n++] =
				(struct gp_action){.handle = t->slot, .slice_us = t->slice_us};
	}
	device_act(d, (enum simgpu_kind)m->kind, s->action, n);
	c->serial = m->serial;
	c->is_answered = false;
}

/* ---- all ----------------------------------------------------------------------------------------
 */

void client_packet(struct server *s, struct client *c, size_t size)
{
	bool is_readable = size >= sizeof s->packet.kind && size <= sizeof s->packet;

	if (is_readable && !c->is_known)
		take_hello(s, c, size);
	else if (is_readable && c->role == SIMGPU_PROGRAM)
		take_submit(s, c, size);
	else if (is_readable && c->role == SIMGPU_CONTROLS)
		take_control(s, c, size);
	else
		refuse(s, c);
}

/*
 * Of a controller all that is there, and so before anybody who came after its death: whoever undoes
 * what it did must not be overtaken by what it had said. Of others one packet a round.
 */
void client_receive(struct server *s, struct client *c)
{
	unsigned packets = 0;

	while (!c->gone && packets++ < PACKETS) {
		ssize_t n = recv(c->fd, &s->packet, sizeof s->packet, MSG_DONTWAIT | MSG_TRUNC);

		if (n > 0)
			client_packet(s, c, (size_t)n);
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			client_end(c);
		if (n <= 0 || c->role != SIMGPU_CONTROLS)
			return;
	}
}
