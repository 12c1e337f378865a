/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduling loop for one device: observe, decide, act, account.
 *
 * The engine has no thread, clock or GPU of its own. The owning thread calls gp_engine_step with
 * the current time. It calls again at the returned time at the latest, and at once if the back end
 * signals an event or a request changed something (see gp_engine_next_ns). All calls must come from
 * one thread. A step allocates nothing unless new tasks have come.
 *
 * A plan is a desired state, not a list of commands. Each step compares it with the known state and
 * requests the difference from the back end. A later tick detects an action that failed or was
 * lost, and repeats it with backoff.
 */
#ifndef GP_ENGINE_ENGINE_H
#define GP_ENGINE_ENGINE_H

#include "base/clock.h"
#include "base/log2_hist.h"
#include "base/error.h"
#include "base/hist.h"
#include "gpu/gpu.h"
#include "policy/registry.h"
#include "task/task.h"

enum gp_event_kind {
	GP_EVENT_TASK_IN,
	GP_EVENT_TASK_OUT,
	GP_EVENT_HELD,
	GP_EVENT_RELEASED,
	GP_EVENT_POLICY,        /* the policy in force has changed */
	GP_EVENT_EJECTED,       /* see gp_engine_ejection */
	GP_EVENT_ACTION_FAILED, /* it will be tried again */
	/* Another process reverted a setting; the engine applies it again. Task 0: the settings of
	 * all tasks may be reverted. */
	GP_EVENT_UNDONE,
	GP_EVENT_REFUSED,  /* the policy cannot guarantee what the task requests */
	GP_EVENT_ADMITTED, /* the policy can guarantee it now */
	GP_EVENT_EVICTED,  /* the driver evicted the task, by itself or in a reset of the device */
	GP_EVENT_RESTORED, /* the driver restored an evicted task */
};

struct gp_event {
	enum gp_event_kind kind;
	uint64_t now_ns;
	uint64_t task; /* task id; 0: none */
	int code;      /* -errno of a failed action */
	uint32_t driver_code;
};

#define GP_STARVE_LIMIT_NS (10 * GP_NS_PER_S)

struct gp_engine_config {
	struct gp_gpu *gpu;

	/* Sets the attributes of a new task. On entry, `attr` is GP_TASK_ATTR_DEFAULT. NULL: all
	 * tasks get GP_TASK_ATTR_DEFAULT. */
	void (*classify)(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr);

	/* Writes an undo record. Called before the first change to a task. Returns the number of
	 * the record, at least 0. If it returns -errno, the change is postponed. NULL: no records
	 * are kept (simulator, tests). */
	int (*before_change)(void *arg, const struct gp_undo *undo);

	/* Whether another process asks for the release of the record's task (gpreempt resume).
	 * Called after a new epoch. NULL: never. */
	bool (*release_asked)(void *arg, int record);

	/* When another process last undid the changes that the record describes; 0: never. Called
	 * after a new epoch. NULL: it is not known. */
	uint64_t (*undone_ns)(void *arg, int record);

	/* Drops an undo record. Called when an unmanaged task, or a task whose release was asked
	 * for, is in its original state, and when a child that inherited the queues has a record of
	 * its own. NULL only without release_asked. */
	void (*drop_record)(void *arg, int record);

	/* Returns the epoch of the undo file. The engine checks it before every step and before
	 * every batch of actions. After a new epoch it writes its undo records again. NULL: there
	 * is no undo file. */
	uint64_t (*epoch)(void *arg);

	/* Must not call the engine. NULL: events are not reported. */
	void (*on_event)(void *arg, const struct gp_event *event);
	void *arg;

	/* The owning thread passes on request marks of programs (gp_engine_mark). The device then
	 * counts as having GP_CAP_REQUEST_MARKS. */
	bool request_marks;

	/* Clock for the duration of decisions. NULL: decisions are not measured and have no time
	 * limit. */
	const struct gp_clock *decide_clock;

	/* 0 selects the default. */
	uint64_t check_ns;    /* 5 ms: tick interval if the back end does not announce changes */
	uint64_t check_lc_ns; /* 1 ms: the same while latency-critical tasks exist */
	/* 1 s: tick interval if all changes are announced. Scans may be more frequent; a tick
	 * follows each. */
	uint64_t check_quiet_ns;
	uint64_t scan_every_ns;   /* 100 ms: interval of scans for new and ended tasks */
	uint64_t starve_limit_ns; /* 10 s: GP_STARVE_LIMIT_NS */
	uint64_t decide_limit_ns; /* 10 ms of decide_clock */
	uint64_t backoff_min_ns;  /* 1 ms */
	uint64_t backoff_max_ns;  /* 1 s */
};

/* Why a policy was ejected. */
enum gp_eject_reason {
	GP_EJECT_NONE,
	GP_EJECT_FAILED,  /* decide returned an error */
	GP_EJECT_SLOW,    /* decide took longer than the limit */
	GP_EJECT_BOUND,   /* its plan broke a rule */
	GP_EJECT_STARVED, /* a runnable task starved for too long */
};

#define GP_EJECT_VIEW_MAX 64

/* Record of an ejection: the policy, the reason, the time, and what the policy saw. */
struct gp_ejection {
	enum gp_eject_reason reason;
	const struct gp_policy_ops *policy;
	uint64_t now_ns;
	uint64_t task;  /* the affected task; 0: none */
	char text[200]; /* one sentence */
	/* view.task points to task_view below; view.n is the true number of tasks. */
	struct gp_view view;
	uint32_t ntasks; /* number of tasks in the arrays below */
	struct gp_task_view task_view[GP_EJECT_VIEW_MAX];
	struct gp_task_plan task_plan[GP_EJECT_VIEW_MAX];
};

struct gp_engine_stats {
	uint64_t ticks;
	uint64_t decisions;
	uint64_t holds; /* that took effect, or were accepted if the device shows no effects */
	uint64_t releases;
	uint64_t slices;
	uint64_t failures;         /* actions that the back end refused or that had no effect */
	uint64_t release_failures; /* failures of releases */
	/* Actions postponed: two released tasks would have had a tiny slice, the device cannot
	 * hold more tasks, or the back end is not ready. */
	uint64_t deferred;
	uint64_t undone;       /* settings that another process reverted */
	uint64_t blind;        /* ticks at which the back end could not observe the device */
	uint64_t inversions;   /* inversions that began */
	uint64_t inversion_ns; /* their total duration, sampled at ticks */
	uint64_t preemptions;  /* holds by the policy that took effect on an active task */
	uint64_t ejections;
	/* False: the device cannot show which task runs; the counts of inversions mean nothing. */
	bool inversions_seen;

	uint64_t busy_ns; /* the tasks' run times added up, even if they overlap */
	bool busy_seen;   /* false: run times are not measured */
	uint64_t idle_ns; /* time without work of any task, sampled at ticks */
	bool idle_seen;   /* false: the activity of some tasks is not known */
	/*
	 * Switches are not measured. `switches` is how often tasks were put on the hardware, if the
	 * back end reports it. `switch_ns` is that number times gp_gpu_info.switch_cost_ns. It is
	 * an upper bound, because returning to an idle device may cost nothing.
	 */
	uint64_t switches;
	uint64_t switch_ns;
	bool switches_seen;

	uint64_t starved_ns; /* longest current starvation that the policy causes */

	/*
	 * Completed waits by class. A wait begins when a task wants the device and ends when the
	 * task gets the device. A held task wants the device unless it is known to be idle. Tasks
	 * that are served at once do not wait.
	 */
	struct gp_log2_hist class_waits[GP_LATENCY_CRITICAL + 1];

	/* The large members come last; a copy of this struct updates them with gp_hist_catch_up. */
	struct gp_hist wait_ns; /* all classes */
	/* from the request to its effect, or to its acceptance if effects are not visible */
	struct gp_hist hold_ns;
	struct gp_hist release_ns;
	struct gp_hist decide_ns; /* empty without decide_clock */
	/* From the start of activity to the tick that saw it; empty if starts are not known. */
	struct gp_hist detect_ns;
};

/* How often a hold that had taken effect ended without a request. */
struct gp_lapses {
	uint64_t all;
	uint64_t worked; /* of these: the task worked although the driver said that it was held */
};

struct gp_task_stats {
	uint64_t id;
	uint64_t key;
	uint32_t handle;
	pid_t pid;
	char name[32];
	struct gp_task_attr attr;
	uint8_t held_by;    /* GP_HELD_BY_* */
	bool held_for_gang; /* users hold other members of its gang, not this one */
	bool held;          /* as far as is known: observed where possible. False if `unsure` */
	bool unsure;        /* the last hold or release failed: it may be held or not */
	/* No hold or release is under way, unsure or unproven. If the task is not held, this engine
	 * has no hold on it. If the task is held and a user wants that, this engine holds it. */
	bool settled;
	/* Another program holds it, and neither this engine nor a user of it wants that or will end
	 * it. False if that is not visible. */
	bool held_elsewhere;
	enum gp_evidence evidence;  /* of the last hold or release, at the last tick */
	bool in_part;               /* of a release: some of its work was seen, not all */
	struct gp_eviction evicted; /* at the last tick, whether it is held or not */
	bool refused;               /* the policy cannot guarantee what the task requests */
	uint64_t overruns; /* requests that exceeded the task's budget, as the policy saw it */
	uint32_t slice_us;
	uint64_t held_ns; /* time held by the policy */
	/* Time after a release that no activity has proved, or that has failed. */
	uint64_t unproven_ns;
	uint64_t preemptions;
	uint64_t failures;
	int failure;      /* -errno of the last failed action; 0: none */
	int failing;      /* the same, if the action is wanted and will be tried again; else 0 */
	int hold_failure; /* -errno of the last hold, if it failed and none took effect since */
	bool under_way;   /* at the last tick: an action, or the preparation of one */
	uint64_t undone;
	struct gp_lapses lapses;
	uint64_t run_ns;    /* valid with run_source */
	uint64_t run_at_ns; /* the time at which run_ns was measured */
	uint8_t run_source;
	uint64_t scheduled; /* how often it was put on the hardware; 0: not known */
	bool waited_known;
	uint64_t waited_ns; /* current wait, if known */
	uint64_t waited_max_ns;

	uint64_t start_time;  /* of the process, in clock ticks since boot; 0: not known */
	uint64_t memory;      /* bytes of GPU memory at the last scan; 0: not known */
	uint32_t known;       /* GP_KNOWN_ACTIVE and GP_KNOWN_RUNNING, at the last tick */
	bool active, running; /* valid if `known` says so */
	uint64_t waits;       /* completed waits; if 0, the members below are 0 */
	uint64_t wait_p50_ns, wait_p99_ns, wait_max_ns, wait_sum_ns;
};

struct gp_engine;

/* Creates an engine with the policy `none`. Returns 0 or -errno. The caller keeps ownership of
 * `config`. */
int gp_engine_new(const struct gp_engine_config *config, struct gp_engine **engine);

/* Detaches every task, which restores its original state, and frees the engine. */
void gp_engine_free(struct gp_engine *e);

/* Changes the policy. Refuses a policy that needs a capability that the device lacks; `err`
 * explains. */
int gp_engine_set_policy(struct gp_engine *e, uint64_t now_ns,
			 const struct gp_policy_choice *choice, struct gp_error *err);
const struct gp_policy_ops *gp_engine_policy(const struct gp_engine *e);

/* One tick. Returns when the next tick is due at the latest, always later than now_ns. */
uint64_t gp_engine_step(struct gp_engine *e, uint64_t now_ns);

/* Returns when the next tick is due, as the last step returned it; 0: at once. */
uint64_t gp_engine_next_ns(const struct gp_engine *e);

/* Requests a tick at once, after an event of the back end or a hint. With `rescan`, the tick begins
 * with a scan. */
void gp_engine_trigger(struct gp_engine *e, bool rescan);

/*
 * A program reports that a request begins or ends. After its first mark, a task is active between
 * begin and end, even in gaps between kernels. Outside a request it is idle unless the back end
 * sees work at this moment. key: gp_seen.key of the task. -ESRCH: no such task. Requests a tick at
 * once.
 */
int gp_engine_mark(struct gp_engine *e, uint64_t now_ns, uint64_t key, bool begins);

/*
 * A program reports that GPU work will follow within a moment. The task counts as active until the
 * back end sees its work or `for_ns` have passed. -ESRCH: no such task. Requests a tick at once.
 */
int gp_engine_hint(struct gp_engine *e, uint64_t now_ns, uint64_t key, uint64_t for_ns);

/*
 * -ESRCH: no such task; -ENOTSUP: the device cannot hold; -ENOSPC: it cannot hold this many tasks.
 * The change takes effect at the next step, which is requested at once. gp_engine_user_hold holds
 * the whole gang of the task. gp_engine_user_release ends the hold of this task only: holds of
 * other members stay, because other users may have made them, and they keep the whole gang held.
 */
int gp_engine_set_attr(struct gp_engine *e, uint64_t task, const struct gp_task_attr *attr);
int gp_engine_user_hold(struct gp_engine *e, uint64_t task);
int gp_engine_user_release(struct gp_engine *e, uint64_t task);

unsigned gp_engine_tasks(const struct gp_engine *e);
/* Statistics of a task by its index, 0 to gp_engine_tasks - 1, in order of arrival. */
void gp_engine_task_stats(const struct gp_engine *e, unsigned index, struct gp_task_stats *out);
/* The same by task id. -ESRCH: no such task. */
int gp_engine_find_task(const struct gp_engine *e, uint64_t task, struct gp_task_stats *out);
const struct gp_engine_stats *gp_engine_stats(const struct gp_engine *e);

/* Returns the last ejection, or NULL. Valid until the next ejection. */
const struct gp_ejection *gp_engine_ejection(const struct gp_engine *e);
const char *gp_eject_reason_name(enum gp_eject_reason reason);

/* What the last step observed and decided. Valid until the next non-const call. */
const struct gp_view *gp_engine_view(const struct gp_engine *e);
const struct gp_plan *gp_engine_plan(const struct gp_engine *e);

#endif
