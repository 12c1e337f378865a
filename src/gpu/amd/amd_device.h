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
#include "gpu/requests.h"

#define GP_AMD_SPLITS_MAX 63                      /* of a process: a key has 6 bits for them */
#define GP_AMD_BATCH_MAX  (GP_AMD_SPLITS_MAX + 1) /* requests that are done at once */
#define GP_AMD_OPEN_MAX   (2 * GP_AMD_NODES_MAX)  /* one may be open twice */
#define GP_AMD_DETECT_NS  (1 * GP_NS_PER_MS)      /* how soon a packet in a queue is seen */
/* Where the driver does not count occupied compute units: how long work that was taken is taken to
 * run. Longer, and best-effort work waits for nothing after each request; shorter, and it comes
 * back beside kernels that take so long. */
#define GP_AMD_LINGER_NS (10 * GP_NS_PER_MS)
#define GP_AMD_SCAN_NS   (50 * GP_NS_PER_MS) /* how soon a process with its first queue is */

/* Where a queue says how far it is, in the memory of its process. */
struct gp_amd_pointers {
	uint64_t read_address, write_address;
	uint64_t mask; /* of what they count modulo the ring; ~0: they only grow */
};

struct gp_amd_task {
	struct gp_amd_gpu *gpu;
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
	struct gp_amd_target *target; /* NULL: no session */
	uint64_t tried_ns;            /* when we tried to have one; 0 = not yet */
	struct gp_error why;          /* what went wrong last: code and sentence */
	bool held;
	int32_t failed;
	struct gp_amd_pointers *pointer; /* of its compute queues */
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

enum gp_amd_request_kind { GP_AMD_PREPARE, GP_AMD_HOLD, GP_AMD_RELEASE };

/* A question that somebody waits for. */
struct gp_amd_call {
	struct gp_question question;
	struct gp_amd_gpu *gpu;
	pid_t pid;
	uint64_t start_time;
	struct gp_queue *queue;
	struct gp_amd_pointers *pointer; /* beside it */
	unsigned max;
	struct gp_error *err;
};

/* A process with a session. */
struct gp_amd_target {
	struct gp_amd_session session;
	unsigned users; /* tasks on devices, and who asked about its queues, until the end */
	bool parting;   /* no session any more; only its link is still to end */
};

/* A process with compute queues on a device. */
struct gp_amd_seen {
	struct gp_seen is;
	unsigned queues;
	uint64_t mark; /* another when one of them is another */
};

struct gp_amd_gpu {
	struct gp_gpu base;
	struct gp_kfd_thread *kfd_thread;
	struct gp_amd_node node;
	int event_fd;
	struct gp_amd_task **task; /* by handle; NULL = free */
	unsigned ntasks;
	struct gp_amd_seen *seen;
	unsigned nseen, seen_capacity;
	bool scanned; /* `seen` is filled in */
};

/* A queue that is a task of its own. */
struct gp_amd_split {
	uint64_t key;    /* of the task */
	uint32_t gpu_id; /* and where */
	uint32_t queue;
};

/* The queues of this process itself, and which of them it has taken off the hardware. */
struct gp_amd_self {
	pthread_mutex_t lock; /* of all of it */
	unsigned n;
	struct amd_own *own;
};

struct gp_kfd_thread {
	struct gp_requests requests; /* its lock protects the members down to `leaving` */
	bool watch_quit;
	struct gp_amd_gpu *gpu[GP_AMD_OPEN_MAX];
	unsigned ngpus;
	struct gp_amd_split *split; /* only grows: they are few, and made by hand */
	unsigned nsplits;
	unsigned leaving; /* tasks that wait for the host to let go of them */
	struct gp_amd_self self;

	int kfd;
	int watch_fd; /* for the watch */
	int epoll_fd;
	pthread_t thread, watch;

	/* The host thread's own. */
	enum gp_amd_rule rule;
	struct gp_amd_target **target;
	unsigned ntargets;
	uint64_t tick_ns;
};

/* The key of the process's own task, from that of any of its tasks. */
static inline uint64_t gp_amd_process_of(uint64_t key)
{
	return key & ~(uint64_t)GP_AMD_SPLITS_MAX;
}

/* ---- host.c -------------------------------------------------------------------------------------
 */

/* One for all devices of this process. The last that lets go of it ends it. */
int gp_kfd_thread_join(struct gp_amd_gpu *gpu, struct gp_error *err);
void gp_kfd_thread_leave(struct gp_amd_gpu *gpu);

/* Under the lock: adds a request; false: there is no room, which is made at attach. */
bool gp_amd_ask(struct gp_kfd_thread *h, enum gp_amd_request_kind kind, struct gp_amd_task *task);
int gp_amd_make_room(struct gp_kfd_thread *h);
void gp_amd_notify(struct gp_amd_gpu *gpu); /* there is news for the engine */

/* Under the lock: whether a queue belongs to the task `key` and `queue` name. */
bool gp_amd_is_of(const struct gp_kfd_thread *h, uint64_t key, uint32_t queue, uint32_t gpu_id,
                  uint32_t id);

/* ---- targets.c: on the host's thread ------------------------------------------------------------
 */

void gp_amd_prepare(struct gp_kfd_thread *h, struct gp_amd_task *task);
/* Tasks of one process, all or none of them. 0 or -errno. */
int gp_amd_hold(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n);
int gp_amd_release(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n);
void gp_amd_unprepare(struct gp_kfd_thread *h, struct gp_amd_task *task);
void gp_amd_list_queues(struct gp_kfd_thread *h, struct gp_amd_call *call);

/* Under the lock: writes what is known of the target's queues into its tasks. */
void gp_amd_publish(struct gp_kfd_thread *h, struct gp_amd_target *target, bool queues_changed);
/* Queues came or went: what follows from it, for all tasks of the process. */
void gp_amd_settle(struct gp_kfd_thread *h, struct gp_amd_target *target);
void gp_amd_target_events(struct gp_kfd_thread *h, struct gp_amd_target *target);
/* The session is over. The tasks may live on: a program that runs another has no queues. */
void gp_amd_lose(struct gp_kfd_thread *h, struct gp_amd_target *target);
/* What has to be done every few ms while a target is traced, or could not be answered. */
void gp_amd_tick(struct gp_kfd_thread *h);
void gp_amd_forget_targets(struct gp_kfd_thread *h);

/* ---- watch.c ------------------------------------------------------------------------------------
 */

void *gp_amd_watch(void *kfd_thread);

/* ---- pointers.c ---------------------------------------------------------------------------------
 */

/* Of one task at a time. Where the kernel's debug files tell, nobody needs to be attached.
 * Otherwise a session tells, unless it would take the only place from a task that is to be held. */
void gp_amd_find_pointers(struct gp_kfd_thread *h, uint64_t now_ns);

/* Under the lock: whether all queues of its process there are the task's. What is known of a
 * process is not known of its parts. */
bool gp_amd_is_whole(const struct gp_amd_task *t);

/* ---- glance.c -----------------------------------------------------------------------------------
 */

/* A process's memory, to read; -1: it may not be. */
int gp_amd_open_memory(pid_t pid);
/* Packets in a queue; UINT64_MAX: they cannot be read. */
uint64_t gp_amd_read_pending(int fd, const struct gp_amd_pointers *pointers);

/* ---- mqds.c -------------------------------------------------------------------------------------
 */

/* A compute queue, as the kernel's debug files show it. */
struct gp_amd_mqd {
	uint64_t ring_address;
	uint64_t read_address, write_address;
	uint64_t pointer_mask; /* as in struct gp_amd_pointers */
	uint32_t priority;     /* of the queue in its pipe */
};

/* Those of a process on a GPU: how many, the first `max` filled in, or -errno: the files cannot be
 * read. */
int gp_amd_read_mqds(pid_t pid, uint32_t gpu_id, struct gp_amd_mqd *mqd, unsigned max);
bool gp_amd_has_mqds(void); /* whether they can be, as far as one can say without */
const char *gp_amd_debugfs(void);

/* ---- questions.c --------------------------------------------------------------------------------
 */

int gp_amd_find(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err);
int gp_amd_split(struct gp_gpu *gpu, pid_t pid, uint32_t queue, struct gp_seen *seen,
                 struct gp_error *err);
int gp_amd_queues(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue,
                  unsigned max, struct gp_error *err);
int64_t gp_amd_process_evicted_ms(struct gp_gpu *gpu, pid_t pid);

/* ---- undo.c -------------------------------------------------------------------------------------
 */

int gp_amd_undo(const struct gp_undo *undo, struct gp_error *err);

/* ---- self.c -------------------------------------------------------------------------------------
 */

int gp_amd_hold_self(struct gp_gpu *gpu, unsigned flags, struct gp_error *err);
int gp_amd_release_self(struct gp_gpu *gpu, struct gp_error *err);

/* ---- doctor.c -----------------------------------------------------------------------------------
 */

void gp_amd_doctor(gp_finding_fn *say, void *arg);

#endif
