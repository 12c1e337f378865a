/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of AMD GPUs, shared by the files of this folder.
 *
 *   amd_backend.c     the tables of functions; called by the threads that own devices
 *   amd_queries.c     find, split and queues, which may wait
 *   kfd_thread.c      the KFD thread: makes every call to amdkfd, for all devices, because a
 *                     session covers all GPUs of a process and belongs to the tracing thread
 *   kfd_sessions.c    on the KFD thread: the sessions with processes
 *   own_queues.c      the queues of this process itself, without a lasting session
 *   activity.c        the activity thread: finds tasks and active tasks without driver calls
 *   proof.c           on the activity thread: whether holds and releases have an effect
 *   standstill.c      whether a process works, for commands and the keeper, without a session
 *   smi.c             on the activity thread and, after a failure, on the KFD thread: which
 *                     processes the driver has evicted, and which GPUs it resets
 *   queue_pointers.c  on the activity thread: where queues without a session have their pointers
 *   memory_reader.c   a helper process that reads the memory of other processes
 *
 * requests.lock protects requests, devices and tasks. No thread holds it during a driver call or
 * while it reads the memory of a process. Targets belong to the KFD thread alone.
 */
#ifndef GP_GPU_AMD_AMD_DEVICE_H
#define GP_GPU_AMD_AMD_DEVICE_H

#include <pthread.h>

#include "base/clock.h"
#include "gpu/amd/session.h"
#include "gpu/amd/topology.h"
#include "gpu/gpu.h"
#include "gpu/requests.h"

#define GP_AMD_SPLITS_MAX 63 /* for each process: a key has 6 bits for the split */
#define GP_AMD_BATCH_MAX  (GP_AMD_SPLITS_MAX + 1) /* requests in one driver call */
#define GP_AMD_OPEN_MAX   (2 * GP_AMD_NODES_MAX)  /* a device may be open twice */
#define GP_AMD_DETECT_NS  (1 * GP_NS_PER_MS)      /* how soon a packet in a queue is noticed */
/* If the driver does not count occupied compute units: how long a packet that the hardware took is
 * assumed to run. A longer time delays best-effort work after each request; with a shorter time it
 * runs beside longer kernels of the service. */
#define GP_AMD_LINGER_NS (10 * GP_NS_PER_MS)
#define GP_AMD_SCAN_NS   (50 * GP_NS_PER_MS) /* how soon a new process is noticed */

/* The read and write pointer of a queue: their addresses in the memory of its process. */
struct gp_amd_pointers {
	uint64_t read_address, write_address;
	uint64_t mask; /* for pointers that wrap at the end of the ring; ~0: they only grow */

	/* Of the last reading. */
	uint64_t taken;   /* the read pointer */
	uint64_t pending; /* packets that wait; UINT64_MAX: not read */

	/* Evidence, see proof.c. */
	bool moved;         /* the read pointer, since the last hold or release */
	uint64_t waited_ns; /* time released with waiting packets, since the pointer last moved */
	uint64_t still_ns;  /* when that began; 0: no packet waits, or it works */
	unsigned still_number; /* number of the release then */
	uint64_t longest_ns;   /* the longest waited_ns after which the pointer moved */
};

/*
 * Evidence for the last hold or release that the driver confirmed. The read pointers of queues that
 * are really off the hardware do not move. In a released task, that of each queue with waiting
 * packets does. See proof.c.
 */
struct gp_amd_proof {
	enum {
		GP_AMD_PROOF_DONE,
		GP_AMD_PROOF_BEGUN,
		GP_AMD_PROOF_LOOKING,
		GP_AMD_PROOF_EVICTED, /* of a release: begins again when the driver restores it */
		GP_AMD_PROOF_QUIET,   /* of a release: no packet waits; a queue has not moved yet */
	} state;
	bool of_hold;
	bool after_end;       /* of a release: by the end of the session */
	bool disproved;       /* until the next hold or release */
	bool seen;            /* packets waited, and no waves ran; of a release: it worked */
	bool seen_all;        /* of a release: each of its queues worked */
	bool read_in_hold;    /* the pointers were read while it is held */
	bool end_due;         /* a release was disproved: the next one ends the session */
	bool had_chance;      /* the end of the session did not help: the patience was doubled */
	unsigned ends;        /* sessions ended for this release without an effect that was seen */
	unsigned number;      /* of the request: readings that began earlier do not count */
	unsigned moves;       /* readings with moved read pointers since the first one */
	unsigned looks;       /* readings since the first one, or since a pointer moved */
	unsigned still;       /* consecutive readings: packets waited, no waves ran, none moved */
	unsigned stalls;      /* consecutive readings: packets waited in each queue, no waves ran */
	uint64_t stalled_ns;  /* the first of them */
	bool in_part;         /* of a release: progress was seen, but not of all queues */
	uint64_t begun_ns;    /* when the driver answered; of a hold: the last time it moved */
	uint64_t read_ns;     /* last reading; 0 = none */
	uint64_t looked_ns;   /* time released while a queue has no progress with waiting packets */
	uint64_t patience_ns; /* limit of waited_ns of a queue, if no other queue has progress */
	/* Of a queue for which the session was ended: address and value of its read pointer, and
	 * the time released by ends of sessions since. */
	uint64_t stuck_address, stuck_taken, chance_ns;
};

struct gp_amd_task {
	struct gp_amd_gpu *gpu;
	uint64_t key;
	pid_t pid;
	uint64_t start_time;
	uid_t uid;      /* real; (uid_t)-1 if the process has ended */
	uint32_t queue; /* as in struct gp_seen */
	bool leaving;   /* detached: the KFD thread releases it, the activity thread frees it */
	bool gone;

	/* Requested. */
	bool prepare;    /* its activity must be known */
	bool wants_hold; /* it needs a session: it will be held, or its activity needs one */
	bool hold_want;  /* the last request was a hold, not a release */
	uint32_t grace;  /* of its holds, in 1,000 GPU clocks */
	unsigned queued; /* number of requests that have not ended */

	/* Written by the KFD thread. */
	struct gp_amd_target *target; /* NULL = no session */
	uint64_t tried_ns;            /* last attempt to open a session; 0 = none yet */
	struct gp_error why;          /* the last failure: code and sentence */
	bool held;                    /* the driver confirmed that all its queues are suspended */
	bool unsure; /* a queue may be suspended or not, or only some are suspended */
	int32_t failed;
	struct gp_amd_proof proof;       /* also written by the activity thread */
	struct gp_amd_pointers *pointer; /* of its compute queues */
	unsigned npointers;
	unsigned nsplits; /* queues that had been split off processes when `pointer` was written */
	bool has_pointers;
	bool new_pointers; /* not read yet */

	/* Written by the activity thread. */
	uint64_t queues_mark; /* hash of the serials of its queues in sysfs */
	/* A read of the process's memory did not return: no further read before this time, and the
	 * length of this pause, which doubles each time. */
	uint64_t stuck_until_ns, stuck_for_ns;
	bool activity_known; /* `active` and `pending` are known */
	bool active;
	uint64_t pending;
	uint64_t written;   /* sum of the write pointers at the last reading */
	uint64_t worked_ns; /* when it last had work */
	uint64_t active_since_ns;
	/* Search for the pointers of a task without a session: time, queues_mark and wait of the
	 * last one. */
	uint64_t mqds_ns, mqds_mark, mqds_wait_ns;
	uint64_t pointers_mark; /* queues_mark at the time when `pointer` was read */
	bool blind;             /* the pointers cannot be found; `why` says so */
};

enum gp_amd_request_kind { GP_AMD_PREPARE, GP_AMD_UNPREPARE, GP_AMD_HOLD, GP_AMD_RELEASE };

/* A question of a command, which waits for the answer. */
struct gp_amd_call {
	struct gp_question question;
	struct gp_amd_gpu *gpu;
	pid_t pid;
	uint64_t start_time;
	struct gp_queue *queue;
	struct gp_amd_pointers *pointer; /* same order as `queue` */
	unsigned max;
	struct gp_error *err;
};

/* A process with a session. */
struct gp_amd_target {
	struct gp_amd_session session;
	unsigned users;            /* number of tasks; plus one, for good, after gp_amd_queues */
	bool parting;              /* the session has ended, but not yet the ptrace link */
	bool ending;               /* the session has to end, and the driver has not done it yet */
	uint64_t end_ns, pause_ns; /* when it is tried again, and the pause before that */
	unsigned resume_failures;  /* since the last resume that succeeded */
};

/* A process with compute queues on a device. */
struct gp_amd_seen {
	struct gp_seen is;
	unsigned queues;
	uint64_t mark; /* hash of their serials: changes when a queue changes */
};

/* A process that the driver keeps off a GPU. */
struct gp_amd_eviction {
	pid_t pid;
	uint64_t start_time;
	unsigned times;    /* evictions less restores; 0 = not known any more */
	unsigned trigger;  /* enum kfd_smi_trigger, of the first */
	bool in_reset;     /* it came with a reset: the driver does not restore the process */
	uint64_t since_ns; /* CLOCK_BOOTTIME */
};

/* The SMI events of a GPU, and what they have told. requests.lock protects it, except `fd`. */
struct gp_amd_stream {
	uint32_t gpu_id;
	int fd; /* -1: it cannot be read */
	bool in_reset;
	struct gp_amd_eviction *eviction;
	unsigned n;
};

struct gp_amd_gpu {
	struct gp_gpu base;
	struct gp_kfd_thread *kfd_thread;
	struct gp_amd_node node;
	struct gp_amd_stream *stream; /* of the KFD thread; NULL: none */
	int event_fd;
	struct gp_amd_task **task; /* by handle; NULL = free */
	unsigned ntasks;
	struct gp_amd_seen *seen;
	unsigned nseen, seen_capacity;
	bool scanned; /* `seen` is valid */
};

/* A queue that is a task of its own. */
struct gp_amd_split {
	uint64_t key; /* of the split task */
	uint32_t gpu_id;
	uint32_t queue;
};

/* The queues of this process itself, see own_queues.c. */
struct gp_amd_self {
	pthread_mutex_t lock; /* protects all members */
	unsigned n;
	struct gp_amd_own_queue *own;
};

struct gp_kfd_thread {
	struct gp_requests requests; /* its lock protects the members down to `leaving` */
	bool activity_quit;
	struct gp_amd_gpu *gpu[GP_AMD_OPEN_MAX];
	unsigned ngpus;
	struct gp_amd_split *split; /* only grows: users make few of them */
	unsigned nsplits;
	unsigned leaving; /* number of detached tasks that the KFD thread has to release */
	struct gp_amd_self self;
	struct gp_amd_stream stream[GP_AMD_NODES_MAX]; /* only grows */
	unsigned nstreams;
	pthread_mutex_t smi_lock; /* held while streams are read; taken before requests.lock */
	pthread_mutex_t query_lock;
	struct gp_amd_readers *query_readers; /* of gp_amd_queues(); NULL: none yet */

	int kfd;
	int activity_fd;      /* wakes the activity thread */
	bool activity_sleeps; /* it reads no task now; protected by requests.lock */
	bool handles_events;  /* the list of queues may be old; protected by requests.lock */
	int epoll_fd;
	pthread_t thread, activity;

	/* KFD thread only. */
	enum gp_amd_rule rule;
	struct gp_amd_target **target;
	unsigned ntargets;
	uint64_t tick_ns;
};

/* The key of the main task of a process, from the key of any of its tasks. */
static inline uint64_t gp_amd_process_of(uint64_t key)
{
	return key & ~(uint64_t)GP_AMD_SPLITS_MAX;
}

/* kfd_thread.c */

/* One thread serves all devices of this process. It ends when the last device leaves. */
int gp_kfd_thread_join(struct gp_amd_gpu *gpu, struct gp_error *err);
void gp_kfd_thread_leave(struct gp_amd_gpu *gpu);

/* Adds a request. Caller holds requests.lock. false: no room, which gp_amd_make_room makes. */
bool gp_amd_ask(struct gp_kfd_thread *h, enum gp_amd_request_kind kind, struct gp_amd_task *task);
int gp_amd_make_room(struct gp_kfd_thread *h);
void gp_amd_notify(struct gp_amd_gpu *gpu); /* makes event_fd readable */

/* Whether queue `id` belongs to the task with `key` and `queue`. Caller holds requests.lock. */
bool gp_amd_is_of(const struct gp_kfd_thread *h, uint64_t key, uint32_t queue, uint32_t gpu_id,
		  uint32_t id);

/* kfd_sessions.c */

struct gp_amd_pointers gp_amd_pointers_of(const struct kfd_queue_snapshot_entry *is);

/* On the KFD thread. */

void gp_amd_prepare(struct gp_kfd_thread *h, struct gp_amd_task *task);
/* For tasks of one process: all of them, or none. 0 or -errno. `proven`: nothing was suspended, or
 * the session was ended. */
int gp_amd_hold(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n);
int gp_amd_release(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n,
		   bool *proven);
void gp_amd_unprepare(struct gp_kfd_thread *h, struct gp_amd_task *task);
/* The same for a task that stays, unless a hold is wanted again. */
void gp_amd_unprepare_idle(struct gp_kfd_thread *h, struct gp_amd_task *task);
void gp_amd_list_queues(struct gp_kfd_thread *h, struct gp_amd_call *call);

/* Writes the state of the queues into the tasks of the target. Caller holds requests.lock. */
void gp_amd_publish(struct gp_kfd_thread *h, struct gp_amd_target *target, bool queues_changed);
/* Queues were created or destroyed: holds the new queues of held tasks and publishes the state. */
void gp_amd_settle(struct gp_kfd_thread *h, struct gp_amd_target *target);
void gp_amd_target_events(struct gp_kfd_thread *h, struct gp_amd_target *target);
/* The session has ended. Its tasks may remain: after exec a process has no queues. */
void gp_amd_lose(struct gp_kfd_thread *h, struct gp_amd_target *target);
/* To be called every few ms while a target is traced, or has an unanswered event. */
void gp_amd_tick(struct gp_kfd_thread *h);
void gp_amd_forget_targets(struct gp_kfd_thread *h);

/* activity.c */

void *gp_amd_activity_thread(void *kfd_thread);

/* proof.c. Caller holds requests.lock. */
bool gp_amd_proof_wants_occupancy(const struct gp_amd_task *task);

struct gp_amd_reading;

/* The driver has confirmed a hold or release. `proven`: the effect was seen as well. */
void gp_amd_proof_begin(struct gp_amd_task *t, bool hold, bool proven, uint64_t now_ns);
/* Evaluates a reading that began with the proof number `g->proof_number`. True: the proof has just
 * failed. */
bool gp_amd_proof_note(struct gp_amd_task *t, const struct gp_amd_reading *g, uint64_t now_ns);
/* Sessions were ended for a release, one after the other, and no work was seen after any of them.
 * The driver is not asked again; the readings go on and show if the task works again. */
bool gp_amd_proof_gave_up(const struct gp_amd_task *t);
/* What shows the last hold or release. A queue that takes no packets after its release may be
 * suspended with a saved kernel: then only the driver confirms it. */
enum gp_evidence gp_amd_proof_evidence(const struct gp_amd_task *t);
/* The pointers of a task without a session cannot be read any more. */
void gp_amd_proof_lose_pointers(struct gp_amd_task *t);
/* Whether the proof needs further readings. It ends by itself if there are none. */
bool gp_amd_proof_is_open(const struct gp_amd_task *t, uint64_t now_ns);

/* smi.c */

/* The stream of a GPU, opened if it is new; NULL: too many. Calls must not overlap. */
struct gp_amd_stream *gp_amd_smi_open(struct gp_kfd_thread *h, uint32_t gpu_id);
void gp_amd_smi_close(struct gp_kfd_thread *h);
/* After the driver was loaded anew. */
void gp_amd_smi_reopen(struct gp_kfd_thread *h);
/* Notes all events until now. */
void gp_amd_smi_read(struct gp_kfd_thread *h);
/* Caller holds requests.lock. For how long the driver has kept the process of the task off the GPU;
 * 0: not known to. `by_reset`: until the process ends. */
uint64_t gp_amd_evicted_ns(const struct gp_amd_task *t, bool *by_reset);
/* Caller holds requests.lock. It was evicted; events were lost since, perhaps that of its restore.
 */
bool gp_amd_eviction_lost(const struct gp_amd_task *t);
/* Caller holds requests.lock. The driver is known to be resetting the GPU. */
bool gp_amd_in_reset(const struct gp_amd_gpu *gpu);

/* queue_pointers.c */

/* Finds the pointers of one task for each call: from the kernel's debug files if they are readable,
 * else from a session. A session is not opened if it would use the only debug slot. */
void gp_amd_find_pointers(struct gp_kfd_thread *h, uint64_t now_ns);

/* Whether the task has all queues of its process on the device. Values of a process are not valid
 * for a part of it. Caller holds requests.lock. */
bool gp_amd_is_whole(const struct gp_amd_task *t);

/* mqds.c */

/* A compute queue in the kernel's debug files. */
struct gp_amd_mqd {
	uint64_t ring_address;
	uint64_t read_address, write_address;
	uint64_t pointer_mask; /* as in struct gp_amd_pointers */
	uint32_t priority;     /* 0 to 15 */
};

/* Reads up to `max` queues of a process on a GPU. Returns the number of queues, or -errno: the file
 * cannot be read. */
int gp_amd_read_mqds(pid_t pid, uint32_t gpu_id, struct gp_amd_mqd *mqd, unsigned max);
bool gp_amd_has_mqds(void); /* whether the file looks readable */
const char *gp_amd_debugfs(void);

/* standstill.c */

/* A process works if a queue of it takes packets. */
void gp_amd_see_work(const pid_t *pid, bool *works, unsigned n, uint64_t limit_ns);

/* Whether packets wait in the queues of a process, and none of them is taken for some 100 ms. 1:
 * yes; 0: it works, or no packet waits; -errno: not known, for example because debugfs, which has
 * the addresses of the pointers, cannot be read. May block for a second. */
int gp_amd_stands_still(pid_t pid);

/* amd_queries.c */

int gp_amd_find(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err);
int gp_amd_split(struct gp_gpu *gpu, pid_t pid, uint32_t queue, struct gp_seen *seen,
		 struct gp_error *err);
int gp_amd_queues(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue,
		  unsigned max, struct gp_error *err);
int64_t gp_amd_process_evicted_ms(struct gp_gpu *gpu, pid_t pid);

/* amd_undo.c */

int gp_amd_undo(const struct gp_undo *undo, struct gp_error *err);
int gp_amd_release_process(pid_t pid, bool *released, struct gp_error *err);

/* own_queues.c */

int gp_amd_hold_self(struct gp_gpu *gpu, unsigned flags, struct gp_error *err);
int gp_amd_release_self(struct gp_gpu *gpu, struct gp_error *err);

/* amd_doctor.c */

void gp_amd_doctor(gp_finding_fn *say, void *arg);

#endif
