/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `edf` and `lax` share: jobs, the promise (admission.c, demand.c), what is left for tasks
 * without one, and the plan. They differ only in which job goes first.
 *
 * A unit (a gang, or a task without one) that has a deadline and a budget asks for a promise. Its
 * job begins when it is seen active, or says so with a bracket, and ends when it is idle; it is due
 * one deadline later. One unit at a time has the device, the others are held. Units without a
 * promise (background) have the device when no job is there, in turns, and a small reserve when
 * jobs leave nothing.
 *
 * A unit's jobs count as at least one period apart, whenever they begin: one that comes earlier is
 * due as if it had come in time. So nobody gets more of the device by asking more often, and the
 * others' promises hold.
 */
#ifndef GP_POLICY_DEADLINE_DEADLINE_H
#define GP_POLICY_DEADLINE_DEADLINE_H

#include "policy/rotation.h"

/* The parameters that both have; their own come behind. */
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
	[GP_DEADLINE_RESERVE]       = {"reserve", "permille", "kept for tasks without promise", 20, 5, 500}, \
	[GP_DEADLINE_RESERVE_EVERY] = {"reserve_every", "ms", "... at least once in this time", 1000, 10, 5000}, \
	[GP_DEADLINE_QUANTUM]       = {"quantum", "ms", "their turns when no job is there", 100, 10, 10000}, \
	[GP_DEADLINE_JITTER]        = {"jitter", "us", "so late is a request seen at most", 100, 0, 100000}, \
	[GP_DEADLINE_POLL]          = {"poll", "us", "looks where nobody tells of jobs", 1000, 100, 100000}
/* clang-format on */

/* Something that wants the device by a certain time. */
struct gp_job {
	bool waits;         /* false: there is none */
	uint64_t due_ns;    /* absolute */
	uint64_t left_ns;   /* of its budget */
	uint64_t within_ns; /* the deadline that was asked for */
};

/* What a unit asks for, and what it would cost. A change of any of it is a new question. */
struct gp_asked {
	bool seen;            /* it is known in time when its requests begin ... */
	bool told;            /* ... because they say so themselves */
	uint64_t deadline_ns; /* the shortest of its members; 0 = it asks for nothing */
	uint64_t within_ns;   /* done in this time: the deadline, but soon enough not to starve */
	uint64_t budget_ns;   /* of all members together; 0 = not said */
	uint64_t jitter_ns;   /* its requests may be seen so much late, and so are due earlier */
	uint64_t change_ns;   /* what one change of hands costs; see gp_change_cost_ns */
	uint64_t late_ns;     /* so late are begin and end seen at worst */
	uint64_t need_ns;     /* the budget, and switches among its own members */
};

/* The task blob; in use at the first task of a unit. What is needed of units that ask for nothing
 * stands together: with many tasks, memory is what costs. */
struct gp_deadline_entity {
	struct gp_entity
		entity; /* first; as gp_rotate sees it: with a job that competes it is idle */

	/* Gathered anew at each decision. */
	bool busy;      /* not known to be idle at this moment, and no user holds it */
	bool has_asked; /* for a deadline, now or at the last decision; else the rest is not kept */
	bool told;      /* all members say where their requests begin and end */
	bool run_known; /* measured, and up to date */

	/* Kept by each member: its unit has a promise. The first of a gang may leave, and what is
	 * left of it is not to stand behind those that were refused. */
	bool in_promise;

	/* The promise. */
	bool promised;
	bool had_promise; /* until it asked for something else: it comes before those without */
	bool overran;     /* its job used more than it asked for: waits behind all promises */
	struct gp_asked asks, asked; /* now, and when it was last decided about */
	uint64_t period_ns;          /* its jobs count as this far apart at least */

	/* The job; also kept without a promise. */
	struct gp_job job;
	uint64_t run_ns;      /* of all members, now */
	uint64_t since_ns;    /* since when one is active; UINT64_MAX = not known */
	uint64_t seen_ns;     /* last seen active */
	uint64_t nominal_ns;  /* when it counts as begun */
	uint64_t run_from_ns; /* run_ns at its begin */
	uint64_t used_ns;
	uint64_t cuts_before; /* what device->cuts was */

	/* Its rhythm. */
	uint32_t jobs;
	uint64_t jobs_from_ns; /* when the first of them began */
};

struct gp_deadline_device {
	struct gp_rotation rotation; /* of the background */
	uint64_t last_ns;            /* the last decision; 0 = none yet */
	uint64_t chosen;             /* id of the first task of who has the device ... */
	bool background_chosen;      /* ... or all that have no promise */
	uint64_t before;             /* the same of who had it before, and may work on */
	bool background_before;
	bool crowded;       /* somebody waits, or did since the last time without jobs */
	bool request_marks; /* some who have a promise have brackets */
	uint64_t cuts;      /* how often somebody may have been cut short */
	bool jobs;          /* somebody has one that competes */
	bool unannounced;   /* somebody's jobs are seen only by looking */
	bool ask_again;     /* somebody asks for something else, or left */
	uint64_t work;      /* what asking took in this decision: demand.c */

	/* The reserve: the background as a job of its own. */
	uint32_t background; /* units */
	struct gp_job reserve;
	uint64_t from_ns;     /* when its job begins, or began */
	uint64_t got_ns;      /* what the background got of it */
	uint64_t turn_got_ns; /* what the unit whose turn it is got */
	uint64_t on_way_ns;   /* until it really has the device */
};

struct gp_deadline_rules {
	/*
	 * Which job goes first: an index in the view, or view->n for the reserve. `current` is the
	 * one that has the device and waits for the rest of it, or UINT32_MAX. Sets plan->next_ns
	 * when the answer changes with time alone.
	 */
	uint32_t (*pick)(const struct gp_view *view, const struct gp_policy_state *state,
	                 uint32_t current, struct gp_plan *plan);

	/* How often the device moves between jobs because of this one, beyond its begin and end.
	 * NULL: never */
	uint64_t (*more_moves)(const struct gp_policy_state *state, const struct gp_asked *asked);

	bool promise_all; /* to find out what goes wrong without a test; no policy does that */
};

static inline struct gp_deadline_entity *gp_deadline_entity(const struct gp_policy_state *state,
                                                            uint32_t i)
{
	return gp_policy_task(state, i);
}

/* The job of a unit, or of the reserve (i == view->n). NULL: it has none that competes. */
static inline const struct gp_job *gp_job_of(const struct gp_view *view,
                                             const struct gp_policy_state *state, uint32_t i)
{
	const struct gp_deadline_device *d = state->device;
	const struct gp_deadline_entity *u;

	if (i == view->n)
		return d->reserve.waits ? &d->reserve : NULL;
	u = gp_deadline_entity(state, i);
	return u->promised && !u->overran && u->job.waits ? &u->job : NULL;
}

/* Not at once: what the look waits for may itself wait, for a release that is under way. */
static inline void tick_in(const struct gp_view *view, struct gp_plan *plan, uint64_t in_ns)
{
	const uint64_t soon_ns = GP_MS / 100;

	gp_plan_wake_at(plan, view->now_ns + (in_ns > soon_ns ? in_ns : soon_ns));
}

/* The one that is due first; `current` among equals, or else the oldest. UINT32_MAX: nobody. */
uint32_t gp_earliest_due(const struct gp_view *view, const struct gp_policy_state *state,
                         uint32_t current);

int gp_deadline_decide(const struct gp_view *view, const struct gp_policy_state *state,
                       const struct gp_deadline_rules *rules, struct gp_plan *plan);

/* A task left: what it had may do for somebody else. */
void gp_deadline_task_out(const struct gp_policy_state *state, const struct gp_task_view *task,
                          void *task_state);

/* ---- admission.c ---- */

/* Fills in what each unit asks for, and forgets promises to those that ask for something else. */
void gp_admission_gather(const struct gp_view *view, const struct gp_policy_state *state);

/* Gives promises as far as they can be kept, the oldest task first; takes none back. */
void gp_admission_decide(const struct gp_view *view, const struct gp_policy_state *state,
                         const struct gp_deadline_rules *rules);

/* ---- demand.c ---- */

#define GP_TIME_CAP (1ull << 42) /* ns, 73 minutes: longer times count as this; products fit */

/* Hold, release, and two switches. */
uint64_t gp_change_cost_ns(const struct gp_view *view);

/* What a job may run for nothing each time that somebody is held. */
uint64_t gp_refill_ns(const struct gp_view *view);

/* Whether it is better that who loses the device works on until the other is released. `brackets`:
 * somebody's requests have gaps. */
bool gp_works_on(const struct gp_view *view, bool request_marks);

/* Whether all that have a promise, and one more, can be done in time whatever happens. */
bool gp_demand_fits(const struct gp_view *view, const struct gp_policy_state *state,
                    const struct gp_deadline_rules *rules,
                    const struct gp_deadline_entity *newcomer);

/* ---- deadline_holds.c ---- */

/* Fills in who is held: all but who is chosen. `rotates`: the background takes turns. */
void gp_deadline_holds(const struct gp_view *view, const struct gp_policy_state *state,
                       uint32_t user_held, bool rotates, struct gp_plan *plan);

/* ---- both ---- */

/* The reserve's jobs are never closer together: at least half of it is to be run time, not changes
 * of hands. */
static inline uint64_t gp_reserve_apart_ns(const struct gp_view *view,
                                           const struct gp_policy_state *state)
{
	return 4 * gp_change_cost_ns(view) * 1000 / (uint64_t)state->param[GP_DEADLINE_RESERVE] + 1;
}

static inline bool gp_is_background(const struct gp_view *view, const struct gp_policy_state *state,
                                    uint32_t i)
{
	return gp_deadline_entity(state, i)->busy && !gp_job_of(view, state, i);
}

/* How late the begin or end of a job is seen at worst. */
static inline uint64_t gp_late_ns(const struct gp_view *view, const struct gp_policy_state *state)
{
	uint64_t poll_ns = (uint64_t)state->param[GP_DEADLINE_POLL] * 1000;

	if (view->caps & GP_CAP_EVENTS)
		return view->notice_ns;
	return view->notice_ns +
	       (poll_ns > view->sample_period_ns ? poll_ns : view->sample_period_ns);
}

/* What a switch costs, with what refilling the device costs interrupted work. */
static inline uint64_t gp_full_switch_ns(const struct gp_view *view)
{
	return view->switch_cost_ns + view->switch_cost_ns / 4;
}

#endif
