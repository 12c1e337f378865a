/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One NVIDIA GPU behind the contract: what its parts share.
 *
 *   backend.c    the table of functions; called by the thread that owns the device; waits only for
 *                the first sweep and for answers to questions
 *   worker.c     a thread that makes the calls to RM about processes: actions first, in the order
 *                they came
 *   processes.c  its chores: the processes that are known, what changed, who ended
 *   sweep.c      ... who came: RM's list of those that compute, a look at every process
 *   questions.c  ... what somebody asks about one process
 *   sampler.c    a thread that finds out who worked
 *
 * Under `lock`, which nobody holds while calling the driver: requests, tasks, what was seen. The
 * processes belong to the worker alone.
 */
#ifndef GP_GPU_NVIDIA_NVIDIA_DEVICE_H
#define GP_GPU_NVIDIA_NVIDIA_DEVICE_H

#include <pthread.h>

#include "base/clock.h"
#include "base/table.h"
#include "gpu/nvidia/ctxsw.h"
#include "gpu/nvidia/nvml.h"
#include "gpu/nvidia/target.h"
#include "gpu/requests.h"

#define GP_NV_SPLITS_MAX 63
#define GP_NV_WINDOW_NS  (20 * GP_NS_PER_MS)  /* how often switches are read */
#define GP_NV_USE_NS     (200 * GP_NS_PER_MS) /* how often NVML is asked: it has no news sooner */
#define GP_NV_USE_AGE_NS (500 * GP_NS_PER_MS) /* what it said is at most that old, as a rule */

/* A process with a control file. */
struct gp_nv_process {
	uint64_t key; /* of its main task; stays when a child takes over after a fork */
	struct gp_nv_target target;
	/* Stands for this one, which has the same open file: the two are one. It is the one that RM
	 * says computes, else the one that started first. NULL: this one stands for itself. */
	struct gp_nv_process *leader;
	unsigned nsplits;
	uint32_t split[GP_NV_SPLITS_MAX]; /* queues that are tasks of their own */
	bool settled;       /* its groups have the slice they will have: see is_settled */
	bool computes;      /* RM said so, or could not tell when somebody asked for it */
	bool searching;     /* there are clients yet to be asked for */
	uint64_t search_ns; /* when to go on with that */
	bool touched;       /* by us: looked at more often */
	bool verify;        /* whether the last hold or release had its effect */
	unsigned looks;
	uint64_t look_ns; /* when to look next */
};

/* Kinds of requests. Their value is a slice in microseconds or a preemption mode. */
enum gp_nv_request_kind { GP_NV_HOLD, GP_NV_RELEASE, GP_NV_SLICE, GP_NV_MODE };

struct gp_nv_task {
	bool used;
	bool leaving; /* detached; the worker puts it back and frees the place */
	uint64_t key;
	pid_t pid;
	uint32_t queue;
	uint32_t slice_want_us; /* last asked for; 0 = as found */
	bool touched;
	bool hold_want;      /* whether a hold or a release was asked for last */
	uint32_t generation; /* of its place: the next task there has another */

	/* What the worker knows. */
	bool has_groups;
	bool held;
	uint32_t slice_us;
	unsigned holds_queued, slices_queued;
	int32_t hold_failed, slice_failed;
	uint32_t hold_code, slice_code;
	struct gp_undo undo;

	/* What the sampler knows. */
	bool sampled;
	bool placed; /* whether it is on the engine is known: there was a record since it came */
	bool active_known, active;
	uint64_t run_ns;         /* closed runs */
	uint64_t on_since_ns;    /* 0 = off the engine */
	uint64_t on_at_ns;       /* when it last came */
	uint64_t off_at_ns;      /* when it last went */
	uint64_t run_at_ns;      /* up to when that is known */
	uint64_t run_told_ns;    /* what was told: it never falls */
	uint64_t scheduled;      /* how often it came on the engine */
	uint64_t window_came;    /* of those, at the beginning of the window */
	uint64_t loose_since_ns; /* when it was last released; GP_NEVER = held */
	uint64_t loose_from_ns;  /* the last time before that: from then */
	uint64_t loose_until_ns; /* until it was held */
	uint32_t percent;        /* what NVML said last */
	uint64_t percent_ns;     /* about the time from then on */
};

/* A question that somebody waits for. */
struct gp_nv_call {
	struct gp_question question;
	enum { GP_NV_CALL_FIND, GP_NV_CALL_SPLIT, GP_NV_CALL_QUEUES } kind;
	pid_t pid;
	uint64_t key;
	uint32_t queue_id;
	struct gp_seen *seen;
	struct gp_queue *queue;
	unsigned max;
	struct gp_error *err;
};

struct gp_nv_gpu {
	struct gp_gpu base;
	uint32_t gpu_id;
	char pci[16];

	struct gp_requests requests; /* its lock protects the members down to `generation` */
	bool swept;
	bool fresh; /* a task was attached: the worker notes its contexts */
	struct gp_nv_task *task;
	unsigned ntasks;
	struct gp_seen *seen;
	struct gp_nv_task *seen_task; /* beside it: what a task begins with when it is attached */
	unsigned nseen, seen_capacity;
	struct gp_table memory;     /* pid -> bytes */
	struct gp_table by_context; /* unique channel id -> generation and handle of a task */
	uint32_t generation;

	int event_fd; /* for whoever drives the engine */
	int stop_fd;  /* for the sampler */
	pthread_t worker, sampler;
	bool has_sampler;

	/* The worker's own. */
	pid_t self; /* is nobody's task */
	struct gp_rm rm;
	struct gp_nv_process **process;
	unsigned nprocesses;
	/* Who could not be added: pid -> number of open files then; for those that RM named,
	 * pid | 1 << 32 -> start time. */
	struct gp_table looked_at;
	bool has_pids; /* RM lists who computes: no need to look at everybody */
	unsigned sweeps;
	pid_t *to_sweep; /* those yet to be looked at in this sweep */
	unsigned nto_sweep, next_to_sweep, to_sweep_capacity;
	uint64_t sweep_ns; /* when to look next at every process */
	uint64_t bury_ns;  /* when to look next for those that have ended */
	uint64_t pids_ns;  /* when to ask next who computes */

	/* The sampler's own. */
	struct gp_ctxsw ctxsw;
	bool has_ctxsw;
	int64_t clock_offset_ns; /* from the GPU's clock to CLOCK_MONOTONIC */
	uint64_t clock_ns;       /* when that was last asked for */
	struct gp_nvml *nvml;
	void *nvml_device;
	bool has_use;       /* NVML tells who worked */
	uint64_t use_us;    /* the newest sample that was read */
	unsigned silent;    /* how often in a row there was none */
	uint32_t busy;      /* percent, all processes together, in that */
	unsigned workers;   /* processes that did something in it */
	uint64_t lost;      /* records of switches that came too late */
	uint64_t use_ns;    /* when to ask NVML next */
	uint64_t memory_ns; /* the same for memory */
};

/* worker.c */
void *gp_nv_rm_thread(void *gpu);
void gp_nv_notify(struct gp_nv_gpu *d); /* there is news for the engine */

/* Writes what is known of the process's groups into its tasks, and who there is into `seen`. */
void gp_nv_publish_process(struct gp_nv_gpu *d, struct gp_nv_process *p);
void gp_nv_publish_seen(struct gp_nv_gpu *d);

/* Fills in what is known of the groups of a task that has `key` and `queue`. */
void gp_nv_describe_task(const struct gp_nv_gpu *d, const struct gp_nv_process *p,
                         struct gp_nv_task *t);

/* Whether a group belongs to a task: of this GPU, computing, and not a task of its own elsewhere.
 * GP_QUEUE_ALL is the process's main task. */
bool gp_nv_is_of_task(const struct gp_nv_gpu *d, const struct gp_nv_process *p,
                      const struct gp_nv_group *g, uint32_t queue);

/* processes.c */
struct gp_nv_process *gp_nv_find_process(struct gp_nv_gpu *d, uint64_t key);
/* The next chore that is due; true when there was one. */
bool gp_nv_housekeeping(struct gp_nv_gpu *d, uint64_t now_ns);
uint64_t gp_nv_next_housekeeping_ns(const struct gp_nv_gpu *d);
/* Before those that ended are dropped: a child that one forked may have its queues. */
void gp_nv_find_new_owners(struct gp_nv_gpu *d);
void gp_nv_process_ended(struct gp_nv_gpu *d, struct gp_nv_process *p);
/* After an action: at once when it failed, for what it meant may be gone. */
void gp_nv_refresh_soon(struct gp_nv_process *p, bool failed, bool verify);
void gp_nv_forget_processes(struct gp_nv_gpu *d);

/* questions.c */
void gp_nv_answer(struct gp_nv_gpu *d, struct gp_nv_call *call);

/* sampler.c */
void *gp_nv_sampler(void *gpu);

#endif
