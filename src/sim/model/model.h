/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's internal state; only the files of this folder use it. */
#ifndef GP_SIM_MODEL_MODEL_H
#define GP_SIM_MODEL_MODEL_H

#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "sim/model/sim_gpu.h"

/* The meaning of a program's timer when it fires. */
enum stage {
	GP_SIM_STAGE_START,  /* the process appears */
	GP_SIM_STAGE_HINT,   /* its hint reaches the GPU */
	GP_SIM_STAGE_SUBMIT, /* the kernel of its request reaches the GPU */
};

/* The queued requests of an external program. The first one is being executed. */
struct gp_sim_external {
	struct {
		struct gp_sim_request request;
		uint64_t submitted_ns;
		uint64_t ready_ns; /* its launch is finished at this time */
	} queue[GP_SIM_REQUESTS];
	uint32_t first, count;
	uint64_t value;        /* of the first request, from its kernels that are finished */
	uint64_t work_done_ns; /* the program's result.work_ns when its kernel began */
	struct gp_sim_done done;
};

struct gp_sim_task_state {
	struct gp_sim_task config;
	uint32_t index;
	struct gp_timer timer; /* the program's next step; `stage` says which */
	enum stage stage;
	struct gp_timer stop_timer;
	struct gp_timer mark_timer;
	struct gp_rng rng;

	/* The program. */
	bool present;
	uint64_t arrival_ns; /* of the request that is being executed, or else of the next one */
	uint64_t submit_ns;  /* when its kernel reaches the GPU, if a hint was sent */
	uint32_t arrived;    /* trace: number of entries that were read */
	uint32_t kernels_left;

	/* Its context on the GPU. */
	bool has_work;    /* runnable unless held */
	bool spins;       /* only a hint is on the GPU: it occupies the GPU without progress */
	bool interrupted; /* was interrupted within a kernel, and must refill */
	bool held;
	uint32_t slice_us;     /* never 0 */
	uint32_t slice_set_us; /* as set through the back end; 0 = the program's own */
	uint64_t left_ns;      /* rest of the kernel */

	/* State for observers. */
	bool attached;
	uint32_t holds_queued, slices_queued; /* pending control calls */
	uint64_t attach_run_ns;
	uint64_t active_since_ns;
	bool found_active; /* state at the last poll, if activity is polled */
	uint64_t found_since_ns;
	uint64_t window_run_ns;     /* run_ns at the start of the window */
	uint64_t released_since_ns; /* time of the last release */
	uint64_t sample_ns;         /* when the sample was taken; 0 = none yet */
	uint64_t sample_run_ns;
	bool sample_known, sample_active;

	struct gp_sim_result result;
	struct gp_sim_external *external; /* NULL = a built-in load */
};

struct control {
	enum { GP_SIM_CONTROL_HOLD, GP_SIM_CONTROL_RELEASE, GP_SIM_CONTROL_SLICE } kind;
	uint32_t task;
	uint32_t slice_us;
	bool joins; /* part of the same call as the entry before it */
};

/*
 * How a device is shared among its tasks. The programs (programs.c) report when there is work, the
 * driver side (model_backend.c) requests holds, releases and slices. The model decides which tasks
 * run. Only its own files know its state.
 */
struct gp_sim_model_ops {
	int (*init)(struct gp_sim *s); /* allocates s->state; 0 or -ENOMEM */
	void (*free)(struct gp_sim *s);
	/* Fills in slices and costs. */
	void (*describe)(const struct gp_sim *s, struct gp_gpu_info *info);

	/* has_work was just set. */
	void (*work_arrives)(struct gp_sim *s, struct gp_sim_task_state *t);
	/* A hint became a kernel. */
	void (*work_changes)(struct gp_sim *s, struct gp_sim_task_state *t);
	void (*leaves)(struct gp_sim *s, struct gp_sim_task_state *t);
	/* The task takes a slot that another program has left. */
	void (*joins)(struct gp_sim *s, struct gp_sim_task_state *t);

	/*
	 * One step (0, 1, ...) of a control call, called at the time that the last step returned.
	 * Returns GP_NEVER at the end of the call; then one of the following functions is called
	 * for its effect.
	 */
	uint64_t (*call)(struct gp_sim *s, const struct control *c, unsigned step);
	void (*hold)(struct gp_sim *s, struct gp_sim_task_state *t);
	void (*release)(struct gp_sim *s, struct gp_sim_task_state *t);
	/* May be NULL. */
	void (*set_slice)(struct gp_sim *s, struct gp_sim_task_state *t, uint32_t slice_us);
	/* Called after hold, release or set_slice, also for a task that has left. `last`: no
	 * further entry is part of the call. May be NULL. */
	void (*call_over)(struct gp_sim *s, struct gp_sim_task_state *t, bool last);

	void (*timer)(struct gp_sim *s);           /* s->timer fired */
	void (*update_accounts)(struct gp_sim *s); /* brings run times and work up to now */
	bool (*runs)(const struct gp_sim *s, const struct gp_sim_task_state *t);
	/* The run time up to now. */
	uint64_t (*run_ns)(const struct gp_sim *s, const struct gp_sim_task_state *t);
};

extern const struct gp_sim_model_ops gp_sim_runlist, gp_sim_cwsr;

struct gp_sim {
	struct gp_gpu base;
	struct gp_sim_device device;
	uint32_t number; /* number of the device */
	uint32_t ntasks;
	uint32_t top; /* no task at or above this index was ever present */
	struct gp_sim_task_state *task;
	struct gp_sim_external *external;
	uint64_t *changed;            /* one bit per task; NULL = not recorded */
	struct gp_hist *own_response; /* used if the caller has no histograms */
	struct gp_heap heap;
	uint64_t now_ns;
	bool signalled, rescan;
	gp_sim_watch *watch;
	void *watch_arg;
	struct gp_sim_totals totals;

	const struct gp_sim_model_ops *model;
	void *state; /* private to the model */
	struct gp_timer timer;

	/* The driver's control path: one call at a time. */
	struct control *queue;
	uint32_t queue_first, queue_count, queue_capacity;
	unsigned step; /* of the first call in the queue */
	struct gp_timer control_timer;

	struct gp_timer detect_timer;
	struct gp_timer window_timer;
	uint64_t window_busy_ns; /* busy and switching time at the start of the window */
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

/* Defined in programs.c. */
void gp_sim_program_init(struct gp_sim *s, struct gp_sim_task_state *t, uint64_t seed,
			 uint64_t stream);
void gp_sim_program_timer(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_sim_program_stop(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_sim_program_begin_request(struct gp_sim *s, struct gp_sim_task_state *t);
/* Called when a kernel is finished. Sets t->has_work if the next one follows at once. */
void gp_sim_program_kernel_done(struct gp_sim *s, struct gp_sim_task_state *t);
void gp_sim_program_count_left(struct gp_sim_task_state *t, uint64_t end_ns);
int gp_sim_external_init(struct gp_sim *s);

/* Defined in model_backend.c. */
int gp_sim_backend_init(struct gp_sim *s);
void gp_sim_backend_control_timer(struct gp_sim *s);
void gp_sim_backend_window_timer(struct gp_sim *s);
void gp_sim_backend_detect_timer(struct gp_sim *s);
void gp_sim_backend_activity_changed(struct gp_sim *s, struct gp_sim_task_state *t);

#endif
