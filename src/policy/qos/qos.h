/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of `qos`. The policy builds on `priority` (priority.h): its
 * parameters and blobs begin with those of `priority`, and its plans start from the plan of
 * `priority`.
 *
 *   qos.c         the plan, and best-effort work in windows
 *   qos_load.c    run times, period by period; how busy the service is, and how certain that is
 *   qos_choose.c  slices or windows, and which targets are refused
 *   qos_plan.c    the length of the windows, and the response times to expect
 *   qos_slack.c   without slices: how long a preemption can be delayed
 *   qos_share.c   ceilings, and turns for guaranteed shares
 */
#ifndef GP_POLICY_QOS_QOS_H
#define GP_POLICY_QOS_QOS_H

#include "policy/priority/priority.h"

#define GP_PPM           1000000ull         /* 100 %, in parts per million */
#define GP_QOS_LOAD_MOST (GP_PPM * 49 / 50) /* with a higher load the backlog grows without end */

/* Parameters after those of `priority`, in the order of the table. */
enum {
	GP_QOS_GAP = GP_PRIORITY_PARAMS,
	GP_QOS_KEEP,
	GP_QOS_FLOOR,
	GP_QOS_WINDOW,
};

/* Counts and sums over the tasks, filled in anew at each decision. */
struct gp_qos_counts {
	uint32_t lc;         /* latency-critical tasks that are not held */
	uint32_t untargeted; /* those of `lc` that have no target and are not idle */
	uint32_t be;         /* tasks of busy best-effort entities: these run in windows */
	uint32_t held;       /* tasks that are held by users or by the plan; not in lc or be */
	bool unmanaged;      /* an unmanaged task may be running */
	bool seen_at_once;   /* at every moment it is known whether an lc task has work */
	bool marked;         /* all lc tasks send request marks */
	bool wants;          /* an lc task has work */
	uint64_t since_ns;   /* since when an lc task has work; UINT64_MAX = not known */
	uint64_t target_ns;  /* the shortest of the lc tasks; 0 = none */
	uint64_t budget_ns;  /* the longest GPU time of a request; 0 = not declared */
	uint64_t share_ppm;  /* guaranteed to the tasks of `be` together */
};

/* Run times since the period began. */
struct gp_qos_period {
	uint64_t from_ns; /* begin of the period; 0 = it has not begun */
	uint64_t seen_ns; /* time of the last tick */
	uint64_t lc_ns, be_ns;
	uint64_t shut_ns; /* how long best-effort work was held for windows */
	uint64_t shuts;   /* how many times windows closed */
	uint64_t cuts;    /* how many times a window opened for the floor with requests waiting */
};

/* Sum over similar periods. */
struct gp_qos_sum {
	uint64_t had_ns, ran_ns;
};

struct gp_qos_windows {
	uint64_t open_ns; /* how long best-effort work runs */
	uint64_t shut_ns; /* how long it is then held, if activity is not known */
	uint64_t most_ns; /* how long it is held at most, if activity is known */
	uint64_t be_ppm;  /* the part of the time that is left to best-effort work */
	uint64_t late_ns; /* 99 of 100 requests are answered within this time */
	bool keeps;       /* targets and shares are kept; if not, a service may never pause */
};

struct gp_qos_device {
	struct gp_priority_device priority;
	struct gp_qos_period period;
	bool run_seen; /* a run time has grown at least once */

	/* The latest measurements. */
	uint64_t lc_ppm, be_ppm;
	struct gp_qos_sum load;   /* of the service, over periods that show its demand */
	struct gp_qos_sum be_sum; /* of best-effort work, since the mode was chosen */
	uint64_t doubt_ppm;       /* relative uncertainty of lc_ppm */
	uint64_t full_ns;         /* the service's run time in periods without a pause in a row */
	bool full;                /* full_ns is too long for chance: the backlog grows for ever */
	uint64_t request_ns;      /* GPU time of a request; 0 = not known */
	uint64_t between_ns;      /* time of a switch between services; 0 = only one service */
	bool counts_idle;         /* measured run time includes idle time of a task that is alone */
	bool probed;              /* counts_idle was checked once */

	/* The choice of the mode. */
	bool windows;        /* windows, not slices */
	uint64_t chosen_ns;  /* time of the choice; 0 = none yet */
	uint64_t retry_ns;   /* no windows before this time, because they did not help */
	uint64_t backoff_ns; /* how long windows were not tried after the last failure */
	uint64_t be_before_ppm,
		lc_before_ppm; /* of best-effort work and of the service before the choice */
	bool refuses;          /* neither mode keeps the target */
	uint64_t verdict_ns;   /* since when measurements contradict `refuses`; 0 = they agree */
	struct gp_qos_windows set;

	/* The state of the current window. Without slices only `shut`, `waiting_ns` and `idle_ns`
	 * are used. */
	bool seen_at_once; /* as in the counts of the last tick */
	bool shut;
	bool in_force;       /* the hold (shut) or release (open) has taken effect */
	uint64_t asked_ns;   /* when the hold or release was requested */
	uint64_t phase_ns;   /* when the hold or release took effect */
	uint64_t waiting_ns; /* since when an lc task has work, ignoring short gaps; 0 = none */
	uint64_t idle_ns;    /* since when no lc task has work; 0 = an lc task has work */

	/* Without slices: how long there was work, and whether it is useful to delay a hold. */
	struct {
		uint64_t from_ns,
			seen_ns; /* begin of the measurement (0 = none), and the last tick */
		uint64_t ran_ns; /* run time of the work, as if it had the device alone */
		uint64_t idle_ns;
		bool wanted;    /* at the last tick an lc task had work */
		bool uncounted; /* work is timed, because its requests are not counted */
		bool alone;     /* the other tasks were held */
	} busy;
	uint32_t sharers;   /* tasks that run beside requests if none is held */
	bool waits;         /* a hold for the current request is delayed */
	uint32_t useless;   /* of 256 delays, the number that did not avoid the hold */
	uint32_t undelayed; /* consecutive requests without a delay */
};

struct gp_qos_task {
	struct gp_priority_task priority;
	bool windowed;         /* counted in gp_qos_counts.be */
	bool over;             /* it has used the time that its ceiling allows */
	uint64_t run_ns;       /* its last known run time */
	uint64_t ran_ns;       /* growth of run_ns since the last tick */
	uint64_t unseen_ns;    /* time for which it could run since run_ns last grew */
	uint64_t counted_ns;   /* the accounts below are up to this time; 0 = not opened */
	int64_t room_ns;       /* time that its ceiling still allows */
	int64_t behind_ns;     /* time that it lacks of its guaranteed share */
	bool unused_turn;      /* it did not use the turn that it was given for its share */
	uint64_t given_ns;     /* when it was given a turn that is not judged yet; 0 = none */
	uint64_t given_run_ns; /* run_ns at that time */
	uint64_t begun_ns;     /* without slices: begin of the last counted request */
	uint64_t slack_ns;     /* without slices: how long a hold for it can be delayed */
	uint64_t slack_at_ns;  /* the measurement of the load that slack_ns is based on */
};

static inline uint64_t gap_ns(const struct gp_view *view)
{
	return gp_param(view, GP_QOS_GAP) * 1000;
}

/*
 * How long after its last request a service without request marks is taken to have no more
 * requests. This is several gaps, although few gaps are twice as long as others. If a backlog of
 * ten requests is wrongly taken for ended, ten requests wait for another window. But only one
 * request in a hundred may be late.
 */
static inline uint64_t linger_ns(const struct gp_view *view)
{
	return 4 * gap_ns(view);
}

/* Time of one request: its GPU time, the host's time until the next request comes, and the switch
 * to another service. */
static inline uint64_t each_request(const struct gp_view *view)
{
	const struct gp_qos_device *d = view->state->device;

	return d->request_ns + gap_ns(view) + d->between_ns;
}

/* If the shares exceed 90 %, all are refused, regardless of arrival order. Refused shares are
 * ignored, because targets would be missed for them. */
static inline bool asks_too_much(const struct gp_view *view)
{
	uint64_t sum_permille = 0;

	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class == GP_BEST_EFFORT)
			sum_permille += view->task[i].share_permille;
	return sum_permille > 900;
}

/* Whether it is known at every moment if the task has work. */
static inline bool is_seen_at_once(const struct gp_view *view, const struct gp_task_view *t)
{
	return (t->known & GP_KNOWN_REQUEST) ||
	       ((t->known & GP_KNOWN_ACTIVE) &&
		gp_tells_in_time(view->caps, view->sample_period_ns));
}

/* Brings the run times up to date. Returns true at the end of a period; the caller then calls
 * gp_qos_choose and gp_qos_begin_period. */
bool gp_qos_account(const struct gp_view *view);
void gp_qos_begin_period(const struct gp_view *view, struct gp_qos_device *d);

/*
 * How long 99 of 100 requests wait for other requests at most, in ns. Not included is `setup_ns`,
 * for which a request waits first if it finds no other request. Requests take `each_ns` and keep
 * the device busy for `load_ppm` of the time.
 */
uint64_t gp_qos_wait_for_others(uint64_t each_ns, uint64_t load_ppm, uint64_t setup_ns);

uint64_t gp_qos_square_root(uint64_t n);

/* Called at the end of a period: updates the load and its uncertainty. */
void gp_qos_learn_load(const struct gp_view *view, const struct gp_qos_counts *counts);

/* Adds a period to the measured load if it is similar; otherwise starts again with it. */
void gp_qos_add_up(struct gp_qos_device *d, uint64_t had_ns, uint64_t ran_ns);

/* Records whether the service had no pause (`full`) in a period in which it ran for `ran_ns`. Sets
 * d->full when that cannot be chance any more. */
void gp_qos_note_full(struct gp_qos_device *d, bool full, uint64_t ran_ns);

/* Refuses the target if `missed` (it is certainly missed), and accepts it again if `kept` (it is
 * certainly kept). The verdict changes only after the new one has stood for GP_QOS_KEEP ms. */
void gp_qos_judge(const struct gp_view *view, bool kept, bool missed);

/* Bounds of the load, which is not known exactly. */
static inline uint64_t lc_at_least(const struct gp_qos_device *d)
{
	return d->lc_ppm - d->lc_ppm * d->doubt_ppm / GP_PPM;
}

static inline uint64_t lc_at_most(const struct gp_qos_device *d)
{
	return d->lc_ppm + d->lc_ppm * d->doubt_ppm / GP_PPM;
}

/* The windows for a service that runs for `lc_ppm` of the time. */
struct gp_qos_windows gp_qos_plan_windows(const struct gp_view *view,
					  const struct gp_qos_counts *counts, uint64_t lc_ppm);
/* With a tiny slice: the part that is left to best-effort work, and the time within which 99 of 100
 * requests are answered. UINT64_MAX = the service cannot keep up. */
uint64_t gp_qos_left_by_slices(const struct gp_view *view, const struct gp_qos_device *d,
			       uint64_t lc_ppm);
uint64_t gp_qos_late_by_slices(const struct gp_view *view, uint64_t lc_ppm);

/* Called at the end of a period: chooses slices or windows. */
void gp_qos_choose(const struct gp_view *view, const struct gp_qos_counts *counts);

/* Records since when lc tasks have work, or have none. If a service paused for less than
 * `linger_ns`, the backlog from before the pause still counts, and so does its waiting time. */
static inline void note_work(const struct gp_view *view, struct gp_qos_device *d, bool wants,
			     uint64_t since_ns, uint64_t linger_ns)
{
	if (wants) {
		if (!d->waiting_ns)
			d->waiting_ns = since_ns < view->now_ns ? since_ns : view->now_ns;
		d->idle_ns = 0;
		return;
	}
	if (!d->idle_ns)
		d->idle_ns = view->now_ns;
	if (view->now_ns >= d->idle_ns + linger_ns)
		d->waiting_ns = 0;
}

/* Without slices: decides for each latency-critical entity whether other entities are held for it
 * now. To be called after gp_entities_gather and before `priority` makes its plan. */
void gp_qos_wait(const struct gp_view *view, struct gp_plan *plan);

/* To be called after gp_qos_account. Bars entities that have used the time of their ceiling, and
 * returns the number of their tasks. */
uint32_t gp_qos_bar(const struct gp_view *view, uint32_t user_held, struct gp_plan *plan);

/* Gives the turn to the entity that lacks most of its guaranteed share. */
void gp_qos_favor(const struct gp_view *view);

#endif
