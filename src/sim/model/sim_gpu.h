/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated GPU and the programs that use it: discrete events, virtual time, seeded. The same
 * configuration and seed give the same result, bit for bit. Nothing is allocated after gp_sim_new.
 *
 * Model `runlist` (NVIDIA): one context at a time on the compute engine, round robin by slice, a
 * fixed cost for each switch, and an idle context yields at once. Model `cwsr` (AMD): the queues of
 * all tasks at once on the compute units; to hold or release one, waves are saved and restored, on
 * most devices those of everybody. docs/simulator.md says where each number comes from and what the
 * models leave out.
 */
#ifndef GP_SIM_MODEL_SIM_GPU_H
#define GP_SIM_MODEL_SIM_GPU_H

#include "base/hist.h"
#include "gpu/gpu.h"

enum gp_sim_load {
	GP_LOAD_PERIODIC, /* a request every `every_ns`, whether the last one is finished or not */
	GP_LOAD_POISSON,  /* the same on average, at random */
	GP_LOAD_CLOSED,   /* the next request when the last one is finished */
	GP_LOAD_IDLE,     /* has queues, does nothing */
	GP_LOAD_TRACE,    /* requests at the times of a list */
	GP_LOAD_EXTERNAL, /* a place for a program that comes and goes: gp_sim_join */
};

/* How a device shares itself among tasks. */
enum gp_sim_model {
	GP_SIM_RUNLIST, /* one at a time, round robin by slice (NVIDIA) */
	GP_SIM_CWSR,    /* all at once on the compute units; waves are saved and restored (AMD) */
};

/* Who takes queues off an AMD device. */
enum gp_sim_scheduler {
	GP_SIM_HWS, /* every change stops all queues of the device (Instinct) */
	GP_SIM_MES, /* single queues are removed and added (Radeon from gfx11 on) */
};

/* What the device tells of activity. */
enum gp_sim_activity {
	GP_ACTIVITY_NONE,
	GP_ACTIVITY_SAMPLED, /* utilisation over a window, as NVML gives it */
	GP_ACTIVITY_EXACT,   /* what is true at the moment of the look */
	GP_ACTIVITY_EVENTS,  /* ... and changes announce themselves */
};

struct gp_sim_device {
	enum gp_sim_model model;

	/* runlist */
	uint64_t switch_ns;      /* from a context with unfinished work to another ... */
	uint64_t switch_idle_ns; /* ... and from one that has none: nothing to save */
	uint64_t refill_ns;      /* interrupted work makes no progress for so long after it is back,
	                          * and cannot be interrupted again */
	uint32_t slice_us;       /* the hardware's own */
	bool slices;             /* slices can be set */
	uint64_t set_slice_ns;

	/* cwsr */
	enum gp_sim_scheduler scheduler;
	uint32_t xccs;          /* dies with compute units: each saves its own waves */
	uint32_t save_area_kb;  /* what the waves of a full one fill */
	uint32_t save_mb_per_s; /* how fast they are saved or restored, all XCCs together */
	uint64_t grace_ns;      /* short waves may end before the rest is saved; HWS only */
	uint64_t unmap_ns;      /* taking queues off, without the saving ... */
	uint64_t map_ns;        /* ... and putting them on, without the restoring */

	uint64_t launch_ns;        /* from a request's arrival until its kernel is on the GPU ... */
	uint64_t launch_jitter_ns; /* ... plus an exponential with this mean */
	uint32_t launch_hinted_permille; /* the part of it that is left behind a hint */
	uint64_t hold_ns; /* cost of a control call: effect at its end, one at a time; with cwsr
	                   * only what comes before the queues are taken off */
	uint64_t release_ns;
	uint32_t max_held; /* 0: tasks cannot be held */
	enum gp_sim_activity activity;
	uint64_t activity_window_ns;
	uint64_t detect_ns; /* exact, events: queues are looked at so often; 0 = all the time */
	bool hides_run;     /* exact, events: not who runs, nor for how long it did */
};

/* As measured on an H200 with driver 580: docs/simulator.md. */
extern const struct gp_sim_device gp_sim_h200;

/* An MI300X in one partition. Partly assumed, nothing measured: docs/simulator.md. */
extern const struct gp_sim_device gp_sim_mi300x;

struct gp_sim_task {
	char name[32];
	enum gp_sim_load load;
	uint64_t every_ns; /* periodic, Poisson */
	uint64_t phase_ns; /* periodic: the first request, counted from start_ns; 0 = at random */

	/* Trace: when requests come, counted from start_ns; never falling. Not copied: it stays
	 * with the caller and must outlive the simulation. */
	const uint64_t *arrival_ns;
	uint32_t arrivals;

	uint32_t kernels;        /* of a request, one after the other; 0 means 1 */
	uint64_t kernel_ns;      /* GPU time of each */
	uint32_t width_permille; /* cwsr: part of the device that a kernel can fill; 0 = all */
	uint64_t wave_ns;        /* cwsr: how long a wave lasts; 0 = as long as its kernel */
	uint64_t kernel_gap_ns;  /* host time between two of them: the GPU is free */
	uint64_t gap_ns;         /* closed: host time between requests */
	uint64_t prepare_ns;     /* host time between a request's arrival and its launch */
	uint64_t hint_ns;        /* the hint comes so long before the launch; 0 = no hint */
	bool request_marks;      /* the program says when a request begins and ends */
	uint64_t start_ns;
	uint64_t stop_ns;  /* GP_NEVER: stays */
	uint32_t slice_us; /* what the program set by itself; 0 = the hardware's own */
};

struct gp_sim_config {
	struct gp_sim_device device;
	const struct gp_sim_task *task; /* copied */
	uint32_t ntasks;
	uint64_t seed;
	uint64_t first_stream; /* random numbers of task i are stream first_stream + i of the seed
	                        */
	uint32_t number;       /* of the device, for its events */

	/* Where the response times of each task are added up: `ntasks` histograms of the caller's,
	 * NULL for those that nobody wants to know. NULL: the simulation has its own. */
	struct gp_hist *const *response;
};

/* What happens on the device, for pictures, traces and counts. With runlist one task at a time is
 * between RUN and STOP, with cwsr many can be. */
enum gp_sim_what {
	GP_SIM_RUN,     /* the task begins to run */
	GP_SIM_STOP,    /* ... stops running, for whatever reason */
	GP_SIM_SWITCH,  /* the device begins to switch to the task; with cwsr and HWS, it stands
	                 * still  to hold or release it, until the next RUN, HELD or RELEASED */
	GP_SIM_READY,   /* the task has work for the GPU, and had none */
	GP_SIM_DONE,    /* ... has none any more */
	GP_SIM_REQUEST, /* a request was finished */
	GP_SIM_HELD,
	GP_SIM_RELEASED,
	GP_SIM_GONE,
	GP_SIM_BEGIN, /* the program says that a request begins ... */
	GP_SIM_END,   /* ... and ends */
};

struct gp_sim_event {
	enum gp_sim_what what;
	uint64_t now_ns;
	uint32_t device;     /* number of the device, where there are several */
	uint32_t task;       /* index in the configuration */
	uint64_t arrival_ns; /* REQUEST: when it was scheduled to arrive */
};

typedef void gp_sim_watch(void *arg, const struct gp_sim_event *event);

struct gp_sim_result {
	uint64_t finished;        /* requests */
	uint64_t left;            /* arrived and not finished */
	uint64_t work_ns;         /* GPU time that brought a request forward */
	uint64_t run_ns;          /* time on the hardware: also refill and waiting behind a hint */
	struct gp_hist *response; /* from scheduled arrival, in ns; NULL: none are kept */
};

struct gp_sim_totals {
	uint64_t busy_ns; /* somebody was on the hardware */
	uint64_t switch_ns;
	uint64_t switches;
	uint64_t preemptions; /* unfinished work was taken off */
	uint64_t events;
};

struct gp_sim;

/* 0, -ENOMEM, or -EINVAL for a configuration that means nothing (a slice of 0, no kernel). */
int gp_sim_new(const struct gp_sim_config *config, struct gp_sim **sim);
void gp_sim_free(struct gp_sim *sim);

/* The device as a back end: tasks are keyed by 1 + their index. */
struct gp_gpu *gp_sim_gpu(struct gp_sim *sim);

void gp_sim_set_watch(struct gp_sim *sim, gp_sim_watch *watch, void *arg);

/*
 * Loads from outside. Each task of the configuration whose load is GP_LOAD_EXTERNAL is a place that
 * is empty until a program takes it, and again after that one has left. In the configuration only
 * its load counts. All of it happens at the time that the last gp_sim_advance reached.
 */
#define GP_SIM_REQUESTS 16 /* that a program can have queued */

struct gp_sim_program {
	char name[32];
	uint32_t slice_us;       /* what it set by itself; 0 = the hardware's own */
	uint32_t width_permille; /* as in struct gp_sim_task */
	uint64_t wave_ns;
};

struct gp_sim_request {
	uint64_t tag;     /* the program's own */
	uint32_t kernels; /* not 0 */
	uint64_t kernel_ns;
	uint64_t gap_ns; /* host time between two of them */
};

/* A request that is finished. Its value depends on how much of each kernel was executed. */
struct gp_sim_done {
	uint64_t tag;
	uint64_t value;
	uint64_t submitted_ns;
	uint64_t done_ns;
};

/* What a request of `kernels` comes to if each is executed once, and completely. */
uint64_t gp_sim_right_value(uint32_t kernels, uint64_t kernel_ns);

/* The program is attached for the back end of gp_sim_gpu, where `task` is its handle. -ENOSPC: no
 * place is free; -EINVAL. */
int gp_sim_join(struct gp_sim *sim, const struct gp_sim_program *program, uint32_t *task);
/* With all its work. */
void gp_sim_leave(struct gp_sim *sim, uint32_t task);
/* -EAGAIN: GP_SIM_REQUESTS are queued; -EINVAL. */
int gp_sim_submit(struct gp_sim *sim, uint32_t task, const struct gp_sim_request *request);
/* The last one that was finished: for who watches, at GP_SIM_REQUEST. */
const struct gp_sim_done *gp_sim_done(const struct gp_sim *sim, uint32_t task);

/* Until when the one that runs goes on running if nothing else happens; GP_NEVER. */
uint64_t gp_sim_runs_until_ns(const struct gp_sim *sim);

/* A task of which the back end would now say something else; false: there is none. Only where there
 * are places for programs. Reading clears it. */
bool gp_sim_take_changed(struct gp_sim *sim, uint32_t *task);

/* When the next thing happens; GP_NEVER: nothing will. */
uint64_t gp_sim_next_ns(const struct gp_sim *sim);

/*
 * Lets everything happen up to and including `to_ns`, but stops earlier, after the instant at
 * which something happened that a back end would signal. Returns the time reached.
 */
uint64_t gp_sim_advance(struct gp_sim *sim, uint64_t to_ns);

/* Whether the back end signals, and whether tasks came or went. Reading clears it. */
bool gp_sim_take_signal(struct gp_sim *sim, bool *rescan);

/* Counts what is left over and closes the books at `end_ns`, the time reached. Call once. */
void gp_sim_finish(struct gp_sim *sim, uint64_t end_ns);

const struct gp_sim_result *gp_sim_result(const struct gp_sim *sim, uint32_t task);
const struct gp_sim_totals *gp_sim_totals(const struct gp_sim *sim);

/* What one more task costs, in bytes, with a histogram. */
size_t gp_sim_bytes_per_task(void);

#endif
