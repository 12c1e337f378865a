/* SPDX-License-Identifier: Apache-2.0 */
/* Every packet is checked completely (sizes, ranges, permission) before any part of it is executed.
 * An invalid packet ends the connection. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "sim/server/sim_server.h"

#define PACKETS 1024 /* packets of a controller per pass; a socket holds no more */

static void refuse(struct server *s, struct client *c)
{
	s->invalid++;
	gp_sim_client_end(c);
}

/* Hello. */

static void send_welcome(struct client *c, const struct gp_simgpu_welcome *w)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec data = {.iov_base = (void *)(uintptr_t)w, .iov_len = sizeof *w};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
	int fd[2];

	if (!w->status && c->role == GP_SIMGPU_CONTROLS && c->device) {
		fd[0] = c->device->state_fd;
		fd[1] = c->event_fd;
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd),
						.cmsg_level = SOL_SOCKET,
						.cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), fd, sizeof fd);
	}
	if (sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		gp_sim_client_end(c);
}

static int take_role(struct server *s, struct client *c, const struct gp_simgpu_hello *hello,
		     struct gp_error *err)
{
	struct device *d = hello->device < s->ndevices ? &s->device[hello->device] : NULL;

	if (hello->version != GP_SIMGPU_VERSION)
		return gp_fail(err, -EPROTO,
			       "this simulated GPU uses protocol version %u, not %u; use the same "
			       "release of both",
			       GP_SIMGPU_VERSION, hello->version);
	if (hello->role == GP_SIMGPU_ASKS)
		return 0;
	if (hello->role > GP_SIMGPU_CONTROLS)
		return gp_fail(err, -EINVAL, "invalid role %u in the hello packet", hello->role);
	if (!d)
		return gp_fail(err, -ENODEV, "there is no device %u; this simulated GPU has %u",
			       hello->device, s->ndevices);
	gp_sim_device_advance(d);
	return hello->role == GP_SIMGPU_PROGRAM ? gp_sim_client_becomes_program(s, c, d, hello, err)
						: gp_sim_client_becomes_controller(s, c, d, err);
}

static void take_hello(struct server *s, struct client *c, size_t size)
{
	const struct gp_simgpu_hello *hello = &s->packet.hello;
	struct gp_simgpu_welcome w = {
		.kind = GP_SIMGPU_WELCOME, .version = GP_SIMGPU_VERSION, .devices = s->ndevices};
	struct gp_error err = {0};

	if (size != sizeof *hello || hello->kind != GP_SIMGPU_HELLO) {
		refuse(s, c);
		return;
	}
	w.status = take_role(s, c, hello, &err);
	snprintf(w.text, sizeof w.text, "%s", err.text);
	if (!w.status && c->role == GP_SIMGPU_PROGRAM) {
		w.slot = c->slot;
		w.key = c->device->slots[c->slot].key;
	}
	w.controller = c->number;
	c->is_known = true;
	if (c->device)
		gp_sim_device_publish(c->device); /* the context must be visible before its program
						     knows that it exists */
	send_welcome(c, &w);
	if (w.status)
		gp_sim_client_end(c);
}

/* Programs. */

static void take_submit(struct server *s, struct client *c, size_t size)
{
	const struct gp_simgpu_submit *m = &s->packet.submit;
	struct gp_sim_request request;
	int r;

	if (size != sizeof *m || m->kind != GP_SIMGPU_SUBMIT) {
		refuse(s, c);
		return;
	}
	request = (struct gp_sim_request){.tag = m->tag,
					  .kernels = m->kernels,
					  .kernel_ns = m->kernel_ns,
					  .gap_ns = m->gap_ns};
	gp_sim_device_advance(c->device);
	r = gp_sim_submit(c->device->sim, c->slot, &request);
	if (r)
		gp_sim_client_send(c,
				   &(struct gp_simgpu_done){
					   .kind = GP_SIMGPU_DONE, .status = r, .tag = request.tag},
				   sizeof(struct gp_simgpu_done));
}

/* Controllers. */

/* Whether the slot still has the context that the packet refers to. */
static bool is_current(const struct device *d, const struct gp_simgpu_target *t)
{
	return t->slot < GP_SIMGPU_CONTEXTS && d->slots[t->slot].program &&
	       d->slots[t->slot].key == t->key;
}

static bool control_is_valid(const struct gp_simgpu_control *m, size_t size)
{
	return size >= GP_SIMGPU_CONTROL_HEAD && m->kind >= GP_SIMGPU_HOLD &&
	       m->kind <= GP_SIMGPU_RESTORE && m->count && m->count <= GP_SIMGPU_CONTEXTS &&
	       size == GP_SIMGPU_CONTROL_BYTES(m->count);
}

static void take_control(struct server *s, struct client *c, size_t size)
{
	const struct gp_simgpu_control *m = &s->packet.control;
	struct device *d = c->device;
	unsigned n = 0;

	if (!control_is_valid(m, size) || m->serial != c->serial + 1) {
		refuse(s, c);
		return;
	}
	gp_sim_device_advance(d);
	for (uint32_t i = 0; i < m->count; i++) {
		const struct gp_simgpu_target *t = &m->target[i];

		if (!is_current(d, t))
			d->wake_controllers = true; /* the context is gone, and the controller must
					       observe that */
		else if (m->kind == GP_SIMGPU_RESTORE)
			gp_sim_device_restore(d, t->slot);
		else
			s->action[n++] =
				(struct gp_action){.handle = t->slot, .slice_us = t->slice_us};
	}
	gp_sim_device_act(d, (enum gp_simgpu_kind)m->kind, s->action, n);
	c->serial = m->serial;
	c->is_answered = false;
}

/* Dispatch. */

void gp_sim_client_packet(struct server *s, struct client *c, size_t size)
{
	bool is_readable = size >= sizeof s->packet.kind && size <= sizeof s->packet;

	if (is_readable && !c->is_known)
		take_hello(s, c, size);
	else if (is_readable && c->role == GP_SIMGPU_PROGRAM)
		take_submit(s, c, size);
	else if (is_readable && c->role == GP_SIMGPU_CONTROLS)
		take_control(s, c, size);
	else
		refuse(s, c);
}

/*
 * Reads all pending packets of a controller, but only one per pass of other clients. So the last
 * packets of a controller that died are executed before those of a process that undoes its work.
 */
void gp_sim_client_receive(struct server *s, struct client *c)
{
	unsigned packets = 0;

	while (!c->gone && packets++ < PACKETS) {
		ssize_t n = recv(c->fd, &s->packet, sizeof s->packet, MSG_DONTWAIT | MSG_TRUNC);

		if (n > 0)
			gp_sim_client_packet(s, c, (size_t)n);
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			gp_sim_client_end(c);
		if (n <= 0 || c->role != GP_SIMGPU_CONTROLS)
			return;
	}
}
