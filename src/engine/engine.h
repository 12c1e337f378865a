/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: observe -> decide -> act -> account, for one device.
 *
 * The engine has no thread, no clock and no GPU of its own. Whoever drives it calls
 * gp_engine_step with the time, and calls again at the latest at the time that returns, or at
 * once when the back end's event fires or a request changed something (gp_engine_next_ns says
 * when). All calls come from one thread. After the tasks are there, a step allocates nothing.
 *
 * Desired state, not commands: each step compares what the plan wants with what is known to be
 * and asks the back end for the difference. What failed or was lost is seen at a later look and
 * repeated with backoff.
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
	GP_EVENT_POLICY,        /* another policy is in force */
	GP_EVENT_EJECTED,       /* see gp_engine_ejection */
	GP_EVENT_ACTION_FAILED, /* will be tried again */
	GP_EVENT_UNDONE,        /* somebody changed a setting back, without a task perhaps all of
	                         * them; it is applied again */
	GP_EVENT_REFUSED,       /* the policy cannot promise what the task asks for ... */
	GP_EVENT_ADMITTED,      /* ... and now it can */
};

struct gp_event {
	enum gp_event_kind kind;
	uint64_t now_ns;
	uint64_t task; /* id; 0 = none */
	int code;      /* -errno of a failed action */
	uint32_t driver_code;
};

#define GP_STARVE_LIMIT_NS (10 * GP_NS_PER_S)

struct gp_engine_config {
	struct gp_gpu *gpu;

	/* Gives a new task its attributes; they are GP_TASK_ATTR_DEFAULT when called. NULL: keep.
	 */
	void (*classify)(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr);

	/* Called before the first change to a task with how to put it back. An error postpones the
	 * change. NULL: nobody keeps records (simulator, tests). */
	int (*before_change)(void *arg, const struct gp_undo *undo);

	/* Of the undo file: looked at before every step and every call that changes something. A
	 * new one means gp_engine_renew_undo. NULL: who drives it sees to that. */
	uint64_t (*epoch)(void *arg);

	/* Must not call back into the engine. NULL: not interested. */
	void (*on_event)(void *arg, const struct gp_event *event);
	void *arg;

	/* Programs' brackets are passed on (gp_engine_mark): the device counts as one that has
	 * GP_CAP_REQUEST_MARKS. */
	bool request_marks;

	/* Measures how long a decision takes; NULL: it is not measured, and so has no limit. */
	const struct gp_clock *decide_clock;

	/* 0 in any of these takes the default. */
	uint64_t check_ns;        /* 5 ms: looks where nothing announces a change */
	uint64_t check_lc_ns;     /* 1 ms: the same while latency-critical tasks are there */
	uint64_t check_quiet_ns;  /* 1 s: looks where everything announces itself; scans may be
	                           * more frequent, and each is followed by a look */
	uint64_t scan_every_ns;   /* 100 ms: who has come or gone */
	uint64_t starve_limit_ns; /* 10 s: GP_STARVE_LIMIT_NS */
	uint64_t decide_limit_ns; /* 10 ms of decide_clock */
	uint64_t backoff_min_ns;  /* 1 ms */
	uint64_t backoff_max_ns;  /* 1 s */
};

/* Why a policy was thrown out. */
enum gp_eject_reason {
	GP_EJECT_NONE,
	GP_EJECT_FAILED,  /* decide returned an error */
	GP_EJECT_SLOW,    /* decide took longer than the limit */
	GP_EJECT_BOUND,   /* the plan breaks a rule */
	GP_EJECT_STARVED, /* a runnable task got nothing for too long */
};

#define GP_EJECT_VIEW_MAX 64

/* Who, what, when, and the view it had. */
struct gp_ejection {
	enum gp_eject_reason reason;
	const struct gp_policy_ops *policy;
	uint64_t now_ns;
	uint64_t task;       /* the task concerned; 0 = none */
	char text[200];      /* one sentence */
	struct gp_view view; /* view.task points to tasks below; view.n is the true number */
	uint32_t ntasks;     /* how many of them were kept */
	struct gp_task_view task_view[GP_EJECT_VIEW_MAX];
	struct gp_task_plan task_plan[GP_EJECT_VIEW_MAX];
};

struct gp_engine_stats {
	uint64_t ticks;
	uint64_t decisions;
	uint64_t holds; /* actions asked for */
	uint64_t releases;
	uint64_t slices;
	uint64_t failures;     /* actions the back end refused, or that stayed without effect */
	uint64_t deferred;     /* put off because two tiny slices would have met */
	uint64_t undone;       /* settings that somebody changed back */
	uint64_t blind;        /* looks at which the back end could say nothing */
	uint64_t inversions;   /* how often one began */
	uint64_t inversion_ns; /* how long they stood, as far as looks can tell */
	uint64_t preemptions;  /* active tasks that the policy held */
	uint64_t ejections;
	bool inversions_seen; /* false: this device cannot show who runs; the counts mean nothing */

	uint64_t
		busy_ns; /* its tasks' run times; more than the clock's where several run at once */
	bool busy_seen;  /* false: no run time is measured here */
	uint64_t idle_ns; /* no task had work, as far as looks can tell */
	bool idle_seen;   /* false: not all tasks show whether they work */
	/* Nothing measures a switch. Where it is told how often tasks came on the hardware, these
	 * are that number and what it costs by the device's own figure: at most, because to come
	 * back to an idle device may cost nothing. */
	uint64_t switches;
	uint64_t switch_ns;
	bool switches_seen;

	uint64_t starved_ns; /* now: the longest that a task gets nothing, by the policy's doing */

	/* Waits that have ended, by class: from when a task wanted the device (or was held, unless
	 * it is seen to want nothing) until it had it. Served at once is no wait. */
	struct gp_log2_hist class_waits[GP_LATENCY_CRITICAL + 1];

	/* The large ones, last: who copies all this copies what changed in them. */
	struct gp_hist wait_ns; /* of all classes */
	struct gp_hist hold_ns; /* from asking to effect, or to acceptance where that is all */
	struct gp_hist release_ns;
	struct gp_hist decide_ns; /* empty without decide_clock */
	/* From the start of activity to the look that saw it; empty where no start is told. */
	struct gp_hist detect_ns;
};

struct gp_task_stats {
	uint64_t id;
	uint64_t key;
	uint32_t handle;
	pid_t pid;
	char name[32];
	struct gp_task_attr attr;
	uint8_t held_by;   /* GP_HELD_BY_* */
	bool held;         /* as believed: observed where that is possible */
	bool refused;      /* the policy cannot promise what it asks for */
	uint64_t overruns; /* requests that used more than the task said, as the policy saw it */
	uint32_t slice_us;
	uint64_t held_ns; /* by the policy */
	uint64_t preemptions;
	uint64_t failures;
	uint64_t undone;
	uint64_t run_ns; /* with run_source */
	uint8_t run_source;
	uint64_t scheduled; /* how often it came on the hardware; 0 = not known */
	bool waited_known;
	uint64_t waited_ns; /* now, if known: in a row */
	uint64_t waited_max_ns;

	uint64_t start_time;  /* of the process, in clock ticks since boot; 0 = not known */
	uint64_t memory;      /* bytes of GPU memory at the last scan; 0 = not known */
	uint32_t known;       /* GP_KNOWN_ACTIVE, GP_KNOWN_RUNNING: at the last look */
	bool active, running; /* where that says so */
	uint64_t waits;       /* that have ended; the next ones are theirs, 0 without one */
	uint64_t wait_p50_ns, wait_p99_ns, wait_max_ns, wait_sum_ns;
};

struct gp_engine;

/* The policy is `none` until another is set. 0 or -errno. Frees nothing of `config`. */
int gp_engine_new(const struct gp_engine_config *config, struct gp_engine **engine);

/* Detaches every task (which puts it back) and frees all. */
void gp_engine_free(struct gp_engine *e);

/* Refuses, in one sentence, a policy that needs what the device cannot give. */
int gp_engine_set_policy(struct gp_engine *e, uint64_t now_ns,
                         const struct gp_policy_choice *choice, struct gp_error *err);
const struct gp_policy_ops *gp_engine_policy(const struct gp_engine *e);

/* One look. Returns when to look next at the latest: always later than now_ns. */
uint64_t gp_engine_step(struct gp_engine *e, uint64_t now_ns);

/* What the last step returned, or 0 when something happened since that wants a look at once. */
uint64_t gp_engine_next_ns(const struct gp_engine *e);

/* Look at once: the back end's event fired, a hint arrived. With `rescan`, see who is there. */
void gp_engine_trigger(struct gp_engine *e, bool rescan);

/*
 * Somebody undid our work, or may have: for who does not hand in `epoch`, to be called before the
 * next step. Every task that was changed has its record written again at once, and what it should
 * be is asked for again at the next step, whatever it seems to be. Where the record cannot be
 * written the task is put back, and left alone until it can. Wants a look at once.
 */
void gp_engine_renew_undo(struct gp_engine *e);

/*
 * A program says that a request begins or ends. From its first bracket on it is believed: it is
 * active between the two, gaps of its work included, and idle outside unless the back end sees work
 * at this moment. `key` is the back end's. -ESRCH: no such task. Wants a look at once.
 */
int gp_engine_mark(struct gp_engine *e, uint64_t now_ns, uint64_t key, bool begins);

/*
 * A program says that a request has arrived and GPU work follows in a moment: it counts as active
 * from now on, until work is seen or `for_ns` are over. -ESRCH: no such task. Wants a look at once.
 */
int gp_engine_hint(struct gp_engine *e, uint64_t now_ns, uint64_t key, uint64_t for_ns);

/* -ESRCH: no such task; -ENOTSUP, -ENOSPC: the device cannot hold, or not so many. They take effect
 * at the next step, which is wanted at once. A hold holds the whole gang. */
int gp_engine_set_attr(struct gp_engine *e, uint64_t task, const struct gp_task_attr *attr);
int gp_engine_user_hold(struct gp_engine *e, uint64_t task);
int gp_engine_user_release(struct gp_engine *e, uint64_t task);

unsigned gp_engine_tasks(const struct gp_engine *e);
/* Task by its place, 0 to gp_engine_tasks - 1, in the order of arrival. */
void gp_engine_task_stats(const struct gp_engine *e, unsigned index, struct gp_task_stats *out);
/* The same by its id. -ESRCH: it is not there. */
int gp_engine_find_task(const struct gp_engine *e, uint64_t task, struct gp_task_stats *out);
const struct gp_engine_stats *gp_engine_stats(const struct gp_engine *e);

/* The last ejection, or NULL. Valid until the next one. */
const struct gp_ejection *gp_engine_ejection(const struct gp_engine *e);
const char *gp_eject_reason_name(enum gp_eject_reason reason);

/* What the last step saw and decided. Valid until the next call that is not const. */
const struct gp_view *gp_engine_view(const struct gp_engine *e);
const struct gp_plan *gp_engine_plan(const struct gp_engine *e);

#endif
