/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's own state, shared by its files and by nobody else. */
#ifndef GP_ENGINE_ENGINE_STATE_H
#define GP_ENGINE_ENGINE_STATE_H

#include "base/table.h"
#include "engine/engine.h"

/* An action on its way, and when it may be tried again after a failure. */
struct gp_attempt {
	bool in_flight;
	bool accepted;   /* the back end said yes; only the effect is open */
	bool observable; /* this device has shown the effect of such actions before */
	uint32_t target; /* what was asked for: 0/1 for holding, or a slice */
	uint64_t issued_ns;
	uint64_t lost_ns; /* accepted and without effect by then: lost */
	uint64_t not_before_ns;
	uint64_t backoff_ns;
};

struct gp_task {
	uint64_t id;
	uint32_t handle;
	uint32_t gang; /* index of the gang's first task */
	struct gp_task_attr attr;

	bool user_hold;      /* asked for on this task */
	bool gang_user_hold; /* ... or on any of its gang */
	bool policy_hold;    /* the plan in force wants it held */
	bool our_hold;       /* it is held because we asked for it */
	bool touched;        /* something of it was changed by us */
	bool undo_kept;      /* before_change has its record */
	bool unrecorded;     /* it was changed, and its record is gone: it is put back */
	bool hold_again;     /* somebody undid it, or may have: ask again, whatever it seems */
	bool slice_again;    /* the same */
	bool refused;        /* as the last plan says */
	bool overran;        /* the same */

	bool has_marks;
	bool in_request;
	bool waited_known;
	bool waits;                /* a wait stands that will be recorded ... */
	bool waits_held;           /* ... and the task is held */
	uint64_t request_since_ns; /* when that began */
	uint64_t hint_ns;          /* when it said that work will follow ... */
	uint64_t hint_until_ns;    /* ... and until when that is believed; 0 = it said nothing */

	bool held; /* as believed: observed where possible, else as accepted */
	uint32_t slice_us;
	struct gp_attempt hold;
	struct gp_attempt slice;
	struct gp_attempt record; /* to write it again */

	uint64_t last_got_ns; /* when it is last known to have had the device, or not wanted it */
	uint64_t last_run_ns; /* run_ns then */
	uint64_t last_waited_ns;
	uint64_t starved_ns; /* how long it has got nothing in a row, by the policy's doing */

	uint64_t waits_since_ns;
	uint64_t waited_max_ns;
	uint64_t noticed_ns; /* activity that began until then was noticed */
	uint64_t scheduled;  /* as last told */
	uint64_t held_ns;
};

/* What is counted of a task, apart from the rest, because most looks do not touch it. */
struct gp_task_counters {
	uint64_t preemptions, failures, undone, overruns;
	struct gp_log2_hist waits; /* that have ended */
};

struct gp_engine {
	struct gp_engine_config config;
	struct gp_gpu *gpu;

	struct gp_policy_choice policy;
	struct gp_policy_state state;
	void *device_blob;

	/* All of the same length and order: arrival. */
	unsigned n, capacity;
	struct gp_task *task;
	struct gp_task_counters *counters;
	struct gp_seen *who; /* the same: a look does not touch it */
	struct gp_task_view *view_task;
	struct gp_task_plan *plan_task;
	struct gp_observation *seen;
	struct gp_action *action; /* a batch being put together ... */
	uint32_t *action_task;    /* ... and whose they are */
	uint32_t *todo;           /* tasks that are not as they should be */
	uint32_t *gang_todo;      /* of a gang's first: how many of it are to be held now */

	struct gp_seen *found; /* scratch of the scan */
	unsigned found_capacity;
	struct gp_table by_key;  /* back end's key -> 1 + index in `found`, while scanning */
	struct gp_table by_gang; /* gang -> index of its first task */
	bool gangs_stale;

	struct gp_view view;
	struct gp_plan plan;

	uint64_t next_id;
	uint64_t next_ns;
	uint64_t next_attempt_ns; /* the earliest retry or confirmation that is due */
	uint64_t scan_at_ns;
	uint64_t hint_over_ns; /* the first hint that will have been in vain */
	uint64_t last_tick_ns;
	uint64_t absent_ns;  /* before this look, nobody looked though it was due; 0: in time */
	uint64_t starved_ns; /* the longest of all tasks */
	bool promises;       /* the last plan refused something, or saw an overrun */
	bool inverted;       /* at the last look */
	bool idle;           /* the same: nobody had work */
	unsigned lc_tasks;
	unsigned managed;
	unsigned held;          /* tasks that are held, or will be by what is on its way */
	unsigned released_tiny; /* tasks that may be running with a tiny slice */
	unsigned failures;      /* in this look */
	bool triggered;
	uint64_t epoch;   /* as last seen */
	bool interrupted; /* it changed in this step: the rest of it waits for the next */

	struct gp_engine_stats stats;
	struct gp_ejection ejection;
};

/* What one look adds up over all tasks. */
struct gp_tick {
	uint64_t ran_ns;     /* since the last one, as measured */
	uint64_t starved_ns; /* the longest of those whose wait is known now */
	uint32_t known;      /* GP_KNOWN_* of them all */
	bool measured;       /* a run time was */
	bool active;         /* somebody is; who knows nothing says nothing */
};

/* tasks.c */
void gp_engine_scan(struct gp_engine *e, uint64_t now_ns);
void gp_engine_update_gangs(struct gp_engine *e);
/* observe.c */
void gp_engine_observe(struct gp_engine *e, uint64_t now_ns);
/* account.c */
void gp_account_wait(struct gp_engine *e, struct gp_task *t, const struct gp_task_view *v,
                     const struct gp_observation *o, uint64_t evidence_ns, uint64_t ran_ns);
void gp_account_task(struct gp_engine *e, unsigned i, uint64_t now_ns);
void gp_account_tick(struct gp_engine *e, uint64_t now_ns, const struct gp_tick *tick);
/* Activity that nobody has noticed yet, and that began after the task came. */
static inline bool gp_has_begun(const struct gp_task *t, const struct gp_task_view *v)
{
	return (v->known & GP_KNOWN_ACTIVE_SINCE) && v->active_since_ns > t->noticed_ns;
}
/* decide.c */
void gp_engine_decide(struct gp_engine *e, uint64_t now_ns);
/* check.c: 0, or a rule is broken and `text` and *task say which. */
int gp_plan_check(const struct gp_view *view, const struct gp_plan *plan, char *text, unsigned size,
                  uint64_t *task);
/* inversion.c */
void gp_engine_find_inversion(struct gp_engine *e, uint64_t now_ns);
bool gp_view_has_inversion(const struct gp_view *view, bool *visible);
/* eject.c */
void gp_engine_eject(struct gp_engine *e, uint64_t now_ns, enum gp_eject_reason reason,
                     uint64_t task, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* act.c */
void gp_engine_act(struct gp_engine *e, uint64_t now_ns);
void gp_attempt_failed(struct gp_engine *e, struct gp_task *t, struct gp_attempt *a,
                       uint64_t now_ns, int code, uint32_t driver_code);
/* renew.c */
int gp_engine_keep_record(struct gp_engine *e, struct gp_task *t);
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

static inline void gp_engine_tell(struct gp_engine *e, uint64_t now_ns, enum gp_event_kind kind,
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
