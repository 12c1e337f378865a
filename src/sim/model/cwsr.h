/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the model `cwsr`, shared by its two files: cwsr.c says who runs and how fast,
 * cwsr_calls.c what holding and releasing does to that. */
#ifndef GP_SIM_MODEL_CWSR_H
#define GP_SIM_MODEL_CWSR_H

#include "sim/model/model.h"

#define WHOLE 1000u /* permille */

struct context {
	uint32_t place;       /* 1 + its index in `on`; 0: off the hardware */
	bool removed;         /* MES takes it off; not held yet */
	uint64_t saved_ns;    /* how long its waves took to save: they are in memory; 0: none are */
	uint64_t restored_ns; /* when they are back; no progress before that */
};

enum stand { GP_CWSR_RUNNING, GP_CWSR_DRAINING, GP_CWSR_STOPPED };

struct cwsr {
	enum stand stand;
	struct context *context;       /* by the task's index */
	struct gp_sim_task_state **on; /* those on the hardware */
	uint32_t non;
	uint64_t width; /* of all of them, in permille; may be more than there is */
	uint64_t rest;  /* of the last division: progress of 1/1000 ns x width */
	uint64_t books_ns;
	uint64_t full_ns; /* saves, or restores, a device that is full of waves */
};

static inline struct context *context_of(const struct gp_sim *s, const struct gp_sim_task_state *t)
{
	const struct cwsr *c = s->state;

	return &c->context[t->index];
}

/* What only waits behind a hint is a single wave. */
static inline uint32_t width_of(const struct gp_sim_task_state *t)
{
	if (t->spins)
		return 0;
	return t->config.width_permille ? t->config.width_permille : WHOLE;
}

/* Time for a nanosecond of progress, in permille of one. */
static inline uint64_t slowness(const struct cwsr *c)
{
	return c->width > WHOLE ? c->width : WHOLE;
}

/* Nothing is in its way but others' work. */
static inline bool may_run(const struct gp_sim *s, const struct gp_sim_task_state *t)
{
	return t->has_work && !t->held && !context_of(s, t)->removed;
}

/* ---- cwsr.c ---- */

/* Run times, work and what is left are true up to now: before anything changes. */
void gp_cwsr_account(struct gp_sim *s);

/* On the hardware and off it. The books are up to date, and the caller sets the timer. */
void gp_cwsr_come_on(struct gp_sim *s, struct gp_sim_task_state *t, uint64_t restore_ns);
void gp_cwsr_go_off(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_cwsr_set_timer(struct gp_sim *s);

/* Comes on by itself, if nothing holds it and the device runs. */
void gp_cwsr_start(struct gp_sim *s, struct gp_sim_task_state *t);

/* ---- cwsr_calls.c: parts of the model's table ---- */
uint64_t gp_cwsr_call(struct gp_sim *s, const struct control *call, unsigned step);
void gp_cwsr_hold(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_cwsr_release(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_cwsr_call_over(struct gp_sim *s, struct gp_sim_task_state *t, bool last);
void gp_cwsr_describe(const struct gp_sim *s, struct gp_gpu_info *info);

#endif
