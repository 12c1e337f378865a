/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's own state, shared by its files and by nobody else. */
#ifndef GP_GPU_SIM_MODEL_H
#define GP_GPU_SIM_MODEL_H

#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "gpu/sim/sim.h"

/* What a program's timer means when it fires. */
enum stage {
	STAGE_START,  /* the process appears */
	STAGE_HINT,   /* its hint reaches the GPU */
	STAGE_SUBMIT, /* its request's kernel does */
};

struct sim_task {
	struct gp_sim_task config;
	uint32_t index;
	struct gp_timer timer; /* the program's next step ... */
	enum stage stage;
	struct gp_timer stop_timer;
	struct gp_rng rng;

	/* The program. */
	bool present;
	uint64_t arrival_ns; /* of the request in work, or the next one */
	uint64_t submit_ns;  /* when its kernel will be on the GPU, behind a hint */

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
	uint64_t window_run_ns;  /* run_ns at the start of the window */
	uint64_t loose_since_ns; /* not held since */
	uint64_t sample_ns;      /* when the sample was taken; 0 = none yet */
	uint64_t sample_run_ns;
	bool sample_known, sample_active;

	struct gp_sim_result result;
};

enum phase { PHASE_IDLE, PHASE_RUN, PHASE_SWITCH };

struct control {
	enum { CONTROL_HOLD, CONTROL_RELEASE, CONTROL_SLICE } kind;
	uint32_t task;
	uint32_t slice_us;
	uint64_t cost_ns;
};

struct gp_sim {
	struct gp_gpu base;
	struct gp_sim_device device;
	uint32_t ntasks;
	struct sim_task *task;
	struct gp_heap heap;
	uint64_t now_ns;
	bool signalled, rescan;
	gp_sim_watch *watch;
	void *watch_arg;
	struct gp_sim_totals totals;

	/* The engine that runs contexts. */
	enum phase phase;
	struct sim_task *loaded; /* whose context is on the hardware; stays when it falls idle */
	struct sim_task nobody;  /* loaded at first: has nothing to do, last in the list */
	struct sim_task *target; /* of the switch under way */
	uint64_t *ready;         /* a bit for each task that waits for its turn, in runlist order */
	uint32_t nready;
	struct gp_timer timer;
	uint64_t phase_ns;  /* since when the books are open for this phase */
	uint64_t turn_ns;   /* since when the loaded context has its slice */
	uint64_t refill_ns; /* still to go */

	/* The driver's control path: one call at a time. */
	struct control *queue;
	uint32_t queue_first, queue_count, queue_capacity;
	struct gp_timer control_timer;

	struct gp_timer window_timer;
	uint64_t window_busy_ns; /* busy + switching at the start of the window */
	uint64_t window_ns;
};

static inline void sim_tell(struct gp_sim *s, enum gp_sim_what what, const struct sim_task *t)
{
	if (s->watch)
		s->watch(s->watch_arg, &(struct gp_sim_event){.what = what,
		                                              .now_ns = s->now_ns,
		                                              .task = t->index,
		                                              .arrival_ns = t->arrival_ns});
}

/* runlist.c: the compute engine */
void runlist_work_arrives(struct gp_sim *s, struct sim_task *t); /* has_work was just set */
void runlist_work_changes(struct gp_sim *s, struct sim_task *t); /* a hint became a kernel */
void runlist_task_leaves(struct gp_sim *s, struct sim_task *t);
void runlist_hold(struct gp_sim *s, struct sim_task *t);
void runlist_release(struct gp_sim *s, struct sim_task *t);
void runlist_set_slice(struct gp_sim *s, struct sim_task *t, uint32_t slice_us);
void runlist_timer(struct gp_sim *s);
void runlist_close_books(struct gp_sim *s);

/* load.c: the programs */
void load_init(struct gp_sim *s, struct sim_task *t, uint64_t seed, uint64_t stream);
void load_timer(struct gp_sim *s, struct sim_task *t);
void load_stop(struct gp_sim *s, struct sim_task *t);
/* The kernel is finished. Sets t->has_work if the next one is there at once. */
void load_request_done(struct gp_sim *s, struct sim_task *t);
void load_count_left(struct sim_task *t, uint64_t end_ns);

/* backend.c: what the driver offers */
int backend_init(struct gp_sim *s);
void backend_control_timer(struct gp_sim *s);
void backend_window_timer(struct gp_sim *s);
void backend_activity_changed(struct gp_sim *s, struct sim_task *t);

#endif
