/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt schedule, private to:
 *   schedule.c         arguments, and all devices from the beginning to the end
 *   schedule_device.c  one device: who is scheduled on it, and the thread that does it
 *   schedule_stats.c   what came of it
 */
#ifndef GP_CLI_VERB_SCHEDULE_H
#define GP_CLI_VERB_SCHEDULE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "engine/engine.h"
#include "undo/undo.h"

#define GP_NAMED_MAX 256

/* A process, or one queue of it, that somebody gave a class. */
struct gp_named {
	pid_t pid;
	uint32_t queue; /* or GP_QUEUE_ALL */
	struct gp_task_attr attr;
	bool found;
	uint64_t key; /* of its task: the pid may become another's */
	uint64_t start_time;
};

/* What was asked for. */
struct gp_schedule {
	struct gp_named named[GP_NAMED_MAX];
	unsigned nnamed;
	struct gp_policy_choice policy;
	uint64_t for_ns;
	bool json;
	bool force;
};

/* A GPU with one of them. */
struct gp_scheduled {
	const struct gp_schedule *what;
	struct gp_gpu *gpu;
	struct gp_engine *engine;
	struct gp_undo_file *undo;
	int slot[GP_NAMED_MAX]; /* undo records that were written */
	unsigned nslots;
	uint64_t epoch;
	pthread_t thread;
	int stop_fd;
	int ready_fd;
	bool ready;
	bool complained; /* that something cannot be held */
	bool warned;     /* that somebody's work cannot be seen */
	bool failed;     /* nothing could be */
	atomic_int over; /* 0: it drives; 1: somebody else put everything back; -errno */
};

/* Finds the named processes on a GPU. How many; `err` says why one could not be reached. */
int gp_schedule_find(struct gp_schedule *what, struct gp_gpu *gpu, const struct gp_undo_file *undo,
                     struct gp_error *err);
/* Starts the thread, which ends with stop_fd; what is `over` ended by itself. */
int gp_schedule_begin(struct gp_scheduled *s, struct gp_error *err);

/* The thread has ended. `first`: of the devices. */
void gp_schedule_print(FILE *out, struct gp_scheduled *s, bool first);

#endif
