/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler.h"

static void sched_classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	const struct scheduler *s = arg;

	for (unsigned i = 0; i < s->nknown; i++)
		if (s->known[i].pid == seen->pid)
			attr->class = (uint8_t)s->known[i].class;
}

static int sched_keep_record(void *arg, const struct gp_undo *undo)
{
	struct scheduler *s = arg;

	s->records += undo->pid > 0;
	return 0;
}

void sched_know(struct scheduler *s, pid_t pid, enum gp_class class)
{
	s->known[s->nknown].pid = pid;
	s->known[s->nknown++].class = class;
}

void sched_make(struct scheduler *s, struct amd_world *w)
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

static void *sched_drive(void *arg)
{
	struct scheduler *s = arg;

	s->result = gp_drive(s->engine, s->w->gpu, s->stop_fd, NULL, NULL);
	return NULL;
}

void sched_begin(struct scheduler *s, struct amd_world *w)
{
	sched_make(s, w);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&s->thread, NULL, sched_drive, s), 0);
}

void sched_know_both(struct scheduler *s, pid_t lc, pid_t be)
{
	sched_know(s, lc, GP_LATENCY_CRITICAL);
	sched_know(s, be, GP_BEST_EFFORT);
}

void sched_begin_with(struct scheduler *s, struct amd_world *w, pid_t lc, pid_t be)
{
	sched_know_both(s, lc, be);
	sched_begin(s, w);
}

void sched_stop(struct scheduler *s)
{
	eventfd_write(s->stop_fd, 1);
	pthread_join(s->thread, NULL);
	close(s->stop_fd);
	assert_int_equal(s->result, 0);
	assert_string_equal(gp_engine_policy(s->engine)->name, "priority"); /* not ejected */
}

void sched_free(struct scheduler *s)
{
	gp_engine_free(s->engine);
	aw_close(s->w);
}

void sched_end(struct scheduler *s)
{
	sched_stop(s);
	sched_free(s);
}
