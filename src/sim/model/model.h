/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's own state, shared by its files and by nobody else. */
#ifndef GP_SIM_MODEL_MODEL_H
#define GP_SIM_MODEL_MODEL_H

#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "sim/model/sim_gpu.h"

/* What a program's timer means when it fires. */
enum stage {
	GP_SIM_STAGE_START,  /* the process appears */
	GP_SIM_STAGE_HINT,   /* its hint reaches the GPU */
	GP_SIM_STAGE_SUBMIT, /* its request's kernel does */
};

/* The requests of a program from outside; the first is in work. */
struct gp_sim_external {
	struct {
		struct gp_sim_request request;
		uint64_t submitted_ns;
		uint64_t ready_ns; /* launched by then */
	} queue[GP_SIM_REQUESTS];
	uint32_t first, count;
	uint64_t value;        /* of the request in work, so far */
	uint64_t work_done_ns; /* by the program when its kernel began */
	struct gp_sim_done done;
};

struct gp_sim_task_state {
	struct gp_sim_task config;
	uint32_t index;
	struct gp_timer timer; /* the program's next step ... */
	enum stage stage;
	struct gp_timer stop_timer;
	struct gp_timer mark_timer;
	struct gp_rng rng;

	/* The program. */
	bool present;
	uint64_t arrival_ns; /* of the request in work, or the next one */
	uint64_t submit_ns;  /* when its kernel will be on the GPU, behind a hint */
	uint32_t arrived;    /* trace: how far the list was read */
	uint32_t kernels_left;

	/* Its context on the GPU. */
	bool has_work; /* runnable unless held */
	bool spins;    /* only a hint is there: occupies the GPU, gets nothing done */
	bool cut;      /* was taken off in the middle: must refill */
	bool held;
	uint32_t slice_us;     /* never 0 */
	uint32_t slice_set_us; /* as set through the back end; 0 = its own */
	uint64_t left_ns;      /* of the kernel */

	/* What can be seen from outside. */
	bool attached;
	uint32_t holds_queued, slices_queued; /* control calls that have not ended */
	uint64_t attach_run_ns;
	uint64_t active_since_ns;
	bool found_active; /* at the last look at its queues, where activity is found by looking */
	uint64_t found_since_ns;
	uint64_t window_run_ns;  /* run_ns at the start of the window */
	uint64_t loose_since_ns; /* not held since */
	uint64_t sample_ns;      /* when the sample was taken; 0 = none yet */
	uint64_t sample_run_ns;
	bool sample_known, sample_active;

	struct gp_sim_result result;
	struct gp_sim_external *external; /* NULL: its load is built in */
};

struct control {
	enum { GP_SIM_CONTROL_HOLD, GP_SIM_CONTROL_RELEASE, GP_SIM_CONTROL_SLICE } kind;
	uint32_t task;
	uint32_t slice_us;
	bool joins; /* is part of the call before it */
};

/*
 * How a device shares itself among its tasks. The programs (load.c) say when there is work, the
 * driver (backend.c) what was asked for; the model says who runs. Only its own file knows its
 * state.
 */
struct gp_sim_model_ops {
	int (*init)(struct gp_sim *s); /* makes s->state; 0 or -ENOMEM */
	void (*free)(struct gp_sim *s);
	void (*describe)(const struct gp_sim *s, struct gp_gpu_info *info); /* slices and costs */

	void (*work_arrives)(struct gp_sim *s,
	                     struct gp_sim_task_state *t); /* has_work was just set */
	void (*work_changes)(struct gp_sim *s,
	                     struct gp_sim_task_state *t); /* a hint became a kernel */
	void (*leaves)(struct gp_sim *s, struct gp_sim_task_state *t);
	void (*joins)(struct gp_sim *s,
	              struct gp_sim_task_state *t); /* in a place that another has left */

	/* Step 0, 1, ... of a control call, each at the time that the last one returned. GP_NEVER:
	 * the call has ended, and its effect follows: */
	uint64_t (*call)(struct gp_sim *s, const struct control *c, unsigned step);
	void (*hold)(struct gp_sim *s, struct gp_sim_task_state *t);
	void (*release)(struct gp_sim *s, struct gp_sim_task_state *t);
	void (*set_slice)(struct gp_sim *s, struct gp_sim_task_state *t,
	                  uint32_t slice_us); /* may be NULL */
	/* ... and then this, also for a task that is gone by now. `last`: nobody else joined the
	 * call. May be NULL. */
	void (*call_over)(struct gp_sim *s, struct gp_sim_task_state *t, bool last);

	void (*timer)(struct gp_sim *s);       /* s->timer fired */
	void (*close_books)(struct gp_sim *s); /* run times and work are true up to now */
	bool (*runs)(const struct gp_sim *s, const struct gp_sim_task_state *t);
	uint64_t (*run_ns)(const struct gp_sim *s,
	                   const struct gp_sim_task_state *t); /* up to now */
};

extern const struct gp_sim_model_ops gp_sim_runlist, gp_sim_cwsr;

struct gp_sim {
	struct gp_gpu base;
	struct gp_sim_device device;
	uint32_t number; /* of the device */
	uint32_t ntasks;
	uint32_t top; /* behind it no task was ever present */
	struct gp_sim_task_state *task;
	struct gp_sim_external *external;
	uint64_t *changed;            /* a bit for each task; NULL: nobody asks */
	struct gp_hist *own_response; /* where the caller has no histograms */
	struct gp_heap heap;
	uint64_t now_ns;
	bool signalled, rescan;
	gp_sim_watch *watch;
	void *watch_arg;
	struct gp_sim_totals totals;

	const struct gp_sim_model_ops *model;
	void *state; /* the model's own */
	struct gp_timer timer;

	/* The driver's control path: one call at a time. */
	struct control *queue;
	uint32_t queue_first, queue_count, queue_capacity;
	unsigned step; /* of the call at its front */
	struct gp_timer control_timer;

	struct gp_timer detect_timer;
	struct gp_timer window_timer;
	uint64_t window_busy_ns; /* busy + switching at the start of the window */
	uint64_t window_ns;
};

static inline void gp_sim_changed(struct gp_sim *s, const struct gp_sim_task_state *t)
{
	if (s->changed)
		s->changed[t->index / 64] |= 1ull << (t->index % 64);
}

static inline void gp_sim_notify(struct gp_sim *s, enum gp_sim_what what,
                                 const struct gp_sim_task_state *t)
{
	gp_sim_changed(s, t);
	if (s->watch)
		s->watch(s->watch_arg, &(struct gp_sim_event){.what = what,
		                                              .now_ns = s->now_ns,
		                                              .device = s->number,
		                                              .task = t->index,
		                                              .arrival_ns = t->arrival_ns});
}

/* load.c: the programs */
void gp_sim_program_init(struct gp_sim *s, struct gp_sim_task_state *t, uint64_t seed,
                         uint64_t stream);
void gp_sim_program_timer(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_sim_program_stop(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_sim_program_begin_request(struct gp_sim *s, struct gp_sim_task_state *t);
/* The kernel is finished. Sets t->has_work if the next one is there at once. */
void gp_sim_program_kernel_done(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_sim_program_count_left(struct gp_sim_task_state *t, uint64_t end_ns);
void gp_sim_program_begin_kernel(struct gp_sim_task_state *t);
void gp_sim_program_wait_for_launch(struct gp_sim *s, struct gp_sim_task_state *t, uint64_t at_ns);
uint64_t gp_sim_program_draw_launch(const struct gp_sim *s, struct gp_sim_task_state *t);

/* external.c: programs from outside */
int gp_sim_external_init(struct gp_sim *s);
void gp_sim_external_kernel_done(struct gp_sim_task_state *t);
void gp_sim_external_request_done(struct gp_sim *s,
                                  struct gp_sim_task_state *t); /* before it is told ... */
void gp_sim_external_next(struct gp_sim *s, struct gp_sim_task_state *t); /* ... and then */

/* backend.c: what the driver offers */
int gp_sim_backend_init(struct gp_sim *s);
void gp_sim_backend_control_timer(struct gp_sim *s);
void gp_sim_backend_window_timer(struct gp_sim *s);
void gp_sim_backend_detect_timer(struct gp_sim *s);
void gp_sim_backend_activity_changed(struct gp_sim *s, struct gp_sim_task_state *t);

#endif
