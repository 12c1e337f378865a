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

static inline void sched_classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	const struct scheduler *s = arg;

	for (unsigned i = 0; i < s->nknown; i++)
		if (s->known[i].pid == seen->pid)
			attr->class = (uint8_t)s->known[i].class;
}

static inline int sched_keep_record(void *arg, const struct gp_undo *undo)
{
	struct scheduler *s = arg;

	s->records += undo->pid > 0;
	return 0;
}

static inline void sched_know(struct scheduler *s, pid_t pid, enum gp_class class)
{
	s->known[s->nknown].pid = pid;
	s->known[s->nknown++].class = class;
}

/* The engine with the policy; nobody drives it yet. */
static inline void sched_make(struct scheduler *s, struct amd_world *w)
{
	struct gp_engine_config config = {
		.classify = sched_classify, .before_change = sched_keep_record, .arg = s};
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	s->w = w;
	aw_open(w);
	config.gpu = w->gpu;
	assert_int_equal(gp_engine_new(&config, &s->engine), 0);
	assert_int_equal(gp_policy_parse("priority", &choice, &err), 0);
	assert_int_equal(gp_engine_set_policy(s->engine, aw_now(), &choice, &err), 0);
}

static inline void *sched_drive(void *arg)
{
	struct scheduler *s = arg;

	s->result = gp_drive(s->engine, s->w->gpu, s->stop_fd, NULL, NULL);
	return NULL;
}

static inline void sched_begin(struct scheduler *s, struct amd_world *w)
{
	sched_make(s, w);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&s->thread, NULL, sched_drive, s), 0);
}

/* Stops the driving; what it did and saw can be looked at. */
static inline void sched_stop(struct scheduler *s)
{
	eventfd_write(s->stop_fd, 1);
	pthread_join(s->thread, NULL);
	close(s->stop_fd);
	assert_int_equal(s->result, 0);
	assert_string_equal(gp_engine_policy(s->engine)->name, "priority"); /* not ejected */
}

static inline void sched_free(struct scheduler *s)
{
	gp_engine_free(s->engine);
	aw_close(s->w);
}

static inline void sched_end(struct scheduler *s)
{
	sched_stop(s);
	sched_free(s);
}

#endif
