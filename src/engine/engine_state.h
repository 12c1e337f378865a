/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's state; private to src/engine. */
#ifndef GP_ENGINE_ENGINE_STATE_H
#define GP_ENGINE_ENGINE_STATE_H

#include "base/table.h"
#include "engine/engine.h"

/* A requested action, and when it may be repeated after a failure. */
struct gp_attempt {
	bool in_flight;
	bool accepted;   /* the back end accepted it; its effect has not been seen yet */
	bool observable; /* this device has shown effects of such actions before */
	uint32_t target; /* requested value: 0 or 1 for holding, or a slice */
	uint64_t issued_ns;
	uint64_t lost_ns; /* an accepted action that has no effect at this time is lost */
	uint64_t not_before_ns;
	uint64_t backoff_ns;
};

struct gp_task {
	uint64_t id;
	uint32_t handle;
	uint32_t gang; /* index of the gang's first task */
	struct gp_task_attr attr;

	bool user_hold;      /* requested for this task */
	bool gang_user_hold; /* requested for any task of its gang */
	bool policy_hold;    /* the plan in force holds it */
	bool preempting;     /* the plan began to hold it while it was active; not held yet */
	bool our_hold;       /* it is held at our request */
	bool touched;        /* we have changed it */
	bool undo_kept;      /* its undo record is written */
	bool slice_kept;     /* the record restores the slice, too */
	bool prepared;       /* the back end has prepared for actions with it */
	bool unrecorded;     /* changed, but its undo record is not written: put it back */
	bool let_go;         /* another process asked for its release: put it back */
	bool release_again;  /* a user asks again for a release that only the driver confirms */
	bool hold_again;     /* the hold may have been undone: request it again */
	bool slice_again;    /* the same for the slice */
	bool undone_told;    /* it was reported that another process undid the hold and the slice */
	bool refused;        /* in the last plan */
	bool overran;        /* in the last plan */

	bool has_marks;
	bool in_request;
	bool waited_known;
	bool waits;                /* a wait is in progress */
	bool waits_held;           /* the waiting task was held at the last tick */
	uint64_t request_since_ns; /* start of the request */
	uint64_t hint_ns;          /* when the program sent a hint */
	uint64_t hint_until_ns;    /* until when the hint counts; 0: no hint */

	bool held; /* as observed; if holds cannot be observed, as the back end accepted it */
	/* As observed: the last hold or release failed, and the task may be held or not. The hold
	 * or release is requested again, whatever `held` says. */
	bool unsure;
	struct gp_eviction evicted; /* as observed */
	/* As observed: the driver confirmed the last hold or release, activity has not yet. */
	bool unproven;
	enum gp_evidence evidence; /* as observed */
	bool unfinished;           /* as observed: see gp_observation */
	bool in_part;              /* as observed: a part of the work after a release */
	/* The last hold or release is not counted and announced yet, because it is unproven. It is
	 * counted when activity proves it. If the next release is requested earlier, a hold is
	 * counted then, unless `distrusted`. The members effect_* describe it. */
	bool effect_due;
	/* The last hold or release was disproved or its state was lost before it was announced. It
	 * is counted and announced as soon as the back end is sure of it. */
	bool untold;
	/* The last release was disproved, or not proven before the next hold: that hold does not
	 * count. Until a release is proven. */
	bool stood_still;
	bool distrusted;         /* activity disproved a hold, and has proven none since */
	bool effect_preempts;    /* it is the preemption of an active task */
	uint64_t effect_ns;      /* from the request to the effect */
	uint64_t effect_held_ns; /* time held since, added to held_ns when it is counted */
	uint32_t slice_us;
	struct gp_attempt hold;
	struct gp_attempt slice;
	struct gp_attempt record; /* rewriting the undo record */
	int failure;              /* -errno of the last failed action */
	int hold_failure;         /* -errno of the last hold, if it failed; 0: it took effect */
	int record_number;        /* from before_change, if undo_kept */
	uint64_t undone_ns;       /* when it was last reported that changes were undone */

	/* last time at which the task made progress or did not want the device, as far as known */
	uint64_t last_progress_ns;
	uint64_t last_run_ns; /* run_ns of the last observation */
	uint64_t last_waited_ns;
	uint64_t starved_ns; /* current starvation that the policy causes */

	uint64_t waits_since_ns;
	uint64_t waited_max_ns;
	uint64_t noticed_ns; /* latest start of activity that a tick has noticed */
	uint64_t scheduled;  /* at the last observation */
	uint64_t held_ns;
	uint64_t unproven_ns; /* time after a release that is not proven, or failed */
};

/* Counters of a task. They are separate because most ticks do not access them. */
struct gp_task_counters {
	uint64_t preemptions, failures, undone, overruns;
	struct gp_lapses lapses;
	struct gp_log2_hist waits; /* completed waits */
};

struct gp_engine {
	struct gp_engine_config config;
	struct gp_gpu *gpu;

	struct gp_policy_choice policy;
	struct gp_policy_state state;
	void *device_blob;

	/* Arrays of the same length, in order of arrival. */
	unsigned n, capacity;
	struct gp_task *task;
	struct gp_task_counters *counters;
	struct gp_seen *identity; /* from the scan; ticks do not access it */
	struct gp_task_view *view_task;
	struct gp_task_plan *plan_task;
	struct gp_observation *seen;
	struct gp_action *action; /* the batch that is being built */
	uint32_t *action_task;    /* the task index of each action */
	uint32_t *todo;           /* tasks that are not in the desired state */
	uint32_t *gang_todo;      /* at a gang's first index: members to be held now */

	struct gp_seen *found; /* buffer of the scan */
	unsigned found_capacity;
	struct gp_table by_key;  /* back end's key -> index in `found`, during a scan */
	struct gp_table by_gang; /* gang number -> index of its first task */
	bool gangs_stale;

	struct gp_view view;
	struct gp_plan plan;

	uint64_t next_id;
	uint64_t next_ns;
	uint64_t next_attempt_ns; /* earliest retry or confirmation */
	uint64_t scan_at_ns;
	uint64_t hint_over_ns; /* when the first hint expires */
	uint64_t last_tick_ns;
	/* How long the owning thread was suspended before this tick; 0: the tick was in time. */
	uint64_t gap_ns;
	uint64_t starved_ns; /* maximum over all tasks */
	bool promises;       /* the last plan refused a task or saw an overrun */
	bool inverted;       /* at the last tick */
	bool idle;           /* at the last tick no task had work */
	unsigned lc_tasks;
	unsigned managed;
	unsigned held;          /* tasks that are held or are being held */
	unsigned released_tiny; /* tasks that may run with a tiny slice */
	unsigned failures;      /* in this tick */
	bool triggered;
	uint64_t epoch; /* at the last check */
	/* the epoch changed in this step; the remaining actions wait for the next step */
	bool interrupted;

	struct gp_engine_stats stats;
	struct gp_ejection ejection;
};

/* Sums of one tick over all tasks. */
struct gp_tick {
	uint64_t ran_ns;     /* measured run time since the last tick */
	uint64_t starved_ns; /* maximum over the tasks with a known wait */
	uint32_t known;      /* GP_KNOWN_* flags that all tasks have */
	bool measured;       /* at least one run time is measured */
	bool active;         /* at least one task is known to be active */
};

/* task_list.c */
void gp_engine_scan(struct gp_engine *e, uint64_t now_ns);
void gp_engine_update_gangs(struct gp_engine *e);
/* observe.c */
void gp_engine_observe(struct gp_engine *e, uint64_t now_ns);
void gp_engine_fill_view(const struct gp_task *t, struct gp_task_view *v,
			 const struct gp_observation *o);
/* account.c */
void gp_account_wait(struct gp_engine *e, struct gp_task *t, const struct gp_task_view *v,
		     const struct gp_observation *o, uint64_t evidence_ns, uint64_t ran_ns);
void gp_account_task(struct gp_engine *e, unsigned i, uint64_t now_ns);
void gp_account_tick(struct gp_engine *e, uint64_t now_ns, const struct gp_tick *tick);
void gp_engine_find_inversion(struct gp_engine *e, uint64_t now_ns);
bool gp_view_has_inversion(const struct gp_view *view, bool *visible);
/* Whether activity began after the task came and has not been noticed yet. */
static inline bool gp_has_begun(const struct gp_task *t, const struct gp_task_view *v)
{
	return (v->known & GP_KNOWN_ACTIVE_SINCE) && v->active_since_ns > t->noticed_ns;
}
/* decide.c */
void gp_engine_decide(struct gp_engine *e, uint64_t now_ns);
/* act.c */
void gp_engine_act(struct gp_engine *e, uint64_t now_ns);
void gp_attempt_failed(struct gp_engine *e, struct gp_task *t, struct gp_attempt *a,
		       uint64_t now_ns, int code, uint32_t driver_code);
/* The back end did not make the attempt: a failure, or -EAGAIN, and it is not counted. */
void gp_attempt_not_made(struct gp_engine *e, struct gp_task *t, struct gp_attempt *a,
			 uint64_t now_ns, int code, uint32_t driver_code);
/* The plan does not say what the task should do, or the engine may not change it. A hold by another
 * process is kept. */
bool gp_is_left_alone(const struct gp_engine *e, unsigned i);
/* A hold or release has taken effect; t->held is its new state. Counts it now, or sets effect_due
 * if it is unproven. took_ns: from the request to the effect. */
void gp_hold_took_effect(struct gp_engine *e, struct gp_task *t, uint64_t took_ns, bool unproven);
/* A hold that was announced has ended without a request. */
void gp_note_lapse(struct gp_engine *e, const struct gp_task *t, bool worked);
/* Another process changed the task back. Counts and announces it, unless that was done since the
 * last request of a hold or slice. */
void gp_note_undone(struct gp_engine *e, struct gp_task *t, uint64_t now_ns);
/* Counts and announces the last hold or release if effect_due is set. */
void gp_effect_confirmed(struct gp_engine *e, struct gp_task *t, uint64_t now_ns);
/* keep_records.c */
/*
 * Called after another process undid or may have undone our changes. Writes the undo record of
 * every changed task again. The next step requests the desired state again, even if it seems to be
 * in force. A task whose record cannot be written is put back and left alone until it can.
 */
void gp_engine_renew_undo(struct gp_engine *e);
int gp_engine_keep_record(struct gp_engine *e, struct gp_task *t, bool slice);
void gp_engine_renew_record(struct gp_engine *e, struct gp_task *t);
/* The release of the task was asked for: asks the back end again if only the driver confirms the
 * last release. */
void gp_engine_release_again(struct gp_task *t);
/* Drops the records of unmanaged tasks that are in their original state. */
void gp_engine_drop_records(struct gp_engine *e);
void gp_engine_drop_record_of_gone(struct gp_engine *e, uint64_t now_ns, struct gp_task *t);
bool gp_engine_epoch_changed(struct gp_engine *e, uint64_t now_ns);
void gp_engine_recover_records(struct gp_engine *e, uint64_t now_ns);
/* engine.c */
int gp_engine_load_policy(struct gp_engine *e, const struct gp_policy_choice *choice);

static inline uint32_t gp_engine_caps(const struct gp_engine *e)
{
	return e->gpu->info.caps | (e->config.request_marks ? GP_CAP_REQUEST_MARKS : 0);
}

static inline struct gp_task_counters *gp_counters_of(const struct gp_engine *e,
						      const struct gp_task *t)
{
	return &e->counters[t - e->task];
}

static inline void gp_engine_emit(struct gp_engine *e, uint64_t now_ns, enum gp_event_kind kind,
				  uint64_t task, int code, uint32_t driver_code)
{
	if (e->config.on_event)
		e->config.on_event(e->config.arg, &(struct gp_event){.kind = kind,
								     .now_ns = now_ns,
								     .task = task,
								     .code = code,
								     .driver_code = driver_code});
}

#endif
