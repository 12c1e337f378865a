/* SPDX-License-Identifier: Apache-2.0 */
/* Private state of the pool, shared by pool.c and reader.c. */
#ifndef GP_PROCINFO_POOL_H
#define GP_PROCINFO_POOL_H

#include <pthread.h>

#include "procinfo/procinfo.h"

#define GP_PROCINFO_DISTRUSTED_MAX 16u

struct gp_procinfo_question {
	struct gp_procinfo info; /* first member: the caller drops the question by it */
	uint32_t want;
	uint64_t token;
	struct gp_procinfo_question *next;
};

struct gp_procinfo_questions {
	struct gp_procinfo_question *first, *last;
};

/* State of one reader thread, on its stack. An abandoned reader has no question any more. */
struct gp_procinfo_reader {
	struct gp_procinfo_pool *pool;
	struct gp_procinfo_question *question;
	pid_t pid; /* copied from the question; these three belong to the reader thread */
	uint64_t start_time;
	uint32_t want;
	bool in_memory; /* is reading the memory of the process */
	uint64_t deadline_ns;
	struct gp_procinfo_reader *next;
};

struct gp_procinfo_pool {
	pthread_mutex_t lock;   /* protects all members below and the questions in the lists */
	pthread_cond_t changed; /* a question was added, the pool closes, or a reader has ended */
	struct gp_procinfo_limits limits;
	struct gp_procinfo_questions waiting, answered;
	uint32_t unread; /* length of `waiting` */
	struct gp_procinfo_reader
		*busy;      /* in order of their start, so the first has the first deadline */
	uint32_t questions; /* asked and not yet taken */
	uint32_t readers, idle;
	uint32_t stuck; /* abandoned; not counted in `readers` */
	bool closing, orphaned;
	struct {
		uid_t uid;
		uint64_t until_ns;
	} distrusted[GP_PROCINFO_DISTRUSTED_MAX]; /* users who blocked a reader */
	int epoll_fd, event_fd, timer_fd;
};

void gp_procinfo_append(struct gp_procinfo_questions *list, struct gp_procinfo_question *q);
struct gp_procinfo_question *gp_procinfo_take_first(struct gp_procinfo_questions *list);

/* Sets the timer to the first deadline. Caller holds p->lock. */
void gp_procinfo_set_timer(struct gp_procinfo_pool *p);

/* 0 or -errno. Caller holds p->lock. */
int gp_procinfo_start_reader(struct gp_procinfo_pool *p);

/* Frees the pool; no thread uses it any more. */
void gp_procinfo_destroy(struct gp_procinfo_pool *p);

#endif
