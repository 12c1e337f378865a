/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a driver thread: the NVIDIA and AMD back ends each have a thread that makes the
 * driver calls that can block. Other threads put requests into a ring and go on, or ask a question
 * and wait for its answer.
 *
 * The ring grows only in gp_requests_reserve, which attach calls: putting and taking a request
 * allocates no memory. `lock` protects the ring, the question and the state that the back end
 * shares between its threads. It is never held during a driver call.
 */
#ifndef GP_GPU_REQUESTS_H
#define GP_GPU_REQUESTS_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

struct gp_request {
	unsigned kind; /* an enum of the back end */
	uint32_t value;
	union { /* the task, as the back end names it */
		uint32_t handle;
		void *task;
	};
};

/* Embedded as the first member of a back end's own question. */
struct gp_question {
	int result;
	bool done;
};

struct gp_requests {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a question was answered, or the first scan is complete */
	int wake_fd;            /* readable when the driver thread has work */
	bool quit;
	_Atomic uint64_t busy_since_ns; /* begin of the present piece of work; 0: none */
	struct gp_question *question;   /* at most one at a time */
	struct gp_request *ring;
	unsigned first, count, capacity;
};

/* 0 or -errno. The caller calls gp_requests_close in both cases. */
static inline int gp_requests_open(struct gp_requests *r)
{
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return r->wake_fd < 0 ? -errno : 0;
}

static inline void gp_requests_close(struct gp_requests *r)
{
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r->ring);
}

static inline void gp_requests_wake(struct gp_requests *r)
{
	eventfd_write(r->wake_fd, 1);
}

/* Makes room for `capacity` requests. Caller holds r->lock. 0 or -ENOMEM. */
static inline int gp_requests_reserve(struct gp_requests *r, unsigned capacity)
{
	struct gp_request *ring;

	if (capacity <= r->capacity)
		return 0;
	ring = calloc(capacity, sizeof *ring);
	if (!ring)
		return -ENOMEM;
	for (unsigned i = 0; i < r->count; i++)
		ring[i] = r->ring[(r->first + i) % r->capacity];
	free(r->ring);
	r->ring = ring;
	r->first = 0;
	r->capacity = capacity;
	return 0;
}

/* Caller holds r->lock, and wakes the driver thread afterwards. False: the ring is full. */
static inline bool gp_requests_put(struct gp_requests *r, struct gp_request request)
{
	if (r->count == r->capacity)
		return false;
	r->ring[(r->first + r->count++) % r->capacity] = request;
	return true;
}

/* The oldest request; NULL: there is none. Caller holds r->lock. */
static inline const struct gp_request *gp_requests_first(const struct gp_requests *r)
{
	return r->count ? &r->ring[r->first] : NULL;
}

/* Removes the oldest request. Caller holds r->lock. */
static inline void gp_requests_drop_first(struct gp_requests *r)
{
	r->first = (r->first + 1) % r->capacity;
	r->count--;
}

/* Waits until the driver thread has answered. Returns the result. */
static inline int gp_requests_ask(struct gp_requests *r, struct gp_question *question)
{
	pthread_mutex_lock(&r->lock);
	while (r->question)
		pthread_cond_wait(&r->changed, &r->lock);
	r->question = question;
	gp_requests_wake(r);
	while (!question->done)
		pthread_cond_wait(&r->changed, &r->lock);
	pthread_mutex_unlock(&r->lock);
	return question->result;
}

/* On the driver thread: it begins a piece of work, or waits for one. */
static inline void gp_requests_note_work(struct gp_requests *r, bool busy)
{
	atomic_store_explicit(&r->busy_since_ns, busy ? gp_monotonic_ns() : 0,
			      memory_order_relaxed);
}

/* See gp_gpu_ops.busy_ns. */
static inline uint64_t gp_requests_busy_ns(const struct gp_requests *r, uint64_t now_ns)
{
	uint64_t since_ns = atomic_load_explicit(&r->busy_since_ns, memory_order_relaxed);

	return since_ns && now_ns > since_ns ? now_ns - since_ns : 0;
}

/* On the driver thread: the question to answer, or NULL. */
static inline struct gp_question *gp_requests_question(struct gp_requests *r)
{
	struct gp_question *question;

	pthread_mutex_lock(&r->lock);
	question = r->question;
	pthread_mutex_unlock(&r->lock);
	return question;
}

/* On the driver thread: the result of the question is filled in. */
static inline void gp_requests_answered(struct gp_requests *r)
{
	pthread_mutex_lock(&r->lock);
	r->question->done = true;
	r->question = NULL;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

/* Tells the driver thread to end after it has done all requests. */
static inline void gp_requests_quit(struct gp_requests *r)
{
	pthread_mutex_lock(&r->lock);
	r->quit = true;
	pthread_mutex_unlock(&r->lock);
	gp_requests_wake(r);
}

static inline bool gp_requests_must_quit(struct gp_requests *r)
{
	bool quit;

	pthread_mutex_lock(&r->lock);
	quit = r->quit;
	pthread_mutex_unlock(&r->lock);
	return quit;
}

#endif
