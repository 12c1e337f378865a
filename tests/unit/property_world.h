/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine on a model of a device (property_model.h), and somebody who watches both: at every
 * action and its effect, in every piece of time between looks, and after every look. What is
 * watched, by the numbers that failures carry:
 *   (1) plans are legal, the device is not asked for more than it can, no policy is ejected
 *   (2) unmanaged tasks are never touched, and those that become unmanaged are put back
 *   (3) what a user holds is not released, and ends held
 *   (4) gangs are planned and end as one; everything ends as planned
 *   (5) nobody who wants the device goes without any for longer than the limit
 *   (6) with `priority` as it comes, where everything can be seen: no inversion outlasts a look
 *       and an action
 *   (7) never two released best-effort tasks with a tiny slice, at any instant
 *   (8) with `priority`: the tiny slice only where nobody else but lc tasks may be running
 *   (9) the same seed, the same plans and actions
 *  (10) refused is only who asks for a promise
 */
#ifndef GP_TESTS_PROPERTY_WORLD_H
#define GP_TESTS_PROPERTY_WORLD_H

#include <stdarg.h>

#include "engine/engine.h"
#include "property_model.h"

#define MS           GP_NS_PER_MS
#define STARVE_LIMIT (10 * GP_NS_PER_S)
#define CALM_NS      (45 * MS) /* after that, and so many looks, everything is as planned */
#define CALM_TICKS   8u
#define ALL          1000u      /* max_held of a device that can hold any number */
#define AGE_AFTER_NS (100 * MS) /* the defaults of `priority` */
#define AGE_RUN_NS   (10 * MS)
#define CHECK_NS     MS /* the engine's check_lc_ns */

/* What the test itself said and saw of a task, by the model's place. */
struct subject {
	struct gp_task_attr attr;
	uint64_t id;    /* the engine's; 0 = it has not seen it yet */
	uint32_t index; /* in the view */
	bool user_hold;
	bool was_managed, was_user_held; /* ever */
	bool by_user;                    /* is_user_held and class_of_gang, between looks */
	uint8_t gang_class;

	bool want_hold; /* as last planned, or as the user wants */
	uint32_t want_slice_us;
	uint64_t wanted_since_ns;
	unsigned ticks; /* since then */

	uint64_t denied_ns;            /* since when it wants the device and gets nothing */
	uint64_t held_ns, released_ns; /* the last time either came into force */
	uint64_t inverted_ns; /* how long it has waited for those below it, or run before others */
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

	bool tuned;             /* the policy has other parameters than its defaults */
	bool punctual;          /* steps come when asked for, and at events */
	bool steady;            /* few things change */
	uint64_t calm_since_ns; /* nobody came, went, or was told anything */

	uint64_t lc_busy_ns;    /* while calm */
	uint64_t be_beside_ns;  /* ... and a best-effort task ran all the same */
	uint64_t be_allowed_ns; /* ... because it had just come */
	uint64_t longest_denied_ns;
	uint64_t hash;
	bool tells;
	char failure[400]; /* the first; empty = none */
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

/* The truth about tasks. */

unsigned count_user_held(const struct world *w);
void disturb(struct world *w);

/* At every action and its effect. */

/* Between looks: starvation and inversions. */

#define AGE_SLICE_US 2000u

/* After every look. */

/* A step. */

/* One look, now. */
void world_tick(struct world *w);
void pass_time(struct world *w, uint64_t to_ns);
int world_init(struct world *w, const struct gp_policy_choice *choice,
               const struct model_profile *profile, uint64_t seed);

/* What the test does to tasks. */

/* Users hold no more tasks than the device can: what happens then is another test's subject. */
static inline bool users_ask_too_much(const struct world *w)
{
	return count_user_held(w) > w->model.profile.max_held;
}

void note_status(struct world *w, uint32_t i);
void change_user_hold(struct world *w, uint32_t i);

#endif
