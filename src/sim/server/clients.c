/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and their packets. Every packet is checked completely (sizes, ranges, permission)
 * before any part of it is executed. An invalid packet ends the connection.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/utf8.h"
#include "sim/server/sim_server.h"

#define UNIDENTIFIED_MAX 64   /* clients that have not sent a hello */
#define PACKETS          1024 /* packets of a controller per pass; a socket holds no more */
#define ACCEPTS          16   /* new connections per pass; existing clients come first */

/* Connecting. */

/* Clients that connect and send no packet must not take all places. */
static void drop_oldest_unidentified(struct server *s)
{
	struct client *oldest = NULL;
	unsigned unidentified = 0;

	for (uint32_t i = 0; i < s->nclients; i++) {
		struct client *c = &s->client[i];

		if (c->fd < 0 || c->gone || c->is_known)
			continue;
		unidentified++;
		if (!oldest || c->since_ns < oldest->since_ns)
			oldest = c;
	}
	if (unidentified > UNIDENTIFIED_MAX)
		gp_sim_client_end(oldest);
}

struct client *gp_sim_client_add(struct server *s, int fd)
{
	struct ucred peer = {.pid = 0, .uid = (uid_t)-1};
	socklen_t size = sizeof peer;

	for (uint32_t i = 0; i < s->nclients; i++) {
		struct client *c = &s->client[i];

		if (c->fd >= 0)
			continue;
		*c = (struct client){.server = s,
				     .fd = fd,
				     .event_fd = -1,
				     .is_answered = true,
				     .since_ns = gp_monotonic_ns()};
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
			c->pid = peer.pid;
			c->uid = peer.uid;
			c->start_time = peer.pid > 0 ? gp_process_start_time(peer.pid) : 0;
		}
		drop_oldest_unidentified(s);
		return c;
	}
	return NULL;
}

/* If no descriptor is free, the spare one is used to accept and close the next connection.
 * Otherwise it would stay pending, and the server would wake up for it all the time. */
static void reject_one(struct server *s)
{
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	s->spare_fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void gp_sim_clients_accept(struct server *s)
{
	for (unsigned i = 0; i < ACCEPTS; i++) {
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct client *c = fd < 0 ? NULL : gp_sim_client_add(s, fd);
		struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE)
				reject_one(s);
			return;
		}
		if (!c)
			close(fd);
		else if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event))
			gp_sim_client_end(c);
	}
}

/* Roles. Both functions that give one return 0, or -errno with a message for the client. */

static bool has_context(const struct device *d, const struct client *c)
{
	for (uint32_t i = 0; i < GP_SIMGPU_CONTEXTS; i++) {
		const struct client *p = d->slots[i].program;

		if (p && p->pid == c->pid && p->start_time == c->start_time)
			return true;
	}
	return false;
}

static void take_name(char to[32], const char from[32], pid_t pid)
{
	char name[32];

	memcpy(name, from, sizeof name);
	name[sizeof name - 1] = 0;
	gp_utf8_clean(to, 32, name);
	if (!*to)
		gp_process_name(pid, to, 32);
}

static bool slice_is_possible(const struct device *d, uint32_t slice_us)
{
	const struct gp_gpu_info *info = &d->state->info;

	return !slice_us || (slice_us >= info->slice_min_us && slice_us <= info->slice_max_us);
}

static int become_program(struct server *s, struct client *c, struct device *d,
			  const struct gp_simgpu_hello *hello, struct gp_error *err)
{
	struct gp_sim_program program = {.slice_us = hello->slice_us,
					 .width_permille = hello->width_permille,
					 .wave_ns = hello->wave_ns};
	struct context_slot *p;
	int r;

	if (!c->start_time)
		return gp_fail(err, -ESRCH,
			       "process %d is not visible here; start it in the PID namespace of "
			       "gpreempt-simgpu",
			       c->pid);
	if (has_context(d, c))
		return gp_fail(err, -EBUSY, "process %d already has a context on device %u", c->pid,
			       d->number);
	if (!slice_is_possible(d, hello->slice_us))
		return gp_fail(err, -EINVAL, "%s cannot set a slice of %u us; it takes %u to %u us",
			       d->state->info.name, hello->slice_us, d->state->info.slice_min_us,
			       d->state->info.slice_max_us);
	take_name(program.name, hello->name, c->pid);
	r = gp_sim_join(d->sim, &program, &c->slot);
	if (r == -ENOSPC)
		return gp_fail(err, r, "device %u is full: it has %u contexts, the maximum",
			       d->number, d->programs);
	if (r)
		return gp_fail(err, r, "invalid width or wave length of the program: %s",
			       gp_error_name(r));
	p = &d->slots[c->slot];
	*p = (struct context_slot){
		.program = c,
		.key = s->next_key++,
		.memory = hello->memory,
		.own_slice_us = hello->slice_us ? hello->slice_us : d->state->info.slice_default_us,
	};
	memcpy(p->name, program.name, sizeof p->name);
	c->role = GP_SIMGPU_PROGRAM;
	c->device = d;
	d->counts.programs++;
	if (++d->programs > d->counts.most)
		d->counts.most = d->programs;
	return 0;
}

static int become_controller(struct server *s, struct client *c, struct device *d,
			     struct gp_error *err)
{
	uint32_t i = 0;

	if (c->uid != 0 && c->uid != s->uid)
		return gp_fail(err, -EPERM,
			       "only root and the user that started it (user %u) may control this "
			       "simulated GPU",
			       s->uid);
	while (i < GP_SIMGPU_CONTROLLERS && d->controller[i])
		i++;
	if (i == GP_SIMGPU_CONTROLLERS)
		return gp_fail(err, -EBUSY,
			       "device %u has %u controllers, the maximum; close one of them",
			       d->number, i);
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event_fd < 0)
		return gp_fail(err, -errno, "cannot create an eventfd for device %u: %s", d->number,
			       gp_error_name(-errno));
	c->role = GP_SIMGPU_CONTROLS;
	c->device = d;
	c->number = i;
	d->controller[i] = c;
	__atomic_store_n(&d->state->answered[i], 0, __ATOMIC_RELEASE);
	return 0;
}

/* Sending and closing. */

void gp_sim_client_send(struct client *c, const void *data, size_t size)
{
	if (!c->gone && send(c->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		gp_sim_client_end(c);
}

void gp_sim_client_end(struct client *c)
{
	c->gone = true;
	c->server->any_gone = true;
}

/* Contexts that a controller held stay held. Only a program with an undo record, or an explicit
 * request, releases them. */
void gp_sim_client_drop(struct client *c)
{
	struct device *d = c->device;

	if (d && c->role == GP_SIMGPU_PROGRAM) {
		gp_sim_device_advance(d);
		d->to_restore -= d->slots[c->slot].to_restore;
		d->slots[c->slot].to_restore = false;
		d->slots[c->slot].program = NULL;
		gp_sim_leave(d->sim, c->slot);
		d->programs--;
	} else if (d) {
		d->controller[c->number] = NULL;
	}
	if (c->event_fd >= 0)
		close(c->event_fd);
	close(c->fd);
	*c = (struct client){.fd = -1, .event_fd = -1};
}

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
	return hello->role == GP_SIMGPU_PROGRAM ? become_program(s, c, d, hello, err)
						: become_controller(s, c, d, err);
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
 * Reads all pending packets of a controller, but only one packet per pass of any other client. So
 * the last packets of a controller that died are executed before the packets of a process that
 * undoes the controller's work.
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
