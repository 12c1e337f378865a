/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between gpreempt and a GPU: two tables of functions for each back end.
 *
 *   struct gp_gpu_ops          what the engine's loop needs; no function may block
 *   struct gp_gpu_command_ops  what commands and the library need; these functions may block
 *
 * A back end embeds struct gp_gpu as its first member `base` and fills in `ops` and `info`. Every
 * function is optional: a missing one is a missing capability, and the macros at the end of this
 * file return -ENOTSUP for it.
 *
 * All calls for a device come from the thread that owns it. A back end whose driver can block makes
 * the driver call on a thread of its own and returns -EINPROGRESS as the status of the action.
 * Until the action has ended, observations of the task have its `under_way` bit set, and the engine
 * requests no other action of the kind for the task. Afterwards the engine judges by what it
 * observes; `failed` holds the reason if the action did not take effect.
 * `now_ns` is the caller's clock. A back end takes the current time from it.
 */
#ifndef GP_GPU_GPU_H
#define GP_GPU_GPU_H

#include <errno.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/error.h"
#include "gpu/caps.h"

struct gp_gpu_info {
	char name[64];             /* "NVIDIA H200 #0" */
	char bus[16];              /* address on the PCI bus, "0000:3b:00.0"; "" = not known */
	uint32_t caps;             /* GP_CAP_* */
	uint32_t slice_default_us; /* the hardware's own slice; 0 = not known */
	uint32_t slice_min_us;     /* bounds of GP_ACT_SLICE; 0, 0 without SLICE */
	uint32_t slice_max_us;
	uint32_t max_held;     /* most tasks that can be held at one time; 0 without HOLD */
	uint64_t hold_cost_ns; /* typical time from request to effect; 0 = not known */
	uint64_t slice_cost_ns;
	uint64_t release_cost_ns;
	uint64_t switch_cost_ns;
	uint64_t sample_period_ns; /* observations change no more often than this; 0 = any time */
	uint64_t notice_ns;        /* longest delay until a change of activity is seen; 0 = none */
};

enum gp_seen_flag {
	GP_SEEN_SHARED = 1u << 0, /* a server: its queues run the work of many programs */
};

#define GP_QUEUE_ALL UINT32_MAX

/* A task as the back end finds it. `key` names the task for its lifetime and is never reused: a
 * back end builds it from pid and start time, or from a counter. */
struct gp_seen {
	uint64_t key;
	pid_t pid;
	uint32_t queue;      /* the queue that is the task; GP_QUEUE_ALL = every queue of the
				process that is not a task of its own */
	uint32_t flags;      /* GP_SEEN_* */
	uint64_t start_time; /* of the process, in clock ticks since boot; 0 = not known */
	uint64_t memory;     /* bytes of GPU memory; 0 = not known */
	char name[32];
};

/* A queue of a task, as commands print it. */
struct gp_queue {
	uint32_t id;         /* the hardware's number, unique on the device at one time */
	uint32_t channels;   /* number of channels of the queue */
	uint32_t slice_us;   /* as programmed */
	uint32_t interleave; /* 0 low, 1 medium, 2 high; UINT32_MAX = not known */
	bool held;
	bool unsure;    /* it may be held or not, whatever `held` says */
	bool copies;    /* the queue only moves data and is never held */
	char type[16];  /* "compute", "copy", or the driver's name for the type */
	uint64_t owner; /* the driver's names for the queue, for reports: client and object */
	uint64_t object;

	/* Addresses in the program's memory; 0 = not known, or the queue has none. */
	uint64_t ring_address, ring_bytes;
	uint64_t save_address, save_bytes; /* the area that waves are saved to */
	uint64_t pending;                  /* packets not yet taken; UINT64_MAX = not known */
	uint32_t priority;                 /* 0 to 15; UINT32_MAX = not known */
	uint64_t serial; /* differs between two queues with the same id; 0 = not known */
};

/* Flags of hold_self. */
enum gp_self_flag {
	/* Assume the default priority if the priority of a queue cannot be read. */
	GP_SELF_NORMAL_PRIORITY = 1u << 0,
};

/* A way to take running work off the device. `gpreempt suspend --type NAME` chooses one. */
struct gp_preempt_type {
	const char *name;
	const char *summary;
	unsigned value;     /* argument of set_preempt_type */
	unsigned grace_max; /* a grace of 1 to grace_max (1,000 GPU clocks) may replace `value`;
			       0 = the type has no grace */
};

#define GP_PREEMPT_GRACE_MAX 255u /* the largest grace_max of all back ends */

#define GP_PREEMPT_TYPE_SAVE                                           \
	{                                                              \
		.name = "save", .summary = "save running work at once" \
	}

/* One line of `gpreempt doctor`. */
enum gp_finding_level { GP_FINDING_OK, GP_FINDING_NOTE, GP_FINDING_WARNING, GP_FINDING_MISSING };

struct gp_finding {
	enum gp_finding_level level;
	const char *subject; /* "driver", "permission" */
	const char *text;
	const char *advice; /* the next step for the user; NULL = none */
};

typedef void gp_finding_fn(void *arg, const struct gp_finding *finding);

/* Actions that returned -EINPROGRESS and have not ended. */
enum gp_under_way { GP_UNDER_WAY_HOLD = 1u << 0, GP_UNDER_WAY_SLICE = 1u << 1 };

/* The state of one attached task at one instant. */
struct gp_observation {
	uint32_t handle; /* in */
	uint32_t known;  /* GP_KNOWN_*; the engine sets WAITED, a back end never does */
	bool active;     /* has unfinished work, on the hardware or waiting for it */
	bool running;    /* is on the hardware now */
	bool held;       /* its queues are kept off the hardware, as the driver confirmed */
	/* The last hold or release failed: the task may be held or not, whatever `held` says. It is
	 * neither reported as held nor as released until a later action has an answer. */
	bool unsure;
	/* The driver confirmed the last hold or release, but the back end still looks for activity
	 * that proves it or disproves it. Ends within a second, if the back end can see activity.
	 */
	bool unproven;
	/* It is released by the driver's answer, but a hold may still show: a failed one can take
	 * effect late, or the release had none. The undo record stays, and a hold that shows is
	 * not one of another process. */
	bool unfinished;
	bool in_part;              /* of a release: some of its work was seen, not all */
	enum gp_evidence evidence; /* of the last hold or release */
	/* The driver itself keeps the task off the device, released or not: until it restores it
	 * or, after a reset of the device, until the process ends. */
	uint64_t evicted_ns; /* for how long; 0 = not known to be evicted */
	bool evicted_by_reset;
	bool eviction_lost; /* it was evicted; whether it still is, is not known any more */
	uint8_t under_way;  /* GP_UNDER_WAY_*: a hold or release, a slice */
	/* Result of the last action that was under way: 0 or -errno. -EREMOTEIO: the driver
	 * confirmed a hold, but the task went on working. */
	int32_t failed;
	uint32_t driver_code;     /* the driver's code for `failed` */
	uint8_t run_source;       /* enum gp_run_source; RUN known implies not UNKNOWN */
	uint32_t slice_us;        /* as programmed; 0 = the slice it had before any change */
	uint64_t pending;         /* units of work submitted and not finished */
	uint64_t active_since_ns; /* when it last became active */
	uint64_t run_ns;          /* time on the hardware since attach; never falls */
	uint64_t run_at_ns;       /* time that run_ns is valid for: now, or the last sample */
	uint64_t scheduled;       /* how often it was scheduled on the hardware; 0 = not known */
	uint64_t on_at_ns;        /* when it was last scheduled; 0 = not known */
	uint64_t off_at_ns;       /* when it was last descheduled; 0 = not known */
};

enum gp_act_kind {
	GP_ACT_HOLD,
	GP_ACT_RELEASE,
	GP_ACT_SLICE, /* set the time slice to gp_action.slice_us */
};

/* What a status of 0 proves. */
enum gp_certainty {
	GP_ACCEPTED, /* the driver accepted the call; the effect has not been observed */
	GP_OBSERVED, /* the back end has observed the effect */
};

/* One task's part of an act() call. */
struct gp_action {
	uint32_t handle;
	uint32_t slice_us;    /* GP_ACT_SLICE: 0 = the slice it had before any change */
	int32_t status;       /* out: 0, -EINPROGRESS or -errno */
	uint32_t driver_code; /* out: the driver's own code, for messages; 0 = none */
	uint8_t certainty;    /* out, when status is 0: enum gp_certainty */
};

/* An undo record: how to put a task back. Plain data that any later process can replay. */
struct gp_undo {
	uint64_t key;
	pid_t pid;
	/* The back end's earlier record was wrong: this one replaces it in the caller's undo file.
	 */
	bool corrected;
	bool hold_only; /* its owner has set no slice: the slices in `data` do not count */
	uint64_t start_time;
	uint32_t size; /* bytes used of data */
	uint8_t data[240];

	/* The process that made the change, if it lives and is not trusted to undo the change by
	 * itself. 0 = the owner undoes it by itself, or has ended. */
	pid_t owner;
	uint64_t owner_start_time;
};

struct gp_gpu;
struct gp_gpu_command_ops;

enum gp_open_flag {
	/* Observe only by means that cost the work on the device nothing; less is known then. */
	GP_OPEN_QUIET = 1u << 0,
};

/* What the engine's loop needs. No function may block, except the first scan. */
struct gp_gpu_ops {
	const char *name;
	const struct gp_gpu_command_ops *command; /* NULL = no commands */

	/* Number of devices; 0 is not an error. -EACCES, -EPERM: no permission to use them. */
	int (*probe)(void);
	int (*open)(unsigned index, unsigned flags, struct gp_gpu **gpu); /* GP_OPEN_* */
	void (*close)(struct gp_gpu *gpu);

	/* Writes up to `max` tasks and returns the number of tasks, or -errno if nothing is known.
	 * If the number exceeds `max`, the caller calls again with a larger array. The first scan
	 * may block until every process was examined once; later scans return the known tasks. */
	int (*scan)(struct gp_gpu *gpu, uint64_t now_ns, struct gp_seen *seen, unsigned max);

	/* From attach to detach the task is named by `handle`, a small number that the back end
	 * chooses. Detach undoes every change. It cannot fail: the task may have ended. */
	int (*attach)(struct gp_gpu *gpu, uint64_t key, uint32_t *handle);
	void (*detach)(struct gp_gpu *gpu, uint32_t handle);

	/* Makes the first action as fast as later ones. `will_be_held`: the task itself will be
	 * held; else other tasks are held for it. A failure shows at the first action. */
	void (*prepare)(struct gp_gpu *gpu, uint32_t handle, bool will_be_held);

	/* The task is in its original state, and no action is expected: ends what prepare() and
	 * undo_record() began, so that other processes can hold it. */
	void (*unprepare)(struct gp_gpu *gpu, uint32_t handle);

	/* Fills in `n` observations by their handles. -errno: nothing is known now. */
	int (*observe)(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *seen,
		       unsigned n);

	/* Does the same to `n` tasks, because on some devices one call costs as much as twenty.
	 * Returns 0 if every status was filled in, or -errno if the whole call failed. A back end
	 * without this kind of action returns -ENOTSUP. */
	int (*act)(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind kind,
		   struct gp_action *action, unsigned n);

	/* A descriptor that is readable when the engine should tick; -errno = none. */
	int (*event_fd)(struct gp_gpu *gpu);

	/* For how long the back end's own thread has been at one piece of work, in ns; 0: it waits
	 * for work. Called by any thread. A thread that hangs in the driver releases nothing. */
	uint64_t (*busy_ns)(const struct gp_gpu *gpu, uint64_t now_ns);

	/* Whether the device has gone, so that scan finds no tasks. scan opens it again when it is
	 * back. NULL: never, or not known. */
	bool (*is_gone)(const struct gp_gpu *gpu);

	/* -EAGAIN: not known yet; event_fd becomes readable when it is. */
	int (*undo_record)(struct gp_gpu *gpu, uint32_t handle, struct gp_undo *undo);
};

/* What commands and the library need. These functions may block. */
struct gp_gpu_command_ops {
	/* Examines this process only. -ESRCH: no such process; -ENODEV: it has no queues here;
	 * -ENODATA: it has only queues that cannot be held, and `seen` is valid for `queues`, not
	 * for `attach`; -EPERM, -EACCES: no permission to examine it. */
	int (*find)(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err);

	/* -errno: the last scan() leaves out a process that uses the device, which `err` names.
	 * -EAGAIN: it may be found soon. A back end without this function leaves out none. */
	int (*missing)(struct gp_gpu *gpu, struct gp_error *err);

	/* Writes up to `max` queues of a task's process and returns the number of queues, or
	 * -errno. `closely`: attach to the process if some values cannot be read otherwise. */
	int (*queues)(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue,
		      unsigned max, struct gp_error *err);

	/* Makes one queue of a process a task of its own. -ENOENT: it has no such queue. */
	int (*split)(struct gp_gpu *gpu, pid_t pid, uint32_t queue, struct gp_seen *seen,
		     struct gp_error *err);

	/* Writes the reason why the last call for a task failed, or why its activity cannot be
	 * known. Leaves `err` alone if there is no reason. */
	void (*why)(struct gp_gpu *gpu, uint32_t handle, struct gp_error *err);

	/* Milliseconds for which the driver itself kept the process off the device, for lack of
	 * memory; -errno: not known. */
	int64_t (*evicted_ms)(struct gp_gpu *gpu, pid_t pid);

	/* The preemption types that the device offers; `n` is set to their number, the first is the
	 * default. A back end without preempt_types offers "save" only.
	 * set_preempt_type applies to the holds of the task that follow. -EINVAL: out of range;
	 * -ENOTSUP: the device does not have the type. */
	const struct gp_preempt_type *(*preempt_types)(const struct gp_gpu *gpu, unsigned *n);
	int (*set_preempt_type)(struct gp_gpu *gpu, uint32_t handle, unsigned value);

	/* Takes all compute queues of the calling process off the hardware before it returns, or
	 * puts them back. `flags`: GP_SELF_*. Returns the number of queues, or -errno; after a
	 * failure some may be held, and the caller releases them. */
	int (*hold_self)(struct gp_gpu *gpu, unsigned flags, struct gp_error *err);
	int (*release_self)(struct gp_gpu *gpu, struct gp_error *err);

	/* Undoes every change of an attached task before it returns; detach has nothing left to do
	 * then. -errno: the task may still be held or changed, and its undo record must stay. A
	 * back end without this function leaves nothing changed after a release. */
	int (*put_back)(struct gp_gpu *gpu, uint32_t handle, struct gp_error *err);

	/* The functions below need no open device. */

	/* Puts a task back as an undo record says. -ESRCH: the process has ended. -ETIME: the
	 * driver confirms it, but the process was not seen to work since. */
	int (*undo)(const struct gp_undo *undo, struct gp_error *err);

	/* Releases every queue of a process, with or without an undo record of any owner. Sets
	 * `released`, which may be NULL, if only the release has shown that the process was held.
	 * Returns the number of queues that it reached, or -errno. */
	int (*release_process)(pid_t pid, bool *released, struct gp_error *err);

	/* Sets works[i] if process pid[i] is seen to work. Returns when all were, or after
	 * limit_ns. A back end has this function if `undo` and `release_process` rest on the
	 * driver's answers alone: only work shows that a release took effect which they report. */
	void (*see_work)(const pid_t *pid, bool *works, unsigned n, uint64_t limit_ns);

	/* Sets the environment variables that make the vendor's runtime use only one device, in
	 * programs that this process starts. `index` counts the devices of the back end; `name` and
	 * `bus` are those of gp_gpu_info, `bus` may be NULL. */
	int (*make_visible)(unsigned index, const char *name, const char *bus,
			    struct gp_error *err);

	/* Reports what this machine offers to the back end, what is missing, and the reason. */
	void (*doctor)(gp_finding_fn *say, void *arg);
};

struct gp_gpu {
	const struct gp_gpu_ops *ops;
	struct gp_gpu_info info;
};

/*
 * Calls of optional functions. A missing function returns -ENOTSUP, or does nothing if it has no
 * result.
 */
#define GP_CALL(ops, function, ...) ((ops)->function ? (ops)->function(__VA_ARGS__) : -ENOTSUP)
#define GP_CALL_VOID(ops, function, ...)              \
	do {                                          \
		if ((ops)->function)                  \
			(ops)->function(__VA_ARGS__); \
	} while (0)

#define gp_gpu_scan(g, ...)        GP_CALL((g)->ops, scan, g, __VA_ARGS__)
#define gp_gpu_attach(g, ...)      GP_CALL((g)->ops, attach, g, __VA_ARGS__)
#define gp_gpu_detach(g, ...)      GP_CALL_VOID((g)->ops, detach, g, __VA_ARGS__)
#define gp_gpu_prepare(g, ...)     GP_CALL_VOID((g)->ops, prepare, g, __VA_ARGS__)
#define gp_gpu_unprepare(g, ...)   GP_CALL_VOID((g)->ops, unprepare, g, __VA_ARGS__)
#define gp_gpu_observe(g, ...)     GP_CALL((g)->ops, observe, g, __VA_ARGS__)
#define gp_gpu_act(g, ...)         GP_CALL((g)->ops, act, g, __VA_ARGS__)
#define gp_gpu_event_fd(g)         GP_CALL((g)->ops, event_fd, g)
#define gp_gpu_undo_record(g, ...) GP_CALL((g)->ops, undo_record, g, __VA_ARGS__)

static inline uint64_t gp_gpu_busy_ns(const struct gp_gpu *g, uint64_t now_ns)
{
	return g->ops->busy_ns ? g->ops->busy_ns(g, now_ns) : 0;
}

static inline bool gp_gpu_is_gone(const struct gp_gpu *g)
{
	return g->ops->is_gone && g->ops->is_gone(g);
}

/* A thread that is at one piece of work for longer counts as hung. Its process sends no heartbeat
 * for what only that thread can release, so the keeper releases it. */
#define GP_STUCK_NS (3 * GP_NS_PER_S)

static inline bool gp_gpu_is_stuck(const struct gp_gpu *g, uint64_t now_ns)
{
	return gp_gpu_busy_ns(g, now_ns) > GP_STUCK_NS;
}

/* The back end's commands: an empty table if it has none. */
static inline const struct gp_gpu_command_ops *gp_backend_commands(const struct gp_gpu_ops *ops)
{
	static const struct gp_gpu_command_ops none;

	return ops->command ? ops->command : &none;
}

static inline const struct gp_gpu_command_ops *gp_gpu_commands(const struct gp_gpu *g)
{
	return gp_backend_commands(g->ops);
}

#define gp_gpu_find(g, ...)       GP_CALL(gp_gpu_commands(g), find, g, __VA_ARGS__)
#define gp_gpu_missing(g, ...)    GP_CALL(gp_gpu_commands(g), missing, g, __VA_ARGS__)
#define gp_gpu_queues(g, ...)     GP_CALL(gp_gpu_commands(g), queues, g, __VA_ARGS__)
#define gp_gpu_split(g, ...)      GP_CALL(gp_gpu_commands(g), split, g, __VA_ARGS__)
#define gp_gpu_put_back(g, ...)   GP_CALL(gp_gpu_commands(g), put_back, g, __VA_ARGS__)
#define gp_gpu_why(g, ...)        GP_CALL_VOID(gp_gpu_commands(g), why, g, __VA_ARGS__)
#define gp_gpu_evicted_ms(g, ...) GP_CALL(gp_gpu_commands(g), evicted_ms, g, __VA_ARGS__)
#define gp_gpu_set_preempt_type(g, ...) \
	GP_CALL(gp_gpu_commands(g), set_preempt_type, g, __VA_ARGS__)
#define gp_gpu_hold_self(g, ...)    GP_CALL(gp_gpu_commands(g), hold_self, g, __VA_ARGS__)
#define gp_gpu_release_self(g, ...) GP_CALL(gp_gpu_commands(g), release_self, g, __VA_ARGS__)

#define gp_backend_undo(ops, ...)   GP_CALL(gp_backend_commands(ops), undo, __VA_ARGS__)
#define gp_backend_release_process(ops, ...) \
	GP_CALL(gp_backend_commands(ops), release_process, __VA_ARGS__)
#define gp_backend_make_visible(ops, ...) \
	GP_CALL(gp_backend_commands(ops), make_visible, __VA_ARGS__)
#define gp_backend_doctor(ops, ...) GP_CALL_VOID(gp_backend_commands(ops), doctor, __VA_ARGS__)

static inline const struct gp_preempt_type *gp_gpu_preempt_types(const struct gp_gpu *g,
								 unsigned *n)
{
	static const struct gp_preempt_type save = GP_PREEMPT_TYPE_SAVE;
	const struct gp_gpu_command_ops *c = gp_gpu_commands(g);

	*n = 1;
	return c->preempt_types ? c->preempt_types(g, n) : &save;
}

#endif
