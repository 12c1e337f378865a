/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A debug session of amdkfd: one process whose queues can be suspended.
 *
 * The driver admits a debugger: the thread with a ptrace link to the main thread of the target.
 * So all calls for a session come from one thread. Since 6.12.103 the driver remembers the process
 * that enabled a session. There the link is given up at once, and gdb or strace can trace the
 * target.
 *
 * When this process dies, the driver ends its sessions and resumes their queues. A live session
 * must answer the target's runtime, which waits for the debugger when it starts and ends. The
 * caller calls gp_amd_session_events() when `event_fd` is readable. While the link exists it also
 * calls gp_amd_session_tick() every few ms, or the target stops at its next signal.
 */
#ifndef GP_GPU_AMD_SESSION_H
#define GP_GPU_AMD_SESSION_H

#include "gpu/amd/kfd.h"
#include "gpu/amd/topology.h"

/* The authorisation rule of this kernel, found with the first session. */
enum gp_amd_rule {
	GP_AMD_RULE_UNKNOWN,
	GP_AMD_RULE_TRACER,   /* only the tracer's thread, for every call (before 6.12.103) */
	GP_AMD_RULE_DEBUGGER, /* any thread of the process that enabled the session */
};

struct gp_amd_queue {
	struct kfd_queue_snapshot_entry is;
	bool suspended; /* by this session, as the driver last confirmed */
	bool refused;   /* by the last call: the queue is new, or is being destroyed */
	bool failed;    /* in the last call: the hardware did not answer in time */
	bool doubtful;  /* the last call for it failed: it may be suspended or not */
	bool blamed;    /* made the last requested suspend or resume fail */
};

enum gp_amd_link { GP_AMD_UNLINKED, GP_AMD_LINKED, GP_AMD_UNLINKING };

struct gp_amd_session {
	int kfd;
	pid_t pid;
	uint64_t start_time;
	int pidfd;
	int event_fd; /* readable when the driver has an event */
	bool again;   /* an event is unanswered: call gp_amd_session_events() again */
	enum gp_amd_link link;
	bool is_child; /* of this process: other code waits for its end */
	bool enabled;
	uint32_t runtime_state; /* enum kfd_runtime_state */
	bool owes_answer;       /* its runtime waits for this session */

	struct gp_amd_queue *queue; /* newest first, all GPUs */
	unsigned nqueues;
	bool changed; /* the list of queues changed; cleared by the caller */
	unsigned capacity;
	uint32_t *id;                /* the array of queue ids for a call */
	unsigned answered, expected; /* in the last suspend or resume: the driver's count, and the
				      * number of queues without an error bit */
	int untrue;                  /* the error of the last suspend, if a resume disproved it */
	struct kfd_queue_snapshot_entry *entry;
	struct gp_amd_sysfs_queue *listed; /* the same queues in sysfs */
	/* Why the last snapshot failed, so that `queue` is older. Code 0: it did not fail. */
	struct gp_error outdated;
};

/*
 * Links, enables, and takes a first snapshot. A process can have a session with itself, without a
 * link; `rule` must be known then. Otherwise the first session finds `rule`, and the caller keeps
 * it. 0, or -errno with a sentence: -ESRCH, -EPERM, -EACCES, -EBUSY (traced, or another debugger
 * has a session). After a failure the session is closed unless `enabled` is set: then the driver
 * did not end it, and the caller calls gp_amd_session_end() again.
 */
int gp_amd_session_open(struct gp_amd_session *s, int kfd, pid_t pid, enum gp_amd_rule *rule,
			struct gp_error *err);

/* Whether the queues can be suspended: 0, or -errno with a sentence: -ENOTSUP (the runtime is not
 * enabled), -EBUSY (the hardware's only debug slot is in use), -EIO. `other`: the process for which
 * this process uses the slot; 0 = none. */
int gp_amd_session_check(const struct gp_amd_session *s, pid_t other, struct gp_error *err);

/* Writes that the process does not use an AMD GPU. Returns `code`. */
int gp_amd_not_a_user(pid_t pid, int code, struct gp_error *err);

/* Ends the session, which resumes all queues, and verifies it. 0, or -errno: the session exists and
 * its queues may be suspended; call it again later. The target may be gone. */
int gp_amd_session_end(struct gp_amd_session *s);

/* Ends the session and the link and frees the memory. Returns what gp_amd_session_end() returned.
 * The link can remain if the main thread of the target sleeps uninterruptibly. The caller then
 * calls gp_amd_session_tick() until it is unlinked; otherwise the target stops when it wakes up. */
int gp_amd_session_close(struct gp_amd_session *s);

/*
 * Ends a session whose debugger, as the driver knows it, is another process that may have ended.
 * The caller has linked to the target. Its own ENABLE comes first: it fails, and makes this process
 * the debugger; else the driver could write to the freed record of the other. The driver counts the
 * end among this process's sessions: call it only for a session that this process began, or in a
 * process that has none and begins none. 0: no session is left, because another one could begin and
 * has ended; or -errno.
 */
int gp_amd_end_as_tracer(int kfd, pid_t pid);

/* Answers the runtime and reads the queues again. 1: there were events; 0: none; -ESRCH: the target
 * has ended or runs another program. */
int gp_amd_session_events(struct gp_amd_session *s);

/* Forwards signals to the target, and completes an unlink that has begun. */
void gp_amd_session_tick(struct gp_amd_session *s);

/* Reads the queues and makes new ones suspendable. Sets `changed` if the list changed. 0 or
 * -errno: then the list stays as it was. -EPROTO: the answer cannot be true; -EBADMSG: sysfs has
 * another type or GPU of a queue. */
int gp_amd_session_refresh(struct gp_amd_session *s);

/* Selects the queues of a call. Queues that only copy are never selected. */
struct gp_amd_choice {
	bool (*is_meant)(const void *arg, const struct kfd_queue_snapshot_entry *queue);
	const void *arg;
};

/*
 * Suspends all selected queues, or none. When it returns, their waves are saved and off the
 * hardware. `grace`: 1 to 255, in 1,000 GPU clocks, or KFD_GRACE_DEFAULT. Returns the number of
 * queues, or -errno: -EIO (the hardware did not stop a queue in time), -EPROTO (`answered` and
 * `expected` differ, or `untrue` is set), -EAGAIN (a queue is new or is being destroyed), -EPERM
 * (the runtime is not enabled), or that of gp_amd_session_refresh(). After a failure, queues that
 * could not be resumed are `doubtful`.
 */
int gp_amd_session_suspend(struct gp_amd_session *s, const struct gp_amd_choice *choice,
			   uint32_t grace);

/* Returns the number of resumed queues, or -errno as above. After a failure the queues that are not
 * known to run are `doubtful`. */
int gp_amd_session_resume(struct gp_amd_session *s, const struct gp_amd_choice *choice);

/* Whether any queue may be suspended or not. */
bool gp_amd_session_is_doubtful(const struct gp_amd_session *s);

/* The last call for these queues had no effect although the driver confirmed it: they are
 * `doubtful` until a later call succeeds. */
void gp_amd_session_doubt(struct gp_amd_session *s, const struct gp_amd_choice *choice);

/* Whether a queue computes. Queues that only copy are never suspended. */
bool gp_amd_computes(const struct kfd_queue_snapshot_entry *queue);

#endif
