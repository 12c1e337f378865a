/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one NVIDIA GPU, shared by the files of this folder.
 *
 *   nvidia_backend.c  the tables of functions; called by the thread that owns the device; waits
 *                     only for the first sweep and for answers
 *   rm_thread.c       the RM thread: makes the calls to RM about processes, actions first, in the
 *                     order of the requests
 *   processes.c       on the RM thread: the known processes, their changes and their end
 *   process_scan.c    on the RM thread: new processes
 *   nvidia_queries.c  on the RM thread: answers to find, split and queues
 *   sampler.c         the sampler thread: which tasks were active
 *   proof.c           compares holds and releases with the work that the sampler has seen
 *
 * requests.lock protects requests, tasks and the list of seen tasks. No thread holds it during a
 * driver call. The processes belong to the RM thread alone.
 */
#ifndef GP_GPU_NVIDIA_NVIDIA_DEVICE_H
#define GP_GPU_NVIDIA_NVIDIA_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/table.h"
#include "gpu/nvidia/ctxsw.h"
#include "gpu/nvidia/nvml.h"
#include "gpu/nvidia/target.h"
#include "gpu/requests.h"

#define GP_NV_SPLITS_MAX 63
#define GP_NV_WINDOW_NS  (20 * GP_NS_PER_MS)  /* how often context switches are read */
#define GP_NV_USE_NS     (200 * GP_NS_PER_MS) /* how often NVML is read; it updates no faster */
#define GP_NV_USE_AGE_NS (500 * GP_NS_PER_MS) /* usual largest age of an NVML sample */

/* A process with a control file. */
struct gp_nv_process {
	uint64_t key; /* of its main task; kept when a forked child takes over */
	struct gp_nv_target target;
	/* A process with the same open file that represents this one: both are one task. The leader
	 * is the process that RM lists as computing, else the one that started first. NULL: this
	 * process represents itself. */
	struct gp_nv_process *leader;
	unsigned nsplits;
	uint32_t split[GP_NV_SPLITS_MAX]; /* queues that are tasks of their own */
	bool settled;                     /* its groups have their final slice, see is_settled */
	bool computes;                    /* RM lists it, or has no list and a command named it */
	bool files_changed;               /* new control files were listed */
	bool searching;                   /* not all client indices were searched */
	uint64_t search_ns;               /* when to continue the search */
	bool touched;                     /* gpreempt changed it: it is examined more often */
	bool verify;                      /* read back the effect of the last hold or release */
	uint64_t read_ns;                 /* when its state was last read back */
	uint64_t verify_ns;               /* when to read back the state next, whoever changed it */
	bool unreachable;                 /* the last attempt to duplicate its files failed */
	unsigned heir_sweep;              /* the sweep that looks for its heirs; 0: it lives */
	unsigned rescans;
	uint64_t rescan_ns; /* when to examine it next */
};

/* Kinds of requests. Their value is a slice in microseconds or a preemption mode. */
enum gp_nv_request_kind { GP_NV_HOLD, GP_NV_RELEASE, GP_NV_SLICE, GP_NV_MODE };

struct gp_nv_task {
	bool used;
	bool leaving; /* detached; the RM thread puts it back and frees the handle */
	uint64_t key;
	pid_t pid;
	uint32_t queue;
	uint32_t slice_want_us; /* last requested; 0 = as found */
	bool touched;
	bool hold_want;      /* the last request was a hold, not a release */
	uint32_t generation; /* of its handle: the next task with this handle has another */

	/* Written by the RM thread. */
	bool has_groups;
	bool held_known; /* each group was read back, or set and confirmed */
	bool held;
	bool unsure; /* it may be held or not, whatever `held` says */
	uint32_t slice_us;
	unsigned holds_queued, slices_queued;
	int32_t hold_failed, slice_failed;
	uint32_t hold_code, slice_code;
	uint32_t unproven; /* status, if the last hold or release was only accepted; else 0 */
	bool untold;       /* RM does not read back a group of the task */
	bool draws;        /* the process has graphics objects, whose work is not held */
	/* Begin and end of the call of the last hold or release; 0: there was none. */
	uint64_t switch_ns, switched_ns;
	uint64_t read_ns;  /* when RM was last asked for the state of its channels */
	uint64_t hold_ns;  /* begin of the call of the last hold */
	bool distrusted;   /* it worked while it was held */
	uint64_t late_ns;  /* end of the last hold that failed: it may take effect late; 0: not */
	uint64_t again_ns; /* when to repeat a release without work */
	unsigned repeated; /* how often the pause was doubled */
	struct gp_undo undo;

	/* Written by the sampler. */
	bool sampled;
	bool position_known; /* there was a record since attach: known to be on or off the engine */
	bool active_known, active;
	uint64_t run_ns;            /* sum of the completed runs */
	uint64_t on_since_ns;       /* 0 = off the engine */
	uint64_t on_at_ns;          /* when it was last put on the engine */
	uint64_t off_at_ns;         /* when it was last taken off */
	uint64_t run_at_ns;         /* time up to which run_ns is known */
	uint64_t run_reported_ns;   /* last value that observe returned; never falls */
	uint64_t scheduled;         /* how often it was put on the engine */
	uint64_t window_scheduled;  /* the same, at the beginning of the window */
	uint64_t released_since_ns; /* when it was last released; GP_NEVER = held */
	uint64_t released_from_ns;  /* the interval before that: its beginning */
	uint64_t released_until_ns; /* and its end, when the task was held */
	uint32_t percent;           /* last NVML sample */
	uint64_t percent_ns;        /* begin of the window of that sample */
	uint64_t sampled_ns;        /* end of the window of the first sample since attach */
	uint64_t worked_ns;         /* the last time at or after which it surely worked */
};

/* A question of a command, which waits for the answer. */
struct gp_nv_call {
	struct gp_question question;
	enum { GP_NV_CALL_FIND, GP_NV_CALL_SPLIT, GP_NV_CALL_QUEUES, GP_NV_CALL_PUT_BACK } kind;
	pid_t pid;
	uint64_t key;
	uint32_t queue_id;
	uint32_t handle;
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
	bool listed;                 /* the first scan() has an answer */
	int scan_error;              /* -errno: the last sweep could not examine every process */
	pid_t scan_missing;          /* the first of these; 0: not known */
	bool fresh;                  /* a task was attached: the RM thread publishes it */
	struct gp_nv_task *task;
	unsigned ntasks;
	struct gp_seen *seen;
	struct gp_nv_task *seen_task; /* same order: the initial state of an attached task */
	unsigned nseen, seen_capacity;
	struct gp_table memory;     /* pid -> bytes */
	struct gp_table by_context; /* unique channel id -> generation and handle of a task */
	uint32_t generation;

	int event_fd; /* for the thread that runs the engine */
	int stop_fd;  /* for the sampler */
	pthread_t worker, sampler;
	bool has_sampler;

	/* RM thread only. */
	pid_t self; /* never a task */
	struct gp_rm rm;
	uint64_t reopen_ns; /* when to ask RM again for what it refused at the start */
	uint64_t reopen_after_ns;
	struct gp_nv_process **process;
	unsigned nprocesses;
	/* Processes that could not be added: pid -> number of open files at that time; for those
	 * that RM lists, pid | 1 << 32 -> start time. */
	struct gp_table examined;
	bool swept;           /* a sweep was complete */
	uint64_t swept_ns;    /* when the first was */
	bool has_pids;        /* RM lists the computing processes: few sweeps are needed */
	unsigned sweeps;      /* begun */
	int sweep_error;      /* the first error of this sweep that can be temporary */
	pid_t sweep_missing;  /* its process; 0: not known */
	bool sweep_urgent;    /* a process waits for its heirs */
	unsigned sweeps_done; /* the number of the last complete one */
	pid_t *to_sweep;      /* the processes of this sweep */
	unsigned nto_sweep, next_to_sweep, to_sweep_capacity;
	struct gp_nv_listing listing; /* of the process that the sweep examines now */
	uint64_t sweep_ns;            /* when to begin the next sweep */
	uint64_t drop_ended_ns;       /* when to look next for processes that have ended */
	uint64_t pids_ns;             /* when to ask RM next for the computing processes */

	/* Sampler thread only. */
	struct gp_ctxsw ctxsw;
	bool has_ctxsw;
	int64_t clock_offset_ns; /* from the GPU's clock to CLOCK_MONOTONIC */
	uint64_t clock_ns;       /* when the offset was last read */
	struct gp_nvml *nvml;
	void *nvml_device;
	bool has_use;       /* NVML reports utilisation by process */
	uint64_t use_us;    /* the newest sample that was read */
	unsigned silent;    /* number of reads in a row without a sample */
	uint32_t busy;      /* percent, all processes together, in that sample */
	unsigned workers;   /* active processes in that sample */
	uint64_t lost;      /* records of switches that were overwritten */
	uint64_t use_ns;    /* when to read NVML next */
	uint64_t memory_ns; /* the same for memory */
};

/* rm_thread.c */
void *gp_nv_rm_thread(void *gpu);
void gp_nv_notify(struct gp_nv_gpu *d); /* makes event_fd readable */

/* Undoes the changes of a task, and tries again after a failure: an RM status. Changes nothing
 * where everything was seen to be as it was found. */
uint32_t gp_nv_put_task_back(struct gp_nv_gpu *d, uint32_t handle);

/* Repeats confirmed releases of a borrowed process that does no work since. */
void gp_nv_release_again(struct gp_nv_gpu *d, struct gp_nv_process *p);

/* Writes the state of the groups of a process into its tasks, and the list of tasks into `seen`. */
void gp_nv_publish_process(struct gp_nv_gpu *d, struct gp_nv_process *p);
void gp_nv_publish_seen(struct gp_nv_gpu *d);

/* Fills in the state of a task from its groups. `key` and `queue` are set. */
void gp_nv_describe_task(const struct gp_nv_gpu *d, const struct gp_nv_process *p,
			 struct gp_nv_task *t);

/* Whether a compute group of this GPU belongs to the task `queue`. The main task, GP_QUEUE_ALL, has
 * every group that is not a task of its own. */
bool gp_nv_is_of_task(const struct gp_nv_gpu *d, const struct gp_nv_process *p,
		      const struct gp_nv_group *g, uint32_t queue);

/* processes.c */
struct gp_nv_process *gp_nv_find_process(struct gp_nv_gpu *d, uint64_t key);
/* Does the next housekeeping step that is due; false: none is. */
bool gp_nv_housekeeping(struct gp_nv_gpu *d, uint64_t now_ns);
uint64_t gp_nv_next_housekeeping_ns(const struct gp_nv_gpu *d);
/* Whether the process has ended, or has closed all its control files. */
bool gp_nv_has_left(const struct gp_nv_process *p);
/* A process has left. A forked child may have inherited its queues, so a changed process is
 * dropped only after a sweep. false: the sweep is not complete; call again. */
bool gp_nv_process_ended(struct gp_nv_gpu *d, struct gp_nv_process *p);
/* After an action. A failed one may mean that the group is gone: examines the process at once. */
void gp_nv_refresh_soon(struct gp_nv_process *p, bool failed, bool verify);
void gp_nv_forget_processes(struct gp_nv_gpu *d);

/* nvidia_queries.c */
void gp_nv_answer(struct gp_nv_gpu *d, struct gp_nv_call *call);

/* proof.c */

/* Whether NVML's use of the process is that of this task. Caller holds requests.lock. */
bool gp_nv_proof_counts_use(const struct gp_nv_gpu *d, const struct gp_nv_task *t);
/* After the call of a hold or release, as t->hold_want says. Caller holds requests.lock. */
void gp_nv_proof_begin(struct gp_nv_task *t, uint64_t begun_ns, uint64_t now_ns);
/* What the work that was seen says of the last hold or release. Caller holds requests.lock. */
void gp_nv_proof_describe(const struct gp_nv_gpu *d, struct gp_nv_task *t, uint64_t now_ns,
			  struct gp_observation *o);

/* Whether the task does no work after a release that the driver confirmed, and the release is to be
 * repeated now. Caller holds requests.lock. */
bool gp_nv_proof_wants_release(struct gp_nv_task *t, uint64_t now_ns);

/* sampler.c */
void *gp_nv_sampler(void *gpu);
/* Begin, in CLOCK_MONOTONIC, of the window of NVML that ended `at_us` after the epoch; 0: it is
 * old.
 */
uint64_t gp_nv_begin_of_window(uint64_t at_us, uint64_t now_ns);

#endif
