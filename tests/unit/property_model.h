/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of a device, for tests that drive the engine with a clock of their own. It knows at every
 * instant which tasks really run. It shows the engine as much of that as its profile says, and
 * never anything false. Actions take effect at once or after a while, and never fail.
 *
 * With slices, one task at a time runs, round robin. A task with a tiny slice gets nothing while
 * any other is runnable, and two such tasks get nothing from each other, as measured on an H200.
 * Without slices, all released active tasks run side by side.
 */
#ifndef GP_TESTS_PROPERTY_MODEL_H
#define GP_TESTS_PROPERTY_MODEL_H

#include "support/test.h"

#include "base/clock.h"
#include "base/rng.h"
#include "gpu/gpu.h"

#define MODEL_TASKS     12u
#define MODEL_EFFECTS   256u
#define MODEL_SAMPLE_NS (167 * GP_NS_PER_MS)

/* How well the device shows a value. SAMPLED: as it was at the last multiple of 167 ms. */
enum model_sight { UNSEEN, SAMPLED, EXACT };

/*
 * How an action ends: with its effect at once; accepted, and the effect follows; -EINPROGRESS, one
 * after another; or any of these. An action that is only accepted and cannot be observed takes
 * effect at once, because the engine could not wait for it.
 */
enum model_finish { AT_ONCE, ACCEPTED, WORKER, MIXED };

struct model_profile {
	bool slices;
	uint32_t slice_min_us, slice_max_us;
	uint32_t slice_us; /* the hardware's default */
	bool slice_us_told;
	uint32_t max_held; /* 0 = tasks cannot be held */
	enum model_sight activity;
	bool activity_of_held; /* activity of held tasks is seen, too */
	bool events;           /* only with exact activity */
	bool running_seen;
	enum model_sight run;
	bool held_seen, slice_seen;
	enum model_finish finish;
	uint64_t cost_ns;        /* longest time of an action that does not end at once */
	unsigned drop_permille;  /* observations that lack a field */
	unsigned blind_permille; /* observations that fail as a whole */
};

struct model_task {
	bool present, attached;
	uint64_t key;
	bool shown; /* was observed since attach; from then on fields may be missing */

	bool active;
	uint64_t busy_ns, idle_ns; /* approximate length of work and pauses; GP_NEVER = for good */
	uint64_t toggles_ns;
	uint64_t active_since_ns;

	bool held;
	uint32_t slice_us; /* 0 = the hardware's default */
	bool on_hardware;
	uint64_t run_ns, run_at_attach_ns;

	uint64_t sample_ns; /* 0 = none yet */
	uint64_t sample_run_ns;
	bool sample_known, sample_active;
	bool was_free; /* idle and released since the last sample */
};

enum model_action { MODEL_SET_SLICE, MODEL_HOLD, MODEL_RELEASE };

struct model_effect {
	uint64_t at_ns, order;
	enum model_action kind;
	uint32_t task;
	uint32_t slice_us;
	bool in_progress; /* observations show it as under way */
};

struct model {
	struct gp_gpu base;
	struct model_profile profile;
	struct gp_rng rng;
	uint64_t now_ns;
	struct model_task task[MODEL_TASKS];
	uint64_t next_key, next_order;

	struct model_effect effect[MODEL_EFFECTS];
	unsigned effects;
	uint64_t worker_free_ns;

	uint32_t current; /* with slices: the task that has the slice */
	uint64_t left_ns; /* rest of its slice */
	uint64_t sample_at_ns;

	bool signalled; /* the event; cleared by the caller */
	bool stop_on_signal;

	/* Callbacks for watchers. A piece is a time in which nothing changes; on_hardware tells
	 * which tasks ran. */
	void (*on_piece)(void *arg, uint64_t length_ns);
	void (*on_call)(void *arg, enum model_action kind, uint32_t task, uint32_t slice_us);
	void (*on_effect)(void *arg, uint32_t task);
	void *arg;
};

static inline bool model_is_tiny(const struct model_task *t)
{
	return t->slice_us >= 1 && t->slice_us <= GP_TINY_SLICE_US;
}

bool model_has_pending(const struct model *m, uint32_t task);

/* Which tasks run. */

/* Spontaneous changes. */

void model_set_active(struct model *m, uint32_t task, bool active);
void model_set_rhythm(struct model *m, uint32_t task, uint64_t busy_ns, uint64_t idle_ns);

/* Advances to `to_ns`, or to the next event if stop_on_signal is set. */
void model_advance(struct model *m, uint64_t to_ns);

/* Tasks come and leave. */

/* Returns its index, which is also its handle; MODEL_TASKS = no room. Starts idle. */
uint32_t model_enter(struct model *m);
void model_leave(struct model *m, uint32_t task);

/* The back end. */

void model_init(struct model *m, const struct model_profile *profile, uint64_t seed);

#endif
