/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks with deadlines on a simulated device, for the tests of `edf` and `lax`: counts what was
 * done late, from the scheduled arrival of each request, and who was refused.
 */
#ifndef TESTS_UNIT_DEADLINE_WORLD_H
#define TESTS_UNIT_DEADLINE_WORLD_H

#include "support/test.h"

#include "base/log.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "sim/model/sim_gpu.h"

#define US          GP_NS_PER_US
#define MS          GP_NS_PER_MS
#define S           GP_NS_PER_S

#define WORLD_TASKS 64

struct world {
	struct gp_sim_device device;
	struct gp_engine_config config;
	uint64_t seed;
	uint64_t duration_ns;
	uint32_t n;
	struct gp_sim_task task[WORLD_TASKS];
	struct gp_task_attr attr[WORLD_TASKS];
	uint64_t *arrival_ns[WORLD_TASKS]; /* owned; of those with a trace */

	/* What came of it. */
	struct gp_engine *engine;
	uint64_t missed[WORLD_TASKS]; /* finished after deadline_ns, counted from arrival */
	uint64_t finished[WORLD_TASKS];
	uint64_t longest_ns[WORLD_TASKS]; /* from arrival */
	uint64_t runs[WORLD_TASKS];       /* how often it came on the device */
	uint64_t work_ns[WORLD_TASKS];
	struct gp_task_stats stats[WORLD_TASKS];
	struct gp_engine_stats engine_stats;
	char ejected[200];
};

/* A device without slices that tells of every change; with an H200's costs times permille/1000. */
void deadline_world_init(struct world *w, uint64_t permille);

/* An H200 as it is. */
void world_show_samples(struct world *w);

/* What a policy takes a change of hands to cost on this device: demand.c. */
uint64_t world_change_ns(const struct world *w);
uint32_t world_add(struct world *w, struct gp_sim_task task, uint64_t deadline_ns,
                   uint64_t budget_ns);

/* A request each period that takes what its task says. */
uint32_t world_add_service(struct world *w, uint64_t deadline_ns, uint64_t every_ns,
                           uint64_t budget_ns);

/* Never pauses. */
uint32_t world_add_job(struct world *w);

/* Runs it under "edf" or "lax:hysteresis=500". */
void world_run(struct world *w, const char *policy);
unsigned world_refused(const struct world *w);

/* Random sets. */

struct draw {
	unsigned sets;
	unsigned most;            /* tasks with a deadline; gangs count as one */
	uint64_t low, high;       /* permille of the device that they ask for together */
	uint64_t change_permille; /* a change of hands is this part of the shortest deadline */
	uint64_t cost_permille;   /* of an H200's */
	bool any_costs;           /* of its own, whatever an H200's are */
	bool equal;               /* all have the shortest deadline */
	bool sporadic;      /* at random times, a deadline apart at least; the first all at once */
	bool request_marks; /* requests of several kernels with gaps, on a blind device ... */
	bool sampled;       /* ... or on an H200 as it is: slices, and samples of activity */
	bool silent;        /* one in three has no brackets; on a device that must be told */
	bool unannounced;   /* the device tells only who asks */
	bool cwsr;          /* AMD's way: an MI300X at its full costs */
	bool gangs;         /* two tasks each, which work at the same time */
};

static inline uint64_t draw_between(struct gp_rng *rng, uint64_t low, uint64_t high)
{
	return low + gp_rng_below(rng, high - low + 1);
}

/* Half of the budget is spent on the host, in between and before: nobody else has the device then.
 */
void split_request(struct world *w, uint32_t i);

/* Nobody who was promised a deadline misses it, and nobody else starves. */
void world_check(const struct world *w, const char *policy);

/* Draws and runs sets, all of them different. Returns how many had somebody refused. */
unsigned run_sets(const char *policy, const struct draw *draw);
void world_run_choice(struct world *w, const struct gp_policy_choice *choice);
/* Of all that were promised. */
uint64_t world_missed(const struct world *w);
void world_free(struct world *w);

#endif
