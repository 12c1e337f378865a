/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code shared by `edf` and `lax`: jobs, promises (admission.c, demand.c), the background, and the
 * plan. The two policies differ only in which job goes first.
 *
 * An entity (a gang, or a task without one) that has a deadline and a budget asks for a promise.
 * Its job begins when it is seen active or sends a request mark, and ends when it is idle. The job
 * is due one deadline later. One entity at a time has the device; the others are held. Entities
 * without a promise are the background: they take turns while no job waits. If jobs leave no time,
 * the background has a small reserve.
 *
 * The jobs of an entity count as at least one period apart. A job that begins earlier is due as if
 * it had begun in time. So an entity cannot get more of the device by asking more often, and the
 * promises to others hold.
 */
#ifndef GP_POLICY_DEADLINE_DEADLINE_H
#define GP_POLICY_DEADLINE_DEADLINE_H

#include "policy/rotation.h"

/* The parameters that both policies have. Their own parameters follow. */
enum {
	GP_DEADLINE_RESERVE,
	GP_DEADLINE_RESERVE_EVERY,
	GP_DEADLINE_QUANTUM,
	GP_DEADLINE_JITTER,
	GP_DEADLINE_POLL,
	GP_DEADLINE_SHARED_PARAMS
};

/* clang-format off */
#define GP_DEADLINE_PARAMS \
	[GP_DEADLINE_RESERVE] = \
		{"reserve", "permille", "part of tasks without promise", 20, 5, 500}, \
	[GP_DEADLINE_RESERVE_EVERY] = \
		{"reserve_every", "ms", "period of the reserve", 1000, 10, 5000}, \
	[GP_DEADLINE_QUANTUM] = \
		{"quantum", "ms", "turn of tasks without a promise", 100, 10, 10000}, \
	[GP_DEADLINE_JITTER] = \
		{"jitter", "us", "longest delay in seeing a request", 100, 0, 100000}, \
	[GP_DEADLINE_POLL] = \
		{"poll", "us", "tick interval without events", 1000, 100, 100000}
/* clang-format on */

/* A piece of work that must be done by a certain time. */
struct gp_job {
	bool waits;         /* false = there is no job */
	uint64_t due_ns;    /* absolute time */
	uint64_t left_ns;   /* the part of its budget that is not used yet */
	uint64_t within_ns; /* the deadline that was asked for, from the begin of the job */
};

/* What an entity asks for, and what it would cost. If any field changes, admission is repeated. */
struct gp_asked {
	bool seen;            /* the begin of its requests is known in time */
	bool marked;          /* all its members send request marks */
	uint64_t deadline_ns; /* the shortest of its members; 0 = no deadline */
	uint64_t within_ns;   /* time limit of a job: the deadline, or less to avoid starvation */
	uint64_t budget_ns;   /* the sum of all members; 0 = not declared */
	uint64_t jitter_ns;   /* requests may be seen this late, so their jobs are due earlier */
	uint64_t change_ns;   /* the cost of one handover; see gp_change_cost_ns */
	uint64_t late_ns;     /* longest delay until the policy sees that a job begins or ends */
	uint64_t need_ns;     /* the budget, and the switches between the members of the entity */
};

/*
 * The task blob, used in the blob of an entity's first task. The fields that are needed for
 * entities without a deadline are together at the start: with many tasks, memory accesses dominate
 * the cost.
 */
struct gp_deadline_entity {
	struct gp_entity
		entity; /* must be first; marked idle for gp_rotate while its job competes */

	/* Filled in anew at each decision. */
	bool busy;      /* not known to be idle now, and not held by a user */
	bool has_asked; /* it asks for a deadline, now or at the last decision; else the fields
			   below are unused */
	bool marked;    /* all members send request marks */
	bool run_known; /* run time is measured and up to date */

	/* Kept by each member: its entity has a promise. So, if the first task of a gang leaves,
	 * the other members are tested before entities that were refused. */
	bool in_promise;

	/* The promise. */
	bool promised;
	bool had_promise; /* it had a promise until its attributes changed; it is tested first */
	bool overran;     /* its job used more than its budget, and waits behind all promises */
	struct gp_asked asks, asked; /* current values, and those at the last admission */
	uint64_t period_ns;          /* shortest distance of its jobs */

	/* The job; also recorded without a promise. */
	struct gp_job job;
	uint64_t run_ns;      /* of all members together */
	uint64_t since_ns;    /* since when a member is active; UINT64_MAX = not known */
	uint64_t seen_ns;     /* when it was last seen active */
	uint64_t nominal_ns;  /* when the job counts as begun */
	uint64_t run_from_ns; /* run_ns at the begin of the job */
	uint64_t used_ns;
	uint64_t cuts_before; /* device->cuts at the begin of the job */

	/* Measurement of its period. */
	uint32_t jobs;
	uint64_t jobs_from_ns; /* when the first of these jobs began */
};

struct gp_deadline_device {
	struct gp_rotation rotation; /* of the background */
	uint64_t last_ns;            /* time of the last decision; 0 = none yet */
	uint64_t chosen;             /* id of the first task of the entity that has the device */
	bool background_chosen;      /* the background has the device */
	/* The two members above before the last handover. That entity may still be running. */
	uint64_t before;
	bool background_before;
	bool crowded;       /* an entity has waited since the last tick without jobs */
	bool request_marks; /* at least one entity with a promise sends request marks */
	uint64_t cuts;      /* number of times that a job may have been interrupted */
	bool jobs;          /* at least one job competes for the device */
	bool unannounced;   /* some jobs are only seen at ticks, without an event */
	bool ask_again;     /* admission must be repeated: an attribute changed, or a task left */
	uint64_t work;      /* number of terms that admission added up in this decision */

	/* The reserve: the background as a job of its own. */
	uint32_t background; /* number of entities */
	struct gp_job reserve;
	uint64_t from_ns;     /* begin of the current or next job of the reserve */
	uint64_t got_ns;      /* device time of the background in this job */
	uint64_t turn_got_ns; /* device time of the entity that has the turn */
	uint64_t pending_ns;  /* time until the background really has the device */
};

struct gp_deadline_rules {
	/*
	 * Returns the job that goes first: an index in the view, or view->n for the reserve.
	 * `current` is the job that has the device and is not finished, or UINT32_MAX. Sets
	 * plan->next_ns if the answer changes with time alone.
	 */
	uint32_t (*pick)(const struct gp_view *view, uint32_t current, struct gp_plan *plan);

	/* The number of handovers that this entity's job causes beyond its begin and end. NULL =
	 * none. */
	uint64_t (*more_moves)(const struct gp_view *view, const struct gp_asked *asked);

	bool promise_all; /* for tests: promise without admission test */
};

static inline struct gp_deadline_entity *gp_deadline_entity(const struct gp_view *view, uint32_t i)
{
	return gp_policy_task(view, i);
}

/* The job of an entity, or of the reserve (i == view->n). NULL if it has no job that competes. */
static inline const struct gp_job *gp_job_of(const struct gp_view *view, uint32_t i)
{
	const struct gp_deadline_device *d = view->state->device;
	const struct gp_deadline_entity *e;

	if (i == view->n)
		return d->reserve.waits ? &d->reserve : NULL;
	e = gp_deadline_entity(view, i);
	return e->promised && !e->overran && e->job.waits ? &e->job : NULL;
}

/* Asks for a tick in `in_ns`, and in 10 us at the earliest, because the release that the tick waits
 * for may still be under way. */
static inline void tick_in(const struct gp_view *view, struct gp_plan *plan, uint64_t in_ns)
{
	const uint64_t soon_ns = GP_MS / 100;

	gp_plan_wake_at(plan, view->now_ns + (in_ns > soon_ns ? in_ns : soon_ns));
}

/*
 * Returns the job that is due first. Among equals, `current` comes first, then the oldest task.
 * UINT32_MAX = there is no job.
 */
uint32_t gp_earliest_due(const struct gp_view *view, uint32_t current);

int gp_deadline_decide(const struct gp_view *view, const struct gp_deadline_rules *rules,
		       struct gp_plan *plan);

/* Requests a new admission when a task leaves, because its time can be promised to other tasks. */
void gp_deadline_task_out(const struct gp_policy_state *state, const struct gp_task_view *task,
			  void *task_state);

/* Defined in admission.c. */

/* Fills in what each entity asks for. Withdraws its promise if that has changed. */
void gp_admission_gather(const struct gp_view *view);

/* Gives promises as far as they can be kept, the oldest task first. Withdraws none. */
void gp_admission_decide(const struct gp_view *view, const struct gp_deadline_rules *rules);

/* Defined in demand.c. */

#define GP_TIME_CAP (1ull << 42) /* ns, 73 minutes; limit of all times, so that products fit */

/* The cost of a handover: a hold, a release, and two switches. */
uint64_t gp_change_cost_ns(const struct gp_view *view);

/* Run time that each interruption adds to a job. */
uint64_t gp_refill_ns(const struct gp_view *view);

/* Whether the entity that loses the device should run on until the next one is released.
 * `request_marks`: requests may have gaps. */
bool gp_runs_on(const struct gp_view *view, bool request_marks);

/* Whether all promises and one more can be kept in the worst case. */
bool gp_demand_fits(const struct gp_view *view, const struct gp_deadline_rules *rules,
		    const struct gp_deadline_entity *candidate);

/* Used by several of these files. */

/* The shortest distance of the reserve's jobs. It is so long that at least half of the reserve is
 * run time, not handovers. */
static inline uint64_t gp_reserve_apart_ns(const struct gp_view *view)
{
	return 4 * gp_change_cost_ns(view) * 1000 / gp_param(view, GP_DEADLINE_RESERVE) + 1;
}

static inline bool gp_is_background(const struct gp_view *view, uint32_t i)
{
	return gp_deadline_entity(view, i)->busy && !gp_job_of(view, i);
}

/* Longest delay until the policy sees that a job begins or ends. */
static inline uint64_t gp_late_ns(const struct gp_view *view)
{
	uint64_t poll_ns = gp_param(view, GP_DEADLINE_POLL) * 1000;

	if (view->caps & GP_CAP_EVENTS)
		return view->notice_ns;
	return view->notice_ns +
	       (poll_ns > view->sample_period_ns ? poll_ns : view->sample_period_ns);
}

/* The cost of a switch, including the time until the interrupted work fills the device again. */
static inline uint64_t gp_full_switch_ns(const struct gp_view *view)
{
	return view->switch_cost_ns + view->switch_cost_ns / 4;
}

/* The members of struct gp_policy_ops that `edf` and `lax` share. */
/* clang-format off */
#define GP_DEADLINE_OPS \
	.device_state = sizeof(struct gp_deadline_device), \
	.task_state = sizeof(struct gp_deadline_entity), \
	.uses = GP_USES_DEADLINE | GP_USES_BUDGET, \
	.needs = GP_CAP_HOLD, \
	.needs_one = GP_CAP_ACTIVITY | GP_CAP_REQUEST_MARKS, \
	.every_deadline = true, \
	.watches = true, \
	.task_out = gp_deadline_task_out
/* clang-format on */

#endif
