/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Views, plans and the table a policy fills in. Freestanding: `priority`, `rr` and `fair` are
 * compiled into the kernel module from the same files, so this header knows no libc.
 *
 * The life of a policy:  init -> (task_in | task_out | decide)*
 * There is no exit: the engine owns all memory and drops it.
 */
#ifndef GP_POLICY_POLICY_H
#define GP_POLICY_POLICY_H

#include "gpu/caps.h"

/* `unmanaged` is the default and is never touched. */
enum gp_class { GP_UNMANAGED, GP_BEST_EFFORT, GP_LATENCY_CRITICAL };

#define GP_PRIORITY_MAX 15u /* 0 is the lowest */

/* Who wants a task held; both may. */
enum gp_holder { GP_HELD_BY_POLICY = 1u << 0, GP_HELD_BY_USER = 1u << 1 };

struct gp_task_view {
	uint64_t id;        /* never reused */
	uint32_t gang;      /* index in the view of the gang's first task; its own without one */
	uint32_t known;     /* GP_KNOWN_*: which of the fields marked (k) hold something */
	uint8_t class;      /* enum gp_class */
	uint8_t priority;   /* 0 to 15 */
	uint8_t held_by;    /* GP_HELD_BY_*, as last decided: the engine's own memory */
	uint8_t run_source; /* enum gp_run_source */
	bool active;        /* (k) has unfinished work */
	bool running;       /* (k) is on the hardware now */
	bool held;          /* (k) as observed */
	bool in_request;    /* (k) between the begin and the end of a request, as it says */
	uint32_t slice_us;  /* (k) as programmed; 0 = the hardware's own */
	uint32_t weight;    /* 1 to 10000, 100 is ordinary */
	uint32_t share_permille;   /* guaranteed part of the device; 0 = none */
	uint32_t ceiling_permille; /* never more than this; 0 = no limit */
	uint64_t deadline_ns;      /* from a request's arrival; 0 = none */
	uint64_t budget_ns;        /* GPU time per request; 0 = not said */
	uint64_t pending;          /* (k) */
	uint64_t active_since_ns;  /* (k) */
	uint64_t run_ns;           /* (k) since attach */
	uint64_t waited_ns; /* (k) how long it has wanted the device and not had it, in a row */
};

/* What is known of a device's tasks at one instant. Tasks stand in the order of their ids. */
struct gp_view {
	uint64_t now_ns;
	uint32_t caps; /* GP_CAP_* */
	uint32_t max_held;
	uint32_t slice_default_us; /* 0 = not known */
	uint32_t slice_min_us;
	uint32_t slice_max_us;
	uint64_t hold_cost_ns; /* typical time from asking to effect; 0 = not known */
	uint64_t release_cost_ns;
	uint64_t switch_cost_ns;
	uint64_t sample_period_ns; /* an observation brings nothing new more often; 0 = any time */
	uint64_t notice_ns;        /* a change of activity is noticed so late at most */
	uint64_t starve_limit_ns;  /* a runnable task that gets nothing for so long: ejection */
	uint32_t n;
	const struct gp_task_view *task;
};

enum gp_want { GP_LEAVE, GP_RUN, GP_HOLD };

struct gp_task_plan {
	uint8_t want;      /* enum gp_want; unmanaged: GP_LEAVE only */
	bool refused;      /* what the task asks for (deadline, share) cannot be promised */
	bool overran;      /* its request has used more than it said, and lost its rank */
	uint32_t slice_us; /* 0 = the hardware's own */
};

/* The engine hands it over cleared: everything is left alone, and no next look is asked for. */
struct gp_plan {
	uint64_t next_ns;          /* look again at the latest then; UINT64_MAX = no wish */
	struct gp_task_plan *task; /* one per task of the view, in its order */
};

static inline void gp_plan_wake_at(struct gp_plan *plan, uint64_t at_ns)
{
	if (at_ns < plan->next_ns)
		plan->next_ns = at_ns;
}

struct gp_param {
	const char *name;
	const char *unit;
	const char *summary;
	int64_t def, min, max;
};

/* What the engine keeps for a policy. `task` blobs follow the tasks as the view changes. */
struct gp_policy_state {
	const int64_t *param; /* values in the order of ops->param */
	void *device;         /* ops->device_state bytes */
	unsigned char *task;  /* ops->task_state bytes per task of the view */
	size_t task_stride;
};

static inline void *gp_policy_task(const struct gp_policy_state *state, uint32_t index)
{
	return state->task + (size_t)index * state->task_stride;
}

struct gp_policy_ops {
	const char *name;
	const char *summary; /* one line */
	const struct gp_param *param;
	uint32_t nparam;
	uint32_t device_state; /* bytes, zeroed by the engine */
	uint32_t task_state;
	uint32_t needs;      /* GP_CAP_* without which loading is refused */
	uint32_t needs_one;  /* ... and of these one is enough. Activity counts here only where it
	                      * is told in time (gp_tells_in_time) */
	uint32_t watch_free; /* ... but not on devices with one of these GP_CAP_* */
	bool every_deadline; /* it promises deadlines to every request, not to 99 of 100 */
	bool watches;        /* plans depend on activity: on a device without EVENTS the engine
	                      * looks every few milliseconds, not only at next_ns */

	/* Optional. Called with zeroed blobs. */
	void (*init)(const struct gp_policy_state *state);
	void (*task_in)(const struct gp_policy_state *state, const struct gp_task_view *task,
	                void *task_state);
	void (*task_out)(const struct gp_policy_state *state, const struct gp_task_view *task,
	                 void *task_state);

	/*
	 * Deterministic in (view, state); writes only the state and the plan; no clock, no I/O, no
	 * allocation. 0 or -errno; an error ejects the policy.
	 */
	int (*decide)(const struct gp_view *view, const struct gp_policy_state *state,
	              struct gp_plan *plan);
};

/* A bit is set and the flag says so / is set and says the opposite. Unknown is neither. */
static inline bool gp_seen_active(const struct gp_task_view *t)
{
	return (t->known & GP_KNOWN_ACTIVE) && t->active;
}

static inline bool gp_seen_idle(const struct gp_task_view *t)
{
	return (t->known & GP_KNOWN_ACTIVE) && !t->active;
}

#endif
