/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `qos` share. It builds on `priority` (priority.h): its parameters and blobs
 * begin with that policy's, and its plans begin as that policy's plans.
 *
 *   qos_book.c     who ran how long, period by period
 *   qos_choose.c   slices or windows, and how long the windows are
 *   qos_line.c     how long requests wait for each other
 *   qos_windows.c  best-effort work in windows
 *   qos_wait.c     without slices: how long a preemption can wait
 *   qos_share.c    ceilings, and whose turn it is for the sake of a guaranteed share
 */
#ifndef GP_POLICY_QOS_H
#define GP_POLICY_QOS_H

#include "policy/priority.h"

#define GP_PPM 1000000ull /* the whole, in parts per million */

/* Parameters behind those of `priority`, in the order of the table. */
enum {
	GAP = PRIORITY_PARAMS,
	KEEP,
	FLOOR,
	WINDOW,
};

/* Who is there, gathered anew at each decision. */
struct qos_crew {
	uint32_t lc;         /* latency-critical tasks that nobody holds */
	uint32_t untargeted; /* ... that may be busy, and nobody said how soon they must answer */
	uint32_t be;         /* tasks of busy best-effort units: these run in windows */
	uint32_t held;       /* tasks that users or the plan hold: none of these */
	bool strangers;      /* an unmanaged task may be running */
	bool seen_at_once;   /* it is known at every moment whether an lc task has work ... */
	bool bracketed;      /* ... because they all say so themselves */
	bool wants;          /* ... and one has ... */
	uint64_t since_ns;   /* ... since then; UINT64_MAX = not known */
	uint64_t target_ns;  /* the shortest; 0 = none */
	uint64_t budget_ns;  /* the longest GPU time of a request; 0 = not said */
	uint64_t share_ppm;  /* guaranteed to these best-effort tasks together */
};

/* Run times since the period began. */
struct qos_book {
	uint64_t from_ns; /* 0 = it has not begun */
	uint64_t seen_ns; /* the last look */
	uint64_t lc_ns, be_ns;
	uint64_t shut_ns; /* best-effort work was held for windows ... */
	uint64_t shuts;   /* ... so often */
};

struct qos_windows {
	uint64_t open_ns; /* how long best-effort work runs ... */
	uint64_t shut_ns; /* ... and then does not ... */
	uint64_t most_ns; /* ... or for how long at most, where activity decides */
	uint64_t be_ppm;  /* what that leaves it */
	bool keeps;       /* all targets and shares; if not, a service may never pause */
};

struct qos_device {
	struct priority_device priority;
	struct qos_book book;
	bool told; /* there was news of run times */

	/* As last measured. */
	uint64_t lc_ppm, be_ppm;
	uint64_t request_ns; /* GPU time of a request; 0 = not known */
	uint64_t between_ns; /* from a request of one service to one of another; 0 = there is one */
	bool counts_idle;    /* run times of a task that is alone hold its idle time */
	bool probed;         /* that was looked into */

	/* The choice. */
	bool windows;        /* or slices as `priority` has them */
	uint64_t chosen_ns;  /* 0 = nothing was chosen yet */
	uint32_t fails;      /* periods in a row in which windows were of no use */
	uint64_t retry_ns;   /* no windows before that: they did not help ... */
	uint64_t backoff_ns; /* ... and then not for so long */
	uint64_t be_before_ppm, lc_before_ppm; /* what both had before the windows */
	bool refuses;                          /* neither keeps what was asked for */
	uint64_t verdict_ns; /* since when that looks otherwise; 0 = it does not */
	struct qos_windows set;

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
		uint64_t busy_ns;
		bool wanted; /* ... at which there was some */
	} load;
	bool waits;        /* for the request that is there */
	uint32_t vain;     /* of 256 waits, so many were followed by the hold all the same */
	uint32_t unwaited; /* requests in a row for which there was none */
};

struct qos_task {
	struct priority_task priority;
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
};

static inline uint64_t gap_ns(const struct gp_policy_state *state)
{
	return (uint64_t)state->param[GAP] * 1000;
}

/* A request, the host's time until the next one is there, and the way to another service. */
static inline uint64_t each_request(const struct gp_policy_state *state)
{
	const struct qos_device *d = state->device;

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
	return (t->known & GP_KNOWN_BRACKET) ||
	       ((t->known & GP_KNOWN_ACTIVE) && gp_tells_in_time(view->caps, view->news_every_ns));
}

/* Brings run times up to now. True when a period is over, which `choose` then looks at. */
bool gp_qos_keep_book(const struct gp_view *view, const struct gp_policy_state *state);
void gp_qos_open_book(const struct gp_view *view, struct qos_device *d);

/* In windows: the service ran for all the time that it had, as far as its gaps let it. */
bool gp_qos_is_full(const struct gp_view *view, const struct gp_policy_state *state);

/* What one request in a hundred waits for others, and not for the `setup_ns` that every first one
 * waits. Requests take `each_ns` and keep the device busy for `load_ppm` of the time. */
uint64_t gp_qos_line(uint64_t each_ns, uint64_t load_ppm, uint64_t setup_ns);

/* At the end of a period: what to do from now on. */
void gp_qos_choose(const struct gp_view *view, const struct gp_policy_state *state,
                   const struct qos_crew *crew);

/* Since when there is work, or none. A service that paused for less than `linger_ns` has a line of
 * requests, the first of which has waited all the time. */
static inline void note_work(const struct gp_view *view, struct qos_device *d, bool wants,
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
                          const struct qos_crew *crew, struct gp_plan *plan);

/* Without slices: for each latency-critical unit, between gp_units_gather and `priority`, whether
 * others are to be held for it now. */
void gp_qos_wait(const struct gp_view *view, const struct gp_policy_state *state,
                 struct gp_plan *plan);

/* After the book: bars units that had what their ceiling allows, and returns how many tasks. */
uint32_t gp_qos_bar(const struct gp_view *view, const struct gp_policy_state *state,
                    uint32_t user_held, struct gp_plan *plan);

/* Gives the turn to the unit that lacks most of its guaranteed share. */
void gp_qos_favour(const struct gp_view *view, const struct gp_policy_state *state);

#endif
