/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine on a model of a device (property_model.h), with checks at every action and its effect,
 * in every piece of time between ticks, and after every tick. The checks, by the numbers that
 * failures carry:
 *   (1) plans are legal, the device is not asked for more than it can, no policy is ejected
 *   (2) unmanaged tasks are never changed, and tasks that become unmanaged are restored
 *   (3) a task that a user holds is not released, and ends held
 *   (4) gangs are planned and end as one; everything ends as planned
 *   (5) no task that wants the device goes without it for longer than the limit
 *   (6) with `priority` and its defaults, if everything can be seen: no inversion lasts longer than
 *       a tick and an action
 *   (7) never two released best-effort tasks with a tiny slice, at any instant
 *   (8) with `priority`: the tiny slice only if no task but lc tasks may be running
 *   (9) the same seed gives the same plans and actions
 * (10) only tasks that ask for a promise are refused
 */
#ifndef GP_TESTS_PROPERTY_WORLD_H
#define GP_TESTS_PROPERTY_WORLD_H

#include "support/test.h"

#include "engine/engine.h"
#include "property_model.h"

#define MS           GP_NS_PER_MS
#define STARVE_LIMIT (10 * GP_NS_PER_S)
#define CALM_NS      (45 * MS) /* after this time and CALM_TICKS, everything is as planned */
#define CALM_TICKS   8u
#define ALL          1000u      /* max_held of a device that can hold any number */
#define AGE_AFTER_NS (100 * MS) /* the defaults of `priority` */
#define AGE_RUN_NS   (10 * MS)
#define CHECK_NS     MS /* the engine's check_lc_ns */

/* What the test itself set and saw of a task, by index in the model. */
struct subject {
	struct gp_task_attr attr;
	uint64_t id;    /* in the engine; 0 = not seen yet */
	uint32_t index; /* in the view */
	bool user_hold;
	bool was_managed, was_user_held; /* at any time */
	bool by_user;                    /* is_user_held and class_of_gang, cached between ticks */
	uint8_t gang_class;

	bool want_hold; /* as last planned, or as the user wants */
	uint32_t want_slice_us;
	uint64_t wanted_since_ns;
	unsigned ticks; /* since then */

	uint64_t denied_ns;            /* since when it wants the device and does not get it */
	uint64_t held_ns, released_ns; /* when a hold and a release last took effect */
	uint64_t inverted_ns; /* how long it has waited for tasks of lower rank, or run before
				 others */
	bool was_active, was_held;
};

struct world {
	struct model model;
	struct gp_engine *engine;
	const struct gp_policy_ops *policy;
	struct gp_rng rng;
	uint64_t seed;
	unsigned step;
	struct subject subject[MODEL_TASKS];

	bool tuned;             /* the policy does not have its default parameters */
	bool punctual;          /* the engine is called when it asks, and at events */
	bool steady;            /* few things change */
	uint64_t calm_since_ns; /* since then no task came, left or was changed */

	uint64_t lc_busy_ns;    /* while calm */
	uint64_t be_beside_ns;  /* time in which a best-effort task ran all the same */
	uint64_t be_allowed_ns; /* the part of it that is allowed, because the task had just come */
	uint64_t longest_denied_ns;
	uint64_t hash;
	bool tells;
	char failure[400]; /* the first failure; empty = none */
};

__attribute__((format(printf, 2, 3))) void breach(struct world *w, const char *format, ...);

__attribute__((format(printf, 2, 3))) void tell(const struct world *w, const char *format, ...);

static inline uint64_t below(struct world *w, uint64_t bound)
{
	return gp_rng_below(&w->rng, bound);
}

static inline bool chance(struct world *w, unsigned permille)
{
	return below(w, 1000) < permille;
}

/* The real state of tasks. */

unsigned count_user_held(const struct world *w);
void disturb(struct world *w);

/* Checks at every action and its effect. */

/* Checks between ticks: starvation and inversions. */

#define AGE_SLICE_US 2000u

/* Checks after every tick. */

/* One step. */

/* One tick, now. */
void tick(struct world *w);
void pass_time(struct world *w, uint64_t to_ns);
int world_init(struct world *w, const struct gp_policy_choice *choice,
	       const struct model_profile *profile, uint64_t seed);

/* What the test does to tasks. */

/* Users hold no more tasks than the device can hold; the other case has its own test. */
static inline bool users_ask_too_much(const struct world *w)
{
	return count_user_held(w) > w->model.profile.max_held;
}

void note_status(struct world *w, uint32_t i);
void change_user_hold(struct world *w, uint32_t i);

#endif
