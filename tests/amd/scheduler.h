/* SPDX-License-Identifier: Apache-2.0 */
/* The engine with a policy in a thread of its own. Classes go by pid. */
#ifndef TESTS_AMD_SCHEDULER_H
#define TESTS_AMD_SCHEDULER_H

#include <pthread.h>
#include <sys/eventfd.h>

#include "amd_world.h"
#include "engine/real_time.h"
#include "policy/registry.h"

struct scheduler {
	struct amd_world *w;
	struct gp_engine *engine;
	pthread_t thread;
	int stop_fd;
	struct {
		pid_t pid;
		enum gp_class class;
	} known[AW_LOADS];
	unsigned nknown;
	unsigned records; /* undo records that were written */
	int result;
};

void sched_know(struct scheduler *s, pid_t pid, enum gp_class class);

/* The engine with the policy; no thread drives it yet. */
void sched_make(struct scheduler *s, struct amd_world *w);
void sched_begin(struct scheduler *s, struct amd_world *w);

/* One latency-critical and one best-effort process; sched_begin_with() also begins. */
void sched_know_both(struct scheduler *s, pid_t lc, pid_t be);
void sched_begin_with(struct scheduler *s, struct amd_world *w, pid_t lc, pid_t be);

/* Stops the driving; what it did and saw can be looked at. */
void sched_stop(struct scheduler *s);
void sched_free(struct scheduler *s);
void sched_end(struct scheduler *s);

#endif
