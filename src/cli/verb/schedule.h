/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt schedule, private to:
 *   schedule.c         arguments, and all devices from the beginning to the end
 *   schedule_device.c  one device: its tasks, and the thread that drives the engine
 *   schedule_stats.c   the counters at the end
 */
#ifndef GP_CLI_VERB_SCHEDULE_H
#define GP_CLI_VERB_SCHEDULE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "engine/engine.h"
#include "undo/undo.h"

#define GP_NAMED_MAX 256

/* A process of the command line, or one queue of it, with its attributes. */
struct gp_named {
	pid_t pid;
	uint32_t queue; /* or GP_QUEUE_ALL */
	struct gp_task_attr attr;
	bool found;
	uint64_t key; /* of its task: the pid may be reused */
	uint64_t start_time;
};

/* The options of the command line. */
struct gp_schedule {
	struct gp_named named[GP_NAMED_MAX];
	unsigned nnamed;
	struct gp_policy_choice policy;
	uint64_t for_ns;
	bool json;
	bool force;
};

/* A GPU with at least one of these processes. */
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
	bool complained; /* a task that cannot be held was reported */
	bool warned;     /* a task whose activity is not visible was reported */
	bool failed;     /* actions failed and none took effect */
	atomic_int over; /* 0: runs; 1: another process released all tasks; -errno */
};

/* Finds the named processes on a GPU. Returns their number; `err` has the reason for a failure. */
int gp_schedule_find(struct gp_schedule *what, struct gp_gpu *gpu, const struct gp_undo_file *undo,
		     struct gp_error *err);
/* Starts the thread. It ends when stop_fd is readable, or by itself, which `over` tells. */
int gp_schedule_begin(struct gp_scheduled *s, struct gp_error *err);

struct json_object;

/* After the end of the thread: adds an object to `list`, or prints a table if that is NULL. */
void gp_schedule_report(struct gp_scheduled *s, FILE *out, struct json_object *list);

#endif
