/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated GPU and the programs that use it: discrete events, virtual time, seeded random
 * numbers. The same configuration and seed give the same result, bit for bit. Nothing is allocated
 * after gp_sim_new.
 *
 * Model `runlist` (NVIDIA): one context at a time on the compute engine, round robin by slice, a
 * fixed cost for each switch; an idle context yields at once. Model `cwsr` (AMD): the queues of all
 * tasks share the compute units. To hold or release a queue, waves are saved and restored, on most
 * devices those of all tasks. docs/simulator.md says where each number comes from and what the
 * models leave out.
 */
#ifndef GP_SIM_MODEL_SIM_GPU_H
#define GP_SIM_MODEL_SIM_GPU_H

#include "base/hist.h"
#include "gpu/gpu.h"

enum gp_sim_load {
	GP_LOAD_PERIODIC, /* a request every `every_ns`, whether or not the last one is finished */
	GP_LOAD_POISSON,  /* the same on average, at random times */
	GP_LOAD_CLOSED,   /* the next request when the last one is finished */
	GP_LOAD_IDLE,     /* has queues, but no work */
	GP_LOAD_TRACE,    /* requests at the times of a list */
	GP_LOAD_EXTERNAL, /* a slot for an external program; see gp_sim_join */
};

/* How a device is shared among tasks. */
enum gp_sim_model {
	GP_SIM_RUNLIST, /* one task at a time, round robin by slice (NVIDIA) */
	GP_SIM_CWSR,    /* all tasks share the compute units; waves are saved and restored (AMD) */
};

/* The scheduler that takes queues off an AMD device. */
enum gp_sim_scheduler {
	GP_SIM_HWS, /* every change stops all queues of the device (Instinct) */
	GP_SIM_MES, /* single queues are removed and added (Radeon from gfx11 on) */
};

/* How the device reports activity. */
enum gp_sim_activity {
	GP_ACTIVITY_NONE,
	GP_ACTIVITY_SAMPLED, /* utilisation over a window, as NVML reports it */
	GP_ACTIVITY_EXACT,   /* the current state at each observation */
	GP_ACTIVITY_EVENTS,  /* as exact, and each change is signalled */
};

struct gp_sim_device {
	enum gp_sim_model model;

	/* Model runlist. */
	uint64_t switch_ns;      /* switch from a context with unfinished work */
	uint64_t switch_idle_ns; /* switch from an idle context: no state to save */
	uint64_t refill_ns; /* time in which interrupted work that is back on the device makes no
			       progress and cannot be interrupted again */
	uint32_t slice_us;  /* the hardware's default */
	bool slices;        /* slices can be set */
	uint64_t set_slice_ns;

	/* Model cwsr. */
	enum gp_sim_scheduler scheduler;
	uint32_t xccs;          /* dies with compute units; each saves its own waves */
	uint32_t save_area_kb;  /* size of the saved waves of one full XCC */
	uint32_t save_mb_per_s; /* save and restore rate of all XCCs together */
	uint64_t
		grace_ns; /* time in which short waves may end before the rest is saved; HWS only */
	uint64_t unmap_ns; /* taking queues off, without saving waves */
	uint64_t map_ns;   /* putting queues on, without restoring waves */

	uint64_t launch_ns;        /* from a request's arrival until its kernel is on the GPU */
	uint64_t launch_jitter_ns; /* mean of an exponential time that is added to launch_ns */
	uint32_t launch_hinted_permille; /* the part of the launch time that is left after a hint */
	uint64_t hold_ns; /* cost of a control call; it takes effect at the end, one call at a time.
			     With cwsr: only the time before queues are taken off */
	uint64_t release_ns;
	uint32_t max_held; /* 0 = tasks cannot be held */
	enum gp_sim_activity activity;
	uint64_t activity_window_ns;
	uint64_t detect_ns; /* exact, events: period at which queues are polled; 0 = continuously */
	bool hides_run;     /* exact, events: run state and run time are not reported */
};

/* As measured on an H200 with driver 580; see docs/simulator.md. */
extern const struct gp_sim_device gp_sim_h200;

/* An MI300X in one partition. Partly assumed, not measured; see docs/simulator.md. */
extern const struct gp_sim_device gp_sim_mi300x;

struct gp_sim_task {
	char name[32];
	enum gp_sim_load load;
	uint64_t every_ns; /* periodic, poisson: (mean) time between requests */
	uint64_t phase_ns; /* periodic: the first request, counted from start_ns; 0 = at random */

	/* Load trace: arrival times of requests, counted from start_ns, in ascending order. Not
	 * copied: the caller keeps the list, which must outlive the simulation. */
	const uint64_t *arrival_ns;
	uint32_t arrivals;

	uint32_t kernels;        /* kernels per request, one after the other; 0 means 1 */
	uint64_t kernel_ns;      /* GPU time of each kernel */
	uint32_t width_permille; /* cwsr: part of the device that a kernel can fill; 0 = all */
	uint64_t wave_ns;        /* cwsr: duration of a wave; 0 = as long as its kernel */
	uint64_t kernel_gap_ns;  /* host time between two kernels: the GPU is free */
	uint64_t gap_ns;         /* closed: host time between requests */
	uint64_t prepare_ns;     /* host time between a request's arrival and its launch */
	uint64_t hint_ns;        /* the hint comes this long before the launch; 0 = no hint */
	bool request_marks;      /* the program sends request marks */
	uint64_t start_ns;
	uint64_t stop_ns;  /* GP_NEVER = it never stops */
	uint32_t slice_us; /* set by the program itself; 0 = the hardware's default */
};

struct gp_sim_config {
	struct gp_sim_device device;
	const struct gp_sim_task *task; /* copied */
	uint32_t ntasks;
	uint64_t seed;
	uint64_t
		first_stream; /* random numbers of task i are stream first_stream + i of the seed */
	uint32_t number;      /* number of the device, for its events */

	/* Response times of each task are added to these `ntasks` histograms of the caller; an
	 * entry may be NULL. If `response` is NULL, the simulation has its own histograms. */
	struct gp_hist *const *response;
};

/* What happens on the device, for drawings, traces and counters. With runlist at most one task is
 * between RUN and STOP, with cwsr there can be many. */
enum gp_sim_what {
	GP_SIM_RUN,     /* the task begins to run */
	GP_SIM_STOP,    /* the task stops running, for any reason */
	GP_SIM_SWITCH,  /* the device begins to switch to the task. With cwsr and HWS: the device
			   stands still to hold or release the task, until the next RUN, HELD or
			   RELEASED */
	GP_SIM_READY,   /* the task has work for the GPU, and had none before */
	GP_SIM_DONE,    /* the task has no more work */
	GP_SIM_REQUEST, /* a request was finished */
	GP_SIM_HELD,
	GP_SIM_RELEASED,
	GP_SIM_GONE,
	GP_SIM_BEGIN, /* request mark: begin */
	GP_SIM_END,   /* request mark: end */
};

struct gp_sim_event {
	enum gp_sim_what what;
	uint64_t now_ns;
	uint32_t device;     /* number of the device, if there are several */
	uint32_t task;       /* index in the configuration */
	uint64_t arrival_ns; /* for REQUEST: its scheduled arrival */
};

typedef void gp_sim_watch(void *arg, const struct gp_sim_event *event);

struct gp_sim_result {
	uint64_t finished; /* requests */
	uint64_t left;     /* requests that arrived and were not finished */
	uint64_t work_ns;  /* GPU time that made progress on a request */
	uint64_t run_ns;   /* time on the hardware, including refill and waiting after a hint */
	struct gp_hist *response; /* from scheduled arrival, in ns; NULL = not recorded */
};

struct gp_sim_totals {
	uint64_t busy_ns; /* time with at least one task on the hardware */
	uint64_t switch_ns;
	uint64_t switches;
	uint64_t preemptions; /* how often unfinished work was taken off */
	uint64_t events;
};

struct gp_sim;

/* Returns 0, -ENOMEM, or -EINVAL for an invalid configuration (for example a slice of 0, or no
 * kernel). */
int gp_sim_new(const struct gp_sim_config *config, struct gp_sim **sim);
void gp_sim_free(struct gp_sim *sim);

/* The device as a back end. The key of a task is 1 + its index. */
struct gp_gpu *gp_sim_gpu(struct gp_sim *sim);

void gp_sim_set_watch(struct gp_sim *sim, gp_sim_watch *watch, void *arg);

/*
 * External programs. Each task of the configuration with load GP_LOAD_EXTERNAL is a slot. It is
 * empty until a program takes it, and again after that program has left. The configuration of a
 * slot has no other values. All calls below take effect at the time that the last gp_sim_advance
 * reached.
 */
#define GP_SIM_REQUESTS 16 /* limit of queued requests per program */

struct gp_sim_program {
	char name[32];
	uint32_t slice_us;       /* set by the program itself; 0 = the hardware's default */
	uint32_t width_permille; /* as in struct gp_sim_task */
	uint64_t wave_ns;
};

struct gp_sim_request {
	uint64_t tag;     /* chosen by the program */
	uint32_t kernels; /* must not be 0 */
	uint64_t kernel_ns;
	uint64_t gap_ns; /* host time between two kernels */
};

/* A finished request. Its value depends on how much of each kernel was executed. */
struct gp_sim_done {
	uint64_t tag;
	uint64_t value;
	uint64_t submitted_ns;
	uint64_t done_ns;
};

/* The value of a request of `kernels` kernels if each is executed once, and completely. */
uint64_t gp_sim_right_value(uint32_t kernels, uint64_t kernel_ns);

/* Adds a program. It is attached to the back end of gp_sim_gpu, with handle `task`. Returns 0,
 * -ENOSPC if no slot is free, or -EINVAL. */
int gp_sim_join(struct gp_sim *sim, const struct gp_sim_program *program, uint32_t *task);
/* Removes the program and all its work. */
void gp_sim_leave(struct gp_sim *sim, uint32_t task);
/* Returns 0, -EAGAIN if GP_SIM_REQUESTS are queued, or -EINVAL. */
int gp_sim_submit(struct gp_sim *sim, uint32_t task, const struct gp_sim_request *request);
/* The last finished request of the task; for a watch function at GP_SIM_REQUEST. */
const struct gp_sim_done *gp_sim_done(const struct gp_sim *sim, uint32_t task);

/* When the running task will stop if nothing else happens; GP_NEVER = not at all. */
uint64_t gp_sim_runs_until_ns(const struct gp_sim *sim);

/* Returns a task for which an observation would now differ, or false if there is none. Reading
 * clears the mark. Only for devices with slots for external programs. */
bool gp_sim_take_changed(struct gp_sim *sim, uint32_t *task);

/* Time of the next event; GP_NEVER = there is none. */
uint64_t gp_sim_next_ns(const struct gp_sim *sim);

/*
 * Processes all events up to and including `to_ns`, but stops early after an instant at which a
 * back end would signal. Returns the time reached.
 */
uint64_t gp_sim_advance(struct gp_sim *sim, uint64_t to_ns);

/* Whether the back end signals, and whether tasks came or left. Reading clears both. */
bool gp_sim_take_signal(struct gp_sim *sim, bool *rescan);

/* Counts unfinished requests and completes the results at `end_ns`, the time reached. Call once. */
void gp_sim_finish(struct gp_sim *sim, uint64_t end_ns);

const struct gp_sim_result *gp_sim_result(const struct gp_sim *sim, uint32_t task);
const struct gp_sim_totals *gp_sim_totals(const struct gp_sim *sim);

/* Memory per task in bytes, with a histogram. */
size_t gp_sim_bytes_per_task(void);

#endif
