/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the model `cwsr`, shared by its two files: cwsr.c decides which tasks run and how
 * fast; cwsr_calls.c implements hold and release. */
#ifndef GP_SIM_MODEL_CWSR_H
#define GP_SIM_MODEL_CWSR_H

#include "sim/model/model.h"

#define WHOLE 1000u /* permille */

struct context {
	uint32_t place;       /* 1 + its index in `on`; 0 = off the hardware */
	bool removed;         /* MES is taking it off; not held yet */
	uint64_t saved_ns;    /* time that saving its waves took; 0 = no waves are in memory */
	uint64_t restored_ns; /* when its waves are restored; no progress before that */
};

enum cwsr_phase { GP_CWSR_RUNNING, GP_CWSR_DRAINING, GP_CWSR_STOPPED };

struct cwsr {
	enum cwsr_phase phase;
	struct context *context;       /* by index of the task */
	struct gp_sim_task_state **on; /* the tasks on the hardware */
	uint32_t non;
	uint64_t width; /* sum over these tasks, in permille; may exceed WHOLE */
	uint64_t rest;  /* remainder of the last division: progress in 1/1000 ns x width */
	uint64_t accounted_ns;
	uint64_t full_ns; /* time to save, or to restore, a device that is full of waves */
};

static inline struct context *context_of(const struct gp_sim *s, const struct gp_sim_task_state *t)
{
	const struct cwsr *c = s->state;

	return &c->context[t->index];
}

/* A hint occupies a single wave only. */
static inline uint32_t width_of(const struct gp_sim_task_state *t)
{
	if (t->spins)
		return 0;
	return t->config.width_permille ? t->config.width_permille : WHOLE;
}

/* Time for one nanosecond of progress, in permille of a nanosecond. */
static inline uint64_t slowness(const struct cwsr *c)
{
	return c->width > WHOLE ? c->width : WHOLE;
}

/* Whether the task can run, apart from the work of others. */
static inline bool may_run(const struct gp_sim *s, const struct gp_sim_task_state *t)
{
	return t->has_work && !t->held && !context_of(s, t)->removed;
}

/* Defined in cwsr.c. */

/* Brings run times, work and remaining times up to now. To be called before any change. */
void gp_cwsr_account(struct gp_sim *s);

/* Put a task on the hardware, or take it off. The accounts must be up to date; the caller sets the
 * timer. */
void gp_cwsr_come_on(struct gp_sim *s, struct gp_sim_task_state *t, uint64_t restore_ns);
void gp_cwsr_go_off(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_cwsr_set_timer(struct gp_sim *s);

/* Puts the task on the hardware if it may run and the device is running. */
void gp_cwsr_start(struct gp_sim *s, struct gp_sim_task_state *t);

/* Defined in cwsr_calls.c; entries of the model's table. */
uint64_t gp_cwsr_call(struct gp_sim *s, const struct control *call, unsigned step);
void gp_cwsr_hold(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_cwsr_release(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_cwsr_call_over(struct gp_sim *s, struct gp_sim_task_state *t, bool last);
void gp_cwsr_describe(const struct gp_sim *s, struct gp_gpu_info *info);

#endif
