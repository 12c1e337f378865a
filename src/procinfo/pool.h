/* SPDX-License-Identifier: Apache-2.0 */
/* The pool from inside: for pool.c and reader.c. */
#ifndef GP_PROCINFO_POOL_H
#define GP_PROCINFO_POOL_H

#include <pthread.h>

#include "procinfo/procinfo.h"

#define GP_PROCINFO_DISTRUSTED_MAX 16u

struct gp_procinfo_question {
	struct gp_procinfo info; /* first: the caller gets it under this name, and drops it */
	uint32_t want;
	uint64_t token;
	struct gp_procinfo_question *next;
};

struct gp_procinfo_questions {
	struct gp_procinfo_question *first, *last;
};

/* A thread, on its own stack. Who is left behind has no question any more. */
struct gp_procinfo_reader {
	struct gp_procinfo_pool *pool;
	struct gp_procinfo_question *question;
	pid_t pid; /* as in the question; these three are the reader's own */
	uint64_t start_time;
	uint32_t want;
	bool in_memory; /* reads the process's memory */
	uint64_t deadline_ns;
	struct gp_procinfo_reader *next;
};

struct gp_procinfo_pool {
	pthread_mutex_t lock;   /* for all that follows, and for the questions in the lists */
	pthread_cond_t changed; /* something to read; the end; a reader has ended */
	struct gp_procinfo_limits limits;
	struct gp_procinfo_questions waiting, answered;
	uint32_t unread; /* how many are waiting */
	struct gp_procinfo_reader
		*busy;      /* who began first comes first, and so the first deadline */
	uint32_t questions; /* that were asked and not taken */
	uint32_t readers, idle;
	uint32_t stuck; /* were left behind; not among `readers` */
	bool closing, orphaned;
	struct {
		uid_t uid;
		uint64_t until_ns;
	} distrusted[GP_PROCINFO_DISTRUSTED_MAX]; /* whose memory let us wait, lately */
	int epoll_fd, event_fd, timer_fd;
};

void gp_procinfo_append(struct gp_procinfo_questions *list, struct gp_procinfo_question *q);
struct gp_procinfo_question *gp_procinfo_take_first(struct gp_procinfo_questions *list);

/* Wakes the caller at the first deadline there is. The lock is held. */
void gp_procinfo_set_timer(struct gp_procinfo_pool *p);

/* 0 or -errno. The lock is held. */
int gp_procinfo_start_reader(struct gp_procinfo_pool *p);

/* When nobody is left who could touch it. */
void gp_procinfo_destroy(struct gp_procinfo_pool *p);

#endif
