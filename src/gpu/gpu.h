/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between the engine and a GPU: one table of functions per back end.
 *
 * A back end embeds struct gp_gpu as its first member `base` and fills in `ops` and `info`. Every
 * member of the table but the name is optional: what is missing is a capability that is not there,
 * and the wrappers below answer -ENOTSUP for it.
 *
 * All calls come from the thread that owns the device. None of them may block: a back end whose
 * driver can block runs the call on a worker of its own and answers -EINPROGRESS for the action.
 * Until that has ended, one way or the other, observations say that the task is `under_way`; the
 * engine asks for nothing else of the kind meanwhile, and judges by what it sees afterwards;
 * `failed` says why it did not come to pass.
 * `now_ns` is the caller's clock; a back end that needs time takes it from there.
 */
#ifndef GP_GPU_GPU_H
#define GP_GPU_GPU_H

#include <errno.h>
#include <sys/types.h>

#include "base/error.h"
#include "gpu/caps.h"

struct gp_gpu_info {
	char name[64];             /* "NVIDIA H200 #0" */
	char bus[16];              /* its place on the PCI bus, "0000:3b:00.0"; "" = not known */
	uint32_t caps;             /* GP_CAP_* */
	uint32_t max_held;         /* most tasks that can be held at one time; 0 without HOLD */
	uint32_t slice_default_us; /* the hardware's own slice; 0 = not known */
	uint32_t slice_min_us;     /* bounds that set_slice takes; 0, 0 without SLICE */
	uint32_t slice_max_us;
	uint64_t hold_cost_ns; /* typical time from asking to effect; 0 = not known */
	uint64_t release_cost_ns;
	uint64_t slice_cost_ns;
	uint64_t switch_cost_ns;
	uint64_t sample_period_ns; /* an observation brings nothing new more often; 0 = any time */
	uint64_t notice_ns; /* a change of activity is noticed so late at most; 0 = at once */
};

/* What is special about a task. */
enum gp_seen_flag {
	GP_SEEN_SHARED = 1u << 0, /* a server: its queues run the work of many programs */
};

#define GP_QUEUE_ALL UINT32_MAX

/* A task as the back end finds it. `key` names it for as long as it lives and is not reused for
 * another one: a back end makes it of pid and start time, or counts. */
struct gp_seen {
	uint64_t key;
	pid_t pid;
	uint32_t queue;      /* the one that the task is; GP_QUEUE_ALL = all that are not tasks
	                        themselves */
	uint32_t flags;      /* GP_SEEN_* */
	uint64_t start_time; /* of the process, in clock ticks since boot; 0 = not known */
	uint64_t memory;     /* bytes of GPU memory; 0 = not known */
	char name[32];
};

/* A queue of a task, for people to look at. */
struct gp_queue {
	uint32_t id;         /* the hardware's number; with the device it is unique at one time */
	uint32_t channels;   /* of which it is made */
	uint32_t slice_us;   /* as programmed */
	uint32_t interleave; /* 0 low, 1 medium, 2 high; UINT32_MAX = not known */
	bool held;
	bool copies;    /* only moves data: never held */
	char type[16];  /* "compute", "copy", or what the driver calls it */
	uint64_t owner; /* the driver's names for it, for reports: client and object */
	uint64_t object;

	/* Where its memory is, in the program; 0: not known, or there is no such thing. */
	uint64_t ring_address, ring_bytes;
	uint64_t save_address, save_bytes; /* where waves are saved to */
	uint64_t pending;                  /* packets not yet taken; UINT64_MAX = not known */
	uint32_t priority;                 /* 0 to 15; UINT32_MAX = not known */
	uint64_t serial; /* another one: another queue, whatever else is the same; 0 = not known */
};

/* How a program holds its own queues. */
enum gp_self_flag {
	GP_SELF_NORMAL_PRIORITY = 1u << 0, /* what cannot be read is as it is made by default */
};

/* One line of what a machine can do. */
enum gp_finding_level { GP_FINDING_OK, GP_FINDING_NOTE, GP_FINDING_WARNING, GP_FINDING_MISSING };

struct gp_finding {
	enum gp_finding_level level;
	const char *subject; /* "driver", "permission" */
	const char *text;
	const char *advice; /* what to do about it; NULL = nothing to do */
};

typedef void gp_finding_fn(void *arg, const struct gp_finding *finding);

/* Actions that were answered with -EINPROGRESS and have not ended. */
enum gp_under_way { GP_UNDER_WAY_HOLD = 1u << 0, GP_UNDER_WAY_SLICE = 1u << 1 };

/* What is known of one attached task at one instant. */
struct gp_observation {
	uint32_t handle;          /* in */
	uint32_t known;           /* GP_KNOWN_*; WAITED is the engine's own and never set here */
	bool active;              /* has unfinished work, on the hardware or waiting for it */
	bool running;             /* is on the hardware now */
	bool held;                /* its queues are kept off the hardware */
	uint8_t under_way;        /* GP_UNDER_WAY_*: a hold or release, a slice */
	int32_t failed;           /* the last action that was under way: 0 or -errno */
	uint32_t driver_code;     /* of that */
	uint8_t run_source;       /* enum gp_run_source; RUN known implies not UNKNOWN */
	uint32_t slice_us;        /* as programmed; 0 = what it had before anybody changed it */
	uint64_t pending;         /* units of work submitted and not finished */
	uint64_t active_since_ns; /* when it last became active */
	uint64_t run_ns;          /* time on the hardware since attach; never falls */
	uint64_t run_at_ns;       /* when that was true: `now` or the last sample before it */
	uint64_t scheduled;       /* how often it came on the hardware; 0 = not known */
	uint64_t on_at_ns;        /* when it last came on the hardware; 0 = not known */
	uint64_t off_at_ns;       /* when it last went off it; 0 = not known */
};

/* How much an action's success says. */
enum gp_certainty {
	GP_ACCEPTED, /* the driver said yes; whether anything happened is seen later or never */
	GP_OBSERVED, /* the back end has seen the effect */
};

/* One task's part of a hold, release or set_slice. */
struct gp_action {
	uint32_t handle;
	uint32_t slice_us;    /* set_slice: 0 = what it had before anybody changed it */
	int32_t status;       /* out: 0, -EINPROGRESS or -errno */
	uint32_t driver_code; /* out: the driver's own code, for the message; 0 = none */
	uint8_t certainty;    /* out, when status is 0: enum gp_certainty */
};

/* How to put a task back: plain data, complete by itself, replayed by whoever is left. */
struct gp_undo {
	uint64_t key;
	pid_t pid;
	uint64_t start_time;
	uint32_t size; /* bytes used of data */
	uint8_t data[240];

	/* Whose hands it is taken from: who undoes what a living program did, and does not trust it
	 * to let go by itself, says so here. 0: it lets go by itself, or is dead. */
	pid_t owner;
	uint64_t owner_start_time;
};

struct gp_gpu;

enum gp_open_flag {
	/* Observe only by what costs the work on the device nothing: it is known less well. */
	GP_OPEN_QUIET = 1u << 0,
};

struct gp_gpu_ops {
	const char *name;

	/* How many devices there are: 0 is not an error. -EACCES, -EPERM: they may not be used. */
	int (*probe)(void);
	int (*open)(unsigned index, unsigned flags, struct gp_gpu **gpu); /* GP_OPEN_* */
	void (*close)(struct gp_gpu *gpu);

	/* Writes up to `max` tasks that have queues and returns how many there are in all (the
	 * caller comes back with a larger array), or -errno: nothing is known. The first scan may
	 * block until everybody was looked at once; later ones tell what is known by then. */
	int (*scan)(struct gp_gpu *gpu, uint64_t now_ns, struct gp_seen *seen, unsigned max);

	/* From attach to detach the task is named by `handle`, a small number that the back end
	 * chooses. Detach undoes every change; it cannot fail, the task may be gone. */
	int (*attach)(struct gp_gpu *gpu, uint64_t key, uint32_t *handle);
	void (*detach)(struct gp_gpu *gpu, uint32_t handle);

	/* So that the first action is as quick as the others: the task will be held, or it is one
	 * for which others are. Never fails here: what goes wrong is seen at the first action. */
	void (*prepare)(struct gp_gpu *gpu, uint32_t handle, bool will_be_held);

	/* Fills in `n` observations by their handles. -errno: nothing is known now. */
	int (*observe)(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *seen,
	               unsigned n);

	/* Each takes a batch, because on some devices one call costs as much as twenty. Returns 0
	 * when every status was filled in, or -errno when the whole call failed. */
	int (*hold)(struct gp_gpu *gpu, uint64_t now_ns, struct gp_action *action, unsigned n);
	int (*release)(struct gp_gpu *gpu, uint64_t now_ns, struct gp_action *action, unsigned n);
	int (*set_slice)(struct gp_gpu *gpu, uint64_t now_ns, struct gp_action *action, unsigned n);
	int (*set_preempt_mode)(struct gp_gpu *gpu, uint32_t handle, unsigned mode);

	/* Readable when something changed and the engine should look; -errno = none. */
	int (*event_fd)(struct gp_gpu *gpu);

	/* -EAGAIN: not known yet; there will be news. */
	int (*undo_record)(struct gp_gpu *gpu, uint32_t handle, struct gp_undo *undo);

	/* ---- for commands and people; these may block ---- */

	/* Puts a task back as a record says, with no device open. -ESRCH: it has ended. */
	int (*undo)(const struct gp_undo *undo, struct gp_error *err);

	/* Releases everything of a process, whoever held it, record or not. Returns how many queues
	 * it reached, or -errno. */
	int (*release_process)(pid_t pid, struct gp_error *err);

	/* Finds this process now, without a look at all others. -ESRCH: no such process; -ENODEV:
	 * it has no queues here; -ENODATA: only such as cannot be held, and `seen` names it for
	 * `queues`, not for `attach`; -EPERM, -EACCES: it may not be looked into. */
	int (*find)(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err);

	/* Why the last call for a task failed, or its activity cannot be known, as a sentence.
	 * Leaves `err` alone if there is none. */
	void (*why)(struct gp_gpu *gpu, uint32_t handle, struct gp_error *err);

	/* Makes one queue of a process a task of its own. -ENOENT: it has no such queue. */
	int (*split)(struct gp_gpu *gpu, pid_t pid, uint32_t queue, struct gp_seen *seen,
	             struct gp_error *err);

	/* Writes up to `max` queues of a task's process and returns how many there are, or -errno.
	 * `closely`: also what can only be known by attaching to it, if it takes that. */
	int (*queues)(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue,
	              unsigned max, struct gp_error *err);

	/* For how many ms so far the driver itself kept the process off the device, for want of
	 * memory; -errno: not known. */
	int64_t (*evicted_ms)(struct gp_gpu *gpu, pid_t pid);

	/* All queues that the calling process has here now and that compute, from inside: off the
	 * hardware when it returns, and on again. `flags`: GP_SELF_*. How many, or -errno: then
	 * some may be held, which the caller releases. */
	int (*hold_self)(struct gp_gpu *gpu, unsigned flags, struct gp_error *err);
	int (*release_self)(struct gp_gpu *gpu, struct gp_error *err);

	/* What of this machine it can use, what is missing and why. */
	void (*doctor)(gp_finding_fn *say, void *arg);
};

struct gp_gpu {
	const struct gp_gpu_ops *ops;
	struct gp_gpu_info info;
};

static inline int gp_gpu_scan(struct gp_gpu *g, uint64_t now_ns, struct gp_seen *seen, unsigned max)
{
	return g->ops->scan ? g->ops->scan(g, now_ns, seen, max) : -ENOTSUP;
}

static inline int gp_gpu_attach(struct gp_gpu *g, uint64_t key, uint32_t *handle)
{
	return g->ops->attach ? g->ops->attach(g, key, handle) : -ENOTSUP;
}

static inline void gp_gpu_detach(struct gp_gpu *g, uint32_t handle)
{
	if (g->ops->detach)
		g->ops->detach(g, handle);
}

static inline void gp_gpu_prepare(struct gp_gpu *g, uint32_t handle, bool will_be_held)
{
	if (g->ops->prepare)
		g->ops->prepare(g, handle, will_be_held);
}

static inline int gp_gpu_observe(struct gp_gpu *g, uint64_t now_ns, struct gp_observation *seen,
                                 unsigned n)
{
	return g->ops->observe ? g->ops->observe(g, now_ns, seen, n) : -ENOTSUP;
}

static inline int gp_gpu_hold(struct gp_gpu *g, uint64_t now_ns, struct gp_action *a, unsigned n)
{
	return g->ops->hold ? g->ops->hold(g, now_ns, a, n) : -ENOTSUP;
}

static inline int gp_gpu_release(struct gp_gpu *g, uint64_t now_ns, struct gp_action *a, unsigned n)
{
	return g->ops->release ? g->ops->release(g, now_ns, a, n) : -ENOTSUP;
}

static inline int gp_gpu_set_slice(struct gp_gpu *g, uint64_t now_ns, struct gp_action *a,
                                   unsigned n)
{
	return g->ops->set_slice ? g->ops->set_slice(g, now_ns, a, n) : -ENOTSUP;
}

static inline int64_t gp_gpu_evicted_ms(struct gp_gpu *g, pid_t pid)
{
	return g->ops->evicted_ms ? g->ops->evicted_ms(g, pid) : -ENOTSUP;
}

static inline int gp_gpu_undo_record(struct gp_gpu *g, uint32_t handle, struct gp_undo *undo)
{
	return g->ops->undo_record ? g->ops->undo_record(g, handle, undo) : -ENOTSUP;
}

#endif
