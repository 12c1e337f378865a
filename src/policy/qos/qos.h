/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `qos` share. It builds on `priority` (priority.h): its parameters and blobs
 * begin with that policy's, and its plans begin as that policy's plans.
 *
 *   gp_qos_book.c     who ran how long, period by period
 *   qos_load.c     how busy the service is, and how well that is known
 *   qos_choose.c   slices or windows, and what is refused
 *   qos_plan.c     how long the windows are, and when requests are answered
 *   qos_line.c     how long requests wait for each other
 *   gp_qos_windows.c  best-effort work in windows
 *   qos_wait.c     without slices: how long a preemption can wait
 *   qos_share.c    ceilings, and whose turn it is for the sake of a guaranteed share
 */
#ifndef GP_POLICY_QOS_QOS_H
#define GP_POLICY_QOS_QOS_H

#include "policy/priority/priority.h"

#define GP_PPM           1000000ull         /* the whole, in parts per million */
#define GP_QOS_LOAD_MOST (GP_PPM * 49 / 50) /* with more, there is no end to the line */

/* Parameters behind those of `priority`, in the order of the table. */
enum {
	GP_QOS_GAP = GP_PRIORITY_PARAMS,
	GP_QOS_KEEP,
	GP_QOS_FLOOR,
	GP_QOS_WINDOW,
};

/* Who is there, gathered anew at each decision. */
struct gp_qos_crew {
	uint32_t lc;         /* latency-critical tasks that nobody holds */
	uint32_t untargeted; /* ... that may be busy, and nobody said how soon they must answer */
	uint32_t be;         /* tasks of busy best-effort units: these run in windows */
	uint32_t held;       /* tasks that users or the plan hold: none of these */
	bool strangers;      /* an unmanaged task may be running */
	bool seen_at_once;   /* it is known at every moment whether an lc task has work ... */
	bool marked;         /* ... because they all say so themselves */
	bool wants;          /* ... and one has ... */
	uint64_t since_ns;   /* ... since then; UINT64_MAX = not known */
	uint64_t target_ns;  /* the shortest; 0 = none */
	uint64_t budget_ns;  /* the longest GPU time of a request; 0 = not said */
	uint64_t share_ppm;  /* guaranteed to these best-effort tasks together */
};

/* Run times since the period began. */
struct gp_qos_book {
	uint64_t from_ns; /* 0 = it has not begun */
	uint64_t seen_ns; /* the last look */
	uint64_t lc_ns, be_ns;
	uint64_t shut_ns; /* best-effort work was held for windows ... */
	uint64_t shuts;   /* ... so often ... */
	uint64_t cuts;    /* ... and let in with requests left in the line, for the floor */
};

/* Over the periods that are alike. */
struct gp_qos_sum {
	uint64_t had_ns, ran_ns;
};

struct gp_qos_windows {
	uint64_t open_ns; /* how long best-effort work runs ... */
	uint64_t shut_ns; /* ... and then does not ... */
	uint64_t most_ns; /* ... or for how long at most, where activity decides */
	uint64_t be_ppm;  /* what that leaves it */
	uint64_t late_ns; /* in which 99 of 100 requests are answered */
	bool keeps;       /* all targets and shares; if not, a service may never pause */
};

struct gp_qos_device {
	struct gp_priority_device priority;
	struct gp_qos_book book;
	bool told; /* there was news of run times */

	/* As last measured. */
	uint64_t lc_ppm, be_ppm;
	struct gp_qos_sum load; /* of the service, in periods that say how much it wants */
	struct gp_qos_sum way;  /* of best-effort work, since slices or windows were chosen */
	uint64_t doubt_ppm;     /* by so much of it lc_ppm may be wrong */
	uint64_t full_ns;       /* so much it ran without a pause, period after period ... */
	bool full;              /* ... which is no chance: the line has no end */
	uint64_t request_ns;    /* GPU time of a request; 0 = not known */
	uint64_t between_ns; /* from a request of one service to one of another; 0 = there is one */
	bool counts_idle;    /* run times of a task that is alone hold its idle time */
	bool probed;         /* that was looked into */

	/* The choice. */
	bool windows;                          /* or slices as `priority` has them */
	uint64_t chosen_ns;                    /* 0 = nothing was chosen yet */
	uint64_t retry_ns;                     /* no windows before that: they did not help ... */
	uint64_t backoff_ns;                   /* ... and then not for so long */
	uint64_t be_before_ppm, lc_before_ppm; /* what both had before the windows */
	bool refuses;                          /* neither keeps what was asked for */
	uint64_t verdict_ns; /* since when that looks otherwise; 0 = it does not */
	struct gp_qos_windows set;

	/* Where in the windows we are. Without slices: `shut`, `waiting_ns` and `idle_ns`. */
	bool seen_at_once; /* as in the crew of the last look */
	bool shut;
	bool in_force; /* the hold or release for it has had its effect */
	uint64_t asked_ns;
	uint64_t phase_ns;   /* in force since */
	uint64_t waiting_ns; /* an lc task has work since then, but for short gaps; 0 = none */
	uint64_t idle_ns;    /* none has work since; 0 = one has */

	/* Without slices: for how long there was work, and whether it is any use to wait with a
	 * hold. */
	struct {
		uint64_t from_ns, seen_ns; /* 0 = not begun; the last look ... */
		uint64_t ran_ns;           /* what that comes to with the device to itself */
		uint64_t idle_ns;
		bool wanted; /* ... at which there was some ... */
		bool untold; /* ... that has to be timed ... */
		bool alone;  /* ... and others were held */
	} busy;
	uint32_t sharers;  /* tasks that run beside requests when nobody is held */
	bool waits;        /* for the request that is there */
	uint32_t vain;     /* of 256 waits, so many were followed by the hold all the same */
	uint32_t unwaited; /* requests in a row for which there was none */
};

struct gp_qos_task {
	struct gp_priority_task priority;
	bool windowed;         /* one of crew.be */
	bool over;             /* it had what its ceiling allows */
	uint64_t run_ns;       /* its run time as last known ... */
	uint64_t ran_ns;       /* ... and by how much it has grown since the last look */
	uint64_t unseen_ns;    /* it could run for so long since there was news of that */
	uint64_t counted_ns;   /* the accounts below are up to then; 0 = not opened */
	int64_t room_ns;       /* what its ceiling allows it yet */
	int64_t behind_ns;     /* what it lacks of its guaranteed share */
	bool spurns;           /* it did not use the turn that it was given for that */
	uint64_t given_ns;     /* when it was given one, until it is known; 0 = it is */
	uint64_t given_run_ns; /* ... and its run time then */
	uint64_t begun_ns;     /* without slices: the last request that it said begins */
	uint64_t slack_ns;     /* without slices: so long a hold for it can wait ... */
	uint64_t slack_at_ns;  /* ... by the load that was known since then */
};

static inline uint64_t gap_ns(const struct gp_policy_state *state)
{
	return (uint64_t)state->param[GP_QOS_GAP] * 1000;
}

/*
 * So long after its last request, a service that does not say so has no more. Many gaps, although
 * few are twice as long as others: a line of ten that is taken for ended once is ten requests that
 * wait for another window, and one in a hundred is all that may.
 */
static inline uint64_t linger_ns(const struct gp_policy_state *state)
{
	return 4 * gap_ns(state);
}

/* A request, the host's time until the next one is there, and the way to another service. */
static inline uint64_t each_request(const struct gp_policy_state *state)
{
	const struct gp_qos_device *d = state->device;

	return d->request_ns + gap_ns(state) + d->between_ns;
}

/* All shares together, or none: who came first is nobody's merit. What is refused is nobody's
 * claim: targets would be missed for it. */
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

/* Brings run times up to now. True when a period is over, which `choose` then looks at. */
bool gp_qos_keep_book(const struct gp_view *view, const struct gp_policy_state *state);
void gp_qos_open_book(const struct gp_view *view, struct gp_qos_device *d);

/* In windows: the service ran for all the time that it had, as far as its gaps let it. */
bool gp_qos_is_full(const struct gp_view *view, const struct gp_policy_state *state);

/* What one request in a hundred waits for others, and not for the `setup_ns` that every first one
 * waits. Requests take `each_ns` and keep the device busy for `load_ppm` of the time. */
uint64_t gp_qos_line(uint64_t each_ns, uint64_t load_ppm, uint64_t setup_ns);

uint64_t gp_qos_square_root(uint64_t n);

/* At the end of a period: the load, and how well it is known. */
void gp_qos_learn_load(const struct gp_view *view, const struct gp_policy_state *state,
                       const struct gp_qos_crew *crew);

/* Adds a period to the load if it is alike, or begins anew with it. */
void gp_qos_add_up(struct gp_qos_device *d, uint64_t had_ns, uint64_t ran_ns);

/* In a period in which it `ran_ns` the service had no pause, or had one: d->full, when that is no
 * chance any more. */
void gp_qos_note_full(struct gp_qos_device *d, bool full, uint64_t ran_ns);

/* A promise is taken back when it is `missed` for sure, and given when it is `kept` for sure, if
 * that has looked so for a while. */
void gp_qos_judge(const struct gp_view *view, const struct gp_policy_state *state, bool kept,
                  bool missed);

/* The load is not known, only that it may be between these. */
static inline uint64_t lc_at_least(const struct gp_qos_device *d)
{
	return d->lc_ppm - d->lc_ppm * d->doubt_ppm / GP_PPM;
}

static inline uint64_t lc_at_most(const struct gp_qos_device *d)
{
	return d->lc_ppm + d->lc_ppm * d->doubt_ppm / GP_PPM;
}

/* For a service that runs for `lc_ppm` of the time: the windows, ... */
struct gp_qos_windows gp_qos_plan_windows(const struct gp_view *view,
                                          const struct gp_policy_state *state,
                                          const struct gp_qos_crew *crew, uint64_t lc_ppm);
/* ... what a tiny slice leaves best-effort work, and in which time 99 of 100 requests are answered
 * then; UINT64_MAX: the service falls behind. */
uint64_t gp_qos_left_by_slices(const struct gp_view *view, const struct gp_qos_device *d,
                               uint64_t lc_ppm);
uint64_t gp_qos_late_by_slices(const struct gp_view *view, const struct gp_policy_state *state,
                               uint64_t lc_ppm);

/* At the end of a period: what to do from now on. */
void gp_qos_choose(const struct gp_view *view, const struct gp_policy_state *state,
                   const struct gp_qos_crew *crew);

/* Since when there is work, or none. A service that paused for less than `linger_ns` has a line of
 * requests, the first of which has waited all the time. */
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

/* Turns the plan of `priority` into one for where we are in the windows. */
void gp_qos_apply_windows(const struct gp_view *view, const struct gp_policy_state *state,
                          const struct gp_qos_crew *crew, struct gp_plan *plan);

/* Without slices: for each latency-critical unit, between gp_entities_gather and `priority`,
 * whether others are to be held for it now. */
void gp_qos_wait(const struct gp_view *view, const struct gp_policy_state *state,
                 struct gp_plan *plan);

/* After the book: bars units that had what their ceiling allows, and returns how many tasks. */
uint32_t gp_qos_bar(const struct gp_view *view, const struct gp_policy_state *state,
                    uint32_t user_held, struct gp_plan *plan);

/* Gives the turn to the unit that lacks most of its guaranteed share. */
void gp_qos_favour(const struct gp_view *view, const struct gp_policy_state *state);

#endif
