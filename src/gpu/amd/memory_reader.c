/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd/memory_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct gp_amd_reader {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	/* READER_ABANDONED: the owner frees it when it returns. READER_DETACHED: it frees itself.
	 */
	enum {
		READER_IDLE,
		READER_READING,
		READER_ABANDONED,
		READER_RETURNED,
		READER_DETACHED
	} state;
	struct gp_amd_reading *reading;
	unsigned n, capacity;
	unsigned at; /* index of the current reading */
	uint64_t since_ns;
	uid_t account; /* of an abandoned reader: the account that blocked it */
};

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

/* Number of packets that were not taken, and the two pointers. */
static bool read_queue(int fd, const struct gp_amd_pointers *p, uint64_t *pending,
		       uint64_t *written, uint64_t *taken)
{
	if (!read_pointer(fd, p->read_address, taken) ||
	    !read_pointer(fd, p->write_address, written))
		return false;
	*pending = (*written - *taken) & p->mask;
	return true;
}

uint64_t gp_amd_read_pending(int fd, const struct gp_amd_pointers *p)
{
	uint64_t pending, written, taken;

	return read_queue(fd, p, &pending, &written, &taken) ? pending : UINT64_MAX;
}

static void read_queues(struct gp_amd_reading *g)
{
	g->known = g->n > 0;
	g->pending = g->written = g->taken = 0;
	g->opened = g->mem_fd < 0;
	if (g->opened)
		g->mem_fd = gp_amd_open_memory(g->pid);
	for (unsigned i = 0; i < g->n && g->known; i++) {
		uint64_t pending = 0, written = 0, taken = 0;

		g->known = read_queue(g->mem_fd, &g->pointer[i], &pending, &written, &taken);
		g->pointer[i].taken = taken;
		g->pointer[i].waits = pending != 0;
		g->pending += pending;
		g->written += written;
		g->taken += taken;
	}
}

/* A waiting packet is work, and so is a packet that was added and taken since the last reading. The
 * pointers do not show whether a packet that was taken still runs. */
static enum gp_amd_work find_work(struct gp_amd_reading *g)
{
	g->occupied =
		g->wants_occupancy && g->has_occupancy ? gp_amd_occupancy(g->pid, g->gpu_id) : -1;
	if (g->pending || (g->knows_written && g->written != g->written_before))
		return GP_AMD_WORK_SEEN;
	if (g->was_idle)
		return GP_AMD_WORK_NONE;
	if (g->occupied < 0 && g->has_occupancy)
		g->occupied = gp_amd_occupancy(g->pid, g->gpu_id);
	return g->occupied < 0 ? GP_AMD_WORK_MAYBE
	       : g->occupied   ? GP_AMD_WORK_SEEN
			       : GP_AMD_WORK_NONE;
}

/* Packets that wait beside idle compute units, before and after the occupancy was read. */
static bool is_stalled(const struct gp_amd_reading *g)
{
	struct gp_amd_reading again = *g;

	if (!g->pending || g->occupied)
		return false;
	read_queues(&again);
	return again.known && again.pending && again.taken == g->taken;
}

static void read_task(struct gp_amd_reading *g)
{
	read_queues(g);
	g->occupied = -1;
	if (g->known)
		g->work = find_work(g);
	g->stalled = g->known && is_stalled(g);
}

static void free_reader(struct gp_amd_reader *r)
{
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r->reading);
	free(r);
}

static void close_opened(struct gp_amd_reader *r)
{
	for (unsigned i = 0; i <= r->at; i++)
		if (r->reading[i].opened && r->reading[i].mem_fd >= 0)
			close(r->reading[i].mem_fd);
}

/* Caller holds r->lock, which is released during each read. false: the reader was abandoned. */
static bool read_all(struct gp_amd_reader *r)
{
	for (r->at = 0; r->at < r->n; r->at++) {
		r->since_ns = gp_monotonic_ns();
		pthread_mutex_unlock(&r->lock);
		read_task(&r->reading[r->at]);
		pthread_mutex_lock(&r->lock);
		if (r->state != READER_READING) {
			close_opened(r);
			return false;
		}
	}
	return true;
}

static void *reader_loop(void *arg)
{
	struct gp_amd_reader *r = arg;
	bool left_alone;

	pthread_mutex_lock(&r->lock);
	while (r->state == READER_IDLE || r->state == READER_READING) {
		if (r->state == READER_IDLE) {
			pthread_cond_wait(&r->changed, &r->lock);
			continue;
		}
		if (read_all(r))
			r->state = READER_IDLE;
		pthread_cond_broadcast(&r->changed);
	}
	left_alone = r->state == READER_DETACHED;
	r->state = READER_RETURNED;
	pthread_mutex_unlock(&r->lock);
	if (left_alone)
		free_reader(r);
	return NULL;
}

static struct gp_amd_reader *start_reader(void)
{
	struct gp_amd_reader *r = calloc(1, sizeof *r);
	pthread_condattr_t attr;

	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&r->thread, NULL, reader_loop, r)) {
		free_reader(r);
		return NULL;
	}
	return r;
}

/* Frees a reader that has returned. */
static bool free_returned(struct gp_amd_reader *r)
{
	bool back;

	pthread_mutex_lock(&r->lock);
	back = r->state == READER_RETURNED;
	pthread_mutex_unlock(&r->lock);
	if (!back)
		return false;
	pthread_join(r->thread, NULL);
	free_reader(r);
	return true;
}

static void free_all_returned(struct gp_amd_readers *readers)
{
	for (unsigned i = readers->nout; i-- > 0;)
		if (free_returned(readers->out[i]))
			readers->out[i] = readers->out[--readers->nout];
}

bool gp_amd_readers_refuse(struct gp_amd_readers *readers, uid_t account)
{
	unsigned n = 0;

	free_all_returned(readers);
	for (unsigned i = 0; i < readers->nout; i++)
		n += readers->out[i]->account == account;
	return n >= GP_AMD_READERS_PER_ACCOUNT;
}

struct gp_amd_reading *gp_amd_readers_room(struct gp_amd_readers *readers, unsigned n)
{
	struct gp_amd_reader *r;
	struct gp_amd_reading *g;

	free_all_returned(readers);
	if (!readers->reader && readers->nout < GP_AMD_READERS_MAX)
		readers->reader = start_reader();
	r = readers->reader;
	if (!r)
		return NULL;
	if (n > r->capacity) { /* the reader is idle and does not use the array */
		g = realloc(r->reading, n * sizeof *g);
		if (!g)
			return NULL;
		r->reading = g;
		r->capacity = n;
	}
	return r->reading;
}

/* Counted from the begin of the current reading, if it has begun. */
static bool is_late(const struct gp_amd_reader *r, uint64_t patience_ns)
{
	return r->since_ns && gp_monotonic_ns() >= r->since_ns + patience_ns;
}

int gp_amd_readers_run(struct gp_amd_readers *readers, unsigned n)
{
	uint64_t patience_ns = readers->patience_ns ? readers->patience_ns : GP_AMD_PATIENCE_NS;
	struct gp_amd_reader *r = readers->reader;
	int late = -1;

	pthread_mutex_lock(&r->lock);
	r->n = n;
	r->at = 0;
	r->since_ns = 0;
	r->state = READER_READING;
	pthread_cond_broadcast(&r->changed);
	while (r->state == READER_READING) {
		struct timespec until = gp_timespec(gp_monotonic_ns() + patience_ns / 4);

		pthread_cond_timedwait(&r->changed, &r->lock, &until);
		if (r->state == READER_READING && is_late(r, patience_ns)) {
			late = (int)r->at;
			r->account = r->reading[late].account;
			r->state = READER_ABANDONED;
		}
	}
	pthread_mutex_unlock(&r->lock);
	if (late >= 0) {
		readers->out[readers->nout++] = r;
		readers->reader = NULL;
	}
	return late;
}

/* Detaches a reader. It may free itself as soon as it gets the lock. */
static void leave_alone(struct gp_amd_reader *r)
{
	pthread_t thread = r->thread;
	bool back;

	pthread_mutex_lock(&r->lock);
	back = r->state == READER_RETURNED;
	if (!back)
		r->state = READER_DETACHED;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (back)
		free_returned(r);
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
