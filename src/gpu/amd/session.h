/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process whose queues we can suspend: what amdkfd calls a debug session.
 *
 * The driver lets a debugger in, and for it a debugger is who has a ptrace link to the target's
 * leader: that one thread, not its process. So all calls for a session come from one thread. Since
 * 6.12.103 the driver remembers who enabled a session: there the link is given up at once, and the
 * target is free for gdb or strace.
 *
 * When this process dies, in whatever way, the driver ends its sessions and resumes their queues.
 * While the session lives it must answer the target's runtime, which waits for the debugger when
 * it starts and ends: call gp_amd_session_events() when `event_fd` is readable, and
 * gp_amd_session_tick() every few ms while it is `linked`, or the target stops at its next signal.
 */
#ifndef GP_GPU_AMD_SESSION_H
#define GP_GPU_AMD_SESSION_H

#include "gpu/amd/kfd.h"

/* The authorisation rule of this kernel: found out with the first session. */
enum gp_amd_rule {
	GP_AMD_RULE_UNKNOWN,
	GP_AMD_RULE_TRACER,   /* only the tracer's thread, for every call (before 6.12.103) */
	GP_AMD_RULE_DEBUGGER, /* any thread of the process that enabled the session */
};

struct gp_amd_queue {
	struct kfd_queue_snapshot_entry is;
	bool suspended; /* by us */
	bool refused;   /* the last call could not reach it: it is being destroyed, or new */
	bool failed;    /* the last call failed on it: the hardware did not answer in time */
	bool doubtful;  /* one before failed on it: it may be suspended, or not */
	bool blamed;    /* it is why the last suspend or resume that was asked for failed */
};

enum gp_amd_link { GP_AMD_UNLINKED, GP_AMD_LINKED, GP_AMD_UNLINKING };

struct gp_amd_session {
	int kfd;
	pid_t pid;
	uint64_t start_time;
	int pidfd;
	int event_fd; /* readable: something happened */
	bool again;   /* what it said could not be answered: gp_amd_session_events() once more */
	enum gp_amd_link link;
	bool is_child; /* of ours: its end is for somebody else here to wait for */
	bool enabled;
	uint32_t runtime_state; /* enum kfd_runtime_state */
	bool owes_answer;       /* its runtime waits for us */

	struct gp_amd_queue *queue; /* newest first, all GPUs */
	unsigned nqueues;
	bool changed; /* since the caller cleared it: there are others than before */
	unsigned capacity;
	uint32_t *id; /* room for the array of a call */
	struct kfd_queue_snapshot_entry *entry;
};

/*
 * Links, enables, takes a first snapshot. A process can have one with itself, without a link; then
 * `rule`, which that does not show, is to be known. `rule` is found out, once, and kept by the
 * caller. 0, or -errno with a sentence: -ESRCH, -EPERM, -EACCES, -EBUSY (traced, or in other
 * hands).
 */
int gp_amd_session_open(struct gp_amd_session *s, int kfd, pid_t pid, enum gp_amd_rule *rule,
                        struct gp_error *err);

/* Whether its queues can be suspended: 0, or -errno with a sentence: -ENOTSUP (its runtime is not
 * enabled), -EBUSY (the hardware's only place is taken, by us with `other` unless 0), -EIO. */
int gp_amd_session_check(const struct gp_amd_session *s, pid_t other, struct gp_error *err);

/* Says so, and returns the code. */
int gp_amd_not_a_user(pid_t pid, int code, struct gp_error *err);

/* Resumes everything, ends the session and the link. The target may be gone. If it is not unlinked
 * then (its leader sleeps where nothing reaches it), go on with gp_amd_session_tick() until it is:
 * or it stops when it wakes up, until this thread ends. */
void gp_amd_session_close(struct gp_amd_session *s);

/* Answers the runtime and looks at the queues again. 1: something happened, 0, or -errno: -ESRCH:
 * it has ended, or runs another program. */
int gp_amd_session_events(struct gp_amd_session *s);

/* Hands signals on to the target, and ends a link that is being given up. */
void gp_amd_session_tick(struct gp_amd_session *s);

/* Reads the queues, and makes new ones suspendable; `changed` says whether there are others. 0 or
 * -errno. */
int gp_amd_session_refresh(struct gp_amd_session *s);

/* Which queues a call is about; those that only copy never are. */
struct gp_amd_choice {
	bool (*is_meant)(const void *arg, const struct kfd_queue_snapshot_entry *queue);
	const void *arg;
};

/*
 * Suspends queues, all or none of them: waves are saved and off the hardware when it returns.
 * `grace`: in 1,000 GPU clocks, 1 to 255, or KFD_GRACE_DEFAULT. How many, or -errno: -EIO: the
 * hardware did not stop one in time, -EPERM: the runtime is not enabled.
 */
int gp_amd_session_suspend(struct gp_amd_session *s, const struct gp_amd_choice *choice,
                           uint32_t grace);

/* How many it resumed, or -errno. */
int gp_amd_session_resume(struct gp_amd_session *s, const struct gp_amd_choice *choice);

/* Whether a queue computes: those that copy are never suspended. */
bool gp_amd_computes(const struct kfd_queue_snapshot_entry *queue);

#endif
