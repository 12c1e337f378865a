/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device: opening it, sending packets, noticing the end of the server, and reading the mapped
 * state. The state belongs to another process, which may die during a change or write invalid
 * values. Each word is read once, and each value is checked before use.
 */
#include "gpu/simclient/simclient_device.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 100 /* a slot that changes this often is invalid */

static uint32_t at_most(uint32_t value, uint32_t most)
{
	return value < most ? value : most;
}

static void take_info(struct gp_simclient_gpu *d)
{
	const uint32_t caps = GP_CAP_HOLD | GP_CAP_SLICE | GP_CAP_ACTIVITY | GP_CAP_EVENTS;
	struct gp_gpu_info info;

	memcpy(&info, &d->state->info, sizeof info);
	info.name[sizeof info.name - 1] = 0;
	info.caps &= caps;
	info.max_held = info.caps & GP_CAP_HOLD ? at_most(info.max_held, GP_SIMGPU_CONTEXTS) : 0;
	if (!info.slice_min_us || info.slice_min_us > info.slice_max_us)
		info.caps &= ~(uint32_t)GP_CAP_SLICE;
	if (!(info.caps & GP_CAP_SLICE))
		info.slice_min_us = info.slice_max_us = 0;
	d->base.info = info;
}

/* The file must be sealed: reading beyond the end of a file that shrank raises SIGBUS. */
static int check_file(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat s;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &s))
		return -EPROTO;
	return s.st_size == (off_t)sizeof(struct gp_simgpu_state) ? 0 : -EPROTO;
}

/* Validates and maps the state, and fills in `base.info`. */
static int map_state(struct gp_simclient_gpu *d, int fd)
{
	int r = check_file(fd);
	void *p;

	if (r)
		return r;
	p = mmap(NULL, sizeof *d->state, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	d->state = p;
	if (d->state->magic != GP_SIMGPU_MAGIC || d->state->version != GP_SIMGPU_VERSION ||
	    d->state->size != sizeof *d->state)
		return -EPROTO;
	take_info(d);
	return 0;
}

static void unmap_state(struct gp_simclient_gpu *d)
{
	if (d->state)
		munmap((void *)(uintptr_t)d->state, sizeof *d->state);
	d->state = NULL;
}

void gp_simclient_free(struct gp_simclient_gpu *d)
{
	unmap_state(d);
	if (d->fd >= 0)
		close(d->fd);
	if (d->event_fd >= 0)
		close(d->event_fd);
	if (d->asked_fd >= 0)
		close(d->asked_fd);
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

static struct gp_simgpu_hello hello_of(unsigned index)
{
	return (struct gp_simgpu_hello){.kind = GP_SIMGPU_HELLO,
					.version = GP_SIMGPU_VERSION,
					.role = GP_SIMGPU_CONTROLS,
					.device = index};
}

static struct gp_simclient_gpu *make_device(unsigned index)
{
	struct gp_simclient_gpu *d = calloc(1, sizeof *d);

	if (!d)
		return NULL;
	d->base.ops = &gp_simgpu_ops;
	d->index = index;
	d->fd = d->event_fd = d->asked_fd = -1;
	return d;
}

/* Uses the files of a welcome. d->fd is the socket. */
static int use(struct gp_simclient_gpu *d, const struct gp_simgpu_welcome *welcome, const int fd[2],
	       struct gp_error *err)
{
	int r;

	d->event_fd = fd[1];
	d->controller = welcome->controller;
	r = welcome->controller < GP_SIMGPU_CONTROLLERS ? map_state(d, fd[0]) : -EPROTO;
	close(fd[0]);
	return r ? gp_fail(err, r, "the simulated GPU at %s has an invalid state", d->path) : 0;
}

int gp_simclient_open(const char *path, unsigned index, struct gp_simclient_gpu **gpu,
		      struct gp_error *err)
{
	struct gp_simgpu_hello hello = hello_of(index);
	struct gp_simgpu_welcome welcome;
	struct gp_simclient_gpu *d = make_device(index);
	int fd[2] = {-1, -1}, r;

	if (!d)
		return gp_fail(err, -ENOMEM, "no memory");
	r = take_path(d, path);
	if (r) {
		free(d);
		return gp_fail(err, r, "the absolute path of %s is too long for a socket", path);
	}
	d->fd = gp_simgpu_connect(path, &hello, &welcome, fd, err);
	r = d->fd < 0 ? d->fd : use(d, &welcome, fd, err);
	if (r)
		gp_simclient_free(d);
	else
		*gpu = d;
	return r;
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

static bool is_same_device(const struct gp_gpu_info *a, const struct gp_gpu_info *b)
{
	return !strcmp(a->name, b->name) && a->caps == b->caps && a->max_held == b->max_held &&
	       a->slice_default_us == b->slice_default_us && a->slice_min_us == b->slice_min_us &&
	       a->slice_max_us == b->slice_max_us && a->hold_cost_ns == b->hold_cost_ns &&
	       a->slice_cost_ns == b->slice_cost_ns && a->release_cost_ns == b->release_cost_ns &&
	       a->switch_cost_ns == b->switch_cost_ns &&
	       a->sample_period_ns == b->sample_period_ns && a->notice_ns == b->notice_ns;
}

/* Replaces everything but `base` by what `new` has, and frees `new`. Other threads read `base`
 * without a lock, so it must stay as it is: another device is refused. */
static int replace(struct gp_simclient_gpu *d, struct gp_simclient_gpu *new)
{
	size_t at = sizeof d->base;

	if (!is_same_device(&d->base.info, &new->base.info)) {
		gp_simclient_free(new);
		return -EXDEV;
	}
	if (dup3(new->event_fd, d->event_fd, O_CLOEXEC) < 0) {
		int r = -errno;

		gp_simclient_free(new);
		return r;
	}
	close(new->event_fd);
	close(d->fd);
	unmap_state(d);
	new->event_fd = d->event_fd;
	memcpy((char *)d + at, (const char *)new + at, sizeof *d - at);
	free(new);
	return 0;
}

/* The new server has answered: `s` is the socket. */
static int begin_anew(struct gp_simclient_gpu *d, int s, const struct gp_simgpu_welcome *welcome,
		      const int fd[2])
{
	struct gp_simclient_gpu *new = make_device(d->index);
	int r;

	if (!new) {
		close(s);
		close(fd[0]);
		close(fd[1]);
		return -ENOMEM;
	}
	memcpy(new->path, d->path, sizeof new->path);
	new->fd = s;
	fcntl(s, F_SETFL, 0); /* some packets wait for room */
	r = use(new, welcome, fd, NULL);
	if (!r)
		return replace(d, new);
	gp_simclient_free(new);
	return r;
}

int gp_simclient_reopen(struct gp_simclient_gpu *d, bool anew)
{
	struct gp_simgpu_hello hello = hello_of(d->index);
	struct gp_simgpu_welcome welcome;
	int fd[2] = {-1, -1}, s, r;

	if (anew && d->asked_fd >= 0) {
		close(d->asked_fd);
		d->asked_fd = -1;
	}
	if (d->asked_fd < 0)
		d->asked_fd = gp_simgpu_ask(d->path, &hello, false, NULL);
	s = d->asked_fd;
	if (s < 0)
		return s;
	r = gp_simgpu_welcomed(s, d->path, &welcome, fd, NULL);
	if (r == -ETIMEDOUT)
		return r;
	d->asked_fd = -1;
	if (!r)
		return begin_anew(d, s, &welcome, fd);
	close(s);
	return r;
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

/* The mapped state. */

uint64_t gp_simclient_answered(const struct gp_simclient_gpu *d)
{
	return __atomic_load_n(&d->state->answered[d->controller], __ATOMIC_ACQUIRE);
}

uint32_t gp_simclient_tasks_seen(const struct gp_simclient_gpu *d)
{
	uint64_t used = __atomic_load_n(&d->state->used, __ATOMIC_ACQUIRE);

	return used < GP_SIMGPU_CONTEXTS ? (uint32_t)used : GP_SIMGPU_CONTEXTS;
}

static int32_t valid_code(int32_t code)
{
	return code > 0 || code < -4095 ? -EIO : code;
}

static void sanitize(struct gp_simgpu_context *c)
{
	const uint32_t known = GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING | GP_KNOWN_PENDING |
			       GP_KNOWN_ACTIVE_SINCE | GP_KNOWN_RUN | GP_KNOWN_HELD |
			       GP_KNOWN_SLICE;

	c->name[sizeof c->name - 1] = 0;
	c->known &= known;
	if (c->run_source != GP_RUN_MEASURED)
		c->known &= ~(uint32_t)GP_KNOWN_RUN;
	c->active = c->active != 0;
	c->running = c->running != 0;
	c->held = c->held != 0;
	c->under_way &= GP_UNDER_WAY_HOLD | GP_UNDER_WAY_SLICE;
	c->hold_failed = valid_code(c->hold_failed);
	c->slice_failed = valid_code(c->slice_failed);
}

/* The current key in a slot; 0: the slot is free. */
static uint64_t key_at(const struct gp_sim_slot *place)
{
	uint64_t sequence = __atomic_load_n(&place->sequence, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&place->copy[sequence % 2].key, __ATOMIC_RELAXED);
}

static bool copy(const struct gp_sim_slot *place, struct gp_simgpu_context *to)
{
	uint64_t before = __atomic_load_n(&place->sequence, __ATOMIC_ACQUIRE);
	const uint64_t *source = (const uint64_t *)&place->copy[before % 2];
	uint64_t *target = (uint64_t *)to;

	for (size_t i = 0; i < sizeof *to / sizeof *target; i++)
		target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&place->sequence, __ATOMIC_RELAXED) == before;
}

bool gp_simclient_read(const struct gp_simclient_gpu *d, uint32_t slot,
		       struct gp_simgpu_context *out)
{
	const struct gp_sim_slot *place = &d->state->place[slot];

	if (!key_at(place))
		return false;
	for (unsigned i = 0; i < TRIES; i++) {
		if (!copy(place, out))
			continue;
		sanitize(out);
		return out->key && out->pid > 0;
	}
	return false;
}

uint32_t gp_simclient_find_key(const struct gp_simclient_gpu *d, uint64_t key,
			       struct gp_simgpu_context *out)
{
	uint32_t n = gp_simclient_tasks_seen(d);

	for (uint32_t i = 0; i < n; i++)
		if (key_at(&d->state->place[i]) == key && gp_simclient_read(d, i, out) &&
		    out->key == key)
			return i;
	return GP_SIMGPU_CONTEXTS;
}

uint32_t gp_simclient_find_process(const struct gp_simclient_gpu *d, pid_t pid, uint64_t start_time,
				   struct gp_simgpu_context *out)
{
	uint32_t n = gp_simclient_tasks_seen(d);

	for (uint32_t i = 0; i < n; i++)
		if (gp_simclient_read(d, i, out) && out->pid == pid &&
		    out->start_time == start_time)
			return i;
	return GP_SIMGPU_CONTEXTS;
}

uint64_t gp_simclient_run_ns(const struct gp_simgpu_context *c, uint64_t now_ns, uint64_t *at_ns)
{
	*at_ns = c->run_at_ns < now_ns ? c->run_at_ns : now_ns;
	if (!(c->known & GP_KNOWN_RUNNING))
		return c->run_ns;
	/* If the running tasks are known, the state is valid until the next change. */
	*at_ns = c->running && c->runs_until_ns < now_ns ? c->runs_until_ns : now_ns;
	return c->run_ns + (c->running && *at_ns > c->run_at_ns ? *at_ns - c->run_at_ns : 0);
}

void gp_simclient_describe(const struct gp_simgpu_context *c, struct gp_seen *seen)
{
	*seen = (struct gp_seen){.key = c->key,
				 .pid = c->pid,
				 .queue = GP_QUEUE_ALL,
				 .start_time = c->start_time,
				 .memory = c->memory};
	memcpy(seen->name, c->name, sizeof seen->name);
}
