/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd/memory_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct amd_reader {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	/* Given up: when it comes back it is to be freed; left alone: it frees itself. */
	enum { IDLE, ASKED, GIVEN_UP, BACK, LEFT_ALONE } state;
	struct gp_amd_reading *reading;
	unsigned n, capacity;
	unsigned at; /* the one that is being looked at */
	uint64_t since_ns;
};

/* ---- one glance --------------------------------------------------------------------------------
 */

static bool read_pointer(int fd, uint64_t address, uint64_t *value)
{
	return pread(fd, value, sizeof *value, (off_t)address) == sizeof *value;
}

int gp_amd_open_memory(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Packets that were not taken, and how much was ever written. */
static bool read_queue(int fd, const struct gp_amd_pointers *p, uint64_t *pending,
                       uint64_t *written)
{
	uint64_t read_at;

	if (!read_pointer(fd, p->read_address, &read_at) ||
	    !read_pointer(fd, p->write_address, written))
		return false;
	*pending = (*written - read_at) & p->mask;
	return true;
}

uint64_t gp_amd_read_pending(int fd, const struct gp_amd_pointers *p)
{
	uint64_t pending, written;

	return read_queue(fd, p, &pending, &written) ? pending : UINT64_MAX;
}

static void read_queues(struct gp_amd_reading *g)
{
	g->known = g->n > 0;
	g->pending = g->written = 0;
	g->opened = g->mem_fd < 0;
	if (g->opened)
		g->mem_fd = gp_amd_open_memory(g->pid);
	for (unsigned i = 0; i < g->n && g->known; i++) {
		uint64_t pending = 0, written = 0;

		g->known = read_queue(g->mem_fd, &g->pointer[i], &pending, &written);
		g->pending += pending;
		g->written += written;
	}
}

/* A packet that waits is work, and so is one that came and was taken between two looks. Whether
 * one that was taken still runs cannot be seen in the pointers. */
static enum gp_amd_work find_work(const struct gp_amd_reading *g)
{
	int occupied;

	if (g->pending || (g->knows_written && g->written != g->written_before))
		return GP_AMD_WORK_SEEN;
	if (g->was_idle)
		return GP_AMD_WORK_NONE;
	occupied = g->has_occupancy ? gp_amd_occupancy(g->pid, g->gpu_id) : -1;
	return occupied < 0 ? GP_AMD_WORK_MAYBE : occupied ? GP_AMD_WORK_SEEN : GP_AMD_WORK_NONE;
}

static void look_at(struct gp_amd_reading *g)
{
	read_queues(g);
	if (g->known)
		g->work = find_work(g);
}

/* ---- the thread --------------------------------------------------------------------------------
 */

static void free_reader(struct amd_reader *r)
{
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r->reading);
	free(r);
}

static void close_opened(struct amd_reader *r)
{
	for (unsigned i = 0; i <= r->at; i++)
		if (r->reading[i].opened && r->reading[i].mem_fd >= 0)
			close(r->reading[i].mem_fd);
}

/* With the lock held, but not while it looks. False: given up. */
static bool look_at_all(struct amd_reader *r)
{
	for (r->at = 0; r->at < r->n; r->at++) {
		r->since_ns = gp_monotonic_ns();
		pthread_mutex_unlock(&r->lock);
		look_at(&r->reading[r->at]);
		pthread_mutex_lock(&r->lock);
		if (r->state != ASKED) {
			close_opened(r);
			return false;
		}
	}
	return true;
}

static void *read_on(void *arg)
{
	struct amd_reader *r = arg;
	bool left_alone;

	pthread_mutex_lock(&r->lock);
	while (r->state == IDLE || r->state == ASKED) {
		if (r->state == IDLE) {
			pthread_cond_wait(&r->changed, &r->lock);
			continue;
		}
		if (look_at_all(r))
			r->state = IDLE;
		pthread_cond_broadcast(&r->changed);
	}
	left_alone = r->state == LEFT_ALONE;
	r->state = BACK;
	pthread_mutex_unlock(&r->lock);
	if (left_alone)
		free_reader(r);
	return NULL;
}

static struct amd_reader *start_reader(void)
{
	struct amd_reader *r = calloc(1, sizeof *r);
	pthread_condattr_t attr;

	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&r->thread, NULL, read_on, r)) {
		free_reader(r);
		return NULL;
	}
	return r;
}

/* Frees one that has come back. */
static bool take_back(struct amd_reader *r)
{
	bool back;

	pthread_mutex_lock(&r->lock);
	back = r->state == BACK;
	pthread_mutex_unlock(&r->lock);
	if (!back)
		return false;
	pthread_join(r->thread, NULL);
	free_reader(r);
	return true;
}

/* ---- for the watch -----------------------------------------------------------------------------
 */

static void take_back_all(struct gp_amd_readers *readers)
{
	for (unsigned i = readers->nout; i-- > 0;)
		if (take_back(readers->out[i]))
			readers->out[i] = readers->out[--readers->nout];
}

struct gp_amd_reading *gp_amd_readers_room(struct gp_amd_readers *readers, unsigned n)
{
	struct amd_reader *r;
	struct gp_amd_reading *g;

	take_back_all(readers);
	if (!readers->reader && readers->nout < GP_AMD_READERS_MAX)
		readers->reader = start_reader();
	r = readers->reader;
	if (!r)
		return NULL;
	if (n > r->capacity) { /* it is idle: nobody reads there */
		g = realloc(r->reading, n * sizeof *g);
		if (!g)
			return NULL;
		r->reading = g;
		r->capacity = n;
	}
	return r->reading;
}

/* From when the reader began with it, if it has begun at all. */
static bool is_late(const struct amd_reader *r, uint64_t patience_ns)
{
	return r->since_ns && gp_monotonic_ns() >= r->since_ns + patience_ns;
}

int gp_amd_readers_run(struct gp_amd_readers *readers, unsigned n)
{
	uint64_t patience_ns = readers->patience_ns ? readers->patience_ns : GP_AMD_PATIENCE_NS;
	struct amd_reader *r = readers->reader;
	int late = -1;

	pthread_mutex_lock(&r->lock);
	r->n = n;
	r->at = 0;
	r->since_ns = 0;
	r->state = ASKED;
	pthread_cond_broadcast(&r->changed);
	while (r->state == ASKED) {
		struct timespec until = gp_timespec(gp_monotonic_ns() + patience_ns / 4);

		pthread_cond_timedwait(&r->changed, &r->lock, &until);
		if (r->state == ASKED && is_late(r, patience_ns)) {
			late = (int)r->at;
			r->state = GIVEN_UP;
		}
	}
	pthread_mutex_unlock(&r->lock);
	if (late >= 0) {
		readers->out[readers->nout++] = r;
		readers->reader = NULL;
	}
	return late;
}

/* Nobody waits for it. It may free itself as soon as it can have the lock. */
static void leave_alone(struct amd_reader *r)
{
	pthread_t thread = r->thread;
	bool back;

	pthread_mutex_lock(&r->lock);
	back = r->state == BACK;
	if (!back)
		r->state = LEFT_ALONE;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (back)
		take_back(r);
	else
		pthread_detach(thread);
}

void gp_amd_readers_end(struct gp_amd_readers *readers)
{
	for (unsigned i = 0; i < readers->nout; i++)
		leave_alone(readers->out[i]);
	if (readers->reader)
		leave_alone(readers->reader);
	*readers = (struct gp_amd_readers){0};
}
