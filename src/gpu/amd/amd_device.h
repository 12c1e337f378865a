/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD GPUs behind the contract: what the parts share.
 *
 *   backend.c   the table of functions; called by the threads that own devices; never waits
 *   questions.c those of them that people ask, and wait for
 *   host.c      a thread that makes every call to amdkfd, for all devices: a session belongs to a
 *               process with all its GPUs, and the driver to the thread that traces
 *   targets.c   what that thread does with one process
 *   self.c      this process's own queues, without a session that lasts
 *   watch.c     a thread that looks who is there and who works, without asking the driver
 *   pointers.c  where those have their pointers that nobody is attached to, for it
 *   glance.c    one that reads the memory of others for it
 *
 * Under `lock`, which nobody holds while calling the driver or reading somebody's memory: requests,
 * devices, tasks. Targets are the host thread's own.
 */
#ifndef GP_GPU_AMD_AMD_DEVICE_H
#define GP_GPU_AMD_AMD_DEVICE_H

#include <pthread.h>

#include "base/clock.h"
#include "gpu/amd/session.h"
#include "gpu/amd/topology.h"
#include "gpu/gpu.h"

#define AMD_SPLITS_MAX 63                     /* of a process: a key has 6 bits for them */
#define AMD_BATCH_MAX  (AMD_SPLITS_MAX + 1)   /* requests that are done at once */
#define AMD_OPEN_MAX   (2 * GP_AMD_NODES_MAX) /* one may be open twice */
#define AMD_DETECT_NS  (1 * GP_NS_PER_MS)     /* how soon a packet in a queue is seen */
/* Where the driver does not count occupied compute units: how long work that was taken is taken to
 * run. Longer, and best-effort work waits for nothing after each request; shorter, and it comes
 * back beside kernels that take so long. */
#define AMD_LINGER_NS (10 * GP_NS_PER_MS)
#define AMD_SCAN_NS   (50 * GP_NS_PER_MS) /* how soon a process with its first queue is */

/* Where a queue says how far it is, in the memory of its process. */
struct amd_pointers {
	uint64_t read_address, write_address;
	uint64_t mask; /* of what they count modulo the ring; ~0: they only grow */
};

struct amd_task {
	struct amd_gpu *gpu;
	uint64_t key;
	pid_t pid;
	uint64_t start_time;
	uint32_t queue; /* the one that it is, or GP_QUEUE_ALL */
	bool leaving;   /* detached: the host lets go of it, then the watch frees it */
	bool gone;

	/* What was asked for. */
	bool prepare;    /* its activity matters */
	bool wants_hold; /* ... and it will be held, or cannot be watched without a session */
	bool hold_want;  /* whether a hold or a release was asked for last */
	uint32_t grace;  /* of its holds */
	unsigned queued; /* requests that have not ended */

	/* What the host knows. */
	struct amd_target *target; /* NULL: no session */
	uint64_t tried_ns;         /* when we tried to have one; 0 = not yet */
	struct gp_error why;       /* what went wrong last: code and sentence */
	bool held;
	int32_t failed;
	struct amd_pointers *pointer; /* of its compute queues */
	unsigned npointers;
	bool has_pointers;
	bool new_pointers; /* the watch has not looked at them yet */

	/* What the watch knows. */
	uint64_t queues_mark; /* of its queues, as sysfs shows them */
	int mem_fd;
	uint64_t stuck_until_ns, stuck_for_ns; /* its memory did not come */
	bool looked;                           /* activity is known */
	bool active;
	uint64_t pending;
	uint64_t written;   /* sum of the write pointers at the last look */
	uint64_t worked_ns; /* when work was last seen */
	uint64_t active_since_ns;
	/* Pointers of one without a session: when they were looked for, of which queues, when next.
	 */
	uint64_t mqds_ns, mqds_mark, mqds_wait_ns;
	uint64_t pointers_mark; /* of the queues whose they are */
	bool blind;             /* there is no way to find them: that was said */
};

enum amd_request_kind { AMD_PREPARE, AMD_HOLD, AMD_RELEASE };

struct amd_request {
	enum amd_request_kind kind;
	struct amd_task *task;
};

/* A question that somebody waits for. */
struct amd_call {
	struct amd_gpu *gpu;
	pid_t pid;
	uint64_t start_time;
	struct gp_queue *queue;
	struct amd_pointers *pointer; /* beside it */
	unsigned max;
	struct gp_error *err;
	int result;
	bool done;
};

/* A process with a session. */
struct amd_target {
	struct gp_amd_session session;
	unsigned users; /* tasks on devices, and who asked about its queues, until the end */
	bool parting;   /* no session any more; only its link is still to end */
};

/* A process with compute queues on a device. */
struct amd_seen {
	struct gp_seen is;
	unsigned queues;
	uint64_t mark; /* another when one of them is another */
};

struct amd_gpu {
	struct gp_gpu base;
	struct amd_host *host;
	struct gp_amd_node node;
	int news_fd;
	struct amd_task **task; /* by handle; NULL = free */
	unsigned ntasks;
	struct amd_seen *seen;
	unsigned nseen, seen_capacity;
	bool scanned; /* `seen` is filled in */
};

/* A queue that is a task of its own. */
struct amd_split {
	uint64_t key;    /* of the task */
	uint32_t gpu_id; /* and where */
	uint32_t queue;
};

/* The queues of this process itself, and which of them it has taken off the hardware. */
struct amd_self {
	pthread_mutex_t lock; /* of all of it */
	unsigned n;
	struct amd_own *own;
};

struct amd_host {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a call is done, or the first scan */
	bool quit;
	bool watch_quit;
	struct amd_gpu *gpu[AMD_OPEN_MAX];
	unsigned ngpus;
	struct amd_request *ring;
	unsigned ring_first, ring_count, ring_capacity;
	struct amd_call *call;
	struct amd_split *split; /* only grows: they are few, and made by hand */
	unsigned nsplits;
	unsigned leaving; /* tasks that wait for the host to let go of them */
	struct amd_self self;

	int kfd;
	int wake_fd;  /* for the host's thread */
	int watch_fd; /* for the watch */
	int epoll_fd;
	pthread_t thread, watch;

	/* The host thread's own. */
	enum gp_amd_rule rule;
	struct amd_target **target;
	unsigned ntargets;
	uint64_t tick_ns;
};

/* The key of the process's own task, from that of any of its tasks. */
static inline uint64_t amd_process_of(uint64_t key)
{
	return key & ~(uint64_t)AMD_SPLITS_MAX;
}

/* ---- host.c -------------------------------------------------------------------------------------
 */

/* One for all devices of this process. The last that lets go of it ends it. */
int amd_host_join(struct amd_gpu *gpu, struct gp_error *err);
void amd_host_leave(struct amd_gpu *gpu);

/* Under the lock: adds a request; false: there is no room, which is made at attach. */
bool amd_ask(struct amd_host *h, enum amd_request_kind kind, struct amd_task *task);
int amd_make_room(struct amd_host *h);
void amd_wake(struct amd_host *h);
void amd_tell(struct amd_gpu *gpu); /* there is news for the engine */

/* Under the lock: whether a queue belongs to the task `key` and `queue` name. */
bool amd_is_of(const struct amd_host *h, uint64_t key, uint32_t queue, uint32_t gpu_id,
               uint32_t id);

/* ---- targets.c: on the host's thread ------------------------------------------------------------
 */

void amd_prepare(struct amd_host *h, struct amd_task *task);
/* Tasks of one process, all or none of them. 0 or -errno. */
int amd_hold(struct amd_host *h, struct amd_task *const *task, unsigned n);
int amd_release(struct amd_host *h, struct amd_task *const *task, unsigned n);
void amd_let_go(struct amd_host *h, struct amd_task *task);
void amd_list_queues(struct amd_host *h, struct amd_call *call);

/* Under the lock: writes what is known of the target's queues into its tasks. */
void amd_publish(struct amd_host *h, struct amd_target *target, bool queues_changed);
/* Queues came or went: what follows from it, for all tasks of the process. */
void amd_settle(struct amd_host *h, struct amd_target *target);
void amd_target_events(struct amd_host *h, struct amd_target *target);
/* The session is over. The tasks may live on: a program that runs another has no queues. */
void amd_lose(struct amd_host *h, struct amd_target *target);
/* What has to be done every few ms while a target is traced, or could not be answered. */
void amd_tick(struct amd_host *h);
void amd_forget_targets(struct amd_host *h);

/* ---- watch.c ------------------------------------------------------------------------------------
 */

void *amd_watch(void *host);

/* ---- pointers.c ---------------------------------------------------------------------------------
 */

/* Of one task at a time. Where the kernel's debug files tell, nobody needs to be attached.
 * Otherwise a session tells, unless it would take the only place from a task that is to be held. */
void amd_find_pointers(struct amd_host *h, uint64_t now_ns);

/* Under the lock: whether all queues of its process there are the task's. What is known of a
 * process is not known of its parts. */
bool amd_is_whole(const struct amd_task *t);

/* ---- glance.c -----------------------------------------------------------------------------------
 */

/* A process's memory, to read; -1: it may not be. */
int amd_open_memory(pid_t pid);
/* Packets in a queue; UINT64_MAX: they cannot be read. */
uint64_t amd_read_pending(int fd, const struct amd_pointers *pointers);

/* ---- mqds.c -------------------------------------------------------------------------------------
 */

/* A compute queue, as the kernel's debug files show it. */
struct amd_mqd {
	uint64_t ring_address;
	uint64_t read_address, write_address;
	uint64_t pointer_mask; /* as in struct amd_pointers */
	uint32_t priority;     /* of the queue in its pipe */
};

/* Those of a process on a GPU: how many, the first `max` filled in, or -errno: the files cannot be
 * read. */
int amd_read_mqds(pid_t pid, uint32_t gpu_id, struct amd_mqd *mqd, unsigned max);
bool amd_has_mqds(void); /* whether they can be, as far as one can say without */
const char *amd_debugfs(void);

/* ---- questions.c --------------------------------------------------------------------------------
 */

int amd_find(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err);
int amd_split(struct gp_gpu *gpu, pid_t pid, uint32_t queue, struct gp_seen *seen,
              struct gp_error *err);
int amd_queues(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue, unsigned max,
               struct gp_error *err);
int64_t amd_evicted_ms(struct gp_gpu *gpu, pid_t pid);

/* ---- undo.c -------------------------------------------------------------------------------------
 */

int amd_undo(const struct gp_undo *undo, struct gp_error *err);

/* ---- self.c -------------------------------------------------------------------------------------
 */

int amd_hold_self(struct gp_gpu *gpu, unsigned flags, struct gp_error *err);
int amd_release_self(struct gp_gpu *gpu, struct gp_error *err);

/* ---- doctor.c -----------------------------------------------------------------------------------
 */

void amd_doctor(gp_finding_fn *say, void *arg);

#endif
