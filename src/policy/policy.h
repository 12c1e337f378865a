/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Views, plans, and the table of functions that a policy fills in. Freestanding: `priority`, `rr`
 * and `fair` are compiled into the kernel module from the same files, so this header uses no libc.
 *
 * Calls to a policy:  init -> (task_in | task_out | decide)* There is no exit call: the engine owns
 * all memory of a policy and frees it.
 */
#ifndef GP_POLICY_POLICY_H
#define GP_POLICY_POLICY_H

#include "gpu/caps.h"
#include "task/class.h"

static inline uint64_t gp_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t gp_most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns a - b, or 0 if that is negative. */
static inline uint64_t gp_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

struct gp_task_view {
	uint64_t id;   /* never reused */
	uint32_t gang; /* index in the view of the gang's first task; the task's own index without a
			  gang */
	uint32_t known;            /* GP_KNOWN_*: which of the fields marked (k) are valid */
	uint8_t class;             /* enum gp_class */
	uint8_t priority;          /* 0 to 15 */
	uint8_t held_by;           /* GP_HELD_BY_*, as the engine last decided */
	uint8_t run_source;        /* enum gp_run_source */
	bool active;               /* (k) has unfinished work */
	bool running;              /* (k) is on the hardware now */
	bool held;                 /* (k) as observed on the device */
	bool in_request;           /* (k) the task is between the request marks begin and end */
	uint32_t slice_us;         /* (k) as programmed; 0 = the hardware's default */
	uint32_t weight;           /* 1 to 10000; the default is 100 */
	uint32_t share_permille;   /* guaranteed part of the device; 0 = none */
	uint32_t ceiling_permille; /* upper limit of its part of the device; 0 = no limit */
	uint64_t deadline_ns;      /* from a request's arrival; 0 = none */
	uint64_t budget_ns;        /* GPU time per request; 0 = not declared */
	uint64_t pending;          /* (k) */
	uint64_t active_since_ns;  /* (k) */
	uint64_t run_ns;           /* (k) run time since attach */
	uint64_t waited_ns; /* (k) time since the task last had the device, while it has work */
};

/* The known state of a device's tasks at one instant. Tasks are sorted by id. */
struct gp_view {
	uint64_t now_ns;
	uint32_t caps; /* GP_CAP_* */
	uint32_t max_held;
	uint32_t slice_default_us; /* 0 = not known */
	uint32_t slice_min_us;
	uint32_t slice_max_us;
	uint64_t hold_cost_ns; /* typical time from the request to its effect; 0 = not known */
	uint64_t release_cost_ns;
	uint64_t switch_cost_ns;
	uint64_t sample_period_ns; /* observations change at most this often; 0 = at any time */
	uint64_t notice_ns;        /* longest delay until a change of activity is noticed */
	uint64_t starve_limit_ns;  /* a policy is ejected if a runnable task makes no progress for
				      this time */
	uint32_t n;
	const struct gp_task_view *task;
	const struct gp_policy_state *state; /* the policy's own memory */
};

enum gp_want { GP_LEAVE, GP_RUN, GP_HOLD };

struct gp_task_plan {
	uint8_t want;      /* enum gp_want; for unmanaged tasks GP_LEAVE only */
	bool refused;      /* the deadline or share that the task asks for cannot be promised */
	bool overran;      /* the task's request used more than its budget and lost its rank */
	uint32_t slice_us; /* 0 = the hardware's default */
};

/* The engine initialises the plan: all tasks are left alone, and no tick is asked for. */
struct gp_plan {
	uint64_t next_ns;          /* the latest time of the next tick; UINT64_MAX = no request */
	struct gp_task_plan *task; /* one per task of the view, in its order */
};

static inline void gp_plan_wake_at(struct gp_plan *plan, uint64_t at_ns)
{
	plan->next_ns = gp_least(plan->next_ns, at_ns);
}

struct gp_param {
	const char *name;
	const char *unit;
	const char *summary;
	int64_t def, min, max;
};

/* Memory that the engine keeps for a policy. The engine moves the `task` blobs when tasks come or
 * leave, so that blob i belongs to task i of the view. */
struct gp_policy_state {
	const int64_t *param; /* values in the order of ops->param */
	void *device;         /* ops->device_state bytes */
	unsigned char *task;  /* ops->task_state bytes per task of the view */
	size_t task_stride;
};

/* The blob of a task of the view. */
static inline void *gp_policy_task(const struct gp_view *view, uint32_t index)
{
	return view->state->task + (size_t)index * view->state->task_stride;
}

/* The value of a parameter whose minimum is not negative. */
static inline uint64_t gp_param(const struct gp_view *view, unsigned param)
{
	return (uint64_t)view->state->param[param];
}

/* The slice that the device accepts and that is nearest to `us`. */
static inline uint32_t gp_slice_near(const struct gp_view *view, uint64_t us)
{
	return (uint32_t)gp_least(gp_most(us, view->slice_min_us), view->slice_max_us);
}

/* A parameter in us as a slice that the device accepts. */
static inline uint32_t gp_slice_param(const struct gp_view *view, unsigned param)
{
	return gp_slice_near(view, gp_param(view, param));
}

/*
 * The attributes that change the plans of a policy. Every policy leaves unmanaged tasks alone, and
 * the engine keeps gangs together under every policy. In the order of gp_attr_use_names.
 */
enum gp_attr_use {
	GP_USES_CLASS = 1u << 0, /* it treats lc and be differently */
	GP_USES_PRIORITY = 1u << 1,
	GP_USES_WEIGHT = 1u << 2,
	GP_USES_SHARE = 1u << 3,
	GP_USES_CEILING = 1u << 4,
	GP_USES_DEADLINE = 1u << 5,
	GP_USES_BUDGET = 1u << 6,
};

struct gp_policy_ops {
	const char *name;
	const char *summary; /* one line */
	const struct gp_param *param;
	uint32_t nparam;
	uint32_t device_state; /* bytes, zeroed by the engine */
	uint32_t task_state;
	uint32_t uses;       /* GP_USES_*: attributes without a bit here have no effect */
	uint32_t needs;      /* GP_CAP_* that the device must have; else loading fails */
	uint32_t needs_one;  /* GP_CAP_*: the device must have at least one of them. Activity
			      counts only if it is known in time (gp_tells_in_time) */
	uint32_t watch_free; /* on devices with one of these GP_CAP_*, `watches` does not apply */
	bool every_deadline; /* it promises deadlines to all requests, not to 99 of 100 */
	bool watches; /* plans depend on activity: on a device without EVENTS the engine ticks every
			 few milliseconds, not only at next_ns */

	/* Optional. The engine passes zeroed blobs. */
	void (*init)(const struct gp_policy_state *state);
	void (*task_in)(const struct gp_policy_state *state, const struct gp_task_view *task,
			void *task_state);
	void (*task_out)(const struct gp_policy_state *state, const struct gp_task_view *task,
			 void *task_state);

	/*
	 * Must be deterministic in the view and its state. Writes only the state and the plan; uses
	 * no clock, no I/O and no allocation. Returns 0 or -errno; an error ejects the policy.
	 */
	int (*decide)(const struct gp_view *view, struct gp_plan *plan);
};

/* gp_seen_active: activity is known and the task is active. gp_seen_idle: activity is known and the
 * task is idle. If activity is unknown, both are false. */
static inline bool gp_seen_active(const struct gp_task_view *t)
{
	return (t->known & GP_KNOWN_ACTIVE) && t->active;
}

static inline bool gp_seen_idle(const struct gp_task_view *t)
{
	return (t->known & GP_KNOWN_ACTIVE) && !t->active;
}

#endif
